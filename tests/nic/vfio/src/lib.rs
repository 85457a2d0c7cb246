// SPDX-License-Identifier: GPL-2.0
//! A PCI function that lives in a user process and is plugged into QEMU over vfio-user.
//!
//! The parts, from the wire upwards:
//!
//! - [`message`] decodes requests and encodes replies; it knows bytes, not devices;
//! - [`socket`] moves messages and their file descriptors over a UNIX socket;
//! - [`memory`] is the guest's memory as the client mapped it, and is the device's DMA;
//! - [`config`] is the 4 KiB PCI Express configuration space;
//! - [`msix`] holds the event descriptors behind the MSI-X vectors;
//! - [`server`] answers one client, and another after it has gone.
//!
//! What the function does behind its BAR is a [`Backend`], so the server can be tested with a toy
//! device and the device without a server. Everything a client sends is hostile input.

pub mod config;
pub mod memory;
pub mod message;
pub mod msix;
pub mod server;
pub mod socket;

/// Why the function is being reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetCause {
    /// Function level reset through the PCI Express capability.
    FunctionLevel,
    /// The client reset the machine: everything goes to its power-on state.
    Machine,
    /// The client has gone; its memory is not mapped any more.
    Disconnect,
}

/// The device behind the BAR. Calls come from the thread of the connection, one at a time;
/// accesses never reach past the end of the BAR.
pub trait Backend: Send + Sync {
    /// Fills `data` with what the guest reads at `offset` of BAR 0. The guest's vCPU waits.
    fn bar_read(&self, offset: u64, data: &mut [u8]);

    /// Takes what the guest wrote at `offset` of BAR 0.
    fn bar_write(&self, offset: u64, data: &[u8]);

    /// Resets the function; no DMA and no interrupt of the time before may follow once this
    /// returned.
    fn reset(&self, cause: ResetCause);

    /// One line for the device's log.
    fn log(&self, text: std::fmt::Arguments<'_>);
}
