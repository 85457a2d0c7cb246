// SPDX-License-Identifier: GPL-2.0

//! How callers wait for their operations, and when the device is asked for an event.
//!
//! A device answers within microseconds; an event and a change of tasks cost more than that. So who
//! has given an order looks for the answer himself, over and over for [`LOOK`] at most, and ends the
//! operations that the device carried out before his. He sleeps when the time is up or when another
//! task should run. As long as anybody looks, those that sleep need no event.
//!
//! The rule that no completion is missed by: *while an operation is outstanding, a caller looks, or an
//! event is armed, or one is on its way* ([`Watch`](super::watch::Watch), guarded by the CCQ's lock).
//! So an event is armed by
//!
//! - who goes to sleep, after the operation was posted ([`Cqp::watch`]);
//! - who stops looking, for those that sleep;
//! - who leaves an operation to a closure, under the lock that it is posted under;
//! - the handler of an event, when it has taken what was there.
//!
//! None of them arms what is armed already, and all but the third leave it to those who look. All but
//! the third look once more after an arm: the device need not raise an event for what it wrote before
//! it saw the arm.
//!
//! A sleeper that finds a completion which should have been announced arms anew, and so does the
//! watchdog, so that a lost event delays once and not for ever ([`Cqp::catch_up`]). Nobody says that the
//! device does not answer before he has looked himself.

use super::{
    ccq::Ccq,
    request::{
        Callback,
        Pending,
        Waiter, //
    },
    Command,
    Cqp,
    Failure,
    Mode,
    Op,
    Outcome,
    Ring,
    Wqe,
    POLL_SLICE, //
};
use crate::{
    events::Budget,
    regs::*, //
};
use kernel::{
    alloc::Flags,
    prelude::*,
    processor::cpu_relax,
    sync::Arc,
    time::{
        delay::{
            fsleep,
            udelay, //
        },
        Delta,
        Instant,
        Monotonic,
        Msecs, //
    },
};
use rdma::sys::cpu::need_resched;

/// How long a caller looks for the answer before it sleeps.
const LOOK: Delta = Delta::from_micros(50);

/// A sleeping caller looks for completions itself this often, so that a lost event only delays it.
const WAIT_SLICE: Msecs = 10;

/// A caller that may not sleep looks for completions this often.
const SPIN_SLICE: Delta = Delta::from_micros(5);

impl Cqp {
    /// Carries out `command` and waits for the answer. Process context, may sleep.
    pub(crate) fn execute<C: Command>(&self, command: &C) -> Result<C::Answer, Failure> {
        let entry = command.wqe()?;
        let mode = self.ring.lock().mode();
        let outcome = match mode {
            Mode::Tail => self.execute_by_tail(C::OP, &entry),
            Mode::Polled => self.execute_polling(C::OP, &entry),
            Mode::Events => self.execute_sleeping(C::OP, &entry),
        };
        self.not_sent(C::OP, outcome)
            .map(|completed| command.answer(completed))
    }

    /// Carries out `command` and waits for the answer without sleeping. Any context but with no
    /// lock held that a completion needs; spins for as long as the device takes.
    pub(crate) fn execute_atomic<C: Command>(&self, command: &C) -> Result<C::Answer, Failure> {
        let entry = command.wqe()?;
        let waiter = Waiter::new(GFP_ATOMIC)?;
        let posted = self.post(C::OP, &entry, waiter.clone());
        self.not_sent(C::OP, posted)?;
        let outcome = loop {
            if let Some(outcome) = self.poll_for(&waiter) {
                break outcome;
            }
            self.check_progress();
            udelay(SPIN_SLICE);
        };
        outcome.map(|completed| command.answer(completed))
    }

    /// Hands `command` to the device and returns. `done` is called exactly once with the answer, in
    /// any context, with no lock held, possibly before this returns; it is not called when this
    /// fails.
    ///
    /// Operations are carried out in the order they were submitted in.
    pub(crate) fn submit<C, F>(&self, command: C, done: F, gfp: Flags) -> Result<(), Failure>
    where
        C: Command + Send + Sync + 'static,
        F: FnOnce(Result<C::Answer, Failure>) + Send + 'static,
    {
        let entry = command.wqe()?;
        let pending = Callback::new(command, done, gfp)?;
        let posted = self.post_watched(C::OP, &entry, pending.clone());
        self.not_sent(C::OP, posted)
    }

    /// Posts an operation that nobody looks for: an event is armed before, and no event of before
    /// is handled between the two.
    fn post_watched(&self, op: Op, entry: &Wqe, pending: Arc<dyn Pending>) -> Result<(), Failure> {
        let mut ccq = self.ccq.lock();
        if let Some(ccq) = (*ccq).as_mut() {
            if !ccq.watch.is_armed() && self.ring.lock().has_events() {
                self.arm(ccq);
            }
        }
        self.post(op, entry, pending)
    }

    fn execute_sleeping(&self, op: Op, entry: &Wqe) -> Outcome {
        let waiter = Waiter::new(GFP_KERNEL)?;
        loop {
            match self.post(op, entry, waiter.clone()) {
                Ok(()) => break,
                // The ring is full: wait for the device to make room.
                Err(Failure::NotSent(EAGAIN)) => {
                    fsleep(Delta::from_millis(i64::from(WAIT_SLICE)));
                    self.poll();
                    self.check_progress();
                }
                Err(failure) => return Err(failure),
            }
        }
        self.look(&waiter);
        loop {
            if let Some(outcome) = waiter.outcome() {
                return outcome;
            }
            if self.watch() {
                self.poll();
            }
            if waiter.wait(WAIT_SLICE) {
                continue;
            }
            self.catch_up();
        }
    }

    /// Takes what no event has told of, and only then judges whether the device still answers. Any
    /// context.
    pub(crate) fn catch_up(&self) {
        if self.poll() > 0 {
            // What told of it is lost, or late.
            self.arm_anew();
        }
        self.check_progress();
    }

    /// Looks for completions until `waiter` has its outcome, for [`LOOK`] at most.
    fn look(&self, waiter: &Waiter) {
        if let Some(ccq) = (*self.ccq.lock()).as_mut() {
            ccq.watch.begin_look();
        }
        let start = Instant::<Monotonic>::now();
        loop {
            let found = self.poll_one();
            if waiter.outcome().is_some() || need_resched() || start.elapsed() > LOOK {
                break;
            }
            if !found {
                cpu_relax();
            }
        }
        let armed = (*self.ccq.lock()).as_mut().is_some_and(|ccq| {
            ccq.watch.end_look();
            self.keep_watch(ccq)
        });
        if armed {
            self.poll();
        }
    }

    /// Carries out an operation whose completion is in the CCQ, with nobody to announce it.
    fn execute_polling(&self, op: Op, entry: &Wqe) -> Outcome {
        let waiter = Waiter::new(GFP_KERNEL)?;
        self.post(op, entry, waiter.clone())?;
        loop {
            if let Some(outcome) = self.poll_for(&waiter) {
                return outcome;
            }
            self.check_progress();
            fsleep(POLL_SLICE);
        }
    }

    /// Ends operations until `waiter` has its outcome, or nothing more has completed. Any context.
    pub(super) fn poll_for(&self, waiter: &Waiter) -> Option<Outcome> {
        poll_for(|| waiter.outcome(), || self.poll_one())
    }

    /// Sees to it that the next completion is noticed if one is to come. Returns whether it took an
    /// arm, after which the caller looks once more. Any context.
    fn watch(&self) -> bool {
        (*self.ccq.lock())
            .as_mut()
            .is_some_and(|ccq| self.keep_watch(ccq))
    }

    /// The same by who holds the CCQ's lock.
    fn keep_watch(&self, ccq: &mut Ccq) -> bool {
        if ccq.watch.is_kept() {
            return false;
        }
        {
            let ring = self.ring.lock();
            if !ring.has_events() || ring.outstanding() == 0 {
                return false;
            }
        }
        self.arm(ccq);
        true
    }

    /// Asks for an event whether one is asked for or not, since it may never come, and looks once
    /// more. Any context.
    pub(super) fn arm_anew(&self) {
        if let Some(ccq) = (*self.ccq.lock()).as_mut() {
            if self.ring.lock().has_events() {
                self.arm(ccq);
            }
        }
        self.poll();
    }

    /// Asks for an event at the next completion. The caller holds the CCQ's lock.
    fn arm(&self, ccq: &mut Ccq) {
        ccq.arm();
        self.port.write_reg(PFPE_CQARM::from(0));
    }

    /// The event of the CCQ has come. Any context; [`Cqp::after_event`] follows.
    pub(crate) fn event(&self) {
        if let Some(ccq) = (*self.ccq.lock()).as_mut() {
            ccq.watch.fired();
        }
        self.port.write_reg(PFPE_CQACK::from(0));
    }

    /// Takes the completions that an event told of, and sees to it that those still to come are
    /// noticed, too. Any context.
    ///
    /// Returns false if `budget` ended before; the caller comes back then.
    pub(crate) fn after_event(&self, budget: &mut Budget) -> bool {
        loop {
            if budget.is_spent() {
                return false;
            }
            if self.poll_one() {
                budget.spend();
            } else if !self.watch() {
                return true;
            }
        }
    }
}

/// Calls `poll_one` until there is an `outcome`, or nothing to poll.
///
/// Operations complete in order, so no more than are on the ring come before one's own; a device that
/// makes up more is left to the next call.
fn poll_for<T>(outcome: impl Fn() -> Option<T>, mut poll_one: impl FnMut() -> bool) -> Option<T> {
    for _ in 0..Ring::ENTRIES {
        let found = outcome();
        if found.is_some() || !poll_one() {
            return found;
        }
    }
    outcome()
}

#[kunit_tests(irdma_rs_cqp_wait)]
mod tests {
    use super::*;
    use core::cell::Cell;

    /// Polls with `there` completions, of which the one at `mine` is one's own; tells how many were
    /// taken, and whether the own one was among them.
    fn polled(there: usize, mine: usize) -> (usize, bool) {
        let taken = Cell::new(0);
        let outcome = poll_for(
            || (taken.get() > mine).then_some(()),
            || {
                let any = taken.get() < there;
                taken.set(taken.get() + usize::from(any));
                any
            },
        );
        (taken.get(), outcome.is_some())
    }

    #[test]
    fn ones_own_completion_is_the_last_that_is_taken() {
        assert_eq!(polled(0, 0), (0, false));
        assert_eq!(polled(5, 5), (5, false));
        assert_eq!(polled(5, 4), (5, true));
        assert_eq!(polled(5, 0), (1, true));
        assert_eq!(polled(usize::MAX, 3), (4, true));
        let last = usize::from(Ring::ENTRIES) - 1;
        assert_eq!(polled(usize::MAX, last), (last + 1, true));
    }

    #[test]
    fn a_device_that_makes_up_completions_holds_nobody_for_ever() {
        assert_eq!(
            polled(usize::MAX, usize::MAX),
            (usize::from(Ring::ENTRIES), false)
        );
    }
}
