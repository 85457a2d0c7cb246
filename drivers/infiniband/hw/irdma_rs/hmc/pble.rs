// SPDX-License-Identifier: GPL-2.0

//! Page buffer list entries (PBLE): lists of the pages behind a registration or a ring.
//!
//! The lists live in the last array of the host memory. Space is handed out in granules of eight
//! entries, contiguous in index space (level 1); a long list for which no contiguous space is left
//! becomes a list of lists of 512 entries (level 2), if the caller can use one. Memory is added a
//! segment at a time when the space that has memory is exhausted, and stays until unload.

#[cfg(CONFIG_KUNIT = "y")]
mod model_test;

use super::{
    fpm::{
        Extent,
        SEGMENT, //
    },
    objects::Object,
    segment::{
        Batch,
        Segment, //
    },
    Hmc,
    State, //
};
use crate::cqp::cmd::MrPages;
use kernel::{
    bitmap::BitmapVec,
    dma::DmaAddress,
    prelude::*,
    sizes::SZ_4K,
    sync::Arc, //
};

/// Entries in a granule.
const GRANULE: usize = 8;

/// Bytes in an entry.
const ENTRY: u64 = 8;

/// Entries in a leaf of a level 2 list.
const LEAF: usize = 512;

/// A contiguous run of granules.
#[derive(Clone, Copy)]
struct Run {
    first: usize,
    len: usize,
}

/// Which granules are in use, and how many have memory.
pub(super) struct Allocator {
    used: BitmapVec,
    /// Usable granules.
    limit: usize,
    /// Granules below this one have memory.
    backed: usize,
}

impl Allocator {
    pub(super) fn new(extent: &Extent) -> Result<Self> {
        let limit = usize::try_from(extent.count)? / GRANULE;
        let mut used = BitmapVec::new(limit.max(1), GFP_KERNEL)?;
        // The device wants the usable part to start on a page.
        // CAST: Widening of a constant.
        let page = SZ_4K as u64;
        let skipped = extent
            .base
            .checked_next_multiple_of(page)
            .ok_or(EIO)?
            .wrapping_sub(extent.base)
            .div_ceil(ENTRY * GRANULE as u64);
        for granule in 0..usize::try_from(skipped)?.min(limit) {
            used.set_bit(granule);
        }
        Ok(Self {
            used,
            limit,
            backed: 0,
        })
    }

    /// Takes `len` granules in a row that have memory.
    fn take(&mut self, len: usize) -> Option<Run> {
        let mut start = 0;
        loop {
            let first = self.used.next_zero_bit(start)?;
            let end = first.checked_add(len)?;
            if end > self.backed {
                return None;
            }
            match self.used.next_bit(first) {
                Some(taken) if taken < end => start = taken,
                _ => {
                    for granule in first..end {
                        self.used.set_bit(granule);
                    }
                    return Some(Run { first, len });
                }
            }
        }
    }

    fn give_back(&mut self, run: Run) {
        for granule in run.first..run.first.saturating_add(run.len).min(self.limit) {
            self.used.clear_bit(granule);
        }
    }
}

impl Hmc {
    /// Adds the memory of one more segment to the page buffer lists.
    ///
    /// # Errors
    ///
    /// `ENOMEM` when all of the array has memory already, or when there is none to be had; those of
    /// the control operation. Nothing has changed then, but for memory that the device may know.
    fn grow(&self, state: &mut State) -> Result {
        let extent = self.extents.get(Object::Pble);
        let State { segments, pbles } = state;
        if pbles.backed >= pbles.limit {
            return Err(ENOMEM);
        }
        // CAST: Widening.
        let address = extent.base + pbles.backed as u64 * ENTRY * GRANULE as u64;
        let index = u32::try_from(address / SEGMENT)?;
        // CAST: Widening.
        let place = segments.get_mut(index as usize).ok_or(ENOMEM)?;
        if let Segment::Absent = place {
            let segment = Segment::direct(&self.port).or_else(|_| Segment::paged(&self.port))?;
            segment.invalidate(&self.port, index)?;
            let entry = segment.entry(index);
            // The segment is owned by the table from here on: the device may know it.
            *place = segment;
            let mut batch = Batch::new(self.port.pf_id());
            let announced = batch
                .push(&self.cqp, entry)
                .and_then(|()| batch.flush(&self.cqp));
            if let Err(failure) = announced {
                if !failure.in_flight() {
                    *place = Segment::Absent;
                }
                return Err(failure.into());
            }
        }
        let end = (u64::from(index) + 1) * SEGMENT;
        // CAST: Widening of a constant.
        let backed = (end - extent.base) / (ENTRY * GRANULE as u64);
        pbles.backed = usize::try_from(backed)?.min(pbles.limit);
        Ok(())
    }

    /// Takes `entries` entries in a row, growing the memory as needed.
    fn take_run(&self, state: &mut State, entries: usize) -> Result<Run> {
        let len = entries.div_ceil(GRANULE);
        loop {
            if let Some(run) = state.pbles.take(len) {
                return Ok(run);
            }
            self.grow(state)?;
        }
    }

    /// Takes space for a list of `entries` pages. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` for no entries, `ENOMEM` when there is no room, and those of the control operation
    /// that announces memory.
    pub(crate) fn alloc_pbles(self: &Arc<Self>, entries: usize, levels: Levels) -> Result<Pbles> {
        if entries == 0 {
            return Err(EINVAL);
        }
        let mut state = self.state.lock();
        if entries.div_ceil(GRANULE) > state.pbles.limit {
            // Growing could not help, and what has been taken stays.
            return Err(ENOMEM);
        }
        let mut pbles = Pbles {
            hmc: self.clone(),
            root: None,
            leaves: KVec::new(),
            entries,
        };
        let contiguous = self.take_run(&mut state, entries);
        let failed = match contiguous {
            Ok(run) => match pbles.leaves.push(run, GFP_KERNEL) {
                Ok(()) => None,
                Err(error) => {
                    state.pbles.give_back(run);
                    Some(error.into())
                }
            },
            Err(error) if entries <= LEAF || matches!(levels, Levels::One) => Some(error),
            Err(_) => pbles.take_levels(self, &mut state).err(),
        };
        // The destructor takes the lock.
        drop(state);
        failed.map_or(Ok(pbles), Err)
    }
}

/// How many levels a list may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Levels {
    /// Rings: the entries have to be contiguous.
    One,
    /// Registrations.
    OneOrTwo,
}

/// Space for one list of pages. Dropping it frees the space.
pub(crate) struct Pbles {
    hmc: Arc<Hmc>,
    /// Of a level 2 list, the list of leaves.
    root: Option<Run>,
    /// The one run of a level 1 list, or the leaves of a level 2 list.
    leaves: KVec<Run>,
    entries: usize,
}

impl Pbles {
    fn take_levels(&mut self, hmc: &Hmc, state: &mut State) -> Result {
        let leaves = self.entries.div_ceil(LEAF);
        self.leaves.reserve(leaves, GFP_KERNEL)?;
        self.root = Some(hmc.take_run(state, leaves)?);
        for _ in 0..leaves {
            let run = hmc.take_run(state, LEAF)?;
            // The room was reserved above.
            if let Err(error) = self.leaves.push(run, GFP_KERNEL) {
                state.pbles.give_back(run);
                return Err(error.into());
            }
        }
        Ok(())
    }

    fn index_of(run: Run) -> Result<u32> {
        Ok(u32::try_from(
            run.first.checked_mul(GRANULE).ok_or(EOVERFLOW)?,
        )?)
    }

    /// Index of the first entry, of the list of leaves if there is one.
    ///
    /// # Errors
    ///
    /// None that can happen with indices below 2^32, which the device's are.
    pub(crate) fn index(&self) -> Result<u32> {
        let first = self.root.or_else(|| self.leaves.first().copied());
        Self::index_of(first.ok_or(EINVAL)?)
    }

    /// The list, as an operation that registers memory names it.
    pub(crate) fn pages(&self) -> Result<MrPages> {
        let index = self.index()?;
        Ok(match self.root {
            None => MrPages::Level1(index),
            Some(_) => MrPages::Level2(index),
        })
    }

    /// Writes the list.
    ///
    /// # Errors
    ///
    /// `EINVAL` unless there is exactly one address per entry.
    pub(crate) fn fill(&self, addresses: impl Iterator<Item = DmaAddress>) -> Result {
        let state = self.hmc.state.lock();
        let mut written = 0usize;
        let per_run = if self.root.is_some() {
            LEAF
        } else {
            self.entries
        };
        for address in addresses {
            if written >= self.entries {
                return Err(EINVAL);
            }
            let run = self.leaves.get(written / per_run).ok_or(EINVAL)?;
            self.hmc
                .write_entry(&state, run.first * GRANULE + written % per_run, address)?;
            written += 1;
        }
        if written != self.entries {
            return Err(EINVAL);
        }
        if let Some(root) = self.root {
            for (place, leaf) in (root.first * GRANULE..).zip(self.leaves.iter()) {
                self.hmc
                    .write_entry(&state, place, u64::from(Self::index_of(*leaf)?))?;
            }
        }
        Ok(())
    }
}

impl Hmc {
    fn write_entry(&self, state: &State, index: usize, value: u64) -> Result {
        let base = self.extents.get(Object::Pble).base;
        // CAST: Widening.
        let address = (index as u64)
            .checked_mul(ENTRY)
            .and_then(|offset| offset.checked_add(base))
            .ok_or(ERANGE)?;
        let word = usize::try_from(address / ENTRY)?;
        state
            .segments
            .get(word / Segment::WORDS)
            .ok_or(ERANGE)?
            .write(word % Segment::WORDS, value)
    }
}

impl Drop for Pbles {
    fn drop(&mut self) {
        let mut state = self.hmc.state.lock();
        if let Some(run) = self.root {
            state.pbles.give_back(run);
        }
        for run in &self.leaves {
            state.pbles.give_back(*run);
        }
    }
}

#[kunit_tests(irdma_rs_pble)]
mod tests {
    use super::*;

    fn allocator(granules: usize, base: u64) -> Result<Allocator> {
        let mut allocator = Allocator::new(&Extent {
            base,
            // CAST: Widening.
            count: (granules * GRANULE) as u64,
            size: ENTRY,
        })?;
        allocator.backed = granules;
        Ok(allocator)
    }

    #[test]
    fn runs_do_not_overlap_and_come_back() -> Result {
        let mut a = allocator(128, 0)?;
        let one = a.take(3).ok_or(ENOMEM)?;
        let two = a.take(100).ok_or(ENOMEM)?;
        assert!(one.first + one.len <= two.first);
        assert!(a.take(26).is_none());
        a.give_back(one);
        assert_eq!(a.take(2).map(|run| run.first), Some(one.first));
        assert!(a.take(26).is_none());
        a.give_back(two);
        assert!(a.take(100).is_some());
        Ok(())
    }

    #[test]
    fn starts_on_a_page() -> Result {
        // 4096 - 512 bytes are 56 granules of 64 bytes.
        let mut a = allocator(128, 512)?;
        assert_eq!(a.take(1).map(|run| run.first), Some(56));
        Ok(())
    }

    #[test]
    fn nothing_without_memory() -> Result {
        let mut a = allocator(128, 0)?;
        a.backed = 4;
        assert!(a.take(5).is_none());
        assert!(a.take(4).is_some());
        assert!(a.take(1).is_none());
        Ok(())
    }
}
