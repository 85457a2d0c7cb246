// SPDX-License-Identifier: GPL-2.0
//! Faults ordered by a test. They count occurrences, so that the same test always meets the same
//! fault.

use crate::cqp::error::MAJOR;
use crate::cqp::op::Op;
use crate::frames::Direction;
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

/// One order: from the `skip`-th matching occurrence on, `count` times.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Order<T> {
    what: T,
    skip: u64,
    count: u64,
}

impl<T> Order<T> {
    /// Counts one occurrence; `true` if the fault strikes.
    fn strikes(&mut self) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.count -= 1;
        true
    }
}

/// Things that are not control operations and can be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// An interrupt of a completion event queue.
    CeqInterrupt,
    /// An interrupt of the asynchronous event queue.
    AeqInterrupt,
    /// A frame.
    Frame(Direction),
}

impl Loss {
    fn from_name(name: &str) -> Option<Self> {
        match name {
            "CEQ_INTERRUPT" => Some(Self::CeqInterrupt),
            "AEQ_INTERRUPT" => Some(Self::AeqInterrupt),
            _ => None,
        }
    }
}

/// Orders in force.
#[derive(Default)]
pub(crate) struct Faults {
    /// An operation, or any.
    ops: Vec<(Option<Op>, Order<Action>)>,
    losses: Vec<Order<Loss>>,
    struck: u64,
}

impl Faults {
    /// Counts an operation against the orders; the first order that strikes decides.
    pub(crate) fn take(&mut self, op: Op) -> Option<Action> {
        let mut action = None;
        for (wanted, order) in &mut self.ops {
            if wanted.is_none_or(|w| w == op) && action.is_none() && order.strikes() {
                action = Some(order.what);
            }
        }
        self.ops.retain(|(_, o)| o.count > 0);
        self.struck += u64::from(action.is_some());
        action
    }

    /// Counts a thing that can be lost; `true` if it is.
    pub(crate) fn loses(&mut self, what: Loss) -> bool {
        let mut lost = false;
        for order in self.losses.iter_mut().filter(|o| o.what == what) {
            lost = lost || order.strikes();
        }
        self.losses.retain(|o| o.count > 0);
        self.struck += u64::from(lost);
        lost
    }

    /// Counts a frame.
    pub(crate) fn drops(&mut self, direction: Direction) -> bool {
        self.loses(Loss::Frame(direction))
    }

    /// Takes all orders back.
    pub(crate) fn clear(&mut self) {
        self.ops.clear();
        self.losses.clear();
    }

    /// Takes an order of the control command `fault`.
    pub(crate) fn order(&mut self, args: &Value) -> Result<(), String> {
        let name = text(args, "op").ok_or("op is missing")?;
        let skip = number(args, "nth", 1)?
            .checked_sub(1)
            .ok_or("nth counts from 1")?;
        let count = number(args, "count", 1)?;
        if count == 0 {
            return Err("count is 0".to_owned());
        }
        if let Some(loss) = Loss::from_name(name) {
            self.losses.push(Order {
                what: loss,
                skip,
                count,
            });
            return Ok(());
        }
        let op = match name {
            "*" => None,
            name => Some(Op::from_name(name).ok_or_else(|| format!("unknown op {name}"))?),
        };
        let action = match text(args, "action").unwrap_or("fail") {
            "fail" => Action::Fail {
                major: narrow(number(args, "major", MAJOR.into())?, "major")?,
                minor: narrow(number(args, "minor", DEFAULT_MINOR.into())?, "minor")?,
            },
            "swallow" => Action::Swallow {
                execute: args.get("execute").and_then(Value::as_bool) == Some(true),
            },
            "delay" => Action::Delay {
                until_ops: match args.get("until_ops") {
                    None => None,
                    Some(_) => Some(narrow(number(args, "until_ops", 0)?, "until_ops")?),
                },
            },
            other => return Err(format!("unknown action {other}")),
        };
        self.ops.push((
            op,
            Order {
                what: action,
                skip,
                count,
            },
        ));
        Ok(())
    }

    /// Takes an order of the control command `drop`.
    pub(crate) fn order_drop(&mut self, args: &Value) -> Result<(), String> {
        let direction = match text(args, "dir") {
            Some("rx") => Direction::Rx,
            Some("tx") => Direction::Tx,
            _ => return Err("dir is rx or tx".to_owned()),
        };
        let skip = number(args, "nth", 1)?
            .checked_sub(1)
            .ok_or("nth counts from 1")?;
        let count = number(args, "count", 1)?;
        if count == 0 {
            return Err("count is 0".to_owned());
        }
        self.losses.push(Order {
            what: Loss::Frame(direction),
            skip,
            count,
        });
        Ok(())
    }

    /// The orders in force.
    pub(crate) fn json(&self) -> Value {
        let ops: Vec<Value> = self
            .ops
            .iter()
            .map(|(op, o)| {
                json!({
                    "op": op.map_or("*", Op::name),
                    "nth": o.skip + 1,
                    "count": o.count,
                    "action": o.what.name(),
                })
            })
            .collect();
        let losses: Vec<Value> = self
            .losses
            .iter()
            .map(|o| json!({"what": format!("{:?}", o.what), "nth": o.skip + 1, "count": o.count}))
            .collect();
        json!({"ops": ops, "losses": losses, "struck": self.struck})
    }
}

/// A text argument.
pub(crate) fn text<'a>(args: &'a Value, name: &str) -> Option<&'a str> {
    args.get(name).and_then(Value::as_str)
}

/// A number argument: a JSON number, or a text in decimal or `0x` form.
pub(crate) fn number(args: &Value, name: &str, default: u64) -> Result<u64, String> {
    let value = match args.get(name) {
        None => return Ok(default),
        Some(Value::String(s)) => match s.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => s.parse().ok(),
        },
        Some(v) => v.as_u64(),
    };
    value.ok_or_else(|| format!("{name} is no number"))
}

/// A number argument that must fit a narrower type.
pub(crate) fn narrow<T: TryFrom<u64>>(value: u64, name: &str) -> Result<T, String> {
    T::try_from(value).map_err(|_| format!("{name} {value} is too large"))
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

    #[test]
    fn frames_are_counted_by_direction() {
        let mut f = Faults::default();
        assert_eq!(f.order_drop(&json!({"dir": "rx", "nth": 2})), Ok(()));
        assert!(!f.drops(Direction::Tx));
        assert!(!f.drops(Direction::Rx));
        assert!(f.drops(Direction::Rx));
        assert!(!f.drops(Direction::Rx));
    }
}
