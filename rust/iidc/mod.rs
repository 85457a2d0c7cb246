// SPDX-License-Identifier: GPL-2.0

//! The interface of Intel's LAN drivers to an RDMA driver ("iidc"), as `ice` offers it.
//!
//! The LAN driver owns the PCI function, its registers' mapping, its vectors and its net device.
//! It publishes an auxiliary device; [`Adapter`] binds a driver to it and hands it a
//! [`Function`], through which everything else is reached. A function stops working when the
//! device is unbound, whoever still holds a count of it.

mod adapter;
mod function;
mod qset;
mod vectors;

pub use adapter::{
    Adapter,
    Driver,
    Event,
    Events, //
};
pub use function::{
    Filter,
    Function,
    Live,
    PciIds,
    QosParams,
    ResetKind,
    TrafficClass, //
};
pub use qset::Qset;
pub use vectors::VectorSet;
