// SPDX-License-Identifier: GPL-2.0
//! STags: the keys of memory regions, the checks that an access must pass, and the translation of
//! its address into pieces of host memory.
//!
//! The 24 bits above the key are an index with bits of the driver's choice above it. How many bits
//! the index has follows from the number of regions; all 24 must match.

use crate::aeq::code;
use crate::bits::len64;
use crate::cqp::error::CqpError;
use crate::hmc::Hmc;
use crate::host::MemError;
use crate::wqe::Fragment;
use nic_bus::Dma;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// Fewest bits of an index.
const MIN_INDEX_BITS: u32 = 14;
/// Page addresses in a leaf of a two-level list.
const LEAF: u64 = 512;

/// Access rights of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rights(u8);

impl Rights {
    pub(crate) const LOCAL_READ: Self = Self(0x01);
    pub(crate) const LOCAL_WRITE: Self = Self(0x02);

    pub(crate) fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    fn allow(self, wanted: Self) -> bool {
        self.0 & wanted.0 == wanted.0
    }
}

/// Page size of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageSize {
    Small,
    Large,
    Huge,
}

impl PageSize {
    pub(crate) fn from_code(code: u64) -> Option<Self> {
        match code {
            0 => Some(Self::Small),
            1 => Some(Self::Large),
            2 => Some(Self::Huge),
            _ => None,
        }
    }

    fn bytes(self) -> u64 {
        match self {
            Self::Small => 1 << 12,
            Self::Large => 1 << 21,
            Self::Huge => 1 << 30,
        }
    }
}

/// Where a region's pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backing {
    /// One block at this address.
    Contiguous(u64),
    /// Page addresses from this entry on.
    List(u32),
    /// Indices of leaves of 512 page addresses from this entry on.
    Tree(u32),
}

/// The memory behind a valid STag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    /// Virtual address, or the offset of the first byte in its page if not VA based.
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) va_based: bool,
    pub(crate) page: PageSize,
    pub(crate) backing: Backing,
}

impl Region {
    /// All of host memory: what a DMA region without length and address stands for.
    fn is_everything(&self) -> bool {
        self.length == 0 && self.start == 0 && self.backing == Backing::Contiguous(0)
    }

    /// The byte offset that selects the page, or the event code of the broken rule.
    fn offset(&self, to: u64, len: u64) -> Result<u64, u16> {
        let end = to.checked_add(len).ok_or(code::TO_WRAP)?;
        if self.is_everything() {
            return Ok(to);
        }
        let page = self.page.bytes();
        let (low, offset) = if self.va_based {
            (self.start, to.wrapping_sub(self.start - self.start % page))
        } else {
            (0, self.start.checked_add(to).ok_or(code::TO_WRAP)?)
        };
        let high = low.checked_add(self.length).ok_or(code::TO_WRAP)?;
        if to < low || end > high {
            return Err(code::BOUNDS_VIOLATION);
        }
        Ok(offset)
    }

    fn page_addr(&self, hmc: &Hmc, dma: &dyn Dma, page: u64) -> Result<u64, MemError> {
        let base = match self.backing {
            Backing::Contiguous(base) => {
                return page
                    .checked_mul(self.page.bytes())
                    .and_then(|o| base.checked_add(o))
                    .ok_or(MemError::Wrap)
            }
            Backing::List(first) => u64::from(first).checked_add(page),
            Backing::Tree(first) => {
                let leaf = hmc.pble(dma, u64::from(first) + page / LEAF)?;
                leaf.checked_add(page % LEAF)
            }
        };
        hmc.pble(dma, base.ok_or(MemError::Wrap)?)
    }
}

/// One STag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stag {
    pub(crate) key: u8,
    pub(crate) pd: u32,
    pub(crate) rights: Rights,
    pub(crate) remote: bool,
    /// `None` until a fast registration makes the STag valid.
    pub(crate) region: Option<Region>,
}

/// A piece of host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) addr: u64,
    pub(crate) len: usize,
}

/// Who asks for an access, and for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) pd: u32,
    /// STag 0 may be used.
    pub(crate) privileged: bool,
    pub(crate) rights: Rights,
}

/// Why an access was refused: the event code and what to log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    pub(crate) memory: Option<MemError>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.memory {
            Some(e) => e.fmt(f),
            None => write!(f, "refused with {:#06x}", self.code),
        }
    }
}

impl From<u16> for Refusal {
    fn from(code: u16) -> Self {
        Self { code, memory: None }
    }
}

impl From<MemError> for Refusal {
    fn from(e: MemError) -> Self {
        Self {
            code: code::LOCAL_QP_CATASTROPHIC,
            memory: Some(e),
        }
    }
}

/// All STags, by their upper 24 bits.
#[derive(Default)]
pub(crate) struct Stags {
    by_field: HashMap<u32, Stag>,
    /// Index to the 24 bits in use for it.
    by_index: BTreeMap<u32, u32>,
    index_bits: u32,
}

impl Stags {
    pub(crate) fn len(&self) -> usize {
        self.by_field.len()
    }

    pub(crate) fn get(&self, field: u32) -> Option<&Stag> {
        self.by_field.get(&field)
    }

    /// The indices in use.
    pub(crate) fn indices(&self) -> impl Iterator<Item = u32> + '_ {
        self.by_index.keys().copied()
    }

    fn index(&self, field: u32) -> u32 {
        field & ((1 << self.index_bits.min(24)) - 1)
    }

    /// Adds an STag; `count` is the number of regions there can be.
    pub(crate) fn insert(&mut self, field: u32, count: u32, stag: Stag) -> Result<(), CqpError> {
        self.index_bits = count
            .checked_next_power_of_two()
            .map_or(24, u32::trailing_zeros)
            .max(MIN_INDEX_BITS);
        let index = self.index(field);
        if index == 0 || index >= count {
            return Err(CqpError::range("STag", index, count));
        }
        if self.by_index.contains_key(&index) {
            return Err(CqpError::in_use("STag", index));
        }
        self.by_index.insert(index, field);
        self.by_field.insert(field, stag);
        Ok(())
    }

    pub(crate) fn remove(&mut self, field: u32) -> Option<Stag> {
        let stag = self.by_field.remove(&field)?;
        self.by_index.remove(&self.index(field));
        Some(stag)
    }

    /// Checks an access to a fragment and appends the host memory it means.
    pub(crate) fn translate(
        &self,
        hmc: &Hmc,
        dma: &dyn Dma,
        access: Access,
        fragment: Fragment,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Refusal> {
        let Fragment { to, stag, len } = fragment;
        let len = u64::from(len);
        if len == 0 {
            return Ok(());
        }
        if stag == 0 {
            if !access.privileged {
                return Err(code::STAG_ZERO_INVALID.into());
            }
            to.checked_add(len).ok_or(code::TO_WRAP)?;
            return push(pieces, to, len);
        }
        let [key, ..] = stag.to_le_bytes();
        let entry = self.get(stag >> 8).ok_or(code::UNALLOCATED_STAG)?;
        let region = entry.region.as_ref().ok_or(code::INVALID_STAG)?;
        if entry.key != key {
            return Err(code::BAD_STAG_KEY.into());
        }
        if entry.pd != access.pd {
            return Err(code::BAD_PD.into());
        }
        if !entry.rights.allow(access.rights) {
            return Err(code::RIGHTS_VIOLATION.into());
        }
        let mut offset = region.offset(to, len)?;
        if region.is_everything() {
            return push(pieces, offset, len);
        }
        let page = region.page.bytes();
        let mut left = len;
        while left > 0 {
            let inside = offset % page;
            let part = left.min(page - inside);
            let base = region.page_addr(hmc, dma, offset / page)?;
            push(
                pieces,
                base.checked_add(inside).ok_or(MemError::Wrap)?,
                part,
            )?;
            offset = offset.checked_add(part).ok_or(code::TO_WRAP)?;
            left -= part;
        }
        Ok(())
    }
}

/// Appends a piece, joined to the one before if they touch.
fn push(pieces: &mut Vec<Piece>, addr: u64, len: u64) -> Result<(), Refusal> {
    let len = usize::try_from(len).map_err(|_| MemError::Wrap)?;
    if let Some(last) = pieces.last_mut() {
        if last.addr.checked_add(len64(last.len)) == Some(addr) {
            last.len = last.len.saturating_add(len);
            return Ok(());
        }
    }
    pieces.push(Piece { addr, len });
    Ok(())
}
