// SPDX-License-Identifier: GPL-2.0
//! Completion queues and events: arms, acknowledgements, overflow, resize, flush.

mod driver;

use driver::{Buffer, Completion, Driver, Pair, Queue, Reader, CEQ_VECTOR, CQ_ACK, QKEY};
use nic_bus::Dma;
use serde_json::json;

const MAC: [u8; 6] = [2, 0xE8, 0x10, 0, 0, 1];

struct Rig {
    d: Driver,
    cq: Queue,
    qp: Pair,
    buffer: Buffer,
}

/// One queue pair that sends to itself by loopback with AH 9.
fn rig(entries: u64) -> Rig {
    let mut d = Driver::up(MAC);
    let cq = d.create_cq(3, entries);
    let qp = d.ud(4, cq.id);
    let buffer = d.buffer(4096);
    d.arp(2, MAC);
    d.ah4(9, 2, 0x0A63_0001, 0x0A63_0001, true);
    Rig { d, cq, qp, buffer }
}

impl Rig {
    /// Sends to itself and waits until the device is done. With `solicited` the receive is.
    fn exchange(&mut self, solicited: bool) {
        let before = self.written();
        let (va, stag) = (self.buffer.va, self.buffer.stag);
        self.d.post_recv(&mut self.qp, &[(va, 4096, stag)]);
        let op = if solicited { 5 } else { 3 };
        self.d
            .post_send(&mut self.qp, &[[0, 0, QKEY | 4 << 32, 9 | op << 32]]);
        self.d.ring(&self.qp);
        self.d.until("the receive", || {
            (self.written() == before + 2).then_some(())
        });
    }

    fn written(&self) -> u64 {
        let list = self.d.control("cqs", json!({}));
        let cq = list.as_array().unwrap().iter().find(|c| c["cq"] == 3);
        cq.unwrap()["written"].as_u64().unwrap()
    }

    fn drain(&mut self) -> usize {
        std::iter::from_fn(|| self.d.poll(&mut self.cq)).count()
    }
}

#[test]
fn one_event_for_each_arm() {
    let mut r = rig(64);
    r.exchange(false);
    assert_eq!(r.d.ceqe(), None, "not armed");
    r.drain();
    r.d.arm(&mut r.cq, true);
    assert_eq!(r.d.ceqe(), None, "nothing to announce");
    r.exchange(false);
    r.exchange(false);
    assert_eq!(r.d.ceqe(), Some(3));
    assert_eq!(r.d.ceqe(), None, "the arm is used up");
    assert_eq!(r.d.host.events.lock().unwrap().last(), Some(&CEQ_VECTOR));
    r.d.set(CQ_ACK, 3);
    assert_eq!(r.d.ceqe(), None);
    r.d.assert_clean();
}

#[test]
fn arming_with_entries_unread_fires_at_once() {
    let mut r = rig(64);
    r.exchange(false);
    r.d.arm(&mut r.cq, true);
    assert_eq!(r.d.ceqe(), Some(3));
}

/// The driver runs ahead of its doorbells: the sequence number has come round when the first of
/// them arrives.
#[test]
fn arms_made_before_the_device_looks_are_not_lost() {
    let mut r = rig(64);
    let shadow = r.cq.shadow + 32;
    r.d.host.write_u64(shadow, 1 << 14 | 1 << 15).unwrap();
    (0..4).for_each(|_| r.d.set(driver::CQ_ARM, 3));
    r.exchange(false);
    assert_eq!(r.d.ceqe(), Some(3));
}

#[test]
fn solicited_arms_pass_over_other_entries() {
    let mut r = rig(64);
    r.d.arm(&mut r.cq, false);
    r.exchange(false);
    assert_eq!(r.d.ceqe(), None);
    r.exchange(true);
    assert_eq!(r.d.ceqe(), Some(3));
    r.d.set(CQ_ACK, 3);
    r.drain();
    r.exchange(false);
    r.d.arm(&mut r.cq, false);
    assert_eq!(r.d.ceqe(), None);
    // Upgraded to any: the entry that is there counts.
    r.d.arm(&mut r.cq, true);
    assert_eq!(r.d.ceqe(), Some(3));
}

#[test]
fn an_event_waits_for_the_acknowledgement_of_the_last() {
    let mut r = rig(64);
    r.d.arm(&mut r.cq, true);
    r.exchange(false);
    assert_eq!(r.d.ceqe(), Some(3));
    r.drain();
    r.d.arm(&mut r.cq, true);
    r.exchange(false);
    assert_eq!(r.d.ceqe(), None, "not acknowledged");
    r.d.set(CQ_ACK, 3);
    assert_eq!(r.d.ceqe(), Some(3));
    r.d.set(CQ_ACK, 3);
    assert_eq!(r.d.ceqe(), None);
}

#[test]
fn an_arm_outlives_the_event_that_was_held() {
    let mut r = rig(64);
    for _ in 0..2 {
        r.d.arm(&mut r.cq, true);
        r.exchange(false);
        r.drain();
    }
    r.d.arm(&mut r.cq, true);
    assert_eq!(r.d.ceqe(), Some(3));
    r.d.set(CQ_ACK, 3);
    assert_eq!(r.d.ceqe(), Some(3), "the held one");
    r.d.set(CQ_ACK, 3);
    r.exchange(false);
    assert_eq!(r.d.ceqe(), Some(3), "for the last arm");
}

#[test]
fn an_interrupt_waits_for_its_cause() {
    let mut r = rig(64);
    r.d.set(driver::CEQ_CTL0, 0x1800);
    r.d.host.events.lock().unwrap().clear();
    r.d.arm(&mut r.cq, true);
    r.exchange(false);
    assert!(r.d.host.events.lock().unwrap().is_empty());
    r.d.set(driver::CEQ_CTL0, 0x4000_1800 | u64::from(CEQ_VECTOR));
    assert_eq!(*r.d.host.events.lock().unwrap(), [CEQ_VECTOR]);
}

#[test]
fn a_full_queue_is_reported_once_and_overwrites_nothing() {
    let mut r = rig(8);
    for _ in 0..3 {
        r.exchange(false);
    }
    let (va, stag) = (r.buffer.va, r.buffer.stag);
    for _ in 0..2 {
        r.d.post_recv(&mut r.qp, &[(va, 4096, stag)]);
        r.d.post_send(&mut r.qp, &[[0, 0, QKEY | 4 << 32, 9 | 3 << 32]]);
    }
    r.d.ring(&r.qp);
    let (code, source, id, ..) = r.d.wait_aeqe();
    assert_eq!((code, source, id), (0x0203, 2, 3));
    assert_eq!(r.drain(), 3);
    assert_eq!(r.d.aeqe(), None);
    r.d.assert_clean();
}

#[test]
fn extended_entries_wrap() {
    let mut r = rig(7);
    for _ in 0..20 {
        r.exchange(false);
        let (first, extension) = r.d.poll(&mut r.cq).expect("a completion");
        assert_eq!(first[0], 40);
        assert!(extension.is_some());
    }
    r.d.assert_clean();
}

#[test]
fn a_resized_queue_goes_on_in_the_new_ring() {
    let mut r = rig(16);
    r.exchange(false);
    r.d.arm(&mut r.cq, false);
    let ring = r.d.alloc(64 * 32, 256);
    r.d.put(ring, &[0; 256]);
    let shadow = r.cq.shadow;
    r.d.ok(
        0x04,
        [64, 3, 32, 3 | 1 << 43 | 1 << 48, ring, shadow, 0, 7 << 8],
    );
    r.exchange(true);
    assert_eq!(r.d.ceqe(), Some(3), "the arm survived");
    assert_eq!(r.drain(), 1, "the old ring keeps what it had");
    // The driver has reached the new ring.
    r.cq.reader = Reader::new(ring, 32, 64);
    let arm = r.d.host.read_u64(shadow + 32).unwrap();
    r.d.host.write_u64(shadow + 32, arm & !0x3FFF | 1).unwrap();
    r.d.host.write_u64(shadow, 0).unwrap();
    assert_eq!(r.drain(), 1);
    for _ in 0..40 {
        r.exchange(false);
        assert_eq!(r.drain(), 1);
    }
    r.d.assert_clean();
}

#[test]
fn a_flush_writes_one_entry_for_each_queue() {
    let mut r = rig(64);
    let (va, stag) = (r.buffer.va, r.buffer.stag);
    r.exchange(false);
    r.drain();
    r.d.modify(&r.qp, 6);
    assert_eq!(r.d.flush(&r.qp, true, true), 0, "nothing pending");
    for _ in 0..3 {
        r.d.post_recv(&mut r.qp, &[(va, 4096, stag)]);
        r.d.post_send(&mut r.qp, &[[0, 0, 0, 9 | 3 << 32]]);
    }
    assert_eq!(r.d.flush(&r.qp, true, true), 1, "both");
    let (sq, _) = r.d.poll(&mut r.cq).expect("SQ");
    let (rq, _) = r.d.poll(&mut r.cq).expect("RQ");
    assert_eq!(r.d.poll(&mut r.cq), None);
    assert_eq!(sq[1], 0xAB04);
    assert_eq!(
        sq[3] & !(1 << 63),
        0x4080_0001_0001_0006,
        "code 6 at index 1"
    );
    assert_eq!(
        rq[3] & !(1 << 63),
        0x0080_0002_0001_0002,
        "code 2 at quantum 2"
    );
    // Later WQEs are flushed by a later flush.
    r.d.post_recv(&mut r.qp, &[(va, 4096, stag)]);
    assert_eq!(r.d.flush(&r.qp, true, true), 2, "only the RQ");
    r.d.post_send(&mut r.qp, &[[0, 0, 0, 9 | 3 << 32]]);
    assert_eq!(r.d.flush(&r.qp, true, true), 3, "only the SQ");
    let (rq, _) = r.d.poll(&mut r.cq).expect("RQ");
    assert_eq!(rq[3] >> 32 & 0x7FFF, 8);
    r.d.assert_clean();
}

#[test]
fn the_event_queue_announces_its_overflow() {
    let mut r = rig(64);
    for _ in 0..40 {
        r.d.control("inject", json!({"ae": 0x0603, "qp": 4}));
    }
    let mut entries = Vec::new();
    let aeq = r.d.aeq.as_mut().unwrap();
    while let Some(words) = aeq.next(&r.d.host) {
        entries.push(words[1] >> 33 & 1);
    }
    assert_eq!(entries.len(), 32);
    assert_eq!(entries.iter().sum::<u64>(), 1);
    assert_eq!(entries.last(), Some(&1));
    r.d.set(driver::AEQ_ALLOC, 32);
    r.d.control("inject", json!({"ae": "0x603", "qp": 4}));
    assert_eq!(r.d.aeqe().map(|e| (e.0, e.2)), Some((0x603, 4)));
}

#[test]
fn critical_errors_set_their_cause() {
    let r = rig(64);
    r.d.control("inject", json!({"critical": 0x1_024D}));
    assert_eq!(r.d.reg(0x53_4000), 0x1_024D);
    r.d.control("inject", json!({"hmc_error": 5, "data": 6}));
    assert_eq!((r.d.reg(0x52_0400), r.d.reg(0x52_0500)), (5, 6));
    assert_eq!(*r.d.host.causes.lock().unwrap(), 1 << 28 | 1 << 26);
}

#[test]
fn what_was_rung_for_is_sent_before_the_queue_pair_goes() {
    const SENDS: usize = 12;
    for _ in 0..20 {
        let mut r = rig(64);
        for _ in 0..SENDS {
            r.d.post_send(&mut r.qp, &[[0, 0, QKEY | 4 << 32, 9 | 3 << 32 | 1 << 62]]);
        }
        r.d.ring(&r.qp);
        assert_eq!(r.d.destroy_qp(&r.qp), Completion::OK);
        assert_eq!(r.drain(), SENDS);
        r.d.assert_clean();
    }
}

#[test]
fn destroyed_queue_pairs_write_nothing() {
    let mut r = rig(64);
    let (va, stag) = (r.buffer.va, r.buffer.stag);
    r.d.post_recv(&mut r.qp, &[(va, 4096, stag)]);
    assert_eq!(r.d.destroy_qp(&r.qp), Completion::OK);
    assert_eq!(r.d.poll(&mut r.cq), None);
    assert_eq!(r.d.destroy_cq(3), Completion::OK);
    assert_eq!(r.d.dealloc(stag), Completion::OK);
    r.d.assert_clean();
}
