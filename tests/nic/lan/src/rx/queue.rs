// SPDX-License-Identifier: GPL-2.0
//! One receive queue: a ring of 32-byte descriptors, each with one buffer.

use super::classify::{Integrity, Ptype};
use super::Dropped;
use crate::le::field;
use crate::regs::QRX_CONTEXT_WORDS;
use nic_bus::Dma;

/// Bytes of a descriptor.
const DESCRIPTOR: u64 = 32;
/// Buffers a frame may take.
const MAX_BUFFERS: usize = 5;
/// Descriptor format "NIC".
const FORMAT: u64 = 2;

/// Status bits.
const DD: u16 = 1 << 0;
const EOP: u16 = 1 << 1;
const CHECKED: u16 = 1 << 3;
const IP_ERROR: u16 = 1 << 4;
const TRANSPORT_ERROR: u16 = 1 << 5;
const HASH_VALID: u16 = 1 << 12;
const TAG1_VALID: u16 = 1 << 13;
/// Second status word: the tag lies in the second place.
const TAG2_VALID: u16 = 1 << 11;

/// What a descriptor says about its frame.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// Packet type.
    pub ptype: Ptype,
    /// Checksums.
    pub integrity: Integrity,
    /// Hash, if there is one.
    pub hash: Option<u32>,
    /// VLAN tag taken out of the frame.
    pub tag: Option<u16>,
}

/// A queue as its context describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RxQueue {
    base: u64,
    entries: u32,
    buffer: usize,
    max_frame: usize,
    /// The tag goes to the first of two places.
    first_tag: bool,
    head: u32,
    tail: u32,
}

impl RxQueue {
    /// Decodes a context. The error says what the model cannot serve.
    pub fn new(context: &[u32; QRX_CONTEXT_WORDS]) -> Result<Self, &'static str> {
        let bits = |lsb, width| field(context, lsb, width);
        if bits(116, 1) == 0 {
            return Err("16-byte descriptors");
        }
        if bits(114, 2) != 0 {
            return Err("header split");
        }
        let entries = u32::try_from(bits(89, 13)).unwrap_or(0);
        if entries == 0 {
            return Err("a ring without entries");
        }
        let small = |value: u64| usize::try_from(value).unwrap_or(0);
        Ok(Self {
            base: bits(32, 57) << 7,
            entries,
            buffer: small(bits(102, 7) << 7),
            max_frame: small(bits(174, 14)),
            first_tag: bits(119, 1) != 0,
            head: 0,
            tail: 0,
        })
    }

    /// The driver gave buffers up to, not including, `tail`; an index outside gives none.
    pub fn set_tail(&mut self, tail: u32) {
        self.tail = if tail < self.entries { tail } else { self.head };
    }

    /// Buffers the device may fill.
    fn available(&self) -> usize {
        let count = if self.tail >= self.head {
            self.tail - self.head
        } else {
            self.entries - self.head + self.tail
        };
        usize::try_from(count).unwrap_or(0)
    }

    /// Writes a frame into as many buffers as it takes, and their descriptors. Each descriptor
    /// becomes visible by its status word, which is written last.
    pub fn deliver(
        &mut self,
        dma: &dyn Dma,
        frame: &[u8],
        completion: &Completion,
    ) -> Result<(), Dropped> {
        if self.buffer == 0 || frame.is_empty() || frame.len() > self.max_frame {
            return Err(Dropped::NoBuffer);
        }
        let count = frame.len().div_ceil(self.buffer);
        if count > MAX_BUFFERS || count > self.available() {
            return Err(Dropped::NoBuffer);
        }
        for (index, piece) in frame.chunks(self.buffer).enumerate() {
            let address = self
                .base
                .wrapping_add(u64::from(self.head).wrapping_mul(DESCRIPTOR));
            dma.write(dma.read_u64(address)?, piece)?;
            let last = index + 1 == count;
            let words = self.describe(piece.len(), last, completion);
            dma.write_u64(address, words[0])?;
            dma.write_u64(address.wrapping_add(16), words[2])?;
            dma.write_u64(address.wrapping_add(24), words[3])?;
            dma.write_u64(address.wrapping_add(8), words[1])?;
            self.head = if self.head + 1 < self.entries {
                self.head + 1
            } else {
                0
            };
        }
        Ok(())
    }

    /// The descriptor of one buffer.
    fn describe(&self, len: usize, last: bool, completion: &Completion) -> [u64; 4] {
        let mut status = DD;
        let mut status2 = 0;
        let (mut tag1, mut tag2) = (0, 0);
        if last {
            status |= EOP;
        }
        status |= match completion.integrity {
            Integrity::Unchecked => 0,
            Integrity::Good => CHECKED,
            Integrity::BadIp => CHECKED | IP_ERROR,
            Integrity::BadTransport => CHECKED | TRANSPORT_ERROR,
        };
        if completion.hash.is_some() {
            status |= HASH_VALID;
        }
        match completion.tag {
            Some(tag) if self.first_tag => {
                status |= TAG1_VALID;
                tag1 = tag;
            }
            Some(tag) => {
                status2 |= TAG2_VALID;
                tag2 = tag;
            }
            None => {}
        }
        // A buffer is at most 127 * 128 bytes long: its length fits the 14-bit field.
        let len = u64::try_from(len).unwrap_or(0) & 0x3fff;
        let ptype = completion.ptype as u64;
        [
            FORMAT | ptype << 16 | len << 32,
            u64::from(status)
                | u64::from(tag1) << 16
                | u64::from(completion.hash.unwrap_or(0)) << 32,
            u64::from(status2) | u64::from(tag2) << 48,
            0,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::Memory;
    use proptest::prelude::*;

    const RING: u64 = 0x1000;
    const COMPLETION: Completion = Completion {
        ptype: Ptype::Ipv4Tcp,
        integrity: Integrity::Good,
        hash: Some(0x1234_5678),
        tag: Some(5),
    };

    /// A queue of 16 entries with 128-byte buffers and 600-byte frames.
    fn queue() -> RxQueue {
        let mut context = [0u32; 8];
        context[1] = (RING >> 7) as u32;
        context[2] = 16 << 25;
        context[3] = 1 << 6 | 1 << 20 | 1 << 21 | 1 << 23;
        context[5] = 600 << 14;
        RxQueue::new(&context).unwrap()
    }

    fn post(memory: &Memory, index: u64) {
        memory
            .write_u64(RING + 32 * index, 0x8000 + 0x100 * index)
            .unwrap();
        memory.write_u64(RING + 32 * index + 8, 0).unwrap();
    }

    #[test]
    fn frame_spreads_over_buffers() {
        let memory = Memory::new(0x10000);
        let mut queue = queue();
        (0..8u64).for_each(|index| post(&memory, index));
        queue.set_tail(8);
        let frame: Vec<u8> = (0..300u32).map(|i| i as u8).collect();
        queue.deliver(&memory, &frame, &COMPLETION).unwrap();
        let status = |index: u64| memory.read_u64(RING + 32 * index + 8).unwrap();
        assert_eq!(
            status(0) & 0xffff,
            u64::from(DD | CHECKED | HASH_VALID | TAG1_VALID)
        );
        assert_eq!(status(2) & 0xffff, status(0) & 0xffff | u64::from(EOP));
        assert_eq!(status(2) >> 16, 5 | 0x1234_5678 << 16);
        assert_eq!(status(3), 0);
        assert_eq!(memory.read_u64(RING + 64).unwrap(), 2 | 26 << 16 | 44 << 32);
        let mut last = [0; 44];
        memory.read(0x8200, &mut last).unwrap();
        assert_eq!(last, frame[256..]);
    }

    #[test]
    fn frames_need_all_their_buffers() {
        let memory = Memory::new(0x10000);
        let mut queue = queue();
        (0..16u64).for_each(|index| post(&memory, index));
        queue.set_tail(2);
        let deliver = |queue: &mut RxQueue, len| queue.deliver(&memory, &vec![1; len], &COMPLETION);
        assert_eq!(deliver(&mut queue, 257), Err(Dropped::NoBuffer));
        assert_eq!(deliver(&mut queue, 256), Ok(()));
        assert_eq!(deliver(&mut queue, 1), Err(Dropped::NoBuffer));
        queue.set_tail(99);
        assert_eq!(deliver(&mut queue, 1), Err(Dropped::NoBuffer));
        queue.set_tail(0);
        assert_eq!(deliver(&mut queue, 601), Err(Dropped::NoBuffer));
        for _ in 0..14 {
            assert_eq!(deliver(&mut queue, 60), Ok(()));
        }
        assert_eq!((queue.head, queue.available()), (0, 0));
    }

    #[test]
    fn tag_goes_to_the_second_place_if_asked() {
        let mut queue = queue();
        queue.first_tag = false;
        let words = queue.describe(60, true, &COMPLETION);
        assert_eq!(words[1] & u64::from(TAG1_VALID), 0);
        assert_eq!(words[2], u64::from(TAG2_VALID) | 5 << 48);
    }

    proptest! {
        /// Whatever the driver programs, delivering ends in bounds.
        #[test]
        fn hostile_contexts_are_harmless(context: [u32; 8], tail: u32, len in 0usize..10000) {
            let memory = Memory::new(0x10000);
            if let Ok(mut queue) = RxQueue::new(&context) {
                queue.set_tail(tail);
                let _ = queue.deliver(&memory, &vec![0; len], &COMPLETION);
                prop_assert!(queue.head < queue.entries);
            }
        }
    }
}
