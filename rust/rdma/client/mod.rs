// SPDX-License-Identifier: GPL-2.0

//! RDMA devices as their consumers in the kernel see them.
//!
//! The other modules of this crate are for drivers: there, an object is memory of the RDMA core
//! with a driver's part in it. Here it is the core's object on *any* device, whoever drives it:
//!
//! - [`Client`], [`Registration`]: hear of devices that come and go;
//! - [`Device`]: a device, counted; [`Pd`], [`Cq`]: a protection and a completion queue on it;
//! - [`UdQp`]: a UD queue pair that receives datagrams and hands them to a [`Receiver`];
//! - [`crate::mcast`]: membership of such a queue pair in multicast groups.
//!
//! # Lifetimes
//!
//! Every owner holds what it stands on: a queue pair its completion queue, buffers and domain,
//! those the device. A device that is held waits in `ib_unregister_device()`, so no owner can
//! outlive its device; in return, [`Client::remove`] has to let go of all of them, or the removal
//! of the device never ends. Dropping any owner may sleep.

mod buffer;
mod cq;
mod device;
mod header;
mod pd;
mod registration;
mod ud;

pub use cq::Cq;
pub use device::{
    Device,
    DeviceName,
    PortStatus, //
};
pub use header::{
    IpHeader,
    HEADER_LEN, //
};
pub use pd::Pd;
pub use registration::{
    Client,
    HasSlot,
    Registration,
    Slot, //
};
pub use ud::{
    Datagram,
    Failure,
    Qkey,
    Receiver,
    UdAttrs,
    UdQp, //
};
