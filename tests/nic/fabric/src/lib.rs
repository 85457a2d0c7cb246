// SPDX-License-Identifier: GPL-2.0
//! The Ethernet fabric of the rack: one switch or several, a [`Port`] for each NIC and each plain guest.
//!
//! A frame that a port sends passes the port's transmit [`Impairments`](impair::Impairments), is
//! captured, is forwarded by the switch, waits in the queue of each port it goes to, passes
//! that port's receive impairments, is captured there and is handed to the device. Every port has a
//! delivery thread of its own and sending only ever queues, so two devices that send to each other
//! from within their receive paths cannot block one another.
//!
//! "Transmit" and "receive" are the attached device's words everywhere in this crate.

pub mod capture;
pub mod clock;
pub mod counters;
pub mod fdb;
pub mod forward;
pub mod frame;
pub mod impair;
pub mod port;
pub mod queue;
pub mod recent;
pub mod snoop;
pub mod stream;
pub mod switch;
pub mod view;
pub mod vlan;

pub use port::{Port, Receiver};
pub use switch::Fabric;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The direction of a frame, as the attached device sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the device into the fabric.
    Transmit,
    /// From the fabric to the device.
    Receive,
}

impl Direction {
    /// The short name used in control commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Transmit => "tx",
            Self::Receive => "rx",
        }
    }

    /// The direction that `name` means.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Transmit, Self::Receive]
            .into_iter()
            .find(|direction| direction.name() == name)
    }
}

/// Locks `mutex`; a panic elsewhere leaves nothing here half done, so poisoning is no reason to stop.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
