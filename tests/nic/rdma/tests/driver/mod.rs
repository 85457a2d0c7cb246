// SPDX-License-Identifier: GPL-2.0
//! A driver in miniature. It writes words as the hardware contract gives them, by number, and
//! shares no layout with the model.

#![allow(dead_code, reason = "each test program uses its own part")]

pub mod host;

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

    /// The next entry, if there is one. The valid bit is the last word's top bit.
    pub fn next(&mut self, host: &Surroundings) -> Option<Vec<u64>> {
        let addr = self.base + self.index * self.entry;
        let words: Vec<u64> = (0..self.entry / 8)
            .map(|w| host.read_u64(addr + w * 8).unwrap())
            .collect();
        if (words.last().unwrap() >> 63 == 1) != self.polarity {
            return None;
        }
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

/// A queue pair.
pub struct Pair {
    pub id: u64,
    pub context: u64,
    kind: u64,
    sq: u64,
    rq: u64,
    sq_size: u64,
    rq_size: u64,
    rq_shift: u64,
    sq_at: u64,
    sq_polarity: bool,
    rq_at: u64,
    rq_polarity: bool,
}

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

/// A buffer with its key.
#[derive(Clone, Copy)]
pub struct Buffer {
    pub addr: u64,
    pub va: u64,
    pub stag: u64,
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

    pub fn create_cqp(&mut self) {
        self.cqp = self.alloc(self.cqp_size * 64, 512);
        self.put(self.cqp, &vec![0; self.cqp_size as usize * 8]);
        self.head = 0;
        self.polarity = false;
        let context = self.alloc(64, 64);
        let code = u64::from(self.cqp_size.trailing_zeros()) - 1;
        self.put(
            context,
            &[2 << 3 | code << 8, self.cqp, 1, 0xC0FFEE, 1 << 16, 0, 0, 0],
        );
        self.set(CQP_TAIL, 0);
        self.set(CQP_DB, 0);
        self.set(CCQP_STATUS, 0);
        self.set(CCQP_HIGH, context >> 32);
        self.set(CCQP_LOW, context & 0xFFFF_FFFF);
        assert_eq!(self.reg(CCQP_STATUS), 1);
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

    pub fn init_hmc(&mut self) {
        let buf = self.alloc(4096, 4096);
        self.ok(0x12, [0, 0, 0, 272, buf, 0, 0, 0]);
        let features = self.host.read_u64(buf).unwrap();
        assert_eq!(features >> 32 & 0xFFFF, 2, "two feature words");
        self.ok(0x20, [0, 0, 0, 0, buf, 0, 0, 0]);
        let query = |n: u64| self.host.read_u64(buf + n * 8).unwrap() & 0xFFFF_FFFF;
        // The driver's formulas for a device of 128 queue pairs.
        let qp = 128;
        let counts: [u64; 20] = [
            qp,
            2 * qp,
            0,
            8192,
            query(5),
            0,
            16384,
            64 * qp,
            4 * qp,
            65536,
            4096,
            128,
            query(12),
            4096,
            65536,
            0,
            32 * qp,
            2 * qp,
            qp,
            query(19),
        ];
        self.put(buf, &counts);
        self.put(buf + 160, &[0; 6]);
        self.ok(0x21, [0, 0, 0, 208, buf, 0, 0, 0]);
        let mut last_end = 0;
        for n in (0..20).filter(|n| *n != 15) {
            let word = self.host.read_u64(buf + n * 8).unwrap();
            let base = (word >> 32) * 512;
            if n == 14 {
                self.pble_base = base;
                last_end = base + 65536 * 8;
            } else if n != 5 {
                assert_eq!(word & 0xFFFF_FFFF, counts[n as usize]);
            }
        }
        assert_eq!(self.pble_base % 4096, 0);
        self.segments = last_end.div_ceil(2 << 20);
        for index in 0..self.segments {
            let page = self.alloc(2 << 20, 2 << 20);
            self.ok(
                0x1F,
                [
                    index | 1 << 15 | 1 << 31,
                    page | 512 << 2 | 3,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                ],
            );
            if index == self.pble_base >> 21 {
                // Where this driver writes page addresses.
                self.pble_memory(page);
            }
        }
        self.ok(0x2B, [0; 8]);
    }

    fn pble_memory(&mut self, segment: u64) {
        self.pble_base = segment + self.pble_base % (2 << 20);
    }

    /// Writes page address entries at an index.
    pub fn put_pbles(&self, index: u64, addrs: &[u64]) {
        self.put(self.pble_base + index * 8, addrs);
    }

    pub fn create_event_queues(&mut self) {
        let ring = self.alloc(32 * 64, 256);
        let shadow = self.alloc(64, 128);
        self.put(ring, &[0; 256]);
        self.ccq = Some(Queue {
            id: 0,
            shadow,
            reader: Reader::new(ring, 32, 64),
            seq: 0,
        });
        self.ok(
            0x03,
            [64, 0, 16, 1 << 46 | 1 << 49, ring, shadow, 0, 7 << 8],
        );
        let ceq = self.alloc(8 * 128, 256);
        self.ok(0x16, [0, 0, 128, 0, ceq, 0, 0, 7 << 8]);
        self.ceq = Some(Reader::new(ceq, 8, 128));
        self.set(CEQ_CTL0, 0x4000_1800 | u64::from(CEQ_VECTOR));
        let aeq = self.alloc(16 * 32, 256);
        self.ok(0x19, [0, 0, 32, 0, aeq, 0, 0, 0]);
        self.aeq = Some(Reader::new(aeq, 16, 32));
        self.set(AEQ_CTL, 0x4000_1800 | u64::from(AEQ_VECTOR));
    }

    /// Root, VSI node and an enabled leaf, whose handle is returned.
    pub fn sched(&mut self) -> u64 {
        let weight = |w: u64| w | 7 << 48;
        let node = |id: u64, parent: u64, op: u64, leaf: u64, enable: u64| {
            id | parent << 16 | op << 52 | leaf << 61 | enable << 62 | 1 << 59
        };
        for header in [
            node(0, 0, 0, 0, 1),
            node(1, 0, 0, 0, 1),
            node(2, 1, 0, 1, 0),
        ] {
            self.ok(0x2C, [0, 0, 0, header, weight(1), 0, 0, 0]);
        }
        self.ok(0x2C, [0, 0, 0, node(2, 1, 1, 1, 1), weight(1), 0, 0, 0])
            .value
    }

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
        Queue {
            id,
            shadow,
            reader: Reader::new(ring, 32, entries),
            seq: 0,
        }
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

    /// Words of a queue pair's context that tests change: 7 (P_Key, PD), 8 (Q_Key), 20 (flags).
    pub fn context(&self, pair: &Pair) -> u64 {
        pair.context
    }

    /// A UD queue pair (type 4) or an RC one (type 3) in state IDLE, with one block for its rings.
    pub fn create_qp(&mut self, id: u64, kind: u64, cq: u64, rq_shift: u64) -> Pair {
        let (sq_size, rq_size) = (64, 64);
        let sq = self.alloc(sq_size * 32, 4096);
        let rq = self.alloc(rq_size * 32, 4096);
        self.create_qp_with(id, kind, cq, rq_shift, (sq, rq), None)
    }

    /// The same with rings at given addresses and, if they are page lists, their indices.
    pub fn create_qp_with(
        &mut self,
        id: u64,
        kind: u64,
        cq: u64,
        rq_shift: u64,
        (sq, rq): (u64, u64),
        lists: Option<(u64, u64)>,
    ) -> Pair {
        let (sq_size, rq_size) = (64, 64);
        self.put(sq, &vec![0; sq_size as usize * 4]);
        self.put(rq, &vec![0; rq_size as usize * 4]);
        let context = self.alloc(256, 256);
        let mut w = [0; 32];
        w[0] = 1 << 3 | rq_shift << 8;
        (w[1], w[2]) = lists.unwrap_or((sq, rq));
        w[3] = 64 | 4 << 8 | 4 << 12 | 0xC000 << 32 | 4791 << 48;
        w[6] = 1024 << 16;
        w[7] = 0xFFFF << 32 | PD << 48;
        w[8] = QKEY << 32;
        w[17] = cq | cq << 32;
        w[20] = 0;
        w[21] = 0xAB00 + id;
        w[22] = 2 << 16;
        self.put(context, &w);
        let pair = Pair {
            id,
            context,
            kind,
            sq,
            rq,
            sq_size,
            rq_size,
            rq_shift,
            sq_at: 0,
            sq_polarity: true,
            rq_at: 0,
            rq_polarity: true,
        };
        let vq = u64::from(lists.is_some()) << 45;
        self.ok(0x00, self.qp_wqe(&pair, 1, vq | 1 << 47 | 1 << 51));
        pair
    }

    fn qp_wqe(&self, pair: &Pair, state: u64, flags: u64) -> [u64; 8] {
        [
            0,
            0,
            pair.context,
            pair.id | pair.kind << 48 | state << 60 | flags,
            0,
            0,
            0,
            0,
        ]
    }

    /// MODIFY_QP to a state.
    pub fn modify(&mut self, pair: &Pair, state: u64) -> Completion {
        self.op(0x01, self.qp_wqe(pair, state, 1 << 47 | 1 << 59))
    }

    /// MODIFY_QP for rings in page lists.
    pub fn modify_paged(&mut self, pair: &Pair, state: u64) -> Completion {
        self.op(0x01, self.qp_wqe(pair, state, 1 << 45))
    }

    pub fn destroy_qp(&mut self, pair: &Pair) -> Completion {
        self.op(0x02, self.qp_wqe(pair, 0, 1 << 55))
    }

    /// A UD queue pair ready to send and receive.
    pub fn ud(&mut self, id: u64, cq: u64) -> Pair {
        let pair = self.create_qp(id, 4, cq, 1);
        for state in [1, 4, 2] {
            assert_eq!(self.modify(&pair, state), Completion::OK);
        }
        pair
    }

    /// A buffer of one contiguous block with local rights.
    pub fn buffer(&mut self, len: u64) -> Buffer {
        let addr = self.alloc(len, 4096);
        let va = 0x7F00_0000_0000 | addr;
        let stag = self.next_stag << 8 | 0x5A;
        self.next_stag += 1;
        self.ok(0x0A, mr_wqe(va, len, stag, PD, 0x3, addr, None));
        Buffer { addr, va, stag }
    }

    pub fn dealloc(&mut self, stag: u64) -> Completion {
        self.op(0x0D, [0, PD << 46, stag, 1 << 43, 0, 0, 0, 0])
    }

    pub fn arp(&mut self, index: u64, mac: [u8; 6]) {
        self.ok(0x0F, [0, 0, mac_word(mac), index | 3 << 42, 0, 0, 0, 0]);
    }

    /// An address handle between IPv4 addresses.
    pub fn ah4(&mut self, index: u64, arp: u64, source: u32, destination: u32, loopback: bool) {
        let mac = mac_word(self.host.mac);
        self.ok(
            0x1C,
            [
                mac << 16,
                PD << 48,
                64 << 32 | arp << 48,
                index | 1 << 59 | u64::from(loopback) << 62,
                destination.into(),
                0,
                source.into(),
                0,
            ],
        );
    }

    /// An address handle between IPv6 addresses.
    pub fn ah6(&mut self, index: u64, arp: u64, source: u128, destination: u128, loopback: bool) {
        let mac = mac_word(self.host.mac);
        // The lower of the two words holds the last 32 bits in its lower half.
        let pair = |a: u128| {
            let words = [a >> 96, a >> 64, a >> 32, a].map(|w| (w & 0xFFFF_FFFF) as u64);
            (words[3] | words[2] << 32, words[1] | words[0] << 32)
        };
        let (d0, d1) = pair(destination);
        let (s0, s1) = pair(source);
        self.ok(
            0x1C,
            [
                mac << 16,
                PD << 48,
                0x12345 | 64 << 32 | arp << 48,
                index | u64::from(loopback) << 62,
                d0,
                d1,
                s0,
                s1,
            ],
        );
    }

    /// A multicast operation (0x26 to 0x28) on an IPv4 group.
    pub fn group(&mut self, opcode: u64, index: u64, ip: u32, members: &[u64]) -> Completion {
        self.group_on(opcode, index, ip, None, members)
    }

    pub fn group_on(
        &mut self,
        opcode: u64,
        index: u64,
        ip: u32,
        vlan: Option<u64>,
        members: &[u64],
    ) -> Completion {
        let context = self.alloc(64, 64);
        let mut words = [0; 8];
        for (word, qp) in words.iter_mut().zip(members) {
            *word = qp | 1 << 31;
        }
        self.put(context, &words);
        let mac = 0x0100_5E00_0000 | u64::from(ip & 0x7F_FFFF);
        self.op(
            opcode,
            [
                mac,
                0,
                2 | vlan.unwrap_or(0xFFF) << 32,
                index | 1 << 60 | u64::from(vlan.is_some()) << 59,
                context,
                0,
                ip.into(),
                0,
            ],
        )
    }

    /// Posts a receive WQE of fragments {address, length, STag}.
    pub fn post_recv(&self, pair: &mut Pair, fragments: &[(u64, u64, u64)]) {
        let quanta = 1 << pair.rq_shift;
        let mut words = vec![0; 4 * quanta as usize];
        let polarity = u64::from(pair.rq_polarity) << 63;
        for (n, &(to, len, stag)) in fragments.iter().enumerate() {
            let at = if n == 0 { 0 } else { 2 + 2 * n };
            words[at] = to;
            words[at + 1] = stag | len << 32 | polarity;
        }
        words[3] = (fragments.len().max(1) as u64 - 1) << 38 | polarity;
        let base = pair.rq + pair.rq_at * quanta * 32;
        self.put(base, &words);
        pair.rq_at += 1;
        if pair.rq_at * quanta == pair.rq_size {
            pair.rq_at = 0;
            pair.rq_polarity = !pair.rq_polarity;
        }
    }

    /// Writes a send WQE whose quanta are given without valid bits, and returns its index.
    pub fn post_send(&self, pair: &mut Pair, quanta: &[[u64; 4]]) -> u64 {
        let count = quanta.len() as u64;
        while pair.sq_at % 8 + count > 8 {
            self.put_quantum(pair, [0, 0, 0, 0x0C << 32]);
        }
        let index = pair.sq_at;
        for quantum in quanta {
            self.put_quantum(pair, *quantum);
        }
        index
    }

    fn put_quantum(&self, pair: &mut Pair, mut words: [u64; 4]) {
        words[3] |= u64::from(pair.sq_polarity) << 63;
        self.put(pair.sq + pair.sq_at * 32, &words);
        pair.sq_at += 1;
        if pair.sq_at == pair.sq_size {
            pair.sq_at = 0;
            pair.sq_polarity = !pair.sq_polarity;
        }
    }

    pub fn ring(&self, pair: &Pair) {
        self.set(WQE_ALLOC, pair.id);
    }

    /// A signaled SEND of one fragment.
    pub fn send(&self, pair: &mut Pair, ah: u64, qp: u64, fragment: (u64, u64, u64)) -> u64 {
        let (to, len, stag) = fragment;
        let index = self.post_send(
            pair,
            &[[
                to,
                stag | len << 32,
                QKEY | qp << 32,
                ah | 0x03 << 32 | 1 << 62,
            ]],
        );
        self.ring(pair);
        index
    }

    /// The next frame sent, waited for.
    pub fn frame(&self) -> Vec<u8> {
        self.until("a frame", || {
            let mut frames = self.host.frames.lock().unwrap();
            (!frames.is_empty()).then(|| frames.remove(0))
        })
    }

    /// Flush of both queues with codes 1:6 (SQ) and 1:2 (RQ). Returns the minor code.
    pub fn flush(&mut self, pair: &Pair, sq: bool, rq: bool) -> u64 {
        let codes = 2 | 1 << 16 | 6 << 32 | 1 << 48;
        let header = pair.id | 1 << 60 | u64::from(sq) << 61 | u64::from(rq) << 62;
        self.ok(0x22, [0, 0, codes, header, 0, 0, 0, 0]).minor
    }

    /// Takes everything down in the driver's order and expects nothing left.
    pub fn teardown(&mut self) {
        let node = |id: u64, parent: u64, leaf: u64| id | parent << 16 | 2 << 52 | leaf << 61;
        for header in [node(2, 1, 1), node(1, 0, 0), node(0, 0, 0)] {
            self.ok(0x2C, [0, 0, 0, header, 0, 0, 0, 0]);
        }
        self.set(AEQ_CTL, 0);
        self.ok(0x1B, [0, 0, 32, 0, 0, 0, 0, 0]);
        self.set(CEQ_CTL0, 0x1800);
        self.ok(0x18, [0, 0, 128, 0, 0, 0, 0, 0]);
        self.ccq = None;
        self.ok(0x05, [0, 0, 0, 1 << 49, 0, 0, 0, 0]);
        for index in 0..self.segments {
            self.ok(
                0x1F,
                [index | 1 << 15 | 1 << 31, 512 << 2 | 2, 0, 0, 0, 0, 0, 0],
            );
        }
        self.set(CCQP_HIGH, 0);
        self.set(CCQP_LOW, 0);
        assert_eq!(self.reg(CCQP_STATUS), 0);
    }
}

pub fn mac_word(mac: [u8; 6]) -> u64 {
    mac.iter().fold(0, |w, b| w << 8 | u64::from(*b))
}

/// REG_MR of small pages, VA based. `list` is a page list: level code and first index.
pub fn mr_wqe(
    va: u64,
    len: u64,
    stag: u64,
    pd: u64,
    rights: u64,
    addr: u64,
    list: Option<(u64, u64)>,
) -> [u64; 8] {
    let (level, first) = list.unwrap_or((0, 0));
    [
        va,
        len | pd << 46,
        stag,
        1 << 43 | level << 44 | rights << 48 | 1 << 59,
        if level == 0 { addr } else { 0 },
        0,
        first,
        0,
    ]
}
