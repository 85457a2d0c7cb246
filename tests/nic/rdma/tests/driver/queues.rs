// SPDX-License-Identifier: GPL-2.0
//! Completion and event queues.

use super::*;

/// A ring read by valid bits.
pub struct Reader {
    base: u64,
    entry: u64,
    size: u64,
    index: u64,
    polarity: bool,
}

impl Reader {
    pub fn new(base: u64, entry: u64, size: u64) -> Self {
        Self {
            base,
            entry,
            size,
            index: 0,
            polarity: true,
        }
    }

    /// The next entry, if there is one. The valid bit is the last word's top bit, and only once it
    /// was seen the others count.
    pub fn next(&mut self, host: &Surroundings) -> Option<Vec<u64>> {
        let addr = self.base + self.index * self.entry;
        let last = host.read_u64(addr + self.entry - 8).unwrap();
        if (last >> 63 == 1) != self.polarity {
            return None;
        }
        let words: Vec<u64> = (0..self.entry / 8)
            .map(|w| host.read_u64(addr + w * 8).unwrap())
            .collect();
        self.index += 1;
        if self.index == self.size {
            self.index = 0;
            self.polarity = !self.polarity;
        }
        Some(words)
    }

    pub fn index(&self) -> u64 {
        self.index
    }
}

/// A completion queue.
pub struct Queue {
    pub id: u64,
    pub shadow: u64,
    pub reader: Reader,
    seq: u64,
}

impl Queue {
    pub fn new(id: u64, shadow: u64, reader: Reader) -> Self {
        Self {
            id,
            shadow,
            reader,
            seq: 0,
        }
    }
}

impl Driver {
    pub fn create_cq(&mut self, id: u64, entries: u64) -> Queue {
        let ring = self.alloc(entries * 32, 256);
        let shadow = self.alloc(64, 64);
        self.put(ring, &vec![0; entries as usize * 4]);
        self.put(shadow, &[0; 8]);
        self.ok(
            0x03,
            [
                entries,
                id,
                entries / 2,
                id | 1 << 46 | 1 << 48 | 1 << 49,
                ring,
                shadow,
                0,
                7 << 8,
            ],
        );
        Queue::new(id, shadow, Reader::new(ring, 32, entries))
    }

    pub fn destroy_cq(&mut self, id: u64) -> Completion {
        self.op(0x05, [0, id, 0, id | 1 << 49, 0, 0, 0, 0])
    }

    /// The next completion and its extension, if there is one now.
    pub fn poll(&self, cq: &mut Queue) -> Option<(Vec<u64>, Option<Vec<u64>>)> {
        let first = cq.reader.next(&self.host)?;
        let extension = (first[3] >> 50 & 1 == 1)
            .then(|| cq.reader.next(&self.host).expect("the extension is valid"));
        self.host.write_u64(cq.shadow, cq.reader.index()).unwrap();
        Some((first, extension))
    }

    /// The next completion, waited for.
    pub fn wait(&self, cq: &mut Queue) -> (Vec<u64>, Option<Vec<u64>>) {
        self.until("a completion", || self.poll(cq))
    }

    /// Arms a queue: for any completion, or for solicited ones.
    pub fn arm(&self, cq: &mut Queue, any: bool) {
        cq.seq = (cq.seq + 1) % 4;
        let word = u64::from(any) << 14 | 1 << 15 | cq.seq << 16;
        self.host.write_u64(cq.shadow + 32, word).unwrap();
        self.set(CQ_ARM, cq.id);
    }

    /// The next completion event: the id of its queue.
    pub fn ceqe(&mut self) -> Option<u64> {
        let words = self.ceq.as_mut()?.next(&self.host)?;
        Some(words[0] & !(1 << 63))
    }

    /// The next asynchronous event: code, source, id, state, WQE index.
    pub fn aeqe(&mut self) -> Option<(u64, u64, u64, u64, u64)> {
        let words = self.aeq.as_mut()?.next(&self.host)?;
        self.set(AEQ_ALLOC, 1);
        let w = words[1];
        Some((
            w >> 34 & 0xFFF,
            w >> 50 & 0xF,
            w & 0x3_FFFF,
            w >> 54 & 7,
            w >> 18 & 0x7FFF,
        ))
    }

    /// The next asynchronous event, waited for.
    pub fn wait_aeqe(&mut self) -> (u64, u64, u64, u64, u64) {
        let start = Instant::now();
        loop {
            if let Some(event) = self.aeqe() {
                return event;
            }
            assert!(start.elapsed() < PATIENCE, "waited for an event");
            std::thread::yield_now();
        }
    }
}
