// SPDX-License-Identifier: GPL-2.0
//! The function's private address space in host memory (HMC): where each kind of object lies in it
//! and which host pages back it.
//!
//! The space is cut into segments of 2 MiB. A segment descriptor (SD) names one buffer of that size
//! (direct) or one page of page descriptors (paged). The model stores nothing there itself; it
//! reads page addresses (PBLEs), which the driver writes, and watches that nothing alive loses
//! its backing.

use crate::config::{Config, Kind};
use crate::host::MemError;
use nic_bus::Dma;
use std::collections::BTreeMap;

/// Bytes behind one segment descriptor.
pub(crate) const SEGMENT: u64 = 2 << 20;
/// Bytes of a host page.
pub(crate) const PAGE: u64 = 4096;
/// Unit of the bases in the commit answer.
pub(crate) const BASE_UNIT: u64 = 512;

/// A valid segment descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// One 2 MiB buffer at this address.
    Direct(u64),
    /// A page of 512 page descriptors at this address.
    Paged(u64),
}

/// Where the objects of one kind lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) base: u64,
    pub(crate) count: u32,
    pub(crate) log2: u8,
}

impl Extent {
    fn end(self) -> u64 {
        self.base
            .saturating_add(u64::from(self.count) << self.log2.min(31))
    }
}

/// The committed layout and the segment table.
#[derive(Default)]
pub(crate) struct Hmc {
    extents: BTreeMap<Kind, Extent>,
    segments: BTreeMap<u32, Segment>,
    /// The driver said that all static memory is there.
    pub(crate) pages_allocated: bool,
}

impl Hmc {
    /// Number of valid segments.
    pub(crate) fn segments(&self) -> usize {
        self.segments.len()
    }

    /// Committed number of objects, 0 before the commit.
    pub(crate) fn count(&self, kind: Kind) -> u32 {
        self.extents.get(&kind).map_or(0, |e| e.count)
    }

    /// Lays the objects out in the order of their kinds. Returns base and count of each, or the
    /// number of segments that would be needed.
    pub(crate) fn commit(
        &mut self,
        config: &Config,
        counts: &BTreeMap<Kind, u32>,
    ) -> Result<&BTreeMap<Kind, Extent>, u64> {
        let mut extents = BTreeMap::new();
        let mut next: u64 = 0;
        for (&kind, &count) in counts {
            if kind == Kind::Pble {
                next = next.next_multiple_of(PAGE);
            }
            let extent = Extent {
                base: next,
                count,
                log2: config.of(kind).log2,
            };
            next = extent.end().next_multiple_of(BASE_UNIT);
            extents.insert(kind, extent);
        }
        let needed = next.div_ceil(SEGMENT);
        if needed > u64::from(config.max_sds) {
            return Err(needed);
        }
        self.extents = extents;
        Ok(&self.extents)
    }

    /// Makes a segment valid (or replaces it) or, with `None`, invalid. Returns what was there.
    pub(crate) fn set_segment(&mut self, index: u32, segment: Option<Segment>) -> Option<Segment> {
        match segment {
            Some(s) => self.segments.insert(index, s),
            None => self.segments.remove(&index),
        }
    }

    /// Whether object `id` of `kind` lies in segment `index`.
    pub(crate) fn lies_in(&self, kind: Kind, id: u32, index: u32) -> bool {
        let Some(e) = self.extents.get(&kind) else {
            return false;
        };
        let log2 = e.log2.min(31);
        let start = e.base.saturating_add(u64::from(id) << log2);
        let end = start.saturating_add(1 << log2);
        let segment = u64::from(index).saturating_mul(SEGMENT);
        start < segment.saturating_add(SEGMENT) && end > segment
    }

    /// The host address behind an address of the function's space.
    fn translate(&self, dma: &dyn Dma, addr: u64) -> Result<u64, MemError> {
        let index = addr / SEGMENT;
        let segment = u32::try_from(index)
            .ok()
            .and_then(|i| self.segments.get(&i))
            .ok_or(MemError::Segment(index))?;
        match *segment {
            Segment::Direct(base) => base.checked_add(addr % SEGMENT).ok_or(MemError::Wrap),
            Segment::Paged(table) => {
                let page = addr % SEGMENT / PAGE;
                let entry = table.checked_add(page * 8).ok_or(MemError::Wrap)?;
                let descriptor = dma.read_u64(entry)?;
                if descriptor & 1 == 0 {
                    return Err(MemError::Page(index, page));
                }
                (descriptor & !(PAGE - 1))
                    .checked_add(addr % PAGE)
                    .ok_or(MemError::Wrap)
            }
        }
    }

    /// The page address entry with this index.
    pub(crate) fn pble(&self, dma: &dyn Dma, index: u64) -> Result<u64, MemError> {
        let extent = self
            .extents
            .get(&Kind::Pble)
            .filter(|e| index < u64::from(e.count))
            .ok_or(MemError::Pble(index))?;
        let addr = self.translate(dma, extent.base + index * 8)?;
        Ok(dma.read_u64(addr)?)
    }
}
