// SPDX-License-Identifier: GPL-2.0
//! Whatever the guest or the wire says, the model answers and lives.

mod driver;

use driver::{Driver, Pair, Queue, QKEY};
use nic_bus::{Dma, RdmaFunction};
use proptest::prelude::*;
use serde_json::json;

const MAC: [u8; 6] = [2, 0xE8, 0x10, 0, 0, 1];

/// Few cases by default; `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").map_or(Ok(48), |n| n.parse());
    ProptestConfig::with_cases(cases.expect("PROPTEST_CASES is a number"))
}

fn rig() -> (Driver, Queue, Pair) {
    let mut d = Driver::up(MAC);
    let cq = d.create_cq(3, 64);
    let qp = d.ud(4, cq.id);
    d.arp(1, MAC);
    d.ah4(1, 1, 1, 2, true);
    (d, cq, qp)
}

/// Numbers that tend to mean something: small ones, addresses in memory, single bits, anything.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..16,
        (0u64..0x4000).prop_map(|p| p << 12),
        (0u32..64).prop_map(|b| 1 << b),
        any::<u64>(),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn control_operations(ops in prop::collection::vec((0u64..64, [(); 8].map(|()| word())), 1..64)) {
        let (mut d, ..) = rig();
        for (opcode, words) in ops {
            // The queue of completions may itself fall to an operation.
            d.post(opcode, words);
        }
        d.state();
        d.rdma.reset(nic_bus::Reset::Function);
        prop_assert_eq!(&d.state()["qps"], &json!(0));
    }

    #[test]
    fn send_queues(quanta in prop::collection::vec([(); 4].map(|()| word()), 1..64)) {
        let (d, _cq, mut qp) = rig();
        for quantum in quanta {
            d.post_send(&mut qp, &[quantum]);
        }
        d.ring(&qp);
        // An operation waits for the worker's lock, so the queue is being worked on by then.
        let (mut d, qp) = (d, qp);
        d.modify(&qp, 6);
        d.flush(&qp, true, true);
        prop_assert!(!d.destroy_qp(&qp).error);
    }

    #[test]
    fn contexts(words in prop::collection::vec(word(), 32), kind in 3u64..5) {
        let (mut d, ..) = rig();
        let context = d.alloc(256, 256);
        d.put(context, &words);
        d.put(context + 136, &[3 | 3 << 32]);
        let made = d.op(0x00, [0, 0, context, 9 | kind << 48 | 1 << 60, 0, 0, 0, 0]);
        if !made.error {
            for state in [4, 2] {
                d.op(0x01, [0, 0, context, 9 | kind << 48 | state << 60, 0, 0, 0, 0]);
            }
            d.set(driver::WQE_ALLOC, 9);
            d.op(0x22, [0, 0, 0, 9 | 3 << 61, 0, 0, 0, 0]);
            prop_assert!(!d.op(0x02, [0, 0, 0, 9, 0, 0, 0, 0]).error);
        }
    }

    #[test]
    fn registers(writes in prop::collection::vec((0u32..0x80_0000, any::<u32>()), 1..64)) {
        let (d, ..) = rig();
        for (offset, value) in writes {
            for offset in [offset & !3, 0x50_0000 | offset & 0xFFFC, 0x7F_0000 | offset & 0xFC] {
                d.rdma.read32(offset);
                d.rdma.write32(offset, value);
            }
        }
    }

    #[test]
    fn frames(noise in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..90, cut in 0usize..130) {
        let (mut d, _cq, mut qp) = rig();
        d.arp(2, [2, 0xE8, 0x10, 0, 0, 2]);
        d.ah4(2, 2, 1, 2, false);
        let buffer = d.buffer(4096);
        d.post_recv(&mut qp, &[(buffer.va, 4096, buffer.stag)]);
        d.send(&mut qp, 2, 4, (buffer.va, 20, buffer.stag));
        let mut frame = d.frame();
        for (byte, n) in frame.iter_mut().skip(at).zip(&noise) {
            *byte ^= n;
        }
        d.rdma.wants(&frame);
        d.rdma.receive(&frame);
        frame.truncate(cut);
        d.rdma.receive(&frame);
        d.rdma.receive(&noise);
    }

    #[test]
    fn receive_queues(quanta in prop::collection::vec([(); 4].map(|()| word()), 2)) {
        let (mut d, _cq, mut qp) = rig();
        let buffer = d.buffer(4096);
        d.host.write(buffer.addr, &[1; 20]).unwrap();
        // One WQE of two quanta with anything in it, and a packet for it.
        d.post_recv(&mut qp, &[(0, 0, 0)]);
        let words = d.get(qp.context + 16, 8);
        let rq = u64::from_le_bytes(words.try_into().unwrap());
        for (n, quantum) in quanta.iter().enumerate() {
            let mut quantum = *quantum;
            quantum[3] |= 1 << 63;
            d.put(rq + n as u64 * 32, &quantum);
        }
        d.post_send(&mut qp, &[[buffer.va, buffer.stag | 20 << 32, QKEY | 4 << 32, 1 | 3 << 32]]);
        d.ring(&qp);
        d.modify(&qp, 6);
        prop_assert!(!d.destroy_qp(&qp).error);
    }

    #[test]
    fn commands(name in "state|fault|inject|release|ops|qps|cqs|groups|counters|[a-z]{1,8}",
                key in "op|nth|count|action|minor|ae|qp|cq|critical|until_ops", value in any::<i64>()) {
        let (d, ..) = rig();
        let mut args = serde_json::Map::new();
        args.insert(key, value.into());
        let _ = d.rdma.control(&name, &args.into());
    }
}
