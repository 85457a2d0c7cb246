// SPDX-License-Identifier: GPL-2.0
//! Frames through queues and filters.

use super::driver::*;
use crate::frame::{insert_tag, Header};
use crate::rx::classify::{Integrity, Packet};
use etherparse::PacketBuilder;
use nic_bus::{Dma, LanFunction};
use std::sync::atomic::Ordering;

const OTHER: [u8; 6] = [2, 0xe8, 0x10, 0, 0, 2];

fn tcp(destination: [u8; 6], port: u16, len: usize) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2(OTHER, destination)
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .tcp(port, 80, 1, 1000)
        .write(&mut frame, &vec![7; len])
        .unwrap();
    frame
}

fn driver() -> Driver {
    let mut driver = Driver::new();
    driver.bring_up();
    driver.enable_receive(0);
    driver.enable_receive(1);
    driver.take_events();
    driver
}

#[test]
fn own_frames_arrive_with_checked_checksums() {
    let driver = driver();
    let frame = tcp(OWN, 1, 100);
    driver.lan.receive(&frame);
    let (word0, word1, data) = driver.received(0, 0).unwrap();
    assert_eq!(data, frame);
    assert_eq!(word0 & 0xffff_ffff, 2 | 26 << 16);
    assert_eq!(word1 & 0x3f, 0b1011);
    assert_eq!(driver.take_events(), [9]);
    driver.lan.receive(&tcp(OTHER, 1, 100));
    assert_eq!(driver.received(0, 1), None);
}

#[test]
fn long_frames_take_several_buffers() {
    let driver = driver();
    let frame = tcp(OWN, 1, 8900);
    driver.lan.receive(&frame);
    let mut rejoined = Vec::new();
    for entry in 0..5 {
        let (_, word1, data) = driver.received(0, entry).unwrap();
        assert_eq!(word1 & 2 != 0, entry == 4);
        rejoined.extend(data);
    }
    assert_eq!(rejoined, frame);
    // Two buffers are left.
    driver.lan.receive(&frame);
    assert_eq!(driver.received(0, 5), None);
    assert_eq!(driver.lan.read32(0x29_4c04), 1);
}

#[test]
fn tables_spread_flows() {
    let mut driver = driver();
    driver.ok(0x0b02, &[0, 0x80], &(0..52).collect::<Vec<u8>>());
    let table: Vec<u8> = [0, 1].into_iter().cycle().take(2048).collect();
    driver.ok(0x0b03, &[0, 0x80, 9, 0], &table);
    let mut update = [0; 128];
    update[0] = 0x80;
    update[78] = 2;
    driver.ok(0x0211, &[0, 0x80], &update);
    for port in 0..6 {
        driver.lan.receive(&tcp(OWN, port, 10));
    }
    let count = |queue| {
        (0..8)
            .filter_map(|entry| driver.received(queue, entry))
            .count()
    };
    assert_eq!(count(0) + count(1), 6);
    assert!(count(0) > 0 && count(1) > 0);
    let (_, word1, _) = driver.received(0, 0).unwrap();
    assert_ne!(word1 & 1 << 12, 0);
}

#[test]
fn tags_move_to_the_descriptor_as_configured() {
    let mut driver = driver();
    let plain = tcp(OWN, 1, 100);
    let mut tagged = plain.clone();
    insert_tag(&mut tagged, 0x6005);
    let mut update = [0; 128];
    for (entry, (mode, tag, expected)) in [
        (0, Some(0x6005), &plain),
        (2 << 3, Some(0x0005), &plain),
        (3 << 3, None, &tagged),
    ]
    .into_iter()
    .enumerate()
    {
        update[0] = 4;
        update[12] = mode;
        driver.ok(0x0211, &[0, 0x80], &update);
        driver.lan.receive(&tagged);
        let (_, word1, data) = driver.received(0, entry as u64).unwrap();
        let found = (word1 & 1 << 13 != 0).then_some((word1 >> 16) as u16);
        assert_eq!((found, &data), (tag, expected));
    }
}

#[test]
fn segments_leave_with_right_checksums() {
    let mut driver = driver();
    driver.add_transmit(8);
    let frame = tcp(OTHER, 1, 3000);
    driver.memory.write(FRAME, &frame).unwrap();
    // Context: segments of 1000 bytes. Data: headers and half the payload, then the rest.
    driver.descriptor(0, 0, 1 | 1 << 4 | 3000 << 30 | 1000 << 50);
    let offsets = 7 << 16 | 5 << 23 | 5 << 30u64;
    let command = 0x60 | 0x100 | 0x8u64;
    driver.descriptor(1, FRAME, command << 4 | offsets | 1554 << 34 | 5 << 48);
    driver.descriptor(2, FRAME + 1554, (command | 3) << 4 | offsets | 1500 << 34);
    driver.lan.write32(0x2c_0000, 3);
    let sent = driver.take_sent();
    assert_eq!(sent.len(), 3);
    for frame in &sent {
        assert_eq!(frame.len(), 54 + 4 + 1000);
        assert_eq!(frame[12..16], [0x81, 0, 0, 5]);
        let header = Header::parse(frame).unwrap();
        assert_eq!(Packet::classify(&header, frame).integrity, Integrity::Good);
    }
    assert_eq!(driver.take_events(), [7]);
    assert_eq!(driver.lan.read32(0x0e_0000), 3);
    let done = |index: u64| driver.memory.read_u64(TX_RING + 16 * index + 8).unwrap() & 0xf;
    assert_eq!([done(1), done(2)], [0, 0xf]);
}

#[test]
fn transmit_ring_wraps_and_frames_cross_doorbells() {
    let mut driver = driver();
    driver.add_transmit(4);
    let frame = tcp(OTHER, 1, 100);
    driver.memory.write(FRAME, &frame).unwrap();
    let len = frame.len() as u64;
    for round in 0..10u64 {
        let at = 2 * round % 4;
        driver.descriptor(at, FRAME, 50 << 34);
        driver.lan.write32(0x2c_0000, (at + 1) as u32 % 4);
        assert!(driver.take_sent().is_empty() && driver.take_events().is_empty());
        driver.descriptor(at + 1, FRAME + 50, 3 << 4 | (len - 50) << 34);
        driver.lan.write32(0x2c_0000, (at + 2) as u32 % 4);
        assert_eq!(driver.take_sent(), std::slice::from_ref(&frame));
        assert_eq!(driver.take_events(), [7]);
    }
    assert_eq!(driver.lan.read32(0x0e_0000), 0);
    driver.lan.write32(0x2c_0000, 4);
    assert!(driver.lines().concat().contains("outside"));
}

#[test]
fn damaged_frames_are_counted_and_completed() {
    let mut driver = driver();
    driver.add_transmit(8);
    driver.descriptor(0, u64::MAX - 100, 3 << 4 | 64 << 34);
    driver.descriptor(1, FRAME, 3 << 4 | 64 << 34 | 5);
    driver.descriptor(2, FRAME, 3 << 4 | 64 << 34);
    driver.lan.write32(0x2c_0000, 3);
    assert_eq!(driver.lan.read32(0x31_2000), 2);
    assert_eq!(driver.take_events(), [7]);
    assert!(driver.take_sent().is_empty());
}

#[test]
fn short_frames_are_padded() {
    let mut driver = driver();
    driver.add_transmit(8);
    driver.memory.write(FRAME, &tcp(OTHER, 1, 0)[..20]).unwrap();
    driver.descriptor(0, FRAME, 3 << 4 | 20 << 34);
    driver.lan.write32(0x2c_0000, 1);
    assert_eq!(driver.take_sent()[0].len(), 60);
    assert_eq!(driver.lan.read64(0x38_0b40), 64);
}

#[test]
fn filter_programs_are_not_sent() {
    let mut driver = driver();
    driver.add_transmit(8);
    driver.descriptor(0, 0, 8);
    driver.descriptor(1, FRAME, 0x13 << 4 | 512 << 34);
    driver.lan.write32(0x2c_0000, 2);
    assert!(driver.take_sent().is_empty());
    assert_eq!(driver.take_events(), [7]);
}

#[test]
fn loopback_returns_frames() {
    let mut driver = driver();
    driver.add_transmit(8);
    driver.ok(0x0620, &[1], &[]);
    let frame = tcp(OWN, 1, 100);
    driver.memory.write(FRAME, &frame).unwrap();
    driver.descriptor(0, FRAME, 3 << 4 | (frame.len() as u64) << 34);
    driver.lan.write32(0x2c_0000, 1);
    assert!(driver.take_sent().is_empty());
    assert_eq!(driver.received(0, 0).unwrap().2, frame);
}

#[test]
fn no_link_no_traffic() {
    let mut driver = driver();
    driver.add_transmit(8);
    driver.seen.link_down.store(true, Ordering::Relaxed);
    driver.lan.receive(&tcp(OWN, 1, 100));
    assert_eq!(driver.received(0, 0), None);
    driver.descriptor(0, FRAME, 3 << 4 | 64 << 34);
    driver.lan.write32(0x2c_0000, 1);
    assert!(driver.take_sent().is_empty());
    assert_eq!(driver.lan.read32(0x38_1280), 1);
}

#[test]
fn disabled_queues_are_left_alone() {
    let mut driver = driver();
    driver.add_transmit(8);
    driver.lan.write32(0x12_0000, 4);
    assert_eq!(driver.lan.read32(0x12_0000), 0);
    driver.lan.receive(&tcp(OWN, 1, 100));
    assert_eq!(driver.received(0, 0), None);
    driver.ok(0x0c31, &[8, 1], &[1, 0, 0, 0, 1, 0, 0, 0]);
    driver.lan.write32(0x2c_0000, 1);
    assert!(driver.lines().concat().contains("not there"));
}
