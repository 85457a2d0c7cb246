// SPDX-License-Identifier: GPL-2.0
//! Invariants over all objects at once, for a test to look at between its phases.
//!
//! What an operation breaks is recorded when it is carried out; here is found what only the whole
//! shows, and what has become wrong since. Every finding is a violation, recorded once.

use crate::cqp::CCQ;
use crate::mcast::{MAX_INDEX, MAX_MEMBERS};
use crate::model::Model;
use crate::qp::State;
use serde_json::{json, Map, Value};
use std::collections::HashMap;

impl Model {
    /// `check [clear=true]`: judges the state; with `clear` the findings are forgotten after the
    /// answer, so that the next phase starts without them.
    pub(crate) fn control_check(&mut self, clear: bool) -> Value {
        let mut found = self.broken_groups();
        found.extend(self.broken_qps());
        for text in found {
            self.violate_once(format_args!("{text}"));
        }
        self.check_unanswered();
        let live = self.counts_json();
        let answer = json!({
            "ok": self.violations.count == 0,
            "violations": self.violations.texts,
            "violation_count": self.violations.count,
            "unanswered": self.unanswered_json(),
            "changed": self.mark.as_ref().map(|mark| changed(mark, &live)),
            "live": live,
        });
        if clear {
            self.violations = Default::default();
        }
        answer
    }

    /// `mark`: remembers how many objects live, for `check` to compare with.
    pub(crate) fn control_mark(&mut self) -> Value {
        let live = self.counts_json();
        self.mark = Some(live.clone());
        live
    }

    fn broken_groups(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut keys = HashMap::new();
        for (index, group) in self.groups.iter() {
            if let Some(other) = keys.insert((group.ip, group.vlan), index) {
                found.push(format!(
                    "groups {other} and {index} are both for {}",
                    group.key_text()
                ));
            }
            if index == 0 || u32::from(index) > MAX_INDEX {
                found.push(format!("group {index}: index out of range"));
            }
            if group.members.is_empty() || group.members.len() > MAX_MEMBERS {
                found.push(format!("group {index}: {} members", group.members.len()));
            }
            found.extend(
                group
                    .members
                    .iter()
                    .filter_map(|&qp| self.bad_member(index, qp)),
            );
            found.extend(self.bad_queue_set(index, group));
        }
        found
    }

    fn broken_qps(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (id, qp) in &self.qps {
            let context = &qp.context;
            for cq in [context.send_cq, context.recv_cq] {
                if cq == CCQ || !self.cqs.contains_key(&cq) {
                    found.push(format!("QP {id}: CQ {cq} does not exist"));
                }
            }
            let alive = self.sched.get(&context.queue_set).is_some_and(|n| n.leaf);
            if qp.state == State::Rts && !qp.suspended && !alive {
                found.push(format!(
                    "QP {id}: queue set {} does not exist",
                    context.queue_set
                ));
            }
        }
        found
    }
}

/// The counts that differ: how many more there are now, less if negative.
fn changed(mark: &Value, live: &Value) -> Value {
    let (Some(mark), Some(live)) = (mark.as_object(), live.as_object()) else {
        return Value::Null;
    };
    let number = |value: Option<&Value>| {
        value.map_or(0, |v| {
            v.as_i64().unwrap_or_else(|| i64::from(v == &json!(true)))
        })
    };
    live.iter()
        .map(|(name, now)| (name, number(Some(now)) - number(mark.get(name))))
        .filter(|(_, more)| *more != 0)
        .map(|(name, more)| (name.clone(), more.into()))
        .collect::<Map<_, _>>()
        .into()
}
