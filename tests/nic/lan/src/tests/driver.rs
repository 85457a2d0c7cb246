// SPDX-License-Identifier: GPL-2.0
//! A small driver: it knows registers and rings, and where in memory things lie.

use crate::test::{host, Memory, Surroundings};
use crate::{Config, Lan};
use nic_bus::{Card, Dma, LanFunction};
use std::sync::{Arc, Weak};

pub const ATQ: u64 = 0x1000;
pub const ATQ_LEN: u32 = 8;
pub const ARQ: u64 = 0x2000;
pub const BUFFER: u64 = 0x4000;
pub const EVENT: u64 = 0x6000;
pub const TX_RING: u64 = 0x8000;
pub const RX_RING: u64 = 0x9000;
pub const RX_BUFFERS: u64 = 0x2_0000;
pub const FRAME: u64 = 0x4_0000;
pub const OWN: [u8; 6] = [2, 0xe8, 0x10, 0, 0, 1];
const MEMORY: usize = 0x10_0000;

/// What a command came back with.
#[derive(Debug)]
pub struct Done {
    pub result: u16,
    pub params: [u8; 16],
    pub data: Vec<u8>,
}

impl Done {
    pub fn param(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.params[at], self.params[at + 1]])
    }

    pub fn word(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.data[at], self.data[at + 1]])
    }

    pub fn dword(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.data[at..at + 4].try_into().unwrap())
    }
}

pub struct Driver {
    pub lan: Arc<Lan>,
    pub memory: Arc<Memory>,
    pub seen: Arc<Surroundings>,
    tail: u32,
}

impl Driver {
    pub fn new() -> Self {
        let memory = Arc::new(Memory::new(MEMORY));
        let seen = Arc::new(Surroundings::default());
        let card: Arc<dyn Card> = seen.clone();
        let card: Weak<dyn Card> = Arc::downgrade(&card);
        let lan = Lan::new(host(&memory, &seen), card, Config::default());
        let mut driver = Self {
            lan,
            memory,
            seen,
            tail: 0,
        };
        driver.start();
        driver
    }

    /// Sets both firmware queues up, in the order of `ice`.
    pub fn start(&mut self) {
        self.tail = 0;
        for (first, base, len) in [(0x8_0000, ATQ, ATQ_LEN), (0x8_0080, ARQ, 4)] {
            self.lan.write32(first + 0x300, 0);
            self.lan.write32(first + 0x400, 0);
            self.lan.write32(first + 0x200, 1 << 31 | len);
            self.lan.write32(first, base as u32);
            self.lan.write32(first + 0x100, 0);
        }
        for entry in 0..4u64 {
            let mut posted = [0; 32];
            posted[4..6].copy_from_slice(&512u16.to_le_bytes());
            posted[28..32].copy_from_slice(&((EVENT + 512 * entry) as u32).to_le_bytes());
            self.memory.write(ARQ + 32 * entry, &posted).unwrap();
        }
        self.lan.write32(0x8_0480, 3);
        self.lan.write32(0x16_c800, 1 << 30 | 5);
    }

    /// Sends a command; `data` is its buffer.
    pub fn command(&mut self, opcode: u16, params: &[u8], data: &[u8]) -> Done {
        let mut entry = [0; 32];
        let flags: u16 = if data.is_empty() { 0x2000 } else { 0x3400 };
        entry[0..2].copy_from_slice(&flags.to_le_bytes());
        entry[2..4].copy_from_slice(&opcode.to_le_bytes());
        entry[4..6].copy_from_slice(&(data.len() as u16).to_le_bytes());
        entry[8..16].copy_from_slice(&[0xc0; 8]);
        entry[16..16 + params.len()].copy_from_slice(params);
        if !data.is_empty() {
            entry[24..28].fill(0);
            entry[28..32].copy_from_slice(&(BUFFER as u32).to_le_bytes());
            self.memory.write(BUFFER, data).unwrap();
        }
        let address = ATQ + 32 * u64::from(self.tail);
        self.memory.write(address, &entry).unwrap();
        self.tail = (self.tail + 1) % ATQ_LEN;
        self.lan.write32(0x8_0400, self.tail);
        assert_eq!(self.lan.read32(0x8_0300), self.tail, "command {opcode:#x}");

        let mut done = [0; 32];
        self.memory.read(address, &mut done).unwrap();
        assert_eq!(done[0] & 3, 3, "done and completed");
        assert_eq!(done[8..16], [0xc0; 8], "cookies are kept");
        let result = u16::from_le_bytes([done[6], done[7]]);
        assert_eq!(done[0] & 4 != 0, result != 0);
        let len = usize::from(u16::from_le_bytes([done[4], done[5]]));
        let mut answer = vec![0; if data.is_empty() { 0 } else { len }];
        self.memory.read(BUFFER, &mut answer).unwrap();
        Done {
            result,
            params: done[16..32].try_into().unwrap(),
            data: answer,
        }
    }

    /// A command that has to succeed.
    pub fn ok(&mut self, opcode: u16, params: &[u8], data: &[u8]) -> Done {
        let done = self.command(opcode, params, data);
        assert_eq!(done.result, 0, "command {opcode:#x}");
        done
    }

    /// Adds the PF VSI with queues 0 and 1, and the rule for its own address.
    pub fn bring_up(&mut self) {
        let mut context = [0; 128];
        context[0] = 1; // as by ice, less than what is filled
        context[4] = 0x10;
        context[32] = 2;
        context[63] = 1 << 3;
        self.ok(0x0210, &[0; 8], &context);
        self.add_mac(OWN);
    }

    /// Adds a rule for an address and returns its index.
    pub fn add_mac(&mut self, address: [u8; 6]) -> u16 {
        let mut rule = [0; 32];
        rule[0] = 1;
        rule[4] = 1;
        rule[8..12].copy_from_slice(&0x2_000cu32.to_le_bytes());
        rule[14] = 16;
        rule[16..22].copy_from_slice(&address);
        self.ok(0x02a0, &[1], &rule).word(12)
    }

    /// Adds transmit queue 0 with `entries` descriptors.
    pub fn add_transmit(&mut self, entries: u32) -> u32 {
        let mut group = [0; 56];
        group[0] = 1; // below traffic class 0
        group[4] = 1;
        group[16..20].copy_from_slice(&((TX_RING >> 7) as u32).to_le_bytes());
        // Entries lie in bits 135 to 147 of the context.
        let len = (entries << 7).to_le_bytes();
        group[16 + 16..16 + 19].copy_from_slice(&len[..3]);
        let done = self.ok(0x0c30, &[1], &group);
        self.lan.write32(0x14_0000, 1 << 30 | 7);
        done.dword(12)
    }

    /// Writes a transmit descriptor.
    pub fn descriptor(&self, index: u64, word0: u64, word1: u64) {
        self.memory.write_u64(TX_RING + 16 * index, word0).unwrap();
        self.memory
            .write_u64(TX_RING + 16 * index + 8, word1)
            .unwrap();
    }

    /// Enables receive queue `queue` with eight entries and posts seven 2 KiB buffers.
    pub fn enable_receive(&mut self, queue: u32) {
        let ring = RX_RING + 0x400 * u64::from(queue);
        let words = [
            0,
            (ring >> 7) as u32,
            8 << 25,
            16 << 6 | 1 << 20 | 1 << 23,
            0,
            9728 << 14,
            0,
            0,
        ];
        for (index, word) in (0..).zip(words) {
            self.lan.write32(0x28_0000 + 8192 * index + 4 * queue, word);
        }
        for entry in 0..8 {
            let buffer = RX_BUFFERS + 0x4000 * u64::from(queue) + 2048 * entry;
            self.memory.write_u64(ring + 32 * entry, buffer).unwrap();
            self.memory.write_u64(ring + 32 * entry + 8, 0).unwrap();
        }
        self.lan.write32(0x29_0000 + 4 * queue, 0);
        self.lan
            .write32(0x15_0000 + 4 * queue, 1 << 30 | (9 + queue));
        self.lan.write32(0x12_0000 + 4 * queue, 1);
        assert_eq!(self.lan.read32(0x12_0000 + 4 * queue), 5);
        self.lan.write32(0x29_0000 + 4 * queue, 7);
    }

    /// The four words of a receive descriptor, without and with what they overwrote.
    pub fn received(&self, queue: u32, entry: u64) -> Option<(u64, u64, Vec<u8>)> {
        let address = RX_RING + 0x400 * u64::from(queue) + 32 * entry;
        let word1 = self.memory.read_u64(address + 8).unwrap();
        if word1 & 1 == 0 {
            return None;
        }
        let word0 = self.memory.read_u64(address).unwrap();
        let mut data = vec![0; (word0 >> 32 & 0x3fff) as usize];
        let buffer = RX_BUFFERS + 0x4000 * u64::from(queue) + 2048 * entry;
        self.memory.read(buffer, &mut data).unwrap();
        Some((word0, word1, data))
    }

    pub fn take_events(&self) -> Vec<u16> {
        std::mem::take(&mut *self.seen.events.lock())
    }

    pub fn take_sent(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.seen.sent.lock())
    }

    pub fn lines(&self) -> Vec<String> {
        self.seen.lines.lock().clone()
    }
}
