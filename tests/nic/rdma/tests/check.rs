// SPDX-License-Identifier: GPL-2.0
//! Invariants: what `check` finds, and that it finds nothing where nothing is wrong.

mod driver;

use driver::{group_wqe, Completion, Driver};
use nic_bus::{RdmaFunction, Reset};
use serde_json::{json, Value};

const MAC: [u8; 6] = [2, 0xE8, 0x10, 0, 0, 1];
const GROUP: u32 = 0xEF01_0203;
const CREATE: u64 = 0x26;
const MODIFY: u64 = 0x27;
const DESTROY: u64 = 0x28;

/// A device with the UD queue pairs 10 and 11.
fn device() -> Driver {
    let mut d = Driver::up(MAC);
    let cq = d.create_cq(10, 64);
    d.ud(10, cq.id);
    d.ud(11, cq.id);
    d
}

fn check(d: &Driver) -> Value {
    d.control("check", json!({}))
}

fn violations(d: &Driver) -> Vec<String> {
    let list = check(d)["violations"].clone();
    serde_json::from_value(list).unwrap()
}

/// Has the next operation with this name held back or swallowed.
fn order(d: &Driver, op: &str, action: &str) {
    d.control("fault", json!({"op": op, "action": action}));
}

#[test]
fn a_life_without_fault_passes() {
    let mut d = device();
    assert_eq!(d.group(CREATE, 1, GROUP, &[10]), Completion::OK);
    assert_eq!(d.group(MODIFY, 1, GROUP, &[10, 11]), Completion::OK);
    assert_eq!(d.group_on(CREATE, 2, GROUP, Some(5), &[10]), Completion::OK);
    assert_eq!(check(&d)["ok"], json!(true), "{}", check(&d));
    d.group(DESTROY, 1, GROUP, &[]);
    d.group(DESTROY, 2, GROUP, &[]);
    assert_eq!(check(&d)["ok"], json!(true), "{}", check(&d));
}

#[test]
fn findings_are_named_once_and_forgotten_on_demand() {
    let mut d = device();
    d.group(CREATE, 1, GROUP, &[10]);
    d.group(CREATE, 2, GROUP, &[11]);
    let found = violations(&d);
    assert_eq!(found, ["groups 1 and 2 are both for 239.1.2.3"]);
    assert_eq!(violations(&d), found);
    assert_eq!(check(&d)["violation_count"], json!(1));
    d.control("check", json!({"clear": true}));
    d.group(DESTROY, 2, GROUP, &[]);
    assert_eq!(check(&d)["ok"], json!(true));
}

/// A queue set that goes while a group uses it is found by the whole, not by an operation.
#[test]
fn a_group_needs_a_live_queue_set() {
    let mut d = device();
    d.group(CREATE, 1, GROUP, &[10]);
    for qp in [10, 11] {
        d.op(0x29, [0, 0, 0, qp, 0, 0, 0, 0]);
    }
    d.ok(0x2C, [0, 0, 0, 2 | 1 << 16 | 2 << 52 | 1 << 61, 0, 0, 0, 0]);
    assert_eq!(violations(&d), ["group 1: queue set 2 does not exist"]);
}

#[test]
fn a_group_of_reliable_queue_pairs_is_found() {
    let mut d = device();
    d.create_qp(12, 3, 10, 0);
    d.group(CREATE, 1, GROUP, &[12]);
    assert_eq!(violations(&d), ["group 1: member 12 is of type RC"]);
}

#[test]
fn a_destroyed_group_lists_no_members() {
    let mut d = device();
    d.group(CREATE, 1, GROUP, &[10]);
    assert_eq!(d.group(DESTROY, 1, GROUP, &[10]), Completion::OK);
    assert_eq!(
        violations(&d),
        ["group 1 destroyed with members [10] in its context"]
    );
}

#[test]
fn a_context_stays_as_it_is_until_the_completion() {
    for action in ["delay", "late", "swallow"] {
        let mut d = device();
        let context = d.group_context(&[10]);
        order(&d, "CREATE_MCAST_GRP", action);
        d.post(CREATE, group_wqe(1, GROUP, None, context));
        assert_eq!(violations(&d), [""; 0], "{action}");
        d.put_members(context, &[10, 11]);
        let text = format!(
            "CREATE_MCAST_GRP of group 1: the context at {context:#x} was rewritten before \
             the completion"
        );
        assert_eq!(violations(&d), [text], "{action}");
    }
}

/// The change counts also if nobody looks before the completion.
#[test]
fn a_context_is_compared_when_the_operation_goes_on() {
    let mut d = device();
    d.group(CREATE, 1, GROUP, &[10]);
    let context = d.group_context(&[10, 11]);
    order(&d, "MODIFY_MCAST_GRP", "delay");
    d.post(MODIFY, group_wqe(1, GROUP, None, context));
    // One behind it that shares the context.
    d.post(MODIFY, group_wqe(1, GROUP, None, context));
    d.put_members(context, &[11]);
    d.control("release", json!({}));
    assert_eq!(violations(&d).len(), 1);
    assert!(violations(&d)[0].starts_with("MODIFY_MCAST_GRP of group 1: the context"));
    d.put_members(context, &[10]);
    assert_eq!(
        violations(&d).len(),
        1,
        "answered: the driver may write again"
    );
}

#[test]
fn a_context_is_the_devices_until_the_reset() {
    let mut d = device();
    let context = d.group_context(&[10]);
    order(&d, "CREATE_MCAST_GRP", "swallow");
    d.post(CREATE, group_wqe(1, GROUP, None, context));
    d.put_members(context, &[]);
    d.rdma.reset(Reset::Function);
    assert_eq!(violations(&d).len(), 1);
    d.put_members(context, &[11]);
    assert_eq!(violations(&d).len(), 1);
    // A guest that is gone has not broken anything.
    let mut d = device();
    let context = d.group_context(&[10]);
    order(&d, "CREATE_MCAST_GRP", "swallow");
    d.post(CREATE, group_wqe(1, GROUP, None, context));
    d.put_members(context, &[]);
    d.rdma.reset(Reset::Disconnect);
    assert_eq!(violations(&d), [""; 0]);
}

#[test]
fn a_number_is_not_used_again_before_the_completion() {
    for action in ["delay", "late", "swallow"] {
        let mut d = device();
        d.group(CREATE, 1, GROUP, &[10]);
        let (empty, full) = (d.group_context(&[]), d.group_context(&[11]));
        order(&d, "DESTROY_MCAST_GRP", action);
        d.post(DESTROY, group_wqe(1, GROUP, None, empty));
        d.post(CREATE, group_wqe(1, GROUP + 1, None, full));
        assert_eq!(
            violations(&d),
            ["CREATE_MCAST_GRP of group 1 while DESTROY_MCAST_GRP has no completion"],
            "{action}"
        );
    }
}

#[test]
fn another_number_may_be_used_meanwhile() {
    let mut d = device();
    d.group(CREATE, 1, GROUP, &[10]);
    let (empty, full) = (d.group_context(&[]), d.group_context(&[11]));
    order(&d, "DESTROY_MCAST_GRP", "delay");
    d.post(DESTROY, group_wqe(1, GROUP, None, empty));
    d.post(CREATE, group_wqe(2, GROUP + 1, None, full));
    d.control("release", json!({}));
    assert!(d.completion().is_some() && d.completion().is_some());
    d.ok(CREATE, group_wqe(1, GROUP, None, full));
    assert_eq!(check(&d)["ok"], json!(true), "{}", check(&d));
    assert_eq!(check(&d)["unanswered"], json!([]));
}

#[test]
fn what_lives_is_compared_with_the_mark() {
    let mut d = device();
    assert_eq!(check(&d)["changed"], json!(null));
    d.control("mark", json!({}));
    assert_eq!(check(&d)["changed"], json!({}));
    d.group(CREATE, 1, GROUP, &[10]);
    d.ah4(5, 1, 0x0A63_0001, GROUP, true);
    assert_eq!(check(&d)["changed"], json!({"groups": 1, "ahs": 1}));
    d.op(0x02, [0, 0, 0, 11 | 4 << 48, 0, 0, 0, 0]);
    assert_eq!(
        check(&d)["changed"],
        json!({"groups": 1, "ahs": 1, "qps": -1})
    );
}
