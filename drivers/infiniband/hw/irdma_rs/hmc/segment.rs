// SPDX-License-Identifier: GPL-2.0

//! Memory of one segment, and the announcing of several at a time.

use super::fpm::SEGMENT;
use crate::{
    cqp::{
        cmd::{
            SdEntry,
            UpdatePeSds, //
        },
        Cqp,
        Failure, //
    },
    lan::Port,
    mem::DmaWords,
    regs::PFHMC_PDINV, //
};
use kernel::{
    prelude::*,
    sizes::SZ_4K, //
};

/// Words in a segment.
// CAST: A small constant.
const SEGMENT_WORDS: usize = SEGMENT as usize / size_of::<u64>();

/// Words in a page.
const PAGE_WORDS: usize = SZ_4K / size_of::<u64>();

/// Pages in a segment.
// CAST: A small constant.
const PAGES: usize = SEGMENT as usize / SZ_4K;

/// Valid bit of a page descriptor.
const PD_VALID: u64 = 1;

/// Memory of one segment.
pub(super) enum Segment {
    /// None.
    Absent,
    /// One block.
    Direct(DmaWords),
    /// Pages, and the page that lists them.
    Paged {
        /// The list.
        descriptors: DmaWords,
        /// The pages, in order.
        pages: KVec<DmaWords>,
    },
}

impl Segment {
    /// Takes one block.
    pub(super) fn direct(port: &Port) -> Result<Self> {
        Ok(Self::Direct(port.alloc(SEGMENT_WORDS)?))
    }

    /// Takes single pages.
    pub(super) fn paged(port: &Port) -> Result<Self> {
        let descriptors = port.alloc(PAGES)?;
        let mut pages = KVec::with_capacity(PAGES, GFP_KERNEL)?;
        for index in 0..PAGES {
            let page = port.alloc(PAGE_WORDS)?;
            descriptors.write(index, page.address() | PD_VALID)?;
            pages.push(page, GFP_KERNEL)?;
        }
        Ok(Self::Paged { descriptors, pages })
    }

    /// Makes the device forget what it may hold of the segment's page descriptors.
    pub(super) fn invalidate(&self, port: &Port, index: u32) -> Result {
        if let Self::Paged { .. } = self {
            for page in 0..PAGES {
                port.write_reg(
                    PFHMC_PDINV::from(0)
                        .try_with_pmsdidx(index)?
                        .with_const_pmsdpartsel::<1>()
                        .try_with_pmpdidx(page)?,
                );
            }
        }
        Ok(())
    }

    /// The descriptor that announces the segment.
    pub(super) fn entry(&self, index: u32) -> Option<SdEntry> {
        match self {
            Self::Absent => None,
            Self::Direct(block) => Some(SdEntry::Direct {
                index,
                address: block.address(),
            }),
            Self::Paged { descriptors, .. } => Some(SdEntry::Paged {
                index,
                address: descriptors.address(),
            }),
        }
    }

    /// The descriptor that takes the segment away.
    pub(super) fn clear_entry(&self, index: u32) -> Option<SdEntry> {
        match self {
            Self::Absent => None,
            Self::Direct(_) => Some(SdEntry::Clear {
                index,
                direct: true,
            }),
            Self::Paged { .. } => Some(SdEntry::Clear {
                index,
                direct: false,
            }),
        }
    }

    /// Stores a word of the segment.
    pub(super) fn write(&self, word: usize, value: u64) -> Result {
        match self {
            Self::Absent => Err(EFAULT),
            Self::Direct(block) => block.write(word, value),
            Self::Paged { pages, .. } => pages
                .get(word / PAGE_WORDS)
                .ok_or(ERANGE)?
                .write(word % PAGE_WORDS, value),
        }
    }

    /// Words in a segment.
    pub(super) const WORDS: usize = SEGMENT_WORDS;
}

/// Descriptors on their way to the device, as many to an operation as fit.
pub(super) struct Batch {
    function: u8,
    entries: [SdEntry; UpdatePeSds::MAX],
    len: usize,
}

impl Batch {
    pub(super) fn new(function: u8) -> Self {
        let nothing = SdEntry::Clear {
            index: 0,
            direct: true,
        };
        Self {
            function,
            entries: [nothing; UpdatePeSds::MAX],
            len: 0,
        }
    }

    /// Adds a descriptor; sends the batch when it is full.
    pub(super) fn push(&mut self, cqp: &Cqp, entry: Option<SdEntry>) -> Result<(), Failure> {
        let (Some(entry), Some(place)) = (entry, self.entries.get_mut(self.len)) else {
            return Ok(());
        };
        *place = entry;
        self.len += 1;
        if self.len == UpdatePeSds::MAX {
            self.flush(cqp)
        } else {
            Ok(())
        }
    }

    /// Segments whose descriptors certainly did not reach the device, after a failure.
    pub(super) fn unsent(&self) -> impl Iterator<Item = u32> + '_ {
        self.entries
            .get(..self.len)
            .unwrap_or(&[])
            .iter()
            .map(SdEntry::index)
    }

    /// Sends what there is.
    pub(super) fn flush(&mut self, cqp: &Cqp) -> Result<(), Failure> {
        let entries = self.entries.get(..self.len).unwrap_or(&[]);
        if entries.is_empty() {
            return Ok(());
        }
        let result = cqp.execute(&UpdatePeSds {
            function: self.function,
            entries,
        });
        if !matches!(result, Err(failure) if !failure.in_flight()) {
            self.len = 0;
        }
        result
    }
}
