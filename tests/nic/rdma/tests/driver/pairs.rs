// SPDX-License-Identifier: GPL-2.0
//! Queue pairs and what is posted to them.

use super::*;

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

impl Driver {
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

    /// Flush of both queues with codes 1:6 (SQ) and 1:2 (RQ). Returns the minor code.
    pub fn flush(&mut self, pair: &Pair, sq: bool, rq: bool) -> u64 {
        let codes = 2 | 1 << 16 | 6 << 32 | 1 << 48;
        let header = pair.id | 1 << 60 | u64::from(sq) << 61 | u64::from(rq) << 62;
        self.ok(0x22, [0, 0, codes, header, 0, 0, 0, 0]).minor
    }
}
