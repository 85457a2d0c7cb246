// SPDX-License-Identifier: GPL-2.0

//! Group indexes: the device's names of multicast groups.
//!
//! Index 0 is reserved and the command has room for indexes below 4096; a device may have granted
//! fewer group objects. An index is free again only when the device said that the group is gone: the
//! one of a command that timed out is never freed, as the device may still act on it.

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
pub(crate) struct IndexPool {
    used: BitmapVec,
    limit: u16,
}

impl IndexPool {
    /// Returns the first index that is out of range on a device that granted `objects` group objects.
    pub(crate) fn limit_for(objects: u32) -> u16 {
        u16::try_from(objects.min(MAX_INDEXES)).unwrap_or(0)
    }

    /// Creates a pool of the indexes from 1 up to, and without, `limit`.
    pub(crate) fn new(limit: u16) -> Result<Self> {
        Ok(Self {
            used: BitmapVec::new(usize::from(limit.max(2)), GFP_KERNEL)?,
            limit,
        })
    }

    /// Returns how many groups can exist at a time.
    pub(crate) fn capacity(limit: u16) -> u32 {
        u32::from(limit.saturating_sub(1))
    }

    /// Takes the lowest free index.
    pub(crate) fn take(&mut self) -> Option<GroupIndex> {
        let free = self.used.next_zero_bit(1)?;
        let index = u16::try_from(free).ok().filter(|i| *i < self.limit)?;

        self.used.set_bit(free);
        Some(GroupIndex(index))
    }

    /// Gives an index back that the device no longer knows.
    pub(crate) fn release(&mut self, index: GroupIndex) {
        self.used.clear_bit(usize::from(index.0));
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
    fn never_exceeds_the_command_or_the_grant() {
        for (objects, limit) in [(0, 0), (1, 1), (4095, 4095), (4096, 4096), (65536, 4096)] {
            assert_eq!(IndexPool::limit_for(objects), limit);
        }
    }
}
