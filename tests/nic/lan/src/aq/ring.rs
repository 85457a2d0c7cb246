// SPDX-License-Identifier: GPL-2.0
//! Registers and index arithmetic of one control queue.

use crate::regs::RingRegister;

/// Bytes of an entry.
const ENTRY: u64 = 32;
/// Queue enable in the length register.
const ENABLE: u32 = 1 << 31;
/// "Critical error": the queue has stopped.
const CRITICAL: u32 = 1 << 30;
/// Number of entries in the length register.
const ENTRIES: u32 = 0x3ff;

/// One control queue's registers. The driver enables the queue before it writes the base address,
/// so nothing is latched: every use reads the registers as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    base_low: u32,
    base_high: u32,
    length: u32,
    head: u32,
    tail: u32,
}

impl Ring {
    /// Reads a register.
    pub fn read(&self, register: RingRegister) -> u32 {
        match register {
            RingRegister::BaseLow => self.base_low,
            RingRegister::BaseHigh => self.base_high,
            RingRegister::Length => self.length,
            RingRegister::Head => self.head,
            RingRegister::Tail => self.tail,
        }
    }

    /// Writes a register.
    pub fn write(&mut self, register: RingRegister, value: u32) {
        *match register {
            RingRegister::BaseLow => &mut self.base_low,
            RingRegister::BaseHigh => &mut self.base_high,
            RingRegister::Length => &mut self.length,
            RingRegister::Head => &mut self.head,
            RingRegister::Tail => &mut self.tail,
        } = value;
    }

    /// Entries of the ring, 0 if it is off or has stopped.
    fn entries(&self) -> u32 {
        if self.length & (ENABLE | CRITICAL) == ENABLE {
            self.length & ENTRIES
        } else {
            0
        }
    }

    /// Address of the next entry of the device, or `None` if it has none, is off, or an index lies
    /// outside.
    pub fn next(&self) -> Option<u64> {
        let entries = self.entries();
        if self.head == self.tail || self.head >= entries || self.tail >= entries {
            return None;
        }
        let base = u64::from(self.base_high) << 32 | u64::from(self.base_low);
        base.checked_add(u64::from(self.head) * ENTRY)
    }

    /// The device is done with the entry at the head.
    pub fn advance(&mut self) {
        let next = self.head.wrapping_add(1);
        self.head = if next < self.entries() { next } else { 0 };
    }

    /// Stops the queue after an entry that could not be read or written. The driver sees the bit
    /// and resets the function.
    pub fn fail(&mut self) {
        self.length |= CRITICAL;
    }

    /// Gives every entry back unused.
    pub fn skip(&mut self) {
        self.head = self.tail;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ring(entries: u32, head: u32, tail: u32) -> Ring {
        Ring {
            base_low: 0x1000,
            base_high: 0,
            length: ENABLE | entries,
            head,
            tail,
        }
    }

    #[test]
    fn head_wraps_to_the_first_entry() {
        let mut ring = ring(4, 3, 1);
        assert_eq!(ring.next(), Some(0x1000 + 3 * 32));
        ring.advance();
        assert_eq!(ring.next(), Some(0x1000));
        ring.advance();
        assert_eq!(ring.next(), None);
    }

    #[test]
    fn off_stopped_and_outside_have_no_next() {
        assert_eq!(ring(4, 0, 4).next(), None);
        assert_eq!(ring(4, 4, 0).next(), None);
        assert_eq!(ring(0, 0, 1).next(), None);
        let mut stopped = ring(4, 0, 1);
        stopped.fail();
        assert_eq!(stopped.next(), None);
        let mut off = ring(4, 0, 1);
        off.write(RingRegister::Length, 4);
        assert_eq!(off.next(), None);
    }

    proptest! {
        /// Whatever the registers hold, the device runs out of entries.
        #[test]
        fn work_is_bounded(low: u32, high: u32, length: u32, head: u32, tail: u32) {
            let mut ring = Ring { base_low: low, base_high: high, length, head, tail };
            let mut steps = 0;
            while ring.next().is_some() {
                ring.advance();
                steps += 1;
            }
            prop_assert!(steps <= ENTRIES);
        }
    }
}
