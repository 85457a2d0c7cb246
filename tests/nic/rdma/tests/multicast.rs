// SPDX-License-Identifier: GPL-2.0
//! Multicast groups: operations on them, and who gets a copy.

mod driver;

use driver::{Buffer, Completion, Driver, Pair, Queue, QKEY};
use nic_bus::RdmaFunction;
use serde_json::json;

const MAC_A: [u8; 6] = [2, 0xE8, 0x10, 0, 0, 1];
const MAC_B: [u8; 6] = [2, 0xE8, 0x10, 0, 0, 2];
const GROUP: u32 = 0xEF01_0203;
const GROUP_MAC: [u8; 6] = [1, 0, 0x5E, 1, 2, 3];
const CREATE: u64 = 0x26;
const MODIFY: u64 = 0x27;
const DESTROY: u64 = 0x28;

struct Member {
    qp: Pair,
    cq: Queue,
    buffer: Buffer,
}

/// Queue pairs 10 and up, each with its own queue and buffer and `receives` posted receives.
fn members(d: &mut Driver, count: u64, receives: usize) -> Vec<Member> {
    (0..count)
        .map(|n| {
            let cq = d.create_cq(10 + n, 64);
            let mut qp = d.ud(10 + n, cq.id);
            let buffer = d.buffer(4096);
            for _ in 0..receives {
                d.post_recv(&mut qp, &[(buffer.va, 4096, buffer.stag)]);
            }
            Member { qp, cq, buffer }
        })
        .collect()
}

/// A device that sends to the group with queue pair 4 and AH 5.
fn sender() -> (Driver, Pair, Buffer) {
    let mut d = Driver::up(MAC_A);
    let cq = d.create_cq(3, 64);
    let qp = d.ud(4, cq.id);
    let buffer = d.buffer(4096);
    d.arp(1, GROUP_MAC);
    d.ah4(5, 1, 0x0A63_0001, GROUP, true);
    (d, qp, buffer)
}

fn send(d: &Driver, qp: &mut Pair, buffer: &Buffer) -> Vec<u8> {
    d.send(qp, 5, 0xFF_FFFF, (buffer.va, 100, buffer.stag));
    d.frame()
}

fn copies(d: &Driver, members: &mut [Member]) -> Vec<usize> {
    members
        .iter_mut()
        .map(|m| std::iter::from_fn(|| d.poll(&mut m.cq)).count())
        .collect()
}

#[test]
fn each_of_eight_members_gets_its_copy() {
    let (a, mut qp, buffer) = sender();
    let mut b = Driver::up(MAC_B);
    let mut m = members(&mut b, 9, 10);
    let frame = send(&a, &mut qp, &buffer);
    assert_eq!(frame[..6], GROUP_MAC);
    assert!(!b.rdma.wants(&frame), "no group yet");
    let ids: Vec<u64> = m.iter().map(|m| m.qp.id).collect();
    assert_eq!(b.group(CREATE, 1, GROUP, &ids[..1]), Completion::OK);
    for n in 2..=8 {
        assert_eq!(b.group(MODIFY, 1, GROUP, &ids[..n]), Completion::OK);
        assert!(b.rdma.wants(&frame));
        b.rdma.receive(&frame);
        let got = copies(&b, &mut m);
        assert_eq!(got, (0..9).map(|i| usize::from(i < n)).collect::<Vec<_>>());
    }
    for member in &m[..8] {
        assert_eq!(b.get(member.buffer.addr + 20, 20), frame[14..34]);
        assert_eq!(b.get(member.buffer.addr + 36, 4), GROUP.to_be_bytes());
    }
    let groups = b.control("groups", json!({}));
    assert_eq!(groups[0]["ip"], json!("239.1.2.3"));
    assert_eq!(groups[0]["mac"], json!("01:00:5e:01:02:03"));
    assert_eq!(groups[0]["vlan"], json!(null));
    assert_eq!(groups[0]["members"][7], json!({"qp": 17}));
    assert_eq!(b.group(DESTROY, 1, GROUP, &[]), Completion::OK);
    assert!(!b.rdma.wants(&frame));
    assert_eq!(b.control("groups", json!({})), json!([]));
    b.assert_clean();
}

#[test]
fn a_bad_member_loses_only_its_own_copy() {
    let (a, mut qp, buffer) = sender();
    let mut b = Driver::up(MAC_B);
    let mut m = members(&mut b, 4, 1);
    let ids: Vec<u64> = m.iter().map(|m| m.qp.id).collect();
    b.group(CREATE, 1, GROUP, &ids);
    b.modify(&m[0].qp, 6);
    b.put(m[1].qp.context + 64, &[(QKEY + 1) << 32]);
    b.modify(&m[1].qp, 2);
    let frame = send(&a, &mut qp, &buffer);
    b.rdma.receive(&frame);
    assert_eq!(copies(&b, &mut m), [0, 0, 1, 1]);
    // Now the others have no receive WQE left.
    b.rdma.receive(&frame);
    assert_eq!(copies(&b, &mut m), [0, 0, 0, 0]);
    assert_eq!(b.aeqe(), None);
}

#[test]
fn local_members_and_the_wire_get_one_copy_each() {
    let (mut a, mut qp, buffer) = sender();
    let mut m = members(&mut a, 2, 2);
    a.post_recv(&mut qp, &[(buffer.va, 4096, buffer.stag)]);
    a.group(CREATE, 1, GROUP, &[10, 11, 4]);
    send(&a, &mut qp, &buffer);
    assert!(
        a.host.frames.lock().unwrap().is_empty(),
        "one frame, taken above"
    );
    assert_eq!(copies(&a, &mut m), [1, 1]);
    let own = a.control("qps", json!({}));
    assert_eq!((&own[0]["qp"], &own[0]["received"]), (&json!(4), &json!(1)));
    a.assert_clean();
}

#[test]
fn indices_are_checked() {
    let mut b = Driver::up(MAC_B);
    members(&mut b, 1, 0);
    for (opcode, index) in [(MODIFY, 1), (DESTROY, 1), (CREATE, 0), (CREATE, 4096)] {
        assert!(
            b.group(opcode, index, GROUP, &[10]).error,
            "{opcode:#x} {index}"
        );
    }
    assert_eq!(b.group(CREATE, 4095, GROUP, &[10]), Completion::OK);
    assert!(b.group(CREATE, 4095, GROUP, &[10]).error, "in use");
    assert!(
        b.group(CREATE, 2, 0x0A00_0001, &[10]).error,
        "no multicast address"
    );
    assert!(b.group(CREATE, 2, GROUP + 1, &[]).error, "no member");
    assert_eq!(b.group(DESTROY, 4095, GROUP, &[]), Completion::OK);
    assert!(b.group(DESTROY, 4095, GROUP, &[]).error, "gone");
    b.assert_clean();
}

#[test]
fn groups_of_one_address_deliver_to_the_union() {
    let (a, mut qp, buffer) = sender();
    let mut b = Driver::up(MAC_B);
    let mut m = members(&mut b, 3, 2);
    b.group(CREATE, 1, GROUP, &[10, 11]);
    b.group(CREATE, 2, GROUP, &[11, 12]);
    b.rdma.receive(&send(&a, &mut qp, &buffer));
    assert_eq!(copies(&b, &mut m), [1, 1, 1]);
    let violations = b.state()["violations"].to_string();
    assert!(
        violations.contains("groups 1 and 2 are both for 239.1.2.3"),
        "{violations}"
    );
}

#[test]
fn members_that_are_no_queue_pairs_are_violations() {
    let mut b = Driver::up(MAC_B);
    members(&mut b, 1, 0);
    assert_eq!(b.group(CREATE, 1, GROUP, &[10, 55]), Completion::OK);
    assert_eq!(b.group(CREATE, 2, GROUP + 1, &[10, 10]), Completion::OK);
    let violations = b.state()["violations"].to_string();
    assert!(
        violations.contains("member 55 is no live QP"),
        "{violations}"
    );
    assert!(
        violations.contains("member 10 listed twice"),
        "{violations}"
    );
}

#[test]
fn a_vlan_group_takes_its_vlan_only() {
    let (a, mut qp, buffer) = sender();
    let untagged = send(&a, &mut qp, &buffer);
    let tag = |vlan: u8| {
        let mut frame = untagged.clone();
        frame.splice(12..12, [0x81, 0, 0, vlan]);
        frame
    };
    let mut b = Driver::up(MAC_B);
    let mut m = members(&mut b, 1, 9);
    b.group_on(CREATE, 1, GROUP, Some(100), &[10]);
    assert!(!b.rdma.wants(&untagged));
    assert!(!b.rdma.wants(&tag(101)));
    assert!(b.rdma.wants(&tag(100)));
    b.rdma.receive(&tag(100));
    b.rdma.receive(&tag(101));
    assert_eq!(copies(&b, &mut m), [1]);
    b.group(DESTROY, 1, GROUP, &[]);
    b.group(CREATE, 2, GROUP, &[10]);
    for frame in [untagged.clone(), tag(7), tag(0)] {
        assert!(b.rdma.wants(&frame), "a group without a VLAN takes all");
    }
}

#[test]
fn the_member_list_is_copied_by_the_operation() {
    let (a, mut qp, buffer) = sender();
    let mut b = Driver::up(MAC_B);
    let mut m = members(&mut b, 1, 1);
    let context = b.alloc(64, 64);
    b.put(context, &[10 | 1 << 31, 0, 0, 0, 0, 0, 0, 0]);
    b.ok(
        CREATE,
        [
            0,
            0,
            2 | 0xFFF << 32,
            1 | 1 << 60,
            context,
            0,
            GROUP.into(),
            0,
        ],
    );
    b.put(context, &[0; 8]);
    b.rdma.receive(&send(&a, &mut qp, &buffer));
    assert_eq!(copies(&b, &mut m), [1]);
}

#[test]
fn a_wrong_destination_queue_pair_reaches_nobody() {
    let (a, mut qp, buffer) = sender();
    let mut b = Driver::up(MAC_B);
    let mut m = members(&mut b, 1, 1);
    b.group(CREATE, 1, GROUP, &[10]);
    a.send(&mut qp, 5, 10, (buffer.va, 100, buffer.stag));
    b.rdma.receive(&a.frame());
    assert_eq!(copies(&b, &mut m), [0]);
}
