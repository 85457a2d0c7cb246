// SPDX-License-Identifier: GPL-2.0
//! The admin queue and each group of commands.

use super::driver::*;
use crate::test::Call;
use nic_bus::{Dma, LanFunction};
use proptest::prelude::*;
use std::sync::atomic::Ordering;

#[test]
fn ring_wraps() {
    let mut driver = Driver::new();
    for _ in 0..3 * ATQ_LEN {
        let done = driver.ok(0x0001, &[], &[]);
        assert_eq!(done.params[12..], [0, 1, 7, 3]);
    }
}

#[test]
fn several_commands_in_one_doorbell() {
    let driver = Driver::new();
    for index in 0..3u64 {
        let mut entry = [0; 32];
        entry[2] = 1;
        driver.memory.write(ATQ + 32 * index, &entry).unwrap();
    }
    driver.lan.write32(0x8_0400, 3);
    assert_eq!(driver.lan.read32(0x8_0300), 3);
    for index in 0..3u64 {
        assert_eq!(driver.memory.read_u32(ATQ + 32 * index).unwrap() & 3, 3);
    }
}

#[test]
fn unknown_commands_are_refused_and_logged() {
    let mut driver = Driver::new();
    let done = driver.command(0x0702, &[], &[1; 8]);
    assert_eq!((done.result, done.data.len()), (3, 0));
    assert!(driver.lines().concat().contains("0x0702"));
}

#[test]
fn a_command_fails_by_order() {
    let mut driver = Driver::new();
    let order = serde_json::json!({"op": 1, "nth": 2, "code": 14});
    driver.lan.control("aqfault", &order).unwrap().unwrap();
    let results = [(); 3].map(|()| driver.command(0x0001, &[], &[]).result);
    assert_eq!(results, [0, 14, 0]);
}

#[test]
fn unreadable_ring_stops_the_queue() {
    let driver = Driver::new();
    driver.lan.write32(0x8_0100, 0xffff_ffff);
    driver.lan.write32(0x8_0400, 1);
    assert_eq!(driver.lan.read32(0x8_0200), 3 << 30 | ATQ_LEN);
    assert_eq!(driver.lan.read32(0x8_0300), 0);
}

#[test]
fn unreadable_buffer_stops_the_queue() {
    let driver = Driver::new();
    let mut entry = [0; 32];
    entry[1] = 0x14;
    entry[2..6].copy_from_slice(&[0x0a, 0, 0, 0x10]);
    entry[24..32].fill(0xff);
    driver.memory.write(ATQ, &entry).unwrap();
    driver.lan.write32(0x8_0400, 1);
    assert_ne!(driver.lan.read32(0x8_0200) & 1 << 30, 0);
}

#[test]
fn capabilities_are_listed() {
    let mut driver = Driver::new();
    for (opcode, vsis) in [(0x000b, 768), (0x000a, 64)] {
        let done = driver.ok(opcode, &[], &[0; 4096]);
        assert_eq!(done.data.len(), 32 * usize::from(done.param(4)));
        let number = |id| {
            (0..done.data.len())
                .step_by(32)
                .find(|at| done.word(*at) == id)
                .map(|at| done.dword(at + 4))
        };
        assert_eq!(number(0x17), Some(vsis));
        assert_eq!((number(0x05), number(0x51)), (Some(1), Some(1)));
        assert_eq!(number(0x43), Some(64));
        assert_eq!(number(0x12), None);
    }
    assert_eq!(driver.command(0x000a, &[], &[0; 31]).result, 9);
}

#[test]
fn flash_ends_with_einval() {
    let mut driver = Driver::new();
    let read = |offset: u32, len: u8| {
        let at = offset.to_le_bytes();
        [at[0], at[1], at[2], 0x81, 0, 0, len, 0]
    };
    assert_eq!(driver.ok(0x0701, &read(0, 2), &[0; 2]).data, [0x40, 0]);
    assert_eq!(driver.ok(0x0701, &read(0x5_3fff, 1), &[0]).data.len(), 1);
    assert_eq!(driver.command(0x0701, &read(0x5_4000, 1), &[0]).result, 14);
    assert_eq!(driver.command(0x0701, &read(0, 200), &[0; 8]).result, 9);
}

#[test]
fn package_is_downloaded_once() {
    let mut driver = Driver::new();
    let list = |driver: &mut Driver| driver.ok(0x0c43, &[], &[0; 164]);
    assert_eq!(list(&mut driver).data, [0; 4]);
    assert_eq!(driver.ok(0x0008, &[4, 0, 2], &[]).param(12), 0);
    let mut buffer = [0; 4096];
    buffer[..16].copy_from_slice(&[1, 0, 52, 0, 1, 0, 0, 0, 16, 0, 36, 0, 0, 0, 0, 0]);
    buffer[16..24].copy_from_slice(b"\x01\x03\x00\x01name");
    driver.ok(0x0c40, &[1], &buffer);
    let active = list(&mut driver);
    assert_eq!((active.dword(0), active.data.len()), (1, 44));
    assert!(active.data[4..].starts_with(b"\x01\x03\x00\x01name"));
    assert_eq!(driver.ok(0x0008, &[4, 0, 2], &[]).param(12), 2);
    // A section past the end of the buffer.
    buffer[8] = 0xff;
    buffer[9] = 0xff;
    assert_eq!(driver.command(0x0c40, &[1], &buffer).result, 14);
}

#[test]
fn resources_are_named_and_returned() {
    let mut driver = Driver::new();
    let request = [0x61, 0x30, 1, 0, 0xff, 0xff];
    assert_eq!(driver.ok(0x0208, &[1], &request).word(4), 0);
    assert_eq!(driver.ok(0x0208, &[1], &request).word(4), 1);
    driver.ok(0x0209, &[1], &[0x61, 0, 1, 0, 0, 0]);
    assert_eq!(driver.ok(0x0208, &[1], &request).word(4), 0);
    // Far more than the buffer lists: a pool, of which one id is named.
    assert_eq!(driver.ok(0x0208, &[1], &[0x22, 0, 0, 2, 0, 0]).word(4), 0);
    assert_eq!(driver.command(0x0208, &[1], &[0x61]).result, 14);
}

#[test]
fn scheduler_elements_come_and_go() {
    let mut driver = Driver::new();
    let topology = driver.ok(0x0400, &[], &[0; 4096]);
    assert_eq!((topology.params[1], topology.data.len()), (1, 224));
    assert_eq!(topology.dword(0), u32::MAX);
    let mut add = [0; 32];
    add[0] = 1;
    add[4] = 1;
    add[16] = 3;
    let done = driver.ok(0x0401, &[1], &add);
    let teid = done.dword(12);
    assert_eq!((done.param(2), done.dword(8)), (1, 1));
    let mut query = [0; 24];
    query[4..8].copy_from_slice(&teid.to_le_bytes());
    let found = driver.ok(0x0404, &[1], &query);
    assert_eq!((found.dword(0), found.data[8]), (1, 3));
    let mut delete = [0; 12];
    delete[4] = 1;
    delete[8..].copy_from_slice(&teid.to_le_bytes());
    assert_eq!(driver.ok(0x040f, &[1], &delete).param(2), 1);
    assert_eq!(driver.command(0x0404, &[1], &query).result, 2);
    assert_eq!(driver.ok(0x0412, &[], &[0; 320]).word(42), 64);
    assert_eq!(driver.ok(0x040e, &[], &[0; 64]).dword(36), u32::MAX);
}

#[test]
fn traffic_classes_of_the_mib_have_branches() {
    let mut driver = Driver::new();
    let mut mib = vec![0xfe, 25, 0, 0x80, 0xc2, 9, 0, 0x00, 0x01, 0, 0];
    mib.resize(64, 0);
    driver.ok(0x0a08, &[0], &mib);
    let teids = driver.ok(0x040e, &[], &[0; 64]);
    assert_eq!(teids.dword(32), 1);
    let second = teids.dword(36);
    assert_eq!(teids.dword(40), u32::MAX);
    let mut query = [0; 24];
    query[4..8].copy_from_slice(&second.to_le_bytes());
    let found = driver.ok(0x0404, &[1], &query);
    assert_eq!((found.dword(0), found.data[8]), (0, 2), "below the root");
    // Class 0 is always there.
    mib[7..11].fill(0x11);
    assert_eq!(driver.command(0x0a08, &[0], &mib).result, 2);
}

#[test]
fn pe_filter_reaches_the_card() {
    let mut driver = Driver::new();
    driver.bring_up();
    let mut update = [0; 128];
    update[0] = 0x80;
    update[80] = 1;
    driver.ok(0x0211, &[0, 0x80], &update);
    driver.ok(0x0211, &[0, 0x80], &update);
    driver.ok(0x0213, &[0, 0x80], &[]);
    assert_eq!(
        *driver.seen.calls.lock(),
        [Call::PeFilter(0, true), Call::PeFilter(0, false)]
    );
    assert_eq!(driver.command(0x0211, &[0, 0x80], &update).result, 2);
}

#[test]
fn queue_sets_reach_the_card() {
    let mut driver = Driver::new();
    let mut add = [0; 32];
    add[0] = 1;
    add[4] = 1;
    add[8] = 7;
    let teid = driver.ok(0x0c33, &[1], &add).dword(12);
    driver.ok(0x0c31, &[8, 1], &[1, 0, 0, 0, 1, 0, 7, 0x80]);
    assert_eq!(
        *driver.seen.calls.lock(),
        [
            Call::QueueSet(7, teid, true),
            Call::QueueSet(7, teid, false)
        ]
    );
    let mut query = [0; 24];
    query[4..8].copy_from_slice(&teid.to_le_bytes());
    assert_eq!(driver.command(0x0404, &[1], &query).result, 2);
}

#[test]
fn rss_settings_read_back() {
    let mut driver = Driver::new();
    let key: Vec<u8> = (0..52).collect();
    driver.ok(0x0b02, &[0, 0x80], &key);
    assert_eq!(driver.ok(0x0b04, &[0, 0x80], &[0; 52]).data, key);
    let table: Vec<u8> = (0..=255).cycle().take(2048).collect();
    driver.ok(0x0b03, &[0, 0x80, 9, 0], &table);
    let get = |driver: &mut Driver, flags| driver.ok(0x0b05, &[0, 0x80, flags], &[1; 2048]);
    assert_eq!(get(&mut driver, 9).data, table);
    assert_eq!(get(&mut driver, 8).data, [0; 2048]);
    assert_eq!(driver.command(0x0b02, &[0, 0x80], &key[..51]).result, 14);
}

#[test]
fn link_changes_are_events() {
    let mut driver = Driver::new();
    driver.take_events();
    let status = driver.ok(0x0607, &[0, 0, 3], &[0; 32]);
    assert_eq!((status.param(2), status.data[2]), (1, 0x61));
    driver.seen.link_down.store(true, Ordering::Relaxed);
    driver.lan.link_changed(false);
    assert_eq!(driver.take_events(), [5]);
    let mut event = [0; 32];
    driver.memory.read(ARQ, &mut event).unwrap();
    assert_eq!(event[..4], [0x03, 0x10, 0x07, 0x06]);
    assert_eq!((event[4], event[18]), (32, 3));
    let mut data = [0; 3];
    driver.memory.read(EVENT, &mut data).unwrap();
    assert_eq!(data[2], 0x40);
    assert_eq!(driver.ok(0x0607, &[0, 0, 2], &[0; 32]).data[2], 0x40);
    driver.lan.link_changed(false);
    assert!(driver.take_events().is_empty());
}

#[test]
fn events_wait_for_buffers() {
    let mut driver = Driver::new();
    driver.ok(0x0607, &[0, 0, 3], &[0; 32]);
    for _ in 0..100 {
        driver.lan.link_changed(true);
    }
    assert_eq!(driver.lan.read32(0x8_0380), 3);
    assert!(driver.lines().concat().contains("lost"));
    driver.lan.write32(0x8_0480, 2);
    assert_eq!(driver.lan.read32(0x8_0380), 2);
}

#[test]
fn disabled_port_has_no_link() {
    let mut driver = Driver::new();
    driver.ok(0x0607, &[0, 0, 3], &[0; 32]);
    driver.take_events();
    driver.ok(0x0605, &[0, 0, 2], &[]);
    assert_eq!(driver.take_events(), [5]);
    assert_eq!(driver.ok(0x0607, &[], &[0; 32]).data[2], 0x40);
    driver.ok(0x0605, &[0, 0, 6], &[]);
    assert_eq!(driver.ok(0x0607, &[], &[0; 32]).data[2], 0x61);
    let capabilities = driver.ok(0x0600, &[0, 0, 4], &[0; 560]);
    assert_eq!(capabilities.data[16], 0x98);
}

#[test]
fn addresses_and_switch_are_reported() {
    let mut driver = Driver::new();
    assert_eq!(driver.ok(0x0107, &[], &[0; 16]).data[2..8], OWN);
    assert_eq!(driver.ok(0x0200, &[], &[0; 2048]).data, [0, 0, 1, 0, 0, 0]);
    assert_eq!(driver.ok(0x020d, &[], &[9; 100]).data, [0; 100]);
    let log = driver.ok(0xff32, &[], &[0; 4096]);
    assert_eq!((log.params[2], log.data.len()), (32, 128));
}

#[test]
fn mailbox_to_nobody_is_consumed() {
    let driver = Driver::new();
    driver.lan.write32(0x22_e300, 5);
    assert_eq!(driver.lan.read32(0x22_e280), 5);
}

/// Every opcode the model knows, and some it does not.
fn opcodes() -> Vec<u16> {
    let groups = [
        0x0000..0x0012,
        0x0100..0x0112,
        0x0200..0x0214,
        0x02a0..0x02a5,
        0x0303..0x0304,
        0x0400..0x0416,
        0x0600..0x0621,
        0x06e0..0x06ef,
        0x0700..0x0708,
        0x0a00..0x0a0b,
        0x0b00..0x0b06,
        0x0c30..0x0c44,
        0xff30..0xff34u16,
    ];
    groups.into_iter().flatten().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Any parameters and any buffer get an answer within the buffer.
    #[test]
    fn hostile_commands_are_answered(
        opcode in prop::sample::select(opcodes()),
        params: [u8; 8],
        data in prop::collection::vec(any::<u8>(), 0..300),
        small in any::<bool>(),
    ) {
        let mut driver = Driver::new();
        driver.bring_up();
        let mut data = data;
        if small {
            // Small numbers make counts and ids that exist.
            data.iter_mut().for_each(|byte| *byte &= 3);
        }
        let done = driver.command(opcode, &params, &data);
        prop_assert!(done.data.len() <= data.len());
    }

    /// Any register accepts any value.
    #[test]
    fn hostile_registers_are_survived(writes in prop::collection::vec((0u32..0x100_0000, any::<u32>()), 1..50)) {
        let driver = Driver::new();
        for (offset, value) in writes {
            driver.lan.write32(offset & !3, value);
            driver.lan.read32(offset);
            driver.lan.read64(offset);
        }
    }
}
