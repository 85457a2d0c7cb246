// SPDX-License-Identifier: GPL-2.0
//! Counters for tests: operations, doorbells, reasons for lost packets.

use serde_json::{json, Value};
use std::collections::BTreeMap;

/// Doorbells by register.
#[derive(Default)]
pub(crate) struct Doorbells {
    pub(crate) sq: u64,
    pub(crate) cq_arm: u64,
    pub(crate) cq_ack: u64,
    pub(crate) aeq_alloc: u64,
    pub(crate) cqp: u64,
}

impl Doorbells {
    pub(crate) fn json(&self) -> Value {
        json!({
            "sq": self.sq, "cqarm": self.cq_arm, "cqack": self.cq_ack,
            "aeqalloc": self.aeq_alloc, "cqpdb": self.cqp,
        })
    }
}

/// Why a packet reached no receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Drop {
    Malformed,
    Icrc,
    Opcode,
    NoGroup,
    NoQp,
    State,
    Pkey,
    Qkey,
    NoReceive,
    BadReceive,
}

impl Drop {
    fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Icrc => "icrc",
            Self::Opcode => "opcode",
            Self::NoGroup => "no_group",
            Self::NoQp => "no_qp",
            Self::State => "qp_state",
            Self::Pkey => "pkey",
            Self::Qkey => "qkey",
            Self::NoReceive => "no_receive_wqe",
            Self::BadReceive => "bad_receive_wqe",
        }
    }
}

/// All counters since the start of the process.
#[derive(Default)]
pub(crate) struct Counts {
    done: BTreeMap<&'static str, u64>,
    refused: BTreeMap<&'static str, u64>,
    pub(crate) doorbells: Doorbells,
    drops: BTreeMap<Drop, u64>,
    pub(crate) cq_failures: u64,
    pub(crate) loopback: u64,
}

impl Counts {
    /// A control operation completed.
    pub(crate) fn op(&mut self, name: &'static str, ok: bool) {
        *self.done.entry(name).or_default() += 1;
        if !ok {
            *self.refused.entry(name).or_default() += 1;
        }
    }

    /// A packet (or one member's copy) was dropped.
    pub(crate) fn drop(&mut self, why: Drop) {
        *self.drops.entry(why).or_default() += 1;
    }

    /// Operations by name and doorbells.
    pub(crate) fn ops_json(&self) -> Value {
        json!({"cqp": self.done, "refused": self.refused, "doorbells": self.doorbells.json()})
    }

    /// Dropped packets by reason.
    pub(crate) fn drops_json(&self) -> Value {
        self.drops
            .iter()
            .map(|(why, n)| (why.name().to_owned(), Value::from(*n)))
            .collect()
    }
}
