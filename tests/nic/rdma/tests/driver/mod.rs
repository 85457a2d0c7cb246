// SPDX-License-Identifier: GPL-2.0
//! A driver in miniature. It writes words as the hardware contract gives them, by number, and
//! shares no layout with the model.

#![allow(
    dead_code,
    unused_imports,
    reason = "each test program uses its own part"
)]

mod bringup;
pub mod host;
mod objects;
mod pairs;
mod queues;

pub use objects::{group_wqe, mac_word, mr_wqe, Buffer};
pub use pairs::Pair;
pub use queues::{Queue, Reader};

use host::Surroundings;
use nic_bus::{Dma, RdmaFunction};
use nic_rdma::{Config, Rdma};
use serde_json::{json, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const CQP_TAIL: u32 = 0x50_0880;
pub const CQP_DB: u32 = 0x50_0800;
pub const CCQP_STATUS: u32 = 0x50_A000;
pub const CCQP_HIGH: u32 = 0x50_A100;
pub const CCQP_LOW: u32 = 0x50_A080;
pub const CQ_ARM: u32 = 0x50_2C00;
pub const CQ_ACK: u32 = 0x50_2C80;
pub const AEQ_ALLOC: u32 = 0x50_2D00;
pub const WQE_ALLOC: u32 = 0x50_4400;
pub const CEQ_CTL0: u32 = 0x15_C000;
pub const AEQ_CTL: u32 = 0x16_CB00;

/// Vectors of the AEQ and of CEQ 0.
pub const AEQ_VECTOR: u16 = 1;
pub const CEQ_VECTOR: u16 = 2;

/// Protection domain of everything a test makes unless it says otherwise.
pub const PD: u64 = 5;
/// Q_Key of everything a test makes unless it says otherwise.
pub const QKEY: u64 = 0x1111_1111;

/// Time after which the worker must have acted.
const PATIENCE: Duration = Duration::from_secs(10);
/// Completion of a control operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub error: bool,
    pub major: u64,
    pub minor: u64,
    pub value: u64,
}

impl Completion {
    pub const OK: Self = Self {
        error: false,
        major: 0,
        minor: 0,
        value: 0,
    };
}

pub struct Driver {
    pub host: Arc<Surroundings>,
    pub rdma: Arc<Rdma>,
    pub pble_base: u64,
    next_addr: u64,
    cqp: u64,
    cqp_size: u64,
    head: u64,
    polarity: bool,
    pub ccq: Option<Queue>,
    pub ceq: Option<Reader>,
    pub aeq: Option<Reader>,
    segments: u64,
    next_stag: u64,
}

impl Driver {
    /// A device and a driver that has done nothing yet.
    pub fn probe(mac: [u8; 6], config: Config) -> Self {
        let host = Surroundings::new(mac);
        Self {
            rdma: Rdma::with_config(host.host(), config),
            host,
            pble_base: 0,
            next_addr: 0x10_0000,
            cqp: 0,
            cqp_size: 64,
            head: 0,
            polarity: false,
            ccq: None,
            ceq: None,
            aeq: None,
            segments: 0,
            next_stag: 1,
        }
    }

    /// A device brought up to the point where queues can be made.
    pub fn up(mac: [u8; 6]) -> Self {
        let mut d = Self::probe(mac, Config::default());
        d.create_cqp();
        d.init_hmc();
        d.create_event_queues();
        d.sched();
        d.rdma.set_filter(7, true);
        d
    }

    pub fn alloc(&mut self, len: u64, align: u64) -> u64 {
        let at = self.next_addr.next_multiple_of(align);
        self.next_addr = at + len;
        assert!(self.next_addr <= host::MEMORY);
        at
    }

    pub fn put(&self, addr: u64, words: &[u64]) {
        for (n, w) in words.iter().enumerate() {
            self.host.write_u64(addr + 8 * n as u64, *w).unwrap();
        }
    }

    pub fn get(&self, addr: u64, len: usize) -> Vec<u8> {
        let mut buf = vec![0; len];
        self.host.read(addr, &mut buf).unwrap();
        buf
    }

    pub fn reg(&self, offset: u32) -> u32 {
        self.rdma.read32(offset).unwrap()
    }

    pub fn set(&self, offset: u32, value: u64) {
        assert!(self.rdma.write32(offset, u32::try_from(value).unwrap()));
    }

    pub fn control(&self, command: &str, args: Value) -> Value {
        self.rdma.control(command, &args).unwrap().unwrap()
    }

    pub fn state(&self) -> Value {
        self.control("state", json!({}))
    }

    /// Asserts that no rule of the device was broken.
    pub fn assert_clean(&self) {
        assert_eq!(self.state()["violations"], json!([]));
    }
    /// Posts a control WQE without looking for its completion.
    pub fn post(&mut self, opcode: u64, mut words: [u64; 8]) -> u64 {
        if self.head == 0 {
            self.polarity = !self.polarity;
        }
        words[3] |= opcode << 32 | u64::from(self.polarity) << 63;
        let index = self.head;
        self.put(self.cqp + index * 64, &words);
        self.head = (self.head + 1) % self.cqp_size;
        self.set(CQP_DB, self.head);
        index
    }

    /// The completion queue's next control completion: WQE index and result.
    pub fn completion(&mut self) -> Option<(u64, Completion)> {
        let ccq = self.ccq.as_mut().unwrap();
        let words = ccq.reader.next(&self.host)?;
        self.host.write_u64(ccq.shadow, ccq.reader.index()).unwrap();
        assert_eq!(words[1], 0xC0FFEE);
        let flags = words[3];
        Some((
            flags >> 32 & 0x7FFF,
            Completion {
                error: flags >> 55 & 1 == 1,
                major: flags >> 16 & 0xFFFF,
                minor: flags & 0xFFFF,
                value: words[2] & 0xFFFF_FFFF,
            },
        ))
    }

    /// Posts a control WQE and takes its completion, from the tail register and, if there is one,
    /// from the completion queue.
    pub fn op(&mut self, opcode: u64, words: [u64; 8]) -> Completion {
        let before = u64::from(self.reg(CQP_TAIL) & 0x7FF);
        let index = self.post(opcode, words);
        let tail = u64::from(self.reg(CQP_TAIL));
        assert_eq!(tail & 0x7FF, (before + 1) % self.cqp_size);
        let error = tail >> 31 == 1;
        if self.ccq.is_none() {
            let codes = u64::from(self.reg(0x50_A200));
            return Completion {
                error,
                major: if error { codes >> 16 } else { 0 },
                minor: if error { codes & 0xFFFF } else { 0 },
                value: 0,
            };
        }
        let (at, completion) = self.completion().expect("a completion");
        assert_eq!((at, completion.error), (index, error));
        completion
    }

    /// The same for an operation that must succeed.
    pub fn ok(&mut self, opcode: u64, words: [u64; 8]) -> Completion {
        let completion = self.op(opcode, words);
        assert!(!completion.error, "{opcode:#x}: {completion:?}");
        completion
    }

    /// Repeats `f` until it gives something.
    pub fn until<T>(&self, what: &str, mut f: impl FnMut() -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(value) = f() {
                return value;
            }
            assert!(start.elapsed() < PATIENCE, "waited for {what}");
            std::thread::yield_now();
        }
    }

    /// The next frame sent, waited for.
    pub fn frame(&self) -> Vec<u8> {
        self.until("a frame", || {
            let mut frames = self.host.frames.lock().unwrap();
            (!frames.is_empty()).then(|| frames.remove(0))
        })
    }
}
