// SPDX-License-Identifier: GPL-2.0
//! Control queue, host memory, event queues: up, down, up again, and what is refused on the way.

mod driver;

use driver::{Completion, Driver, CCQP_HIGH, CCQP_LOW, CCQP_STATUS, CQP_TAIL};
use nic_bus::{RdmaFunction, Reset};
use nic_rdma::Config;
use serde_json::json;

const MAC: [u8; 6] = [2, 0xE8, 0x10, 0, 0, 1];

#[test]
fn a_function_comes_up_and_goes_down_twice() {
    let mut d = Driver::up(MAC);
    let state = d.state();
    assert_eq!(state["cqp"], json!(true));
    assert_eq!((&state["cqs"], &state["ceqs"]), (&json!(1), &json!(1)));
    d.teardown();
    let state = d.state();
    assert_eq!(state["cqp"], json!(false));
    assert_eq!(state["leftovers"]["sds"], json!(0));
    assert_eq!(state["leftovers"]["cqs"], json!(0));
    d.create_cqp();
    d.init_hmc();
    d.create_event_queues();
    d.sched();
    d.teardown();
    d.assert_clean();
}

#[test]
fn registers_show_a_ready_function() {
    let d = Driver::probe(MAC, Config::default());
    for offset in [0x50_BA5C, 0x50_BA60, 0x50_BA64] {
        assert_eq!(d.reg(offset), 0x80);
    }
    assert_eq!(d.reg(0x09_DE74) >> 4 & 3, 2);
    assert_eq!(d.rdma.read32(0x1234), None);
    assert!(!d.rdma.write32(0x1234, 1));
}

#[test]
fn a_bad_context_is_reported_in_the_status() {
    let mut d = Driver::probe(MAC, Config::default());
    let context = d.alloc(64, 64);
    for words in [
        [0; 8],
        [15 << 8, 0x1000, 0, 0, 0, 0, 0, 0],
        [5 << 8, 0x1001, 0, 0, 0, 0, 0, 0],
    ] {
        d.put(context, &words);
        d.set(CCQP_HIGH, 0);
        d.set(CCQP_LOW, context);
        assert_eq!(d.reg(CCQP_STATUS) >> 31, 1);
    }
    // Outside of memory.
    d.set(CCQP_HIGH, 0xFFFF_FFFF);
    d.set(CCQP_LOW, 0);
    assert_eq!(d.reg(CCQP_STATUS) >> 31, 1);
    // The next create clears it.
    d.create_cqp();
    assert_eq!(d.reg(CQP_TAIL), 0);
}

#[test]
fn an_unknown_operation_fails_and_the_next_succeeds() {
    let mut d = Driver::up(MAC);
    let c = d.op(0x3F, [0; 8]);
    assert!(c.error);
    assert_eq!(c.major, 0xFFFF);
    assert!(![0x8002, 0x8006, 0x8007, 0x8009, 0x800A, 0x8029].contains(&c.minor));
    assert_eq!(d.op(0x24, [0; 8]), Completion::OK);
    assert_eq!(
        d.reg(CQP_TAIL) >> 31,
        0,
        "the error bit follows the last operation"
    );
    d.assert_clean();
}

#[test]
fn objects_exist_once_and_ids_are_checked() {
    let mut d = Driver::up(MAC);
    d.arp(1, MAC);
    d.ah4(1, 1, 1, 2, false);
    let cq = d.create_cq(3, 64);
    let qp = d.ud(4, cq.id);
    let refused = [
        (0x03, [64, 3, 0, 3 | 3 << 48, 0x1000, 0x2000, 0, 0]), // CQ exists
        (0x03, [64, 999_999, 0, 0x7_FFFF, 0x1000, 0x2000, 0, 0]), // CQ out of range
        (0x05, [0, 0, 0, 60, 0, 0, 0, 0]),                     // no such CQ
        (0x00, [0, 0, qp.context, 4 | 4 << 48 | 1 << 60, 0, 0, 0, 0]), // QP exists
        (
            0x00,
            [0, 0, qp.context, 0xFF_FFFF | 4 << 48 | 1 << 60, 0, 0, 0, 0],
        ),
        (0x00, [0, 0, qp.context, 5 | 4 << 48 | 2 << 60, 0, 0, 0, 0]), // not IDLE
        (
            0x00,
            [0, 0, 0xFFFF_FFFF_0000, 5 | 4 << 48 | 1 << 60, 0, 0, 0, 0],
        ), // no memory
        (0x01, [0, 0, qp.context, 9 | 4 << 48 | 4 << 60, 0, 0, 0, 0]), // no such QP
        (0x02, [0, 0, 0, 9, 0, 0, 0, 0]),
        (0x1C, [0, 0, 0, 1, 0, 0, 0, 0]),             // AH exists
        (0x1C, [0, 0, 0, 0xFF_FFFF, 0, 0, 0, 0]),     // AH out of range
        (0x1E, [0, 0, 0, 2, 0, 0, 0, 0]),             // no such AH
        (0x0F, [0, 0, 0, 77, 0, 0, 0, 0]),            // delete of a free ARP entry
        (0x0D, [0, 0, 77 << 8, 1 << 43, 0, 0, 0, 0]), // no such STag
        (0x16, [0, 0, 64, 0, 0x1000, 0, 0, 0]),       // CEQ exists
        (0x16, [0, 0, 64, 0x3FF, 0x1000, 0, 0, 0]),   // CEQ out of range
        (0x19, [0, 0, 64, 0, 0x1000, 0, 0, 0]),       // AEQ exists
        (0x20, [0, 0, 3, 0, 0x1000, 0, 0, 0]),        // other function
        (0x2C, [0, 0, 0, 9 | 8 << 16, 0, 0, 0, 0]),   // no parent
        (0x2C, [0, 0, 0, 1 | 2 << 52, 0, 0, 0, 0]),   // has children
        (0x29, [0, 0, 0, 50, 0, 0, 0, 0]),            // no such QP
        (0x22, [0, 0, 0, 50, 0, 0, 0, 0]),
    ];
    for (opcode, words) in refused {
        let c = d.op(opcode, words);
        assert!(c.error, "{opcode:#x} {words:x?}");
    }
    d.assert_clean();
}

#[test]
fn a_wrong_valid_bit_is_a_violation() {
    let d = Driver::up(MAC);
    // Posted behind the driver's back: the ring still holds zeros there.
    let tail = d.reg(CQP_TAIL);
    d.set(driver::CQP_DB, u64::from(tail) + 1);
    assert_eq!(d.state()["violation_count"], json!(1));
    assert_eq!(d.reg(CQP_TAIL) >> 31, 1);
}

#[test]
fn what_is_still_in_use_is_a_violation() {
    let mut d = Driver::up(MAC);
    let cq = d.create_cq(3, 64);
    let qp = d.ud(4, cq.id);
    assert_eq!(d.group(0x26, 1, 0xEF01_0203, &[4]), Completion::OK);
    d.destroy_cq(3);
    d.destroy_qp(&qp);
    let violations = d.state()["violations"].to_string();
    assert!(
        violations.contains("CQ 3 destroyed while QP 4 uses it"),
        "{violations}"
    );
    assert!(
        violations.contains("QP 4 destroyed while a member of group 1"),
        "{violations}"
    );
}

#[test]
fn doorbells_of_what_is_not_there_are_violations() {
    let d = Driver::up(MAC);
    d.set(driver::WQE_ALLOC, 9);
    d.set(driver::CQ_ARM, 9);
    d.set(driver::AEQ_ALLOC, 3);
    assert_eq!(d.state()["violation_count"], json!(3));
}

#[test]
fn taking_memory_from_live_objects_is_a_violation() {
    let mut d = Driver::up(MAC);
    d.create_cq(3, 64);
    d.ok(0x1F, [1 << 15 | 1 << 31, 512 << 2 | 2, 0, 0, 0, 0, 0, 0]);
    let violations = d.state()["violations"].to_string();
    assert!(
        violations.contains("segment 0 cleared under CQ 3"),
        "{violations}"
    );
}

#[test]
fn a_reset_forgets_everything() {
    let mut d = Driver::up(MAC);
    let cq = d.create_cq(3, 64);
    d.ud(4, cq.id);
    d.rdma.reset(Reset::Function);
    let state = d.state();
    assert_eq!(
        (&state["cqp"], &state["qps"], &state["sds"]),
        (&json!(false), &json!(0), &json!(0))
    );
    assert_eq!(state["filter"], json!(false));
    assert_eq!(d.reg(CCQP_STATUS), 0);
    assert_eq!(d.reg(driver::CEQ_CTL0), 0);
}

#[test]
fn qp_states_follow_the_table() {
    let mut d = Driver::up(MAC);
    let cq = d.create_cq(3, 64);
    for kind in [3, 4] {
        let qp = d.create_qp(4 + kind, kind, cq.id, 0);
        let busy = d.modify(&qp, 2);
        assert_eq!((busy.major, busy.minor), (0xFFFF, 0x8002), "IDLE to RTS");
        for state in [1, 4, 4, 2, 2] {
            assert_eq!(d.modify(&qp, state), Completion::OK, "state {state}");
        }
        assert_eq!(d.modify(&qp, 3), Completion::OK);
        let (code, _, id, state, _) = d.aeqe().expect("suspend complete");
        assert_eq!((code, id), (0x0900, qp.id));
        assert!(state <= 2, "drivers stop doorbells above 2");
        assert_eq!(d.modify(&qp, 2), Completion::OK);
        assert_eq!(d.modify(&qp, 6), Completion::OK);
        assert!(d.modify(&qp, 1).error, "ERROR is final");
        assert_eq!(d.destroy_qp(&qp), Completion::OK);
    }
    d.assert_clean();
}

#[test]
fn suspension_is_announced() {
    let mut d = Driver::up(MAC);
    let cq = d.create_cq(3, 64);
    let qp = d.ud(4, cq.id);
    d.ok(0x29, [0, 0, 0, qp.id, 0, 0, 0, 0]);
    assert_eq!(d.aeqe().map(|e| e.0), Some(0x0900));
    assert!(d.host.events.lock().unwrap().contains(&driver::AEQ_VECTOR));
    d.ok(0x2A, [0, 0, 2, qp.id, 0, 0, 0, 0]);
    d.assert_clean();
}
