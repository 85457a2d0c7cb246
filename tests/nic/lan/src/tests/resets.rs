// SPDX-License-Identifier: GPL-2.0
//! Resets, interrupt causes and the control channel.

use super::driver::*;
use crate::test::Call;
use nic_bus::{LanFunction, Reset};
use serde_json::json;

#[test]
fn driver_orders_go_to_the_card() {
    let driver = Driver::new();
    driver.lan.write32(0x09_1000, 1);
    driver.lan.write32(0x0b_8190, 1);
    driver.lan.write32(0x0b_8190, 0);
    assert_eq!(driver.lan.read32(0x09_1000), 0);
    assert_eq!(
        *driver.seen.calls.lock(),
        [Call::Reset(Reset::Function), Call::Reset(Reset::Core)]
    );
}

#[test]
fn function_reset_forgets_all_but_the_package() {
    let mut driver = Driver::new();
    driver.bring_up();
    driver.add_transmit(8);
    driver.enable_receive(0);
    let mut buffer = [0; 64];
    buffer[..10].copy_from_slice(&[1, 0, 52, 0, 1, 0, 0, 0, 16, 0]);
    driver.ok(0x0c40, &[1], &buffer);
    driver.lan.reset(Reset::Function);
    let state = driver.lan.control("state", &json!({})).unwrap().unwrap();
    for name in ["vsis", "rules", "txqs", "rxqs", "resources", "qsets"] {
        assert_eq!(state[name], 0, "{name}");
    }
    assert_eq!(state["scheduler"], 3);
    assert_eq!(state["package"], true);
    assert_eq!(driver.lan.read32(0x8_0200), 0);
    assert_eq!(driver.lan.read32(0x12_0000), 0);
    driver.start();
    driver.bring_up();
}

#[test]
fn core_reset_announces_itself() {
    let mut driver = Driver::new();
    driver.lan.write32(0x16_ca80, 1 << 30);
    driver.lan.write32(0x16_c900, 0x3c39_0000);
    let mut buffer = [0; 64];
    buffer[..10].copy_from_slice(&[1, 0, 52, 0, 1, 0, 0, 0, 16, 0]);
    driver.ok(0x0c40, &[1], &buffer);
    for (trigger, state) in [(1, 1 << 2), (2, 2 << 2)] {
        driver.take_events();
        driver.lan.write32(0x0b_8190, trigger);
        driver.lan.reset(Reset::Core); // the card's answer
        assert_eq!(driver.lan.read32(0x0b_8188), state);
        assert_eq!(driver.take_events(), [0]);
        assert_eq!(driver.lan.read32(0x16_ca00), 1 << 20);
        assert_eq!(driver.lan.read32(0x16_ca00), 0);
    }
    driver.start();
    assert_eq!(driver.ok(0x0c43, &[], &[0; 164]).data, [0; 4]);
    // A reset that the driver did not order is a core reset, too.
    driver.lan.write32(0x16_ca80, 1 << 30 | 3);
    driver.lan.reset(Reset::Core);
    assert_eq!(driver.take_events(), [3]);
    assert_eq!(driver.lan.read32(0x0b_8188), 1 << 2);
}

#[test]
fn an_announced_core_reset_waits_for_the_driver() {
    let mut driver = Driver::new();
    let announce = |driver: &Driver| driver.lan.control("announce_core_reset", &json!({}));
    // Nobody listens: it happens at once.
    announce(&driver).unwrap().unwrap();
    assert_eq!(driver.lan.read32(0x0b_8188) & 1, 0);
    driver.lan.write32(0x16_ca80, 1 << 30 | 3);
    driver.lan.write32(0x16_c900, 0x3c39_0000);
    driver.start();
    driver.bring_up();
    driver.take_events();
    announce(&driver).unwrap().unwrap();
    assert_eq!(driver.take_events(), [3]);
    assert_eq!(driver.lan.read32(0x16_ca00), 1 << 20);
    assert_eq!(driver.lan.read32(0x0b_8188), 1 << 2 | 1);
    let vsis =
        |driver: &Driver| driver.lan.control("state", &json!({})).unwrap().unwrap()["vsis"].clone();
    assert_ne!(vsis(&driver), 0);
    driver.lan.read32(0x0b_8180);
    driver.lan.reset(Reset::Core); // the card's answer
    assert_eq!(vsis(&driver), 0);
    assert_eq!(driver.lan.read32(0x0b_8188), 1 << 2);
    assert!(driver.take_events().is_empty(), "told once");
    driver.lan.read32(0x0b_8180);
    driver.start();
    driver.bring_up();
}

#[test]
fn causes_are_masked() {
    let driver = Driver::new();
    driver.lan.write32(0x16_ca80, 1 << 30 | 3);
    driver.lan.other_cause(1 << 16);
    assert!(driver.take_events().is_empty());
    driver.lan.write32(0x16_c900, 1 << 16);
    let inject = |cause| driver.lan.control("inject", &json!({ "cause": cause }));
    inject("ecc").unwrap().unwrap();
    assert_eq!(driver.take_events(), [3]);
    assert!(inject("nonsense").unwrap().is_err());
    assert!(driver.lan.control("inject", &json!({})).is_none());
    assert!(driver.lan.control("groups", &json!({})).is_none());
}

#[test]
fn unknown_registers_are_logged_once() {
    let driver = Driver::new();
    for _ in 0..3 {
        assert_eq!(driver.lan.read32(0x00_0100), 0);
    }
    assert_eq!(driver.lines().len(), 1);
    for offset in 0..10_000 {
        driver.lan.read32(4 * offset);
    }
    assert_eq!(driver.lines().len(), 256);
}

#[test]
fn registers_return_to_their_values() {
    let driver = Driver::new();
    driver.lan.write32(0x16_cc54, 1);
    driver.lan.write32(0x15_4000, 9);
    driver.lan.write32(0x0b_6008, 1); // reports only
    assert_eq!(driver.lan.read32(0x15_4000), 9);
    driver.lan.reset(Reset::Function);
    assert_eq!(driver.lan.read32(0x16_cc54), 0x2222_0000);
    assert_eq!(driver.lan.read32(0x15_4000), 0);
    assert_eq!(driver.lan.read32(0x0b_6008), 0x73b);
}
