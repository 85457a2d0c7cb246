// SPDX-License-Identifier: GPL-2.0
//! Regions, page lists and segments: how addresses become host memory, and what is refused.

mod driver;

use driver::{mr_wqe, Driver, Pair, Queue, PD};
use nic_bus::Dma;
use serde_json::json;

const MAC: [u8; 6] = [2, 0xE8, 0x10, 0, 0, 1];
const VA: u64 = 0x7000_0000_0000;

fn rig() -> (Driver, Queue, Pair) {
    let mut d = Driver::up(MAC);
    let cq = d.create_cq(3, 64);
    let qp = d.ud(4, cq.id);
    d.arp(2, [2, 0xE8, 0x10, 0, 0, 9]);
    d.ah4(9, 2, 1, 2, false);
    (d, cq, qp)
}

/// Payload that the device reads from a fragment.
fn gathered(d: &Driver, qp: &mut Pair, fragment: (u64, u64, u64)) -> Vec<u8> {
    d.send(qp, 9, 7, fragment);
    let frame = d.frame();
    let start = 14 + 20 + 8 + 20;
    frame[start..start + fragment.1 as usize].to_vec()
}

/// Pages of which page n is filled with the octet n + 1.
fn pages(d: &mut Driver, count: u64) -> Vec<u64> {
    (0..count)
        .map(|n| {
            // Apart from one another.
            d.alloc(4096, 4096);
            let page = d.alloc(4096, 4096);
            d.host.write(page, &[n as u8 + 1; 4096]).unwrap();
            page
        })
        .collect()
}

#[test]
fn a_one_level_list_is_followed() {
    let (mut d, _, mut qp) = rig();
    let list = pages(&mut d, 3);
    d.put_pbles(800, &list);
    d.ok(
        0x0A,
        mr_wqe(VA + 0x10, 0x2800, 0x155, PD, 1, 0, Some((1, 800))),
    );
    let got = gathered(&d, &mut qp, (VA + 4096 - 2, 4, 0x155));
    assert_eq!(got, [1, 1, 2, 2]);
    let got = gathered(&d, &mut qp, (VA + 0x2800, 0x10, 0x155));
    assert_eq!(got, [3; 16]);
}

#[test]
fn a_two_level_list_is_followed() {
    let (mut d, _, mut qp) = rig();
    let list = pages(&mut d, 2);
    // The root at 16 names leaves at 1024 and 4096; page 511 is the last of the first leaf.
    d.put_pbles(16, &[1024, 4096]);
    d.put_pbles(1024 + 511, &list[..1]);
    d.put_pbles(4096, &list[1..]);
    let len = 513 * 4096;
    d.ok(0x0A, mr_wqe(VA, len, 0x155, PD, 1, 0, Some((3, 16))));
    let got = gathered(&d, &mut qp, (VA + 512 * 4096 - 1, 2, 0x155));
    assert_eq!(got, [1, 2]);
}

#[test]
fn zero_based_regions_count_from_their_first_byte() {
    let (mut d, _, mut qp) = rig();
    let addr = d.alloc(4096, 4096);
    d.host.write(addr + 0x123, &[7, 8, 9]).unwrap();
    let mut wqe = mr_wqe(0x123, 3, 0x155, PD, 1, addr, None);
    wqe[3] &= !(1 << 59);
    d.ok(0x0A, wqe);
    assert_eq!(gathered(&d, &mut qp, (1, 2, 0x155)), [8, 9]);
}

#[test]
fn stag_zero_is_for_privileged_queue_pairs() {
    let (mut d, _, mut qp) = rig();
    let addr = d.alloc(4096, 4096);
    d.host.write(addr, &[5, 6]).unwrap();
    d.put(qp.context + 160, &[1 << 25]);
    d.modify(&qp, 2);
    assert_eq!(gathered(&d, &mut qp, (addr, 2, 0)), [5, 6]);
    d.put(qp.context + 160, &[0]);
    d.modify(&qp, 2);
    d.send(&mut qp, 9, 7, (addr, 2, 0));
    assert_eq!(d.wait_aeqe().0, 0x0206);
}

#[test]
fn a_dma_region_is_all_of_memory() {
    let (mut d, _, mut qp) = rig();
    let addr = d.alloc(4096, 4096);
    d.host.write(addr, &[5, 6]).unwrap();
    d.ok(0x0A, mr_wqe(0, 0, 0x155, PD, 1, 0, None));
    assert_eq!(gathered(&d, &mut qp, (addr, 2, 0x155)), [5, 6]);
}

#[test]
fn every_check_has_its_event() {
    for (fragment, code) in [
        ((VA, 4, 0x255), 0x0102),           // no such STag
        ((VA, 4, 0x156), 0x0106),           // key
        ((VA, 4, 0x355), 0x0105),           // PD
        ((VA, 4, 0x455), 0x0109),           // rights
        ((VA - 1, 4, 0x155), 0x0108),       // below
        ((VA + 4093, 4, 0x155), 0x0108),    // above
        ((u64::MAX - 1, 4, 0x155), 0x010A), // wrap
        ((VA, 4, 0x555), 0x0103),           // not registered yet
        ((VA, 4, 0x655), 0x0704),           // page outside of memory
    ] {
        let (mut d, mut cq, mut qp) = rig();
        let addr = d.alloc(4096, 4096);
        d.ok(0x0A, mr_wqe(VA, 4096, 0x155, PD, 1, addr, None));
        d.ok(0x0A, mr_wqe(VA, 4096, 0x355, PD + 1, 1, addr, None));
        d.ok(0x0A, mr_wqe(VA, 4096, 0x455, PD, 2, addr, None));
        d.ok(
            0x09,
            [0, 4096 | PD << 46, 0x555, 1 << 43 | 1 << 53, 0, 0, 0, 0],
        );
        d.ok(0x0A, mr_wqe(VA, 4096, 0x655, PD, 1, 1 << 50, None));
        let index = d.send(&mut qp, 9, 7, fragment);
        let (got, source, id, state, wqe) = d.wait_aeqe();
        assert_eq!(
            (got, source, id, state, wqe),
            (code, 5, 4, 6, index),
            "{fragment:x?}"
        );
        let broken = u64::from(code == 0x0704);
        assert_eq!(d.state()["violation_count"], json!(broken), "{code:#x}");
        assert_eq!(d.poll(&mut cq), None);
    }
}

#[test]
fn stags_are_keyed_by_all_their_bits() {
    let (mut d, _, mut qp) = rig();
    let addr = d.alloc(4096, 4096);
    // 16384 regions: 14 bits of index, 10 of the driver's choice.
    let stag = 0x3FF << 22 | 5 << 8 | 0x77;
    d.ok(0x0A, mr_wqe(VA, 4096, stag, PD, 1, addr, None));
    assert!(
        d.op(0x0A, mr_wqe(VA, 4096, 5 << 8, PD, 1, addr, None))
            .error,
        "the index is taken"
    );
    gathered(&d, &mut qp, (VA, 4, stag));
    d.send(&mut qp, 9, 7, (VA, 4, stag & 0x3F_FFFF));
    assert_eq!(d.wait_aeqe().0, 0x0102);
    assert!(!d.dealloc(stag).error);
    assert!(d.dealloc(stag).error);
}

#[test]
fn rings_may_be_page_lists() {
    let (mut d, mut cq, _) = rig();
    let (sq, rq) = (d.alloc(4096, 4096), d.alloc(4096, 4096));
    d.put_pbles(40, &[sq]);
    d.put_pbles(48, &[rq]);
    let mut qp = d.create_qp_with(11, 4, cq.id, 0, (sq, rq), Some((40, 48)));
    for state in [4, 2] {
        assert!(!d.modify_paged(&qp, state).error);
    }
    let buffer = d.buffer(4096);
    d.post_recv(&mut qp, &[(buffer.va, 4096, buffer.stag)]);
    d.ah4(10, 2, 1, 1, true);
    d.send(&mut qp, 10, 11, (buffer.va, 8, buffer.stag));
    d.wait(&mut cq);
    d.wait(&mut cq);
    d.assert_clean();
}

#[test]
fn paged_segments_are_read_at_each_use() {
    let (mut d, _, mut qp) = rig();
    let list = pages(&mut d, 2);
    // The page addresses move to a page behind a page descriptor.
    let index = d.pble_base;
    let table = d.alloc(4096, 4096);
    let entries = d.alloc(4096, 4096);
    let segment = d.state()["sds"].as_u64().unwrap() - 1;
    d.put(entries, &list);
    let first = (index % (2 << 20)) / 4096;
    d.put(table + first * 8, &[entries | 1]);
    let cmd = segment | 1 << 15 | 1 << 31;
    d.ok(0x1F, [cmd, 512 << 2 | 2, 0, 0, 0, 0, 0, 0]);
    d.ok(0x1F, [cmd, table | 512 << 2 | 1, 0, 0, 0, 0, 0, 0]);
    d.ok(0x0A, mr_wqe(VA, 8192, 0x1_0055, PD, 1, 0, Some((1, 0))));
    assert_eq!(gathered(&d, &mut qp, (VA + 4095, 2, 0x1_0055)), [1, 2]);
    d.put(table + first * 8, &[0]);
    d.send(&mut qp, 9, 7, (VA, 4, 0x1_0055));
    assert_eq!(d.wait_aeqe().0, 0x0704);
}

#[test]
fn segment_updates_take_eleven_entries() {
    let mut d = Driver::up(MAC);
    let had = d.state()["sds"].as_u64().unwrap();
    let more = d.alloc(256, 128);
    let entry = |n: u64| [(100 + n) | 1 << 15 | 1 << 31, (100 + n) << 21 | 3];
    for n in 0..9 {
        d.put(more + n * 16, &entry(3 + n));
    }
    let [[a, b], [c, e], [f, g]] = [entry(0), entry(1), entry(2)];
    d.ok(0x1F, [a, b, more, 8, c | 1 << 63, e, f | 1 << 63, g]);
    assert_eq!(d.state()["sds"], json!(had + 11));
    assert!(
        d.op(0x1F, [a, b, more, 9, 0, 0, 0, 0]).error,
        "nine further entries"
    );
    assert!(
        d.op(0x1F, [600 | 1 << 31, b, 0, 0, 0, 0, 0, 0]).error,
        "out of range"
    );
    d.assert_clean();
}

#[test]
fn host_memory_that_is_not_there_is_refused() {
    let (mut d, _, qp) = rig();
    let nowhere = 1 << 50;
    for (opcode, words) in [
        (0x12, [0, 0, 0, 272, nowhere, 0, 0, 0]),
        (0x20, [0, 0, 0, 0, nowhere, 0, 0, 0]),
        (0x21, [0, 0, 0, 208, nowhere, 0, 0, 0]),
        (0x2E, [0, 0, 0, 0, nowhere, 0, 0, 0]),
        (0x26, [0, 0, 0, 1 | 1 << 60, nowhere, 0, 0xEF00_0001, 0]),
        (0x01, [0, 0, nowhere, qp.id | 4 << 48 | 2 << 60, 0, 0, 0, 0]),
        (0x1F, [1 << 31, 3, nowhere, 1, 0, 0, 0, 0]),
    ] {
        assert!(d.op(opcode, words).error, "{opcode:#x}");
    }
}
