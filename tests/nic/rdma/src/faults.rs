// SPDX-License-Identifier: GPL-2.0
//! Faults ordered by a test. They count occurrences, so that the same test always meets the same
//! fault, and remember what became of them, so that a test can tell a fault that never struck.

use crate::args::{flag, number, number_or, text};
use crate::cqp::error::MAJOR;
use crate::cqp::op::Op;
use serde_json::{json, Value};

/// Minor code of an ordered failure that names none.
const DEFAULT_MINOR: u16 = 0x0010;
/// Orders that are kept, finished ones included.
const MAX_ORDERS: usize = 1024;

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
    /// It is executed, and its answer and all operations behind it wait as for `Delay`.
    Late { until_ops: Option<u32> },
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Self::Fail { .. } => "fail",
            Self::Swallow { .. } => "swallow",
            Self::Delay { .. } => "delay",
            Self::Late { .. } => "late",
        }
    }
}

/// Which operations an order is about: a name, a part of one between stars, or several of them
/// with commas between.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    text: String,
    ops: Vec<Op>,
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, String> {
        let mut ops = Vec::new();
        for part in text.split(',') {
            let before = ops.len();
            ops.extend(Op::ALL.iter().filter(|op| matches(part, op.name())));
            if ops.len() == before {
                return Err(format!("unknown op {part}"));
            }
        }
        Ok(Self {
            text: text.to_owned(),
            ops,
        })
    }
}

/// Whether `name` is `pattern`, in which each star stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(tail) = name.strip_prefix(head) else {
        return false;
    };
    tail.char_indices()
        .map(|(at, _)| at)
        .chain([tail.len()])
        .filter_map(|at| tail.get(at..))
        .any(|tail| matches(rest, tail))
}

/// One order: from the `nth` matching operation on, each `every`-th, `count` times.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Order {
    id: u64,
    pattern: Pattern,
    action: Action,
    nth: u64,
    every: u64,
    count: u64,
    /// Matching operations so far that no earlier order struck.
    seen: u64,
    /// How often it struck.
    fired: u64,
}

impl Order {
    fn armed(&self) -> bool {
        self.fired < self.count
    }

    /// Counts one matching operation; `true` if the fault strikes.
    fn strikes(&mut self) -> bool {
        self.seen += 1;
        let since = self.seen.checked_sub(self.nth);
        let strikes = self.armed() && since.and_then(|n| n.checked_rem(self.every)) == Some(0);
        self.fired += u64::from(strikes);
        strikes
    }

    fn json(&self) -> Value {
        json!({
            "id": self.id,
            "op": self.pattern.text,
            "nth": self.nth,
            "every": self.every,
            "count": self.count,
            "action": self.action.name(),
            "seen": self.seen,
            "fired": self.fired,
            "armed": self.armed(),
        })
    }
}

/// All orders since they were last taken back.
#[derive(Default)]
pub(crate) struct Faults {
    orders: Vec<Order>,
    next_id: u64,
    struck: u64,
}

impl Faults {
    /// Counts an operation against the orders; the first order that strikes decides.
    pub(crate) fn take(&mut self, op: Op) -> Option<Action> {
        let mut action = None;
        for order in &mut self.orders {
            if order.pattern.ops.contains(&op) && action.is_none() && order.strikes() {
                action = Some(order.action);
            }
        }
        self.struck += u64::from(action.is_some());
        action
    }

    /// Takes all orders back and forgets what became of them.
    pub(crate) fn clear(&mut self) {
        self.orders.clear();
    }

    /// Takes an order of the control command `fault`; returns its id.
    pub(crate) fn order(&mut self, args: &Value) -> Result<u64, String> {
        let pattern = Pattern::parse(text(args, "op").ok_or("op is missing")?)?;
        let nth = number(args, "nth")?.unwrap_or(1);
        if nth == 0 {
            return Err("nth counts from 1".to_owned());
        }
        let every = number(args, "every")?.unwrap_or(1);
        if every == 0 {
            return Err("every counts from 1".to_owned());
        }
        let count = number(args, "count")?.unwrap_or(1);
        if count == 0 {
            return Err("count is 0".to_owned());
        }
        if self.orders.len() >= MAX_ORDERS {
            return Err(format!("{MAX_ORDERS} orders already: clear them"));
        }
        self.next_id += 1;
        self.orders.push(Order {
            id: self.next_id,
            pattern,
            action: action(args)?,
            nth,
            every,
            count,
            seen: 0,
            fired: 0,
        });
        Ok(self.next_id)
    }

    /// All orders and what became of them.
    pub(crate) fn json(&self) -> Value {
        let orders: Vec<Value> = self.orders.iter().map(Order::json).collect();
        json!({"orders": orders, "struck": self.struck})
    }
}

fn action(args: &Value) -> Result<Action, String> {
    let until_ops = match number(args, "until_ops")? {
        None => None,
        Some(_) => Some(number_or(args, "until_ops", 0)?),
    };
    Ok(match text(args, "action").unwrap_or("fail") {
        "fail" => Action::Fail {
            major: number_or(args, "major", MAJOR)?,
            minor: number_or(args, "minor", DEFAULT_MINOR)?,
        },
        "swallow" => Action::Swallow {
            execute: flag(args, "execute"),
        },
        "delay" => Action::Delay { until_ops },
        "late" => Action::Late { until_ops },
        other => return Err(format!("unknown action {other}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(args: Value) -> Faults {
        let mut f = Faults::default();
        assert_eq!(f.order(&args), Ok(1));
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
    fn each_third_operation_from_the_second_on_is_struck() {
        let mut f = faults(json!({"op": "CREATE_QP", "nth": 2, "every": 3, "count": 2}));
        let hits: Vec<bool> = (0..9).map(|_| f.take(Op::CreateQp).is_some()).collect();
        assert_eq!(
            hits,
            [false, true, false, false, true, false, false, false, false]
        );
    }

    #[test]
    fn a_star_means_any_operation() {
        let mut f = faults(json!({"op": "*", "nth": 2, "action": "swallow"}));
        assert_eq!(f.take(Op::CreateQp), None);
        assert_eq!(f.take(Op::Nop), Some(Action::Swallow { execute: false }));
        assert_eq!(f.take(Op::Nop), None);
    }

    #[test]
    fn parts_of_names_and_lists_name_several_operations() {
        let ops = |text| Pattern::parse(text).map(|p| p.ops).unwrap();
        assert_eq!(
            ops("*_MCAST_GRP"),
            [Op::CreateMcastGrp, Op::ModifyMcastGrp, Op::DestroyMcastGrp]
        );
        assert_eq!(ops("NOP,DESTROY_AEQ"), [Op::Nop, Op::DestroyAeq]);
        assert_eq!(ops("CREATE*HANDLE"), [Op::CreateAh]);
        assert_eq!(ops("*").len(), Op::ALL.len());
        assert!(Pattern::parse("NOP,").is_err());
        assert!(Pattern::parse("CREATE").is_err());
    }

    /// A test has to know whether its fault struck.
    #[test]
    fn what_became_of_an_order_is_remembered() {
        let mut f = faults(json!({"op": "NOP", "nth": 2}));
        f.take(Op::Nop);
        let seen = |f: &Faults| {
            let order = f.json()["orders"][0].clone();
            (
                order["seen"].clone(),
                order["fired"].clone(),
                order["armed"].clone(),
            )
        };
        assert_eq!(seen(&f), (json!(1), json!(0), json!(true)));
        f.take(Op::Nop);
        f.take(Op::Nop);
        assert_eq!(seen(&f), (json!(3), json!(1), json!(false)));
        f.clear();
        assert_eq!(f.json(), json!({"orders": [], "struck": 1}));
    }

    #[test]
    fn nonsense_is_refused() {
        for args in [
            json!({}),
            json!({"op": "CREATE_SRQ"}),
            json!({"op": "*", "nth": 0}),
            json!({"op": "*", "count": 0}),
            json!({"op": "*", "every": 0}),
            json!({"op": "*", "action": "explode"}),
            json!({"op": "*", "minor": 65536}),
        ] {
            assert!(Faults::default().order(&args).is_err(), "{args}");
        }
    }
}
