// SPDX-License-Identifier: GPL-2.0

//! The control queue pair (CQP): how the driver gives orders to the device.
//!
//! One operation is one type that implements [`Command`]: its fields, its answer, its layout
//! ([`cmd`]). The ring ([`ring`]) knows nothing of operations. Completions come back through the
//! CCQ, the control completion queue ([`ccq`]), or, while there is none, through a tail register.
//!
//! Three ways to give an order:
//!
//! - [`Cqp::execute`] waits and may sleep: the normal way.
//! - [`Cqp::execute_atomic`] waits without sleeping, for the few verbs that may not sleep.
//! - [`Cqp::submit`] does not wait; the answer goes to a closure that runs in any context.
//!
//! How callers learn of completions, and when the device is asked for an event, says [`wait`].
//!
//! # When the device does not answer
//!
//! If nothing at all completes for [`STALL`] while something is outstanding, or if one operation is
//! outstanding for [`LOST`] whatever else completes, the queue is dead: all
//! outstanding operations end with [`Failure::TimedOut`], all later ones with
//! [`Failure::NotSent`]`(ETIMEDOUT)` at once, no doorbell is written any more, and one reset of the
//! function is requested. Memory and ids that a failed operation leaves with the device go to
//! [`Cqp::keep`] until the control queue pair is gone. The same way a reset announced by
//! the LAN driver ends all operations ([`Cqp::shut`]).
//!
//! # Locking
//!
//! The CCQ's lock is taken before the ring's; neither is held while a waiter is woken or a closure
//! runs. Both are usable in any context.
//!
//! Interrupts are off from before an operation is taken off the ring until whoever waits for it has
//! been told ([`Cqp::ended`] wants to see that): he may spin with interrupts off and hold a lock, and
//! must not have to wait for a task that does not run, or that wants this lock.

mod ccq;
pub(crate) mod cmd;
mod error;
mod kept;
mod life;
mod op;
mod request;
mod ring;
#[cfg(CONFIG_KUNIT = "y")]
mod ring_test;
mod stats;
mod wait;
mod watch;
mod wqe;

pub(crate) use error::{
    Code,
    Failure, //
};
pub(crate) use op::Op;
pub(crate) use ring::RingView;
pub(crate) use stats::OpCounts;
pub(crate) use wqe::Wqe;

use crate::{
    lan::Port,
    mem::DmaWords,
    regs::*,
    trace, //
};
use ccq::Ccq;
use kept::Kept;
use kernel::{
    interrupt::{
        local_interrupt_disable,
        LocalInterruptDisabled, //
    },
    io::poll::read_poll_timeout,
    new_mutex,
    new_spinlock_irq,
    prelude::*,
    sync::{
        atomic::{
            AtomicFlag,
            Relaxed, //
        },
        Arc,
        Mutex,
        SpinLockIrq, //
    },
    time::Delta, //
};
use life::CONTEXT_WORDS;
use request::Waiter;
use ring::{
    Mode,
    Posted,
    Ring,
    Slot, //
};
use stats::Stats;

/// Without any completion for this long, the device has stalled.
pub(crate) const STALL: Delta = Delta::from_secs(5);

/// Operations complete in order: one that is outstanding for this long while others complete is lost.
const LOST: Delta = Delta::from_secs(20);

/// Without any completion for this long, the device may have been reset.
const LATE: Delta = Delta::from_millis(200);

/// A waiter that no event wakes looks for completions this often.
const POLL_SLICE: Delta = Delta::from_micros(20);

/// How long an operation may take that completes through the tail register.
const TAIL_TIMEOUT: Delta = Delta::from_millis(500);

/// What a successful completion carries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completed {
    /// Return value of the operation.
    pub(crate) return_value: u32,
    /// Minor code, a result of some operations.
    pub(crate) minor: u16,
}

/// Outcome of an operation before it is given its type.
pub(crate) type Outcome = Result<Completed, Failure>;

/// An operation of the control queue pair.
pub(crate) trait Command {
    /// Operation code.
    const OP: Op;

    /// What the device answers on success.
    type Answer;

    /// The entry, without operation code and valid bit.
    ///
    /// # Errors
    ///
    /// `EOVERFLOW` when a value does not fit its field, `EINVAL` when one is not allowed.
    fn wqe(&self) -> Result<Wqe>;

    /// Reads the answer.
    fn answer(&self, completed: Completed) -> Self::Answer;
}

/// The control queue pair of one function.
#[pin_data]
pub(crate) struct Cqp {
    port: Arc<Port>,
    sq: DmaWords,
    context: DmaWords,
    /// Serialises operations that complete through the tail register: only one may be outstanding.
    #[pin]
    tail_mode: Mutex<()>,
    #[pin]
    ring: SpinLockIrq<Ring>,
    #[pin]
    ccq: SpinLockIrq<Option<Ccq>>,
    /// A completion that made no sense has been reported.
    complained: AtomicFlag,
    #[pin]
    stats: Stats,
    /// What the device may still use.
    #[pin]
    kept: SpinLockIrq<Kept>,
}

impl Cqp {
    /// Allocates the queue pair; the device knows nothing of it yet.
    pub(crate) fn new(port: Arc<Port>) -> Result<Arc<Self>> {
        let sq = port.alloc(usize::from(Ring::ENTRIES) * wqe::WORDS)?;
        let context = port.alloc(CONTEXT_WORDS)?;
        let ring = Ring::new()?;
        Arc::pin_init(
            pin_init!(Self {
                port,
                sq,
                context,
                tail_mode <- new_mutex!((), "Cqp::tail_mode"),
                ring <- new_spinlock_irq!(ring, "Cqp::ring"),
                ccq <- new_spinlock_irq!(None, "Cqp::ccq"),
                complained: AtomicFlag::new(false),
                stats <- Stats::new(),
                kept <- new_spinlock_irq!(Kept::new(), "Cqp::kept"),
            }),
            GFP_KERNEL,
        )
    }

    /// Keeps `item` until the device has let go of everything: an operation on it did not get
    /// through, so the device may still use it. Any context.
    pub(crate) fn keep(&self, item: impl Send + Sync + 'static) {
        match kept::wrap(item) {
            Ok(node) => self.kept.lock().push(node),
            // `wrap` has given it up for good, which is safe, only wasteful.
            Err(_) => dev_err!(
                self.port.log(),
                "no memory to keep track of what the device may still use; giving it up\n"
            ),
        }
    }

    /// Hands `memory` of a finished operation back, or keeps it if the operation is in flight.
    pub(crate) fn reclaim<A, T>(&self, answer: Result<A, Failure>, memory: T) -> Result<T, Failure>
    where
        T: Send + Sync + 'static,
    {
        match answer {
            Ok(_) => Ok(memory),
            Err(failure) => {
                if failure.in_flight() {
                    self.keep(memory);
                }
                Err(failure)
            }
        }
    }

    fn error_registers(&self) -> Code {
        let codes = self
            .port
            .read(PFPE_CQPERRCODES)
            .unwrap_or(PFPE_CQPERRCODES::from(0));
        Code {
            major: codes.cqp_major_code().cast::<u16>().get(),
            minor: codes.cqp_minor_code().cast::<u16>().get(),
        }
    }

    /// From now on an event queue announces completions: waiters may sleep.
    pub(crate) fn events_on(&self) {
        self.ring.lock().set_mode(Mode::Events);
        self.arm_anew();
    }

    /// From now on nobody announces completions: waiters have to look.
    pub(crate) fn events_off(&self) {
        let mut ring = self.ring.lock();
        if let Mode::Events = ring.mode() {
            ring.set_mode(Mode::Polled);
        }
    }

    /// Carries out an operation whose completion shows in the tail register, and, once the device
    /// has the CCQ, in its memory as well.
    fn execute_by_tail(&self, op: Op, entry: &Wqe) -> Outcome {
        let _alone = self.tail_mode.lock();
        let waiter = Waiter::new(GFP_KERNEL)?;
        let before = self.port.read(PFPE_CQPTAIL)?.wqtail();
        self.post(op, entry, waiter.clone())?;

        let tail = read_poll_timeout(
            || self.port.read(PFPE_CQPTAIL),
            |tail| tail.wqtail() != before,
            Delta::from_micros(10),
            TAIL_TIMEOUT,
        );
        match tail {
            Ok(tail) if tail.cqp_op_err().into_bool() => {
                let code = self.error_registers();
                self.retire(&waiter, Err(Failure::Refused(code)));
            }
            Ok(_) => self.retire(
                &waiter,
                Ok(Completed {
                    return_value: 0,
                    minor: 0,
                }),
            ),
            Err(_) => self.die(),
        }
        // Somebody else who ends everything may have it, and not have told yet: the device got it.
        waiter.outcome().unwrap_or(Err(Failure::TimedOut))
    }

    /// Completes the one outstanding operation of tail mode.
    fn retire(&self, waiter: &Waiter, outcome: Outcome) {
        let off = local_interrupt_disable();
        if let Some((slot, outstanding)) = self.take_oldest(&off) {
            self.ended(slot, outcome, outstanding, &off);
        }
        drop(off);
        waiter.set(outcome);
    }

    /// Puts an entry on the ring and rings the doorbell.
    fn post(&self, op: Op, entry: &Wqe, pending: Arc<dyn request::Pending>) -> Result<(), Failure> {
        let mut ring = self.ring.lock();
        // A closure that is refused is dropped with `pending`, after the lock.
        let Posted { index, head, words } = ring.post(op, entry, pending.clone())?;
        // The slot was free, so the device does not look at it: body first, header last.
        ring::store(&self.sq, index, &words)?;
        self.port.write_reg(PFPE_CQPDB::from(u32::from(head)));
        Ok(())
    }

    /// Takes all completions that are there and ends their operations, but no more than there can be
    /// at a time: those that come meanwhile somebody else notices. Any context.
    ///
    /// Returns how many there were.
    fn poll(&self) -> usize {
        (0..Ring::ENTRIES).take_while(|_| self.poll_one()).count()
    }

    /// Takes a completion and ends its operation. Returns false if there is none. Any context.
    fn poll_one(&self) -> bool {
        let off = local_interrupt_disable();
        let ended = {
            let mut ccq = self.ccq.lock_with(&off);
            let Some(cqe) = (*ccq).as_mut().and_then(Ccq::next) else {
                return false;
            };
            let mut ring = self.ring.lock_with(&off);
            ring.complete(cqe.index)
                .map(|slot| (slot, cqe.outcome, ring.outstanding()))
        };
        match ended {
            Some((slot, outcome, outstanding)) => self.ended(slot, outcome, outstanding, &off),
            None => self.complain_once(),
        }
        true
    }

    /// A completion of something that is not outstanding: said once, then ignored.
    ///
    /// On a dead queue it is a late answer, which was not waited for any more.
    fn complain_once(&self) {
        if self.is_alive() && !self.complained.xchg(true, Relaxed) {
            dev_err!(
                self.port.log(),
                "control queue pair: the device completed an operation that is not outstanding\n"
            );
        }
    }

    /// Declares the queue dead if the device has stalled, or was reset behind the driver's back. Any
    /// context.
    fn check_progress(&self) {
        let (late, stalled) = {
            let ring = self.ring.lock();
            (
                ring.has_stalled(LATE),
                ring.has_stalled(STALL) || ring.has_lost(LOST),
            )
        };
        if late && !self.exists() {
            self.shut(EBUSY);
        } else if stalled {
            self.die();
        }
    }

    /// Whether the device has the queue pair. It has not after a reset of the function, of which the
    /// driver may not have heard yet.
    pub(crate) fn exists(&self) -> bool {
        self.port
            .read(PFPE_CCQPSTATUS)
            .is_ok_and(|status| status.ccqp_done().into_bool())
    }

    /// The device does not answer: ends everything and asks for a reset, once.
    fn die(&self) {
        let Some(op) = self.ring.lock().die(ETIMEDOUT) else {
            return;
        };
        dev_err!(
            self.port.log(),
            "{op}: no answer from the device, requesting a reset of the function\n"
        );
        self.port.request_reset();
        self.drain();
    }

    /// The device has failed for good: ends all operations and asks for a reset of the function. Any
    /// context.
    pub(crate) fn reset(&self) {
        self.shut(EBUSY);
        self.port.request_reset();
    }

    /// Ends all operations, now and later, with `reason`: the function is going away or is being
    /// reset. Nothing is written to the device any more.
    pub(crate) fn shut(&self, reason: Error) {
        self.ring.lock().shut(reason);
        self.drain();
    }

    /// Whether operations still reach the device.
    pub(crate) fn is_alive(&self) -> bool {
        self.ring.lock().is_alive()
    }

    /// Fails with the reason why operations do not reach the device, if they do not.
    pub(crate) fn usable(&self) -> Result {
        self.ring.lock().usable()
    }

    /// Ends what is outstanding on a dead ring.
    fn drain(&self) {
        loop {
            let off = local_interrupt_disable();
            let Some((slot, outstanding)) = self.take_oldest(&off) else {
                return;
            };
            self.ended(slot, Err(Failure::TimedOut), outstanding, &off);
        }
    }

    /// Takes the oldest operation off the ring; tells how many others are outstanding.
    fn take_oldest(&self, off: &LocalInterruptDisabled) -> Option<(Slot, u16)> {
        let mut ring = self.ring.lock_with(off);
        let slot = ring.retire_oldest()?;

        Some((slot, ring.outstanding()))
    }

    /// Notes how an operation ended, prints what nobody expects, and tells who waits. Any context, no
    /// lock held, interrupts off since before the operation was taken off the ring.
    fn ended(&self, slot: Slot, outcome: Outcome, outstanding: u16, _off: &LocalInterruptDisabled) {
        let duration = slot.posted.elapsed();

        self.stats.count(slot.op, duration, outcome);
        trace::cqp(self.port.log(), slot.op, duration, outcome, outstanding);
        if let Err(Failure::Refused(code)) = outcome {
            if code == Code::FATAL {
                self.reset();
            }
            if !code.is_expected() {
                self.stats.complain(self.port.log(), slot.op, code);
            }
        }
        slot.pending.finish(outcome);
    }

    /// Notes an operation that the device was not asked for; [`Self::ended`] sees all others.
    fn not_sent<T>(&self, op: Op, result: Result<T, Failure>) -> Result<T, Failure> {
        if let Err(failure @ Failure::NotSent(_)) = result {
            self.stats.count(op, Delta::ZERO, Err(failure));
            let outstanding = self.ring.lock().outstanding();
            trace::cqp(self.port.log(), op, Delta::ZERO, Err(failure), outstanding);
        }
        result
    }

    /// What became of the commands of an operation so far. Any context.
    pub(crate) fn counts(&self, op: Op) -> OpCounts {
        self.stats.counts(op)
    }

    /// The state of the ring. Any context.
    pub(crate) fn ring_view(&self) -> RingView {
        self.ring.lock().view()
    }
}
