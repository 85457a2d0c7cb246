// SPDX-License-Identifier: GPL-2.0
//! Datagrams between two devices: wire format, placement, completions, and what is dropped.

mod driver;

use driver::{Buffer, Driver, Pair, Queue, PD, QKEY};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use nic_bus::{Dma, RdmaFunction};
use serde_json::json;

const MAC_A: [u8; 6] = [2, 0xE8, 0x10, 0, 0, 1];
const MAC_B: [u8; 6] = [2, 0xE8, 0x10, 0, 0, 2];
const IP_A: u32 = 0x0A63_0001;
const IP_B: u32 = 0x0A63_0002;
const IP6_A: u128 = 0xFE80_0000_0000_0000_00E8_10FF_FE00_0001;
const IP6_B: u128 = 0xFE80_0000_0000_0000_00E8_10FF_FE00_0002;

/// One end: a device with a queue pair, a queue and a buffer.
struct End {
    d: Driver,
    cq: Queue,
    qp: Pair,
    buffer: Buffer,
}

fn end(mac: [u8; 6], qp: u64) -> End {
    let mut d = Driver::up(mac);
    let cq = d.create_cq(3, 256);
    let qp = d.ud(qp, cq.id);
    let buffer = d.buffer(8192);
    End { d, cq, qp, buffer }
}

/// A, with address handles 5 (IPv4) and 6 (IPv6) to B.
fn ends() -> (End, End) {
    let mut a = end(MAC_A, 0x45);
    let b = end(MAC_B, 0x123 % 64);
    a.d.arp(1, MAC_B);
    a.d.ah4(5, 1, IP_A, IP_B, false);
    a.d.ah6(6, 1, IP6_A, IP6_B, false);
    (a, b)
}

fn expect_event(end: &mut End, code: u64, source: u64, wqe: u64) {
    assert_eq!(end.d.wait_aeqe(), (code, source, end.qp.id, 6, wqe));
    assert_eq!(end.d.control("qps", json!({}))[0]["state"], json!("ERROR"));
}

#[test]
fn an_ipv4_datagram_arrives_with_its_header() {
    let (mut a, mut b) = ends();
    let text = b"The quick brown fox jumps over a";
    a.d.host.write(a.buffer.addr + 100, text).unwrap();
    b.d.post_recv(&mut b.qp, &[(b.buffer.va, 4096, b.buffer.stag)]);
    let index = a.d.send(
        &mut a.qp,
        5,
        b.qp.id,
        (a.buffer.va + 100, text.len() as u64, a.buffer.stag),
    );
    let (sent, none) = a.d.wait(&mut a.cq);
    assert_eq!(none, None);
    assert_eq!(
        sent,
        [0, 0xAB45, 0x45 << 32, 0xC300_0000_0000_0000 | index << 32]
    );
    let frame = a.d.frame();
    assert!(b.d.rdma.wants(&frame));
    b.d.rdma.receive(&frame);
    let (got, extension) = b.d.poll(&mut b.cq).expect("a receive completion");
    assert_eq!(got[0], 40 + text.len() as u64);
    assert_eq!(got[1], 0xAB00 + b.qp.id);
    assert_eq!(got[2], b.qp.id << 32 | 0x45);
    assert_eq!(got[3] & !(1 << 63), 0x3E24_0000_0000_0000);
    let extension = extension.expect("source MAC");
    assert_eq!(extension[2], driver::mac_word(MAC_A));
    assert_eq!(extension[3] & !(1 << 63), 1 << 61);
    let data = b.d.get(b.buffer.addr, 40 + text.len());
    assert_eq!(data[..20], [0; 20]);
    assert_eq!(data[20..40], frame[14..34]);
    assert_eq!(data[20], 0x45);
    assert_eq!(&data[40..], text);
    a.d.assert_clean();
    b.d.assert_clean();
}

#[test]
fn an_ipv6_datagram_with_immediate_data_arrives_solicited() {
    let (mut a, mut b) = ends();
    a.d.host.write(a.buffer.addr, b"0123456789").unwrap();
    // Three buffers of which the middle one takes part of the header and part of the payload.
    let (va, stag) = (b.buffer.va, b.buffer.stag);
    b.d.post_recv(
        &mut b.qp,
        &[
            (va, 30, stag),
            (va + 1000, 14, stag),
            (va + 2000, 100, stag),
        ],
    );
    let (va, stag) = (a.buffer.va, a.buffer.stag);
    // SEND_SOL_EVENT with immediate: fragments from the second quantum on, the first one's stale.
    a.d.post_send(
        &mut a.qp,
        &[
            [
                0xAABB_CCDD,
                0xDEAD_DEAD_DEAD_DEAD,
                QKEY | b.qp.id << 32,
                6 | 0x05 << 32 | 2 << 38 | 1 << 47 | 1 << 62,
            ],
            [va, stag | 6 << 32, va + 6, stag | 4 << 32],
        ],
    );
    a.d.ring(&a.qp);
    let (sent, _) = a.d.wait(&mut a.cq);
    assert_eq!(sent[3] >> 56 & 0x3F, 0x05);
    let frame = a.d.frame();
    b.d.rdma.receive(&frame);
    let (got, extension) = b.d.poll(&mut b.cq).expect("a receive completion");
    assert_eq!(got[0], 50);
    assert_eq!(got[3] >> 53 & 3, 2, "solicited, not IPv4");
    let extension = extension.expect("immediate data");
    assert_eq!(extension[0], 0xAABB_CCDD);
    assert_eq!(extension[3] >> 60 & 7, 6);
    let mut data = b.d.get(b.buffer.addr, 30);
    data.extend(b.d.get(b.buffer.addr + 1000, 14));
    data.extend(b.d.get(b.buffer.addr + 2000, 6));
    assert_eq!(data[..40], frame[14..54]);
    assert_eq!(&data[40..], b"0123456789");
    b.d.assert_clean();
}

#[test]
fn inline_data_of_every_length_arrives() {
    let (mut a, mut b) = ends();
    for len in [0usize, 1, 7, 8, 9, 20, 39, 40, 70, 71, 101] {
        let data: Vec<u8> = (0..len).map(|n| n as u8 + 1).collect();
        b.d.post_recv(&mut b.qp, &[(b.buffer.va, 4096, b.buffer.stag)]);
        let mut first = [0u8; 8];
        let head = data.len().min(8);
        first[..head].copy_from_slice(&data[..head]);
        let mut quanta = vec![[
            0xDEAD,
            u64::from_le_bytes(first),
            QKEY | b.qp.id << 32,
            5 | 0x03 << 32 | (len as u64) << 48 | 1 << 57 | 1 << 62,
        ]];
        for chunk in data[head..].chunks(31) {
            let mut raw = [0xEEu8; 32];
            raw[31] = 0;
            raw[..chunk.len()].copy_from_slice(chunk);
            let word = |n: usize| u64::from_le_bytes(raw[n * 8..n * 8 + 8].try_into().unwrap());
            quanta.push([word(0), word(1), word(2), word(3)]);
        }
        a.d.post_send(&mut a.qp, &quanta);
        a.d.ring(&a.qp);
        a.d.wait(&mut a.cq);
        b.d.rdma.receive(&a.d.frame());
        let (got, _) = b.d.poll(&mut b.cq).expect("a receive completion");
        assert_eq!(got[0], 40 + len as u64);
        assert_eq!(b.d.get(b.buffer.addr + 40, len), data, "{len} bytes");
    }
    a.d.assert_clean();
}

#[test]
fn frames_are_what_others_expect() {
    let (mut a, b) = ends();
    for (ah, len) in [(5, 64), (5, 61), (6, 63), (6, 0)] {
        a.d.send(&mut a.qp, ah, b.qp.id, (a.buffer.va, len, a.buffer.stag));
        let frame = a.d.frame();
        let packet = SlicedPacket::from_ethernet(&frame).unwrap();
        match packet.net {
            Some(NetSlice::Ipv4(ip)) => {
                let header = ip.header().to_header();
                assert_eq!(header.header_checksum, header.calc_header_checksum());
                assert_eq!(header.time_to_live, 64);
                assert_eq!(header.source, IP_A.to_be_bytes());
            }
            Some(NetSlice::Ipv6(ip)) => {
                let header = ip.header().to_header();
                assert_eq!(header.flow_label.value(), 0x12345);
                let Some(TransportSlice::Udp(udp)) = &packet.transport else {
                    panic!("UDP")
                };
                let right = udp
                    .to_header()
                    .calc_checksum_ipv6(&header, udp.payload())
                    .unwrap();
                assert_eq!(udp.checksum(), right);
            }
            _ => panic!("IP"),
        }
        let Some(TransportSlice::Udp(udp)) = packet.transport else {
            panic!("UDP")
        };
        assert_eq!(udp.destination_port(), 4791);
        assert!(udp.source_port() >= 0xC000);
        let body = udp.payload();
        assert_eq!(body[0], 0x64, "UD SEND only");
        assert_eq!(u64::from(body[1] >> 4 & 3), (4 - len % 4) % 4, "padding");
        assert_eq!(body[2..4], [0xFF, 0xFF], "P_Key");
        assert_eq!(body[4], 0);
        assert_eq!(u64::from(body[7]), b.qp.id);
        assert_eq!(body[12..16], [0x11; 4], "Q_Key");
        assert_eq!(body[16..20], [0, 0, 0, 0x45], "source");
        assert_eq!(body.len() as u64, 20 + len.next_multiple_of(4) + 4);
        assert_eq!(frame[..6], MAC_B);
        assert_eq!(frame[6..12], MAC_A);
    }
}

#[test]
fn packet_numbers_count_up() {
    let (mut a, b) = ends();
    let psn = |a: &mut End| {
        a.d.send(&mut a.qp, 5, b.qp.id, (a.buffer.va, 0, a.buffer.stag));
        a.d.frame()[14 + 20 + 8 + 11]
    };
    assert_eq!([psn(&mut a), psn(&mut a), psn(&mut a)], [0, 1, 2]);
}

#[test]
fn a_tagged_packet_shows_its_tag() {
    let (mut a, mut b) = ends();
    // AH 7: VLAN 100, priority 3.
    a.d.ok(
        0x1C,
        [
            driver::mac_word(MAC_A) << 16,
            PD << 48 | 3 << 13 | 100,
            64 << 32 | 1 << 48,
            7 | 1 << 59 | 1 << 60,
            IP_B.into(),
            0,
            IP_A.into(),
            0,
        ],
    );
    b.d.post_recv(&mut b.qp, &[(b.buffer.va, 4096, b.buffer.stag)]);
    a.d.send(&mut a.qp, 7, b.qp.id, (a.buffer.va, 4, a.buffer.stag));
    let frame = a.d.frame();
    assert_eq!(frame[12..16], [0x81, 0, 0x60, 100]);
    b.d.rdma.receive(&frame);
    let (_, extension) = b.d.poll(&mut b.cq).expect("a receive completion");
    let extension = extension.expect("a tag");
    assert_eq!(extension[2] >> 48, 3 << 13 | 100);
    assert_eq!(extension[3] >> 60 & 1, 1);
}

#[test]
fn bad_packets_are_dropped_with_a_reason() {
    let (mut a, mut b) = ends();
    b.d.post_recv(&mut b.qp, &[(b.buffer.va, 4096, b.buffer.stag)]);
    let own = b.qp.id;
    let good = |a: &mut End, qp: u64| {
        a.d.send(&mut a.qp, 5, qp, (a.buffer.va, 8, a.buffer.stag));
        a.d.frame()
    };
    let mut corrupt = good(&mut a, own);
    *corrupt.last_mut().unwrap() ^= 1;
    b.d.rdma.receive(&corrupt);
    b.d.rdma.receive(&good(&mut a, 40));
    let mut short = good(&mut a, own);
    short.truncate(50);
    assert!(!b.d.rdma.wants(&short));
    b.d.rdma.receive(&short);
    // Another Q_Key.
    a.d.post_send(
        &mut a.qp,
        &[[a.buffer.va, 0, 0x22 | own << 32, 5 | 3 << 32]],
    );
    a.d.ring(&a.qp);
    b.d.rdma.receive(&a.d.frame());
    let other = b.d.create_qp(9, 4, b.cq.id, 0);
    b.d.rdma.receive(&good(&mut a, other.id));
    for (why, n) in [
        ("icrc", 1),
        ("no_qp", 1),
        ("malformed", 1),
        ("qkey", 1),
        ("qp_state", 1),
    ] {
        assert_eq!(
            b.d.control("counters", json!({}))["dropped"][why],
            json!(n),
            "{why}"
        );
    }
    assert_eq!(b.d.poll(&mut b.cq), None);
    // The receive WQE is still there for a good one, and there is no second.
    b.d.rdma.receive(&good(&mut a, own));
    assert!(b.d.poll(&mut b.cq).is_some());
    b.d.rdma.receive(&good(&mut a, own));
    assert_eq!(b.d.poll(&mut b.cq), None);
    assert_eq!(
        b.d.control("counters", json!({}))["dropped"]["no_receive_wqe"],
        json!(1)
    );
    assert_eq!(
        b.d.aeqe(),
        None,
        "nothing of this is an error of the queue pair"
    );
}

#[test]
fn a_qkey_with_its_top_bit_set_means_the_own_one() {
    let (mut a, b) = ends();
    a.d.post_send(
        &mut a.qp,
        &[[0, 0, 0x8000_0000 | b.qp.id << 32, 5 | 3 << 32]],
    );
    a.d.ring(&a.qp);
    assert_eq!(a.d.frame()[14 + 20 + 8 + 12..][..4], [0x11; 4]);
}

#[test]
fn a_short_buffer_is_an_error_of_the_receiver() {
    let (mut a, mut b) = ends();
    b.d.post_recv(&mut b.qp, &[(b.buffer.va, 47, b.buffer.stag)]);
    a.d.send(&mut a.qp, 5, b.qp.id, (a.buffer.va, 8, a.buffer.stag));
    b.d.rdma.receive(&a.d.frame());
    expect_event(&mut b, 0x0303, 1, 0);
    assert_eq!(b.d.get(b.buffer.addr, 47), [0; 47], "nothing was written");
}

#[test]
fn a_message_above_the_mtu_is_an_error_of_the_sender() {
    let (mut a, b) = ends();
    a.d.send(&mut a.qp, 5, b.qp.id, (a.buffer.va, 1024, a.buffer.stag));
    a.d.wait(&mut a.cq);
    let index =
        a.d.send(&mut a.qp, 5, b.qp.id, (a.buffer.va, 1025, a.buffer.stag));
    expect_event(&mut a, 0x0132, 5, index);
    assert_eq!(a.d.poll(&mut a.cq), None);
}

#[test]
fn address_handles_are_checked() {
    for (ah, code) in [(99, 0x0406), (8, 0x0133)] {
        let (mut a, b) = ends();
        // AH 8 belongs to another PD.
        a.d.ok(0x1C, [0, (PD + 1) << 48, 1 << 48, 8 | 1 << 59, 1, 0, 2, 0]);
        a.d.send(&mut a.qp, ah, b.qp.id, (a.buffer.va, 8, a.buffer.stag));
        expect_event(&mut a, code, 5, 0);
    }
}

#[test]
fn without_a_mac_the_packet_is_lost_and_the_sender_lives() {
    let (mut a, b) = ends();
    a.d.ok(0x0F, [0, 0, 0, 1, 0, 0, 0, 0]);
    a.d.send(&mut a.qp, 5, b.qp.id, (a.buffer.va, 8, a.buffer.stag));
    a.d.wait(&mut a.cq);
    assert_eq!(
        a.d.control("counters", json!({}))["tx_ipv4"]["no_route"],
        json!(1)
    );
    assert!(a.d.host.frames.lock().unwrap().is_empty());
}

#[test]
fn wrong_operations_are_errors_of_the_sender() {
    for (quanta, code) in [
        (vec![[0, 0, 0, 0x00 << 32]], 0x020A),            // RDMA WRITE
        (vec![[0, 0, 0, 0x0A << 32]], 0x020A),            // LOCAL_INVALIDATE
        (vec![[0, 0, 0, 0x03 << 32 | 15 << 38]], 0x020C), // nine quanta
        (vec![[0, 0, 0, 0x03 << 32 | 102 << 48 | 1 << 57]], 0x020B),
        (vec![[0, 0, 0, 0x03 << 32 | 2 << 38]], 0x020C), // second quantum not valid
    ] {
        let (mut a, _) = ends();
        let index = a.d.post_send(&mut a.qp, &quanta);
        a.d.ring(&a.qp);
        expect_event(&mut a, code, 5, index);
    }
}

#[test]
fn loopback_stays_inside_for_unicast() {
    let (mut a, _) = ends();
    a.d.arp(2, MAC_A);
    a.d.ah4(9, 2, IP_A, IP_A, true);
    a.d.post_recv(&mut a.qp, &[(a.buffer.va, 4096, a.buffer.stag)]);
    let own = a.qp.id;
    a.d.send(&mut a.qp, 9, own, (a.buffer.va, 16, a.buffer.stag));
    let mut kinds = Vec::new();
    for _ in 0..2 {
        kinds.push(a.d.wait(&mut a.cq).0[3] >> 62 & 1);
    }
    kinds.sort_unstable();
    assert_eq!(kinds, [0, 1], "one receive and one send");
    assert!(a.d.host.frames.lock().unwrap().is_empty());
}

#[test]
fn nothing_is_wanted_without_the_filter() {
    let (mut a, b) = ends();
    a.d.send(&mut a.qp, 5, b.qp.id, (a.buffer.va, 8, a.buffer.stag));
    let frame = a.d.frame();
    assert!(b.d.rdma.wants(&frame));
    assert!(!a.d.rdma.wants(&frame), "another function's MAC");
    b.d.rdma.set_filter(7, false);
    assert!(!b.d.rdma.wants(&frame));
}

#[test]
fn posted_sends_wait_for_rts() {
    let (mut a, b) = ends();
    let mut qp = a.d.create_qp(10, 4, a.cq.id, 0);
    a.d.modify(&qp, 4);
    a.d.send(&mut qp, 5, b.qp.id, (a.buffer.va, 8, a.buffer.stag));
    assert_eq!(a.d.poll(&mut a.cq), None);
    a.d.modify(&qp, 2);
    let (sent, _) = a.d.wait(&mut a.cq);
    assert_eq!(sent[1], 0xAB0A);
}

#[test]
fn rings_wrap() {
    let (mut a, mut b) = ends();
    for round in 0u64..200 {
        b.d.post_recv(&mut b.qp, &[(b.buffer.va, 4096, b.buffer.stag)]);
        a.d.host.write(a.buffer.addr, &round.to_le_bytes()).unwrap();
        let index =
            a.d.send(&mut a.qp, 5, b.qp.id, (a.buffer.va, 8, a.buffer.stag));
        let (sent, _) = a.d.wait(&mut a.cq);
        assert_eq!(sent[3] >> 32 & 0x7FFF, index);
        b.d.rdma.receive(&a.d.frame());
        let (got, _) = b.d.poll(&mut b.cq).expect("a receive completion");
        assert_eq!(got[3] >> 32 & 0x7FFF, round % 32 * 2, "index in quanta");
        assert_eq!(b.d.get(b.buffer.addr + 40, 8), round.to_le_bytes());
    }
    assert_eq!(a.d.control("qps", json!({}))[0]["sent"], json!(200));
    a.d.assert_clean();
    b.d.assert_clean();
}

#[test]
fn statistics_reach_the_driver() {
    let (mut a, mut b) = ends();
    b.d.post_recv(&mut b.qp, &[(b.buffer.va, 4096, b.buffer.stag)]);
    a.d.send(&mut a.qp, 5, b.qp.id, (a.buffer.va, 8, a.buffer.stag));
    b.d.rdma.receive(&a.d.frame());
    for (end, at) in [(&mut a, 104), (&mut b, 8)] {
        let buf = end.d.alloc(1024, 128);
        end.d.ok(0x2E, [0, 0, 0, 0, buf, 0, 0, 0]);
        assert_eq!(end.d.host.read_u64(buf + at), Ok(20 + 8 + 20 + 8 + 4));
        assert_eq!(end.d.host.read_u64(buf + at + 8), Ok(1));
    }
}
