// SPDX-License-Identifier: GPL-2.0

//! The send ring of the control queue pair: slots, polarity, and who waits for what.
//!
//! The type holds the driver's side only and touches neither registers nor the ring's memory, so
//! that its rules can be read, and tested, by themselves.

use super::{
    request::Pending,
    wqe::WORDS,
    Failure,
    Op,
    Wqe, //
};
use crate::mem::DmaWords;
use kernel::{
    prelude::*,
    sync::{
        barrier::{
            dma_mb,
            Write, //
        },
        Arc, //
    },
    time::{
        Delta,
        Instant,
        Monotonic, //
    },
};

/// An operation that is on the ring.
pub(super) struct Slot {
    /// Which one, for messages.
    pub(super) op: Op,
    /// Who wants to know.
    pub(super) pending: Arc<dyn Pending>,
    /// When it was put there.
    pub(super) posted: Instant<Monotonic>,
}

/// What to store and ring after [`Ring::post`].
pub(super) struct Posted {
    /// Slot of the entry.
    pub(super) index: u16,
    /// Head after the increment, for the doorbell.
    pub(super) head: u16,
    /// The entry.
    pub(super) words: [u64; WORDS],
}

/// Whether and how operations reach the device.
#[derive(Clone, Copy)]
enum State {
    /// They do.
    Alive,
    /// They do not, for this reason.
    Dead(Error),
}

/// Where completions are found, and who says so.
#[derive(Clone, Copy)]
pub(super) enum Mode {
    /// In the tail register; there is no CCQ.
    Tail,
    /// In the CCQ, and nobody says so.
    Polled,
    /// In the CCQ, announced by an event queue.
    Events,
}

impl Mode {
    const fn name(self) -> &'static str {
        match self {
            Self::Tail => "tail",
            Self::Polled => "polled",
            Self::Events => "events",
        }
    }
}

/// The state of a ring at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingView {
    /// Why no operation reaches the device, if none does.
    pub(crate) dead: Option<Error>,
    /// Where completions are found.
    pub(crate) mode: &'static str,
    /// Operations that have not ended.
    pub(crate) outstanding: u16,
    /// The oldest of them, and for how long it has been there.
    pub(crate) oldest: Option<(Op, Delta)>,
}

impl RingView {
    /// Most operations that can be outstanding.
    pub(crate) const CAPACITY: u16 = Ring::ENTRIES - 1;
}

/// The driver's side of the ring.
///
/// # Invariants
///
/// `slots` has `ENTRIES` places; those from `tail` to `head` (modulo `ENTRIES`) were handed to the
/// device and are not retired yet; at least one place is not in that range.
pub(super) struct Ring {
    slots: KVec<Option<Slot>>,
    head: u16,
    tail: u16,
    /// Valid bit of the current pass.
    polarity: bool,
    state: State,
    mode: Mode,
    /// When the device last completed something, or when the ring last became non-empty.
    progress: Instant<Monotonic>,
}

impl Ring {
    /// Places on the ring.
    pub(super) const ENTRIES: u16 = 2048;

    /// The device's code of that size: the binary logarithm less one.
    // CAST: Widening of a constant.
    pub(super) const SIZE_CODE: u64 = Self::ENTRIES.ilog2() as u64 - 1;

    /// An empty ring that takes no operation before [`Self::revive`].
    pub(super) fn new() -> Result<Self> {
        let mut slots = KVec::with_capacity(usize::from(Self::ENTRIES), GFP_KERNEL)?;
        for _ in 0..Self::ENTRIES {
            slots.push(None, GFP_KERNEL)?;
        }
        Ok(Self {
            slots,
            head: 0,
            tail: 0,
            polarity: false,
            state: State::Dead(ENODEV),
            mode: Mode::Tail,
            progress: Instant::now(),
        })
    }

    const fn next(index: u16) -> u16 {
        index.wrapping_add(1) % Self::ENTRIES
    }

    /// The device has the queue pair: operations may follow.
    pub(super) fn revive(&mut self) {
        self.state = State::Alive;
    }

    pub(super) fn is_alive(&self) -> bool {
        matches!(self.state, State::Alive)
    }

    /// Operations that were handed to the device and have not ended, as many as places are taken.
    pub(super) fn outstanding(&self) -> u16 {
        self.head.wrapping_sub(self.tail) % Self::ENTRIES
    }

    /// The state to look at.
    pub(super) fn view(&self) -> RingView {
        RingView {
            dead: self.usable().err(),
            mode: self.mode.name(),
            outstanding: self.outstanding(),
            oldest: match self.slots.get(usize::from(self.tail)) {
                Some(Some(oldest)) => Some((oldest.op, oldest.posted.elapsed())),
                _ => None,
            },
        }
    }

    /// Fails with the reason of a dead ring.
    pub(super) fn usable(&self) -> Result {
        match self.state {
            State::Alive => Ok(()),
            State::Dead(reason) => Err(reason),
        }
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    pub(super) fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Whether events tell of completions.
    pub(super) fn has_events(&self) -> bool {
        self.is_alive() && matches!(self.mode, Mode::Events)
    }

    /// Takes the next place.
    ///
    /// # Errors
    ///
    /// `NotSent` with the reason of a dead ring, or `EAGAIN` when the ring is full.
    pub(super) fn post(
        &mut self,
        op: Op,
        entry: &Wqe,
        pending: Arc<dyn Pending>,
    ) -> Result<Posted, Failure> {
        self.usable()?;
        let index = self.head;
        let head = Self::next(index);
        if head == self.tail {
            return Err(Failure::NotSent(EAGAIN));
        }
        let place = self
            .slots
            .get_mut(usize::from(index))
            .ok_or(Failure::NotSent(ERANGE))?;
        let posted = Instant::now();
        if self.head == self.tail {
            self.progress = posted;
        }
        *place = Some(Slot {
            op,
            pending,
            posted,
        });
        if index == 0 {
            self.polarity = !self.polarity;
        }
        self.head = head;
        Ok(Posted {
            index,
            head,
            words: entry.finish(op, self.polarity),
        })
    }

    /// The device completed the entry at `index`, a number from the device.
    pub(super) fn complete(&mut self, index: u16) -> Option<Slot> {
        let slot = self.slots.get_mut(usize::from(index))?.take()?;
        self.progress = Instant::now();
        self.advance();
        Some(slot)
    }

    /// Frees the places at the tail that have been completed.
    fn advance(&mut self) {
        while self.tail != self.head && matches!(self.slots.get(usize::from(self.tail)), Some(None))
        {
            self.tail = Self::next(self.tail);
        }
    }

    /// Takes the oldest operation off the ring, whether the device completed it or not.
    pub(super) fn retire_oldest(&mut self) -> Option<Slot> {
        self.advance();
        if self.tail == self.head {
            return None;
        }
        self.complete(self.tail)
    }

    /// Whether something is outstanding and nothing has completed for `limit`.
    pub(super) fn has_stalled(&self, limit: Delta) -> bool {
        self.is_alive() && self.tail != self.head && self.progress.elapsed() > limit
    }

    /// Whether the oldest operation is outstanding for longer than `limit`, whatever came after it.
    pub(super) fn has_lost(&self, limit: Delta) -> bool {
        self.is_alive()
            && matches!(
                self.slots.get(usize::from(self.tail)),
                Some(Some(oldest)) if oldest.posted.elapsed() > limit
            )
    }

    /// Ends a living ring; tells the oldest outstanding operation. `None` if it was dead before or
    /// if nothing is outstanding.
    pub(super) fn die(&mut self, reason: Error) -> Option<Op> {
        if !self.is_alive() {
            return None;
        }
        let op = self.slots.get(usize::from(self.tail))?.as_ref()?.op;
        self.state = State::Dead(reason);
        Some(op)
    }

    /// Ends the ring; the reason of a ring already dead stays.
    pub(super) fn shut(&mut self, reason: Error) {
        if self.is_alive() {
            self.state = State::Dead(reason);
        }
    }
}

/// Stores an entry in the ring's memory, the header with the valid bit last.
pub(super) fn store(sq: &DmaWords, index: u16, words: &[u64; WORDS]) -> Result {
    const HEADER: usize = 3;

    let base = usize::from(index) * WORDS;
    for (offset, word) in words.iter().enumerate() {
        if offset != HEADER {
            sq.write(base + offset, *word)?;
        }
    }
    // Pairs with the device reading the header before the rest.
    dma_mb(Write);
    sq.write(base + HEADER, words[HEADER])
}

#[kunit_tests(irdma_rs_cqp_ring)]
mod tests {
    use super::*;

    struct Nobody;

    impl Pending for Nobody {
        fn finish(&self, _: super::super::Outcome) {}
    }

    fn nobody() -> Result<Arc<dyn Pending>> {
        Ok(Arc::new(Nobody, GFP_KERNEL)?)
    }

    fn valid(posted: &Posted) -> bool {
        posted.words[3] >> 63 == 1
    }

    #[test]
    fn full_ring_refuses_and_polarity_toggles() -> Result {
        let mut ring = Ring::new()?;
        ring.revive();
        for index in 0..Ring::ENTRIES - 1 {
            let posted = ring.post(Op::CreateQp, &Wqe::new(), nobody()?)?;
            assert_eq!(posted.index, index);
            assert!(valid(&posted));
        }
        assert!(matches!(
            ring.post(Op::CreateQp, &Wqe::new(), nobody()?),
            Err(Failure::NotSent(EAGAIN))
        ));
        assert!(ring.complete(0).is_some());
        assert!(ring.complete(0).is_none());
        assert_eq!(ring.post(Op::CreateQp, &Wqe::new(), nobody()?)?.index, 2047);
        assert!(ring.complete(1).is_some());
        let posted = ring.post(Op::CreateQp, &Wqe::new(), nobody()?)?;
        assert_eq!(posted.index, 0);
        assert!(!valid(&posted));
        Ok(())
    }

    #[test]
    fn dead_ring_keeps_its_reason() -> Result {
        let mut ring = Ring::new()?;
        ring.revive();
        ring.post(Op::CreateCq, &Wqe::new(), nobody()?)?;
        assert_eq!(ring.die(ETIMEDOUT), Some(Op::CreateCq));
        assert_eq!(ring.die(ETIMEDOUT), None);
        ring.shut(EBUSY);
        assert!(matches!(
            ring.post(Op::CreateQp, &Wqe::new(), nobody()?),
            Err(Failure::NotSent(ETIMEDOUT))
        ));
        assert!(ring.retire_oldest().is_some());
        assert!(ring.retire_oldest().is_none());
        Ok(())
    }

    #[test]
    fn index_from_the_device_is_checked() -> Result {
        let mut ring = Ring::new()?;
        ring.revive();
        assert!(ring.complete(Ring::ENTRIES).is_none());
        assert!(ring.complete(u16::MAX).is_none());
        Ok(())
    }
}
