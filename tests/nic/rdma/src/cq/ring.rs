// SPDX-License-Identifier: GPL-2.0
//! The ring of a completion queue: what was written and how far the driver has read.

use crate::bits::bytes;
use crate::cqe;
use crate::hmc::Hmc;
use crate::host::MemError;
use crate::ring::{Cursor, RingMemory};
use nic_bus::Dma;

/// Bytes of an entry.
const ENTRY: u64 = 32;
/// Offset of the valid word in an entry.
const VALID_WORD: u64 = 24;

/// An entry to be written: three body words and the flags, without the valid bit.
pub(crate) struct CqEntry {
    pub(crate) body: [u64; 4],
    pub(crate) extension: Option<[u64; 4]>,
    /// Counts for an arm that wants solicited entries or errors only.
    pub(crate) solicited: bool,
}

impl CqEntry {
    /// Places in the ring that it takes.
    fn places(&self) -> u32 {
        if self.extension.is_some() {
            2
        } else {
            1
        }
    }
}

/// The ring in use.
pub(super) struct Ring {
    memory: RingMemory,
    next: Cursor,
    /// Places written and read since the ring came into use.
    produced: u64,
    consumed: u64,
    /// Consumer index last seen.
    seen: u32,
    /// Value of `produced` after the last entry that counts as solicited.
    solicited: u64,
}

impl Ring {
    pub(super) fn new(memory: RingMemory, entries: u32) -> Self {
        Self {
            memory,
            next: Cursor::new(entries),
            produced: 0,
            consumed: 0,
            seen: 0,
            solicited: 0,
        }
    }

    pub(super) fn entries(&self) -> u32 {
        self.next.size
    }

    pub(super) fn produced(&self) -> u64 {
        self.produced
    }

    /// Places that the driver is not known to have read.
    pub(super) fn used(&self) -> u64 {
        self.produced - self.consumed
    }

    /// Whether an entry fits. One place stays free, so that a full ring differs from an empty one.
    pub(super) fn has_room(&self, entry: &CqEntry) -> bool {
        self.used() + u64::from(entry.places()) < u64::from(self.next.size)
    }

    /// Takes the consumer index into account. `false` if it lies beyond what was written.
    pub(super) fn consume(&mut self, index: u32) -> bool {
        let size = self.next.size.max(1);
        let index = index % size;
        let delta = (index + size - self.seen) % size;
        self.seen = index;
        self.consumed += u64::from(delta);
        if self.consumed > self.produced {
            self.consumed = self.produced;
            return false;
        }
        true
    }

    /// Whether entries, or solicited ones, are not known to have been read.
    pub(super) fn unread(&self, solicited: bool) -> bool {
        let last = if solicited {
            self.solicited
        } else {
            self.produced
        };
        last > self.consumed
    }

    /// Writes an entry, its extension first: the driver looks at both once the first is valid.
    pub(super) fn write(
        &mut self,
        hmc: &Hmc,
        dma: &dyn Dma,
        entry: &CqEntry,
    ) -> Result<(), MemError> {
        let mut body = entry.body;
        if let Some(extension) = entry.extension {
            self.store(hmc, dma, self.next.advanced(1), extension)?;
            body[3] |= cqe::EXTENDED.flag(true);
        }
        self.store(hmc, dma, self.next, body)?;
        self.next.advance(entry.places());
        self.produced += u64::from(entry.places());
        if entry.solicited {
            self.solicited = self.produced;
        }
        Ok(())
    }

    /// Writes one place, the word with the valid bit last.
    fn store(&self, hmc: &Hmc, dma: &dyn Dma, at: Cursor, words: [u64; 4]) -> Result<(), MemError> {
        let addr = self.memory.addr(hmc, dma, u64::from(at.index) * ENTRY)?;
        let [a, b, c, flags] = words;
        dma.write(addr, &bytes(&[a, b, c]))?;
        let valid = addr.checked_add(VALID_WORD).ok_or(MemError::Wrap)?;
        let flags = flags & !cqe::VALID.flag(true);
        dma.write_u64(valid, flags | cqe::VALID.flag(at.polarity))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_consumer_index_is_followed_round_the_ring() {
        let mut ring = Ring::new(RingMemory::Block(0), 4);
        ring.produced = 3;
        assert!(ring.consume(2));
        assert_eq!(ring.used(), 1);
        ring.produced = 5;
        assert!(ring.consume(1), "three more, over the end");
        assert_eq!(ring.used(), 0);
        assert!(!ring.consume(2), "nothing there");
        assert_eq!(ring.used(), 0);
    }
}
