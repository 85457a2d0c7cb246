// SPDX-License-Identifier: GPL-2.0

//! Who waits for an operation: a sleeping or spinning caller, or a closure.

use super::{
    Command,
    Failure,
    Outcome, //
};
use kernel::{
    alloc::Flags,
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        SetOnce,
        SpinLockIrq, //
    },
    time::Msecs, //
};
use rdma::sys::completion::Completion;

/// Told once how an operation ended. Any context, no lock held.
pub(super) trait Pending: Send + Sync {
    /// Takes the outcome.
    fn finish(&self, outcome: Outcome);
}

/// A caller that waits.
///
/// The ring holds a reference, so a caller need not outlive the operation and the operation need
/// not end before the caller gives up.
#[pin_data]
pub(super) struct Waiter {
    /// Set, with release ordering, before `done` is signalled.
    outcome: SetOnce<Outcome>,
    #[pin]
    done: Completion,
}

impl Waiter {
    pub(super) fn new(gfp: Flags) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                outcome: SetOnce::new(),
                done <- Completion::new(),
            }),
            gfp,
        )
    }

    /// The outcome, if it is there.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        self.outcome.copy()
    }

    /// Sets the outcome and wakes the caller; only the first time counts.
    pub(super) fn set(&self, outcome: Outcome) {
        if self.outcome.populate(outcome) {
            self.done.complete_all();
        }
    }

    /// Sleeps until there is an outcome, at most for `limit`; tells whether there is one.
    pub(super) fn wait(&self, limit: Msecs) -> bool {
        self.done.wait_timeout(limit)
    }
}

impl Pending for Waiter {
    fn finish(&self, outcome: Outcome) {
        self.set(outcome);
    }
}

/// A closure, until it has been called.
struct Once<F>(Option<F>);

// The closure is only ever moved out.
impl<F> Unpin for Once<F> {}

/// A closure to call.
#[pin_data]
pub(super) struct Callback<C, F> {
    command: C,
    /// Taken by the first to finish.
    #[pin]
    done: SpinLockIrq<Once<F>>,
}

impl<C, F> Callback<C, F>
where
    C: Command + Send + Sync + 'static,
    F: FnOnce(Result<C::Answer, Failure>) + Send + 'static,
{
    pub(super) fn new(command: C, done: F, gfp: Flags) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                command,
                done <- new_spinlock_irq!(Once(Some(done)), "Callback::done"),
            }),
            gfp,
        )
    }
}

impl<C, F> Pending for Callback<C, F>
where
    C: Command + Send + Sync + 'static,
    F: FnOnce(Result<C::Answer, Failure>) + Send + 'static,
{
    fn finish(&self, outcome: Outcome) {
        let done = self.done.lock().0.take();
        if let Some(done) = done {
            done(outcome.map(|completed| self.command.answer(completed)));
        }
    }
}
