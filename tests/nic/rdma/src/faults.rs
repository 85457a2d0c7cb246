// SPDX-License-Identifier: GPL-2.0
//! Faults ordered by a test. They count occurrences, so that the same test always meets the same
//! fault.

use crate::args::{flag, number, number_or, text};
use crate::cqp::error::MAJOR;
use crate::cqp::op::Op;
use serde_json::{json, Value};

/// Minor code of an ordered failure that names none.
const DEFAULT_MINOR: u16 = 0x0010;

/// What happens to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// It is not executed and completes with this error.
    Fail { major: u16, minor: u16 },
    /// It never completes; its effect happens or not.
    Swallow { execute: bool },
    /// It and all behind it wait until so many later operations were posted, or for the release
    /// command.
    Delay { until_ops: Option<u32> },
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Self::Fail { .. } => "fail",
            Self::Swallow { .. } => "swallow",
            Self::Delay { .. } => "delay",
        }
    }
}

/// One order: from the `skip`-th matching operation on, `count` times.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Order {
    /// The operation; any if `None`.
    op: Option<Op>,
    action: Action,
    skip: u64,
    count: u64,
}

impl Order {
    /// Counts one matching operation; `true` if the fault strikes.
    fn strikes(&mut self) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.count -= 1;
        true
    }
}

/// Orders in force.
#[derive(Default)]
pub(crate) struct Faults {
    orders: Vec<Order>,
    struck: u64,
}

impl Faults {
    /// Counts an operation against the orders; the first order that strikes decides.
    pub(crate) fn take(&mut self, op: Op) -> Option<Action> {
        let mut action = None;
        for order in &mut self.orders {
            if order.op.is_none_or(|o| o == op) && action.is_none() && order.strikes() {
                action = Some(order.action);
            }
        }
        self.orders.retain(|o| o.count > 0);
        self.struck += u64::from(action.is_some());
        action
    }

    /// Takes all orders back.
    pub(crate) fn clear(&mut self) {
        self.orders.clear();
    }

    /// Takes an order of the control command `fault`.
    pub(crate) fn order(&mut self, args: &Value) -> Result<(), String> {
        let op = match text(args, "op").ok_or("op is missing")? {
            "*" => None,
            name => Some(Op::from_name(name).ok_or_else(|| format!("unknown op {name}"))?),
        };
        let skip = number(args, "nth")?
            .unwrap_or(1)
            .checked_sub(1)
            .ok_or("nth counts from 1")?;
        let count = number(args, "count")?.unwrap_or(1);
        if count == 0 {
            return Err("count is 0".to_owned());
        }
        let action = match text(args, "action").unwrap_or("fail") {
            "fail" => Action::Fail {
                major: number_or(args, "major", MAJOR)?,
                minor: number_or(args, "minor", DEFAULT_MINOR)?,
            },
            "swallow" => Action::Swallow {
                execute: flag(args, "execute"),
            },
            "delay" => Action::Delay {
                until_ops: match number(args, "until_ops")? {
                    None => None,
                    Some(_) => Some(number_or(args, "until_ops", 0)?),
                },
            },
            other => return Err(format!("unknown action {other}")),
        };
        self.orders.push(Order {
            op,
            action,
            skip,
            count,
        });
        Ok(())
    }

    /// The orders in force.
    pub(crate) fn json(&self) -> Value {
        let orders: Vec<Value> = self
            .orders
            .iter()
            .map(|o| {
                json!({
                    "op": o.op.map_or("*", Op::name),
                    "nth": o.skip + 1,
                    "count": o.count,
                    "action": o.action.name(),
                })
            })
            .collect();
        json!({"orders": orders, "struck": self.struck})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(args: Value) -> Faults {
        let mut f = Faults::default();
        assert_eq!(f.order(&args), Ok(()));
        f
    }

    #[test]
    fn the_nth_operation_of_a_kind_is_struck() {
        let mut f = faults(json!({"op": "CREATE_QP", "nth": 2, "count": 2}));
        let hits: Vec<bool> = (0..4).map(|_| f.take(Op::CreateQp).is_some()).collect();
        assert_eq!(hits, [false, true, true, false]);
        let mut f = faults(json!({"op": "CREATE_QP"}));
        assert_eq!(f.take(Op::ModifyQp), None);
        assert!(f.take(Op::CreateQp).is_some());
    }

    #[test]
    fn a_star_means_any_operation() {
        let mut f = faults(json!({"op": "*", "nth": 2, "action": "swallow"}));
        assert_eq!(f.take(Op::CreateQp), None);
        assert_eq!(f.take(Op::Nop), Some(Action::Swallow { execute: false }));
        assert_eq!(f.take(Op::Nop), None);
    }

    #[test]
    fn nonsense_is_refused() {
        for args in [
            json!({}),
            json!({"op": "CREATE_SRQ"}),
            json!({"op": "*", "nth": 0}),
            json!({"op": "*", "count": 0}),
            json!({"op": "*", "action": "explode"}),
            json!({"op": "*", "minor": 65536}),
        ] {
            assert!(Faults::default().order(&args).is_err(), "{args}");
        }
    }
}
