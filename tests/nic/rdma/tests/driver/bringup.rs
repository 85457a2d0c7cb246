// SPDX-License-Identifier: GPL-2.0
//! Bring-up and teardown in the driver's order.

use super::*;

impl Driver {
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
        self.ccq = Some(Queue::new(0, shadow, Reader::new(ring, 32, 64)));
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
