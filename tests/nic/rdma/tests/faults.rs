// SPDX-License-Identifier: GPL-2.0
//! Faults on order: operations that fail, never complete, or complete late.

mod driver;

use driver::{Completion, Driver, CQP_TAIL};
use serde_json::json;

const MAC: [u8; 6] = [2, 0xE8, 0x10, 0, 0, 1];
const CREATE_AH: u64 = 0x1C;

fn ah(index: u64) -> [u64; 8] {
    [0, 0, 0, index | 1 << 59, 1, 0, 2, 0]
}

fn ahs(d: &Driver) -> u64 {
    d.state()["ahs"].as_u64().unwrap()
}

#[test]
fn the_ordered_operation_fails_with_the_ordered_codes() {
    let mut d = Driver::up(MAC);
    d.control(
        "fault",
        json!({"op": "CREATE_ADDR_HANDLE", "nth": 2, "major": 7, "minor": 9}),
    );
    assert_eq!(d.op(CREATE_AH, ah(1)), Completion::OK);
    let failed = d.op(CREATE_AH, ah(2));
    assert_eq!((failed.error, failed.major, failed.minor), (true, 7, 9));
    assert_eq!(ahs(&d), 1, "it was not carried out");
    assert_eq!(d.op(CREATE_AH, ah(2)), Completion::OK);
    let ops = d.control("ops", json!({}));
    assert_eq!(ops["cqp"]["CREATE_ADDR_HANDLE"], json!(3));
    assert_eq!(ops["refused"]["CREATE_ADDR_HANDLE"], json!(1));
}

#[test]
fn a_swallowed_operation_never_completes() {
    for execute in [false, true] {
        let mut d = Driver::up(MAC);
        d.control(
            "fault",
            json!({"op": "*", "action": "swallow", "execute": execute}),
        );
        let tail = d.reg(CQP_TAIL);
        d.post(CREATE_AH, ah(1));
        assert_eq!(d.completion(), None);
        assert_eq!(d.reg(CQP_TAIL), tail);
        assert_eq!(ahs(&d), u64::from(execute));
        // The queue goes on.
        let next = d.post(CREATE_AH, ah(2));
        assert_eq!(d.completion(), Some((next, Completion::OK)));
    }
}

#[test]
fn a_delayed_operation_waits_for_later_ones() {
    let mut d = Driver::up(MAC);
    d.control(
        "fault",
        json!({"op": "CREATE_ADDR_HANDLE", "action": "delay", "until_ops": 2}),
    );
    let first = d.post(CREATE_AH, ah(1));
    let second = d.post(CREATE_AH, ah(2));
    assert_eq!((ahs(&d), d.completion()), (0, None));
    assert_eq!(d.state()["cqp_pending"], json!(2));
    let third = d.post(CREATE_AH, ah(3));
    assert_eq!(ahs(&d), 3);
    for index in [first, second, third] {
        assert_eq!(d.completion(), Some((index, Completion::OK)), "in order");
    }
}

#[test]
fn a_delayed_operation_can_be_released() {
    let mut d = Driver::up(MAC);
    let order = json!({"op": "CREATE_ADDR_HANDLE", "action": "delay"});
    d.control("fault", order.clone());
    d.post(CREATE_AH, ah(1));
    for n in 2..10 {
        d.post(CREATE_AH, ah(n));
    }
    assert_eq!(ahs(&d), 0);
    assert_eq!(d.control("release", json!({})), json!({"released": true}));
    assert_eq!(ahs(&d), 9);
    assert_eq!(d.control("release", json!({})), json!({"released": false}));
    // Taking the orders back lets it go, too.
    d.control("fault", order);
    d.post(CREATE_AH, ah(20));
    assert_eq!(ahs(&d), 9);
    d.control("fault", json!({"clear": true}));
    assert_eq!(ahs(&d), 10);
}

/// The device has done it, the driver does not know.
#[test]
fn a_late_answer_comes_after_the_effect() {
    let mut d = Driver::up(MAC);
    d.control(
        "fault",
        json!({"op": "CREATE_ADDR_HANDLE", "action": "late"}),
    );
    let tail = d.reg(CQP_TAIL);
    let first = d.post(CREATE_AH, ah(1));
    let second = d.post(CREATE_AH, ah(2));
    assert_eq!((ahs(&d), d.completion()), (1, None));
    assert_eq!(d.reg(CQP_TAIL), tail);
    let unanswered = d.control("check", json!({}))["unanswered"].clone();
    assert_eq!(unanswered.as_array().map(Vec::len), Some(2));
    d.control("release", json!({}));
    for index in [first, second] {
        assert_eq!(d.completion(), Some((index, Completion::OK)));
    }
    assert_eq!(ahs(&d), 2, "executed once");
    d.assert_clean();
}

#[test]
fn faults_tell_what_became_of_them() {
    let mut d = Driver::up(MAC);
    let ordered = d.control("fault", json!({"op": "*_ADDR_HANDLE", "nth": 2}));
    d.op(CREATE_AH, ah(1));
    let order = |d: &Driver| d.control("faults", json!({}))["orders"][0].clone();
    assert_eq!(order(&d)["id"], ordered["id"]);
    assert_eq!(
        (&order(&d)["seen"], &order(&d)["fired"]),
        (&json!(1), &json!(0))
    );
    assert!(d.op(CREATE_AH, ah(2)).error);
    assert_eq!(order(&d)["fired"], json!(1));
    assert_eq!(order(&d)["armed"], json!(false));
    d.control("fault", json!({"clear": true}));
    assert_eq!(d.control("faults", json!({}))["orders"], json!([]));
}
