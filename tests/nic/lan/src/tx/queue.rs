// SPDX-License-Identifier: GPL-2.0
//! One transmit queue: its ring and the frame under way.

use super::assembly::Assembly;
use crate::le::{field, Load, Short};

/// Bytes of a descriptor.
const DESCRIPTOR: u64 = 16;
/// Bytes of a queue's context in the command that adds it.
pub const CONTEXT: usize = 22;

/// A queue as its context describes it.
#[derive(Debug)]
pub struct TxQueue {
    base: u64,
    entries: u32,
    head: u32,
    tail: u32,
    /// The VSI whose frames it carries.
    pub vsi: u16,
    /// The scheduler element of the queue.
    pub teid: u32,
    /// The frame under way.
    pub assembly: Assembly,
}

impl TxQueue {
    /// Decodes a context; `None` if the ring has no entries.
    pub fn new(context: &[u8; CONTEXT], teid: u32) -> Result<Option<Self>, Short> {
        let mut padded = [0; CONTEXT + 2];
        for (to, from) in padded.iter_mut().zip(context) {
            *to = *from;
        }
        let mut words = [0; (CONTEXT + 2) / 4];
        for (index, word) in words.iter_mut().enumerate() {
            *word = padded.u32_at(4 * index)?;
        }
        let entries = u32::try_from(field(&words, 135, 13)).unwrap_or(0);
        Ok((entries > 0).then(|| Self {
            base: field(&words, 0, 57) << 7,
            entries,
            head: 0,
            tail: 0,
            vsi: u16::try_from(field(&words, 80, 10)).unwrap_or(0),
            teid,
            assembly: Assembly::default(),
        }))
    }

    /// The driver filled the ring up to, not including, `tail`; `false` if that lies outside.
    pub fn set_tail(&mut self, tail: u32) -> bool {
        let inside = tail < self.entries;
        if inside {
            self.tail = tail;
        }
        inside
    }

    /// Address of the next descriptor, if there is one.
    pub fn next(&self) -> Option<u64> {
        let offset = u64::from(self.head).wrapping_mul(DESCRIPTOR);
        (self.head != self.tail).then(|| self.base.wrapping_add(offset))
    }

    /// Index of that descriptor.
    pub fn head(&self) -> u32 {
        self.head
    }

    /// The device is done with the descriptor at the head.
    pub fn advance(&mut self) {
        self.head = if self.head + 1 < self.entries {
            self.head + 1
        } else {
            0
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The context of the Flow Director queue in the recorded probe.
    #[test]
    fn recorded_context_decodes() {
        let mut context = [0; CONTEXT];
        context[..4].copy_from_slice(&(0x30e_5000u32 >> 7).to_le_bytes());
        context[9] = 0x80;
        context[10] = 1;
        context[17] = 0x80;
        let queue = TxQueue::new(&context, 27).unwrap().unwrap();
        assert_eq!((queue.base, queue.entries, queue.vsi), (0x30e_5000, 256, 1));
    }

    #[test]
    fn ring_wraps_and_refuses_outside() {
        let mut context = [0; CONTEXT];
        context[17] = 2 << 1; // entries from bit 135: 4
        context[16] = 0;
        let mut queue = TxQueue::new(&context, 0).unwrap().unwrap();
        queue.entries = 4;
        assert!(!queue.set_tail(4) && queue.next().is_none());
        assert!(queue.set_tail(3));
        (0..3).for_each(|_| queue.advance());
        assert!(queue.next().is_none() && queue.set_tail(1));
        assert_eq!(queue.next(), Some(48));
        queue.advance();
        assert_eq!(queue.next(), Some(0));
        assert!(TxQueue::new(&[0; CONTEXT], 0).unwrap().is_none());
    }
}
