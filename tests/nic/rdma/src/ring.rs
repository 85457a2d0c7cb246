// SPDX-License-Identifier: GPL-2.0
//! Rings in guest memory: where an entry lies, and whose turn its valid bit announces.

use crate::bits;
use crate::hmc::{Hmc, PAGE};
use crate::host::MemError;
use nic_bus::Dma;

/// How the pages of a ring are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RingMemory {
    /// One block at this address.
    Block(u64),
    /// A one-level list of 4 KiB pages that starts at this page address entry.
    Pages(u32),
}

impl RingMemory {
    /// The host address of byte `offset`. Entries never cross a page.
    pub(crate) fn addr(&self, hmc: &Hmc, dma: &dyn Dma, offset: u64) -> Result<u64, MemError> {
        let (base, rest) = match *self {
            Self::Block(base) => (base, offset),
            Self::Pages(first) => (
                hmc.pble(dma, u64::from(first) + offset / PAGE)?,
                offset % PAGE,
            ),
        };
        base.checked_add(rest).ok_or(MemError::Wrap)
    }

    /// Reads `N` words at byte `offset`.
    pub(crate) fn read<const N: usize>(
        &self,
        hmc: &Hmc,
        dma: &dyn Dma,
        offset: u64,
    ) -> Result<[u64; N], MemError> {
        let mut out = [0; N];
        let mut buf = vec![0; N * 8];
        dma.read(self.addr(hmc, dma, offset)?, &mut buf)?;
        out.copy_from_slice(&bits::words::<N>(&buf));
        Ok(out)
    }
}

/// A position in a ring with the valid bit that means "new" there: 1 in the first pass, toggled at
/// each wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// Index of the next entry.
    pub(crate) index: u32,
    /// Number of entries.
    pub(crate) size: u32,
    /// Value of the valid bit of a new entry.
    pub(crate) polarity: bool,
}

impl Cursor {
    /// The start of a fresh ring.
    pub(crate) fn new(size: u32) -> Self {
        Self {
            index: 0,
            size,
            polarity: true,
        }
    }

    /// The position `n` entries later.
    #[must_use]
    pub(crate) fn advanced(mut self, n: u32) -> Self {
        let next = u64::from(self.index) + u64::from(n);
        let size = u64::from(self.size.max(1));
        if (next / size) % 2 == 1 {
            self.polarity = !self.polarity;
        }
        self.index = bits::low32(next % size);
        self
    }

    /// Moves on by `n` entries.
    pub(crate) fn advance(&mut self, n: u32) {
        *self = self.advanced(n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polarity_toggles_at_each_wrap() {
        let mut c = Cursor::new(4);
        for (index, polarity) in [(1, true), (2, true), (3, true), (0, false), (1, false)] {
            c.advance(1);
            assert_eq!((c.index, c.polarity), (index, polarity));
        }
        c.advance(3);
        assert_eq!((c.index, c.polarity), (0, true));
        assert!(!Cursor::new(4).advanced(5).polarity);
        let twice = Cursor::new(4).advanced(9);
        assert_eq!((twice.index, twice.polarity), (1, true));
    }
}
