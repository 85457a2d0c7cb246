// SPDX-License-Identifier: GPL-2.0

//! The ring of a kernel completion queue.
//!
//! The device fills the ring; the shadow area tells it how far the consumer is and whether the
//! consumer wants an event. An event uses an arm up, and rings arrive at the device in order, so a
//! second arm is only sent if it asks for more than the first.

use kernel::{
    prelude::*,
    sync::barrier::{
        dma_mb,
        Full,
        Read,
        Write, //
    },
};

use super::{
    cqe::{
        Cqe,
        CqeStatus,
        ShadowArm,
        ENTRY_WORDS,
        SHADOW_ARM,
        SHADOW_INDEX,
        STATUS, //
    },
    memory::Words,
};

/// What an event was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Armed {
    /// Nothing.
    No,
    /// The next solicited completion, or error.
    Solicited,
    /// The next completion.
    Any,
}

/// A completion ring; locked by its completion queue.
///
/// # Invariants
///
/// `head` is below `entries`, and the memory has that many entries.
pub(crate) struct CompletionRing<M> {
    memory: M,
    shadow: M,
    entries: u32,
    /// The entry to read next.
    head: u32,
    /// Valid bit of the current pass; the first pass uses `true`.
    polarity: bool,
    armed: Armed,
    arm: ShadowArm,
}

impl<M: Words> CompletionRing<M> {
    /// Creates a ring of `entries` in zeroed `memory`, with a zeroed shadow area.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there are fewer than two entries, the room a completion can need.
    pub(crate) fn new(memory: M, shadow: M, entries: u32) -> Result<Self> {
        if entries < 2 {
            return Err(EINVAL);
        }
        // INVARIANT: The memory is as large as the caller says.
        Ok(Self {
            memory,
            shadow,
            entries,
            head: 0,
            polarity: true,
            armed: Armed::No,
            arm: ShadowArm::zeroed(),
        })
    }

    fn next(&self, index: u32, polarity: bool) -> (u32, bool) {
        if index + 1 >= self.entries {
            (0, !polarity)
        } else {
            (index + 1, polarity)
        }
    }

    fn is_valid(&self, index: u32, polarity: bool) -> Result<bool> {
        let status = CqeStatus::from_raw(self.memory.read(index * ENTRY_WORDS + STATUS)?);
        Ok(status.valid().into_bool() == polarity)
    }

    fn entry(&self, index: u32) -> Result<[u64; 4]> {
        let base = index * ENTRY_WORDS;
        Ok([
            self.memory.read(base)?,
            self.memory.read(base + 1)?,
            self.memory.read(base + 2)?,
            self.memory.read(base + 3)?,
        ])
    }

    /// Returns whether the device has written a completion that was not taken yet.
    pub(crate) fn has_next(&self) -> bool {
        self.is_valid(self.head, self.polarity).unwrap_or(false)
    }

    /// Takes the next completion; [`CompletionRing::release`] then has to follow.
    pub(crate) fn take(&mut self) -> Result<Option<Cqe>> {
        if !self.is_valid(self.head, self.polarity)? {
            return Ok(None);
        }
        // Orders the valid bit before the words it vouches for; the device writes it last.
        dma_mb(Read);
        let words = self.entry(self.head)?;
        let [.., status] = words;
        let (mut index, mut polarity) = self.next(self.head, self.polarity);

        let extension = if CqeStatus::from_raw(status).extended().into_bool() {
            // Its valid bit is its own; until it is there the completion is not whole.
            if !self.is_valid(index, polarity)? {
                return Ok(None);
            }
            // Orders that valid bit before the words of the extension.
            dma_mb(Read);
            let words = self.entry(index)?;
            (index, polarity) = self.next(index, polarity);
            Some(words)
        } else {
            None
        };
        // INVARIANT: `next` wraps.
        (self.head, self.polarity) = (index, polarity);
        Ok(Some(Cqe::decode(words, extension)))
    }

    /// Tells the device that the entries taken so far may be written again.
    pub(crate) fn release(&self) -> Result {
        // Orders the loads from the entries before the store that lets the device write them again.
        dma_mb(Full);
        self.shadow.write(SHADOW_INDEX, u64::from(self.head))
    }

    /// Asks for an event and returns whether the doorbell has to be rung.
    pub(crate) fn arm(&mut self, wanted: Armed) -> Result<bool> {
        if wanted <= self.armed {
            return Ok(false);
        }
        let seq = (self.arm.seq().get() + 1) % 4;
        let arm = self
            .arm
            .try_with_seq(seq)?
            .with_next_se(true)
            .with_next(wanted == Armed::Any);
        self.shadow.write(SHADOW_ARM, arm.into_raw())?;
        self.arm = arm;
        self.armed = wanted;
        // Orders the shadow area before the doorbell that makes the device read it.
        dma_mb(Write);
        Ok(true)
    }

    /// Returns what an event was asked for.
    pub(crate) fn armed(&self) -> Armed {
        self.armed
    }

    /// Notes that the arm was used up.
    pub(crate) fn disarm(&mut self) {
        self.armed = Armed::No;
    }
}

#[kernel::macros::kunit_tests(irdma_rs_cq)]
mod tests {
    use super::*;
    use crate::queues::memory::fake::FakeWords;
    use kernel::sync::Arc;

    const VALID: u64 = 1 << 63;
    const EXTENDED: u64 = 1 << 50;

    /// The device's side of a ring.
    struct Producer {
        words: Arc<FakeWords>,
        entries: u32,
        index: u32,
        valid: bool,
    }

    impl Producer {
        fn put(&mut self, context: u64, status: u64) -> Result {
            let valid = if self.valid { VALID } else { 0 };

            self.words.write(self.index * 4 + 1, context)?;
            self.words.write(self.index * 4 + 3, status | valid)?;
            self.index += 1;
            if self.index == self.entries {
                self.index = 0;
                self.valid = !self.valid;
            }
            Ok(())
        }
    }

    fn ring(entries: u32) -> Result<(CompletionRing<Arc<FakeWords>>, Producer, Arc<FakeWords>)> {
        let count = usize::try_from(entries).map_err(|_| EINVAL)? * 4;
        let words = FakeWords::new(count)?;
        let shadow = FakeWords::new(8)?;
        let producer = Producer {
            words: words.clone(),
            entries,
            index: 0,
            valid: true,
        };
        Ok((
            CompletionRing::new(words, shadow.clone(), entries)?,
            producer,
            shadow,
        ))
    }

    #[test]
    fn takes_each_completion_once_over_many_passes() -> Result {
        let (mut ring, mut device, shadow) = ring(5)?;

        for i in 1..50 {
            // Single and double entries in turn, so that doubles straddle the end.
            if i % 2 == 0 {
                device.put(i, EXTENDED)?;
                assert!(ring.take()?.is_none());
                device.put(0, 0)?;
            } else {
                device.put(i, 0)?;
            }
            assert!(ring.has_next());
            let cqe = ring.take()?.ok_or(EIO)?;
            assert_eq!(cqe.context, i);
            assert_eq!(cqe.extension.is_some(), i % 2 == 0);
            assert!(!ring.has_next());
            assert!(ring.take()?.is_none());
            ring.release()?;
            assert_eq!(shadow.read(0)?, u64::from(device.index));
        }
        Ok(())
    }

    #[test]
    fn arms_once_and_upgrades() -> Result {
        let (mut ring, _, shadow) = ring(8)?;

        assert!(ring.arm(Armed::Solicited)?);
        assert_eq!(shadow.read(4)?, 0x1_8000);
        assert!(!ring.arm(Armed::Solicited)?);
        assert!(ring.arm(Armed::Any)?);
        assert_eq!(shadow.read(4)?, 0x2_c000);
        assert!(!ring.arm(Armed::Any)?);
        assert!(!ring.arm(Armed::Solicited)?);
        ring.disarm();
        assert!(ring.arm(Armed::Solicited)?);
        assert_eq!(shadow.read(4)?, 0x3_8000);
        ring.disarm();
        assert!(ring.arm(Armed::Any)?);
        assert_eq!(shadow.read(4)?, 0xc000);
        Ok(())
    }
}
