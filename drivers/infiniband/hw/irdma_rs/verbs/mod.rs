// SPDX-License-Identifier: GPL-2.0

//! The verbs: what the RDMA core asks of a device and of the objects on it.
//!
//! One file per object, with the names of the core: [`device`], [`ucontext`], [`pd`], [`cq`], [`qp`],
//! [`mr`], [`ah`]. Beside them: [`abi`], what the user library sends along; [`rings`], the memory of
//! user queues; [`pages`], how the device finds memory.
//!
//! # What is there
//!
//! Everything for datagrams, of processes and of the kernel, the GSI and multicast included. RC queue
//! pairs can be created and initialised but not connected: the transition to RTR is refused with
//! `EOPNOTSUPP`. There are no shared receive queues, memory windows, fast registrations and resizing
//! of completion queues; the core is told so by operations that are absent.
//!
//! # When the device refuses to let go
//!
//! Destroying an object succeeds for the caller whatever the device answers. A device that refuses is
//! asked twice ([`destroy`]); what it may still use then goes to [`Dev::keep`], numbers included, until
//! it is reset. Address handles, which come and go with each MAD, are asked for again by the watchdog.

pub(crate) mod abi;
pub(crate) mod ah;
pub(crate) mod cq;
pub(crate) mod device;
pub(crate) mod mr;
pub(crate) mod pages;
pub(crate) mod pd;
pub(crate) mod qp;
pub(crate) mod rings;
pub(crate) mod ucontext;

pub(crate) use device::{
    register,
    Data,
    Irdma, //
};

use crate::{
    cqp::{
        Command,
        Failure, //
    },
    dev::Dev, //
};

/// Carries out a command that destroys something, a second time if the device refused it once.
fn destroy<C: Command>(dev: &Dev, command: &C) -> Result<C::Answer, Failure> {
    match dev.cqp.execute(command) {
        Err(Failure::Refused(_)) => dev.cqp.execute(command),
        other => other,
    }
}
