// SPDX-License-Identifier: GPL-2.0

//! Group indexes: the device's names of multicast groups.
//!
//! Index 0 is reserved and the command has room for indexes below 4096; a device may have granted
//! fewer group objects. An index is free again only when the device said that the group is gone: the
//! one of a command that timed out is never freed, as the device may still act on it.
//!
//! Free indexes wait in a ring and are handed out in the order in which they became free, so that
//! each comes back as late as possible, and taking one costs the same however many are in use.

use kernel::{
    bitmap::BitmapVec,
    prelude::*, //
};

/// Indexes the group commands can name.
const MAX_INDEXES: u32 = 4096;

/// The index of a group: at least 1, and below the limit of the pool it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupIndex(u16);

impl GroupIndex {
    /// Returns the number as the commands carry it.
    pub(crate) const fn get(self) -> u16 {
        self.0
    }
}

/// The indexes of one device.
///
/// # Invariants
///
/// `len` is at most `ring.len()`. The `len` places from `head` on, modulo `ring.len()`, hold the
/// indexes whose bit in `used` is clear, each once.
pub(crate) struct IndexPool {
    ring: KVec<u16>,
    head: usize,
    len: usize,
    used: BitmapVec,
}

impl IndexPool {
    /// Returns the first index that is out of range on a device that granted `objects` group objects.
    pub(crate) fn limit_for(objects: u32) -> u16 {
        u16::try_from(objects.min(MAX_INDEXES)).unwrap_or(0)
    }

    /// Creates a pool of the indexes from 1 up to, and without, `limit`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(limit: u16) -> Result<Self> {
        let mut ring = KVec::with_capacity(usize::from(limit), GFP_KERNEL)?;

        for index in 1..limit {
            ring.push(index, GFP_KERNEL)?;
        }
        // INVARIANT: All indexes are in the ring, and no bit is set.
        Ok(Self {
            head: 0,
            len: ring.len(),
            ring,
            used: BitmapVec::new(usize::from(limit.max(1)), GFP_KERNEL)?,
        })
    }

    /// Returns how many groups can exist at a time.
    pub(crate) fn capacity(limit: u16) -> u32 {
        u32::from(limit.saturating_sub(1))
    }

    /// Returns the place `steps` behind `head`, both at most the length of the ring.
    fn place(&self, steps: usize) -> usize {
        let place = self.head + steps;

        if place >= self.ring.len() {
            place - self.ring.len()
        } else {
            place
        }
    }

    fn is_used(&self, index: u16) -> bool {
        let index = usize::from(index);
        self.used.next_bit(index) == Some(index)
    }

    /// Takes the index that has been free for longest.
    pub(crate) fn take(&mut self) -> Option<GroupIndex> {
        if self.len == 0 {
            return None;
        }
        let index = *self.ring.get(self.head)?;

        // INVARIANT: Out of the ring, and marked.
        self.head = self.place(1);
        self.len -= 1;
        self.used.set_bit(usize::from(index));
        Some(GroupIndex(index))
    }

    /// Gives an index back that the device no longer knows. One that is free already stays so.
    pub(crate) fn release(&mut self, index: GroupIndex) {
        if !self.is_used(index.0) {
            return;
        }
        let end = self.place(self.len);
        if let Some(place) = self.ring.get_mut(end) {
            // INVARIANT: In the ring, and not marked any more. As it was marked, it was not in the
            // ring, which therefore had room.
            *place = index.0;
            self.len += 1;
            self.used.clear_bit(usize::from(index.0));
        }
    }
}

#[kernel::macros::kunit_tests(irdma_rs_mcast_index)]
mod tests {
    use super::*;

    #[test]
    fn hands_out_exactly_what_the_limit_allows() -> Result {
        for limit in [0, 1, 2, 64, 65, 4096] {
            let mut pool = IndexPool::new(limit)?;
            let mut n = 0;
            let mut last = None;

            while let Some(index) = pool.take() {
                assert!(index.get() > 0 && index.get() < limit);
                last = Some(index);
                n += 1;
            }
            assert_eq!(n, IndexPool::capacity(limit));
            if let Some(index) = last {
                pool.release(index);
                assert_eq!(pool.take(), Some(index));
                assert!(pool.take().is_none());
            }
        }
        Ok(())
    }

    #[test]
    fn hands_out_what_was_free_for_longest() -> Result {
        let mut pool = IndexPool::new(4)?;
        let (one, two) = (pool.take().ok_or(EINVAL)?, pool.take().ok_or(EINVAL)?);

        assert_eq!((one.get(), two.get()), (1, 2));
        pool.release(two);
        pool.release(one);
        // A second time changes nothing.
        pool.release(one);
        for index in [3, 2, 1] {
            assert_eq!(pool.take().map(|i| i.get()), Some(index));
        }
        assert!(pool.take().is_none());
        Ok(())
    }

    #[test]
    fn never_exceeds_the_command_or_the_grant() {
        for (objects, limit) in [(0, 0), (1, 1), (4095, 4095), (4096, 4096), (65536, 4096)] {
            assert_eq!(IndexPool::limit_for(objects), limit);
        }
    }
}
