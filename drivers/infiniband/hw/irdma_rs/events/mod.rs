// SPDX-License-Identifier: GPL-2.0

//! What the device tells by itself: completion events and asynchronous events.
//!
//! - CEQ, completion event queue: one per interrupt vector, says which completion queues have new
//!   entries ([`ceq`]); handled in the hard interrupt, and what exceeds its [`Budget`] in the
//!   interrupt's thread.
//! - AEQ, asynchronous event queue: one per function, says what went wrong and with which object
//!   ([`aeq`]); handled in process context.
//! - [`table`]: from the number in an event to the object.

pub(crate) mod aeq;
mod budget;
pub(crate) mod ceq;
pub(crate) mod table;
#[cfg(CONFIG_KUNIT = "y")]
mod tests;
pub(crate) mod vectors;

pub(crate) use aeq::{
    AeCode,
    AsyncEvent, //
};
pub(crate) use budget::Budget;
pub(crate) use table::Table;

use kernel::time::Msecs;

/// The half of a completion queue that events reach.
pub(crate) trait CqEvents: Send + Sync {
    /// There are new completions and the queue was armed. Hard interrupt or process context.
    fn completion(&self);

    /// The device reports an error of the queue. Process context.
    fn error(&self);
}

/// The half of a queue pair that events reach.
pub(crate) trait QpEvents: Send + Sync {
    /// The device reports something about the queue pair. Process context; may sleep and may give
    /// orders to the device. Events of one function come one after the other.
    fn event(&self, event: &AsyncEvent);

    /// Has the queue pair stop sending, as its queue set goes away. Process context.
    fn suspend(&self);

    /// Waits until a queue pair that was suspended stands still, for `limit` milliseconds at most; one that does not is
    /// moved to the error state. Process context.
    fn wait_suspended(&self, limit: Msecs);

    /// Has the queue pair go on in a queue set of the new traffic classes; one for which that fails is
    /// moved to the error state. Process context.
    fn resume(&self);
}
