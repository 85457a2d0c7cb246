// SPDX-License-Identifier: GPL-2.0
//! Admin commands that fail by order of a test, by count.

use crate::command::Code;
use serde_json::{json, Value};

/// Names of the commands that an RDMA driver makes `ice` issue, besides numbers.
const NAMES: [(&str, u16); 4] = [
    ("UPDATE_VSI", 0x0211),
    ("SET_MIB", 0x0a08),
    ("DISABLE_QUEUES", 0x0c31),
    ("ADD_RDMA_QSETS", 0x0c33),
];
/// Orders that are kept, finished ones included.
const MAX_ORDERS: usize = 256;

/// From the `nth` such command on, `count` of them fail.
#[derive(Debug)]
struct Order {
    opcode: u16,
    code: Code,
    nth: u64,
    count: u64,
    seen: u64,
    fired: u64,
}

/// All orders since they were last taken back.
#[derive(Debug, Default)]
pub struct Faults(Vec<Order>);

impl Faults {
    /// Counts a command; the error it is to fail with, if one was ordered.
    pub fn take(&mut self, opcode: u16) -> Option<Code> {
        let mut found = None;
        for order in self.0.iter_mut().filter(|o| o.opcode == opcode) {
            order.seen += 1;
            if found.is_none() && order.seen >= order.nth && order.fired < order.count {
                order.fired += 1;
                found = Some(order.code);
            }
        }
        found
    }

    /// `aqfault op=NAME|NUMBER [nth=N] [count=N] [code=N]`, or `clear=true`; shows the orders.
    pub fn control(&mut self, args: &Value) -> Result<Value, String> {
        let text = |name: &str| match args.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => Some(other.to_string()),
        };
        let number = |name: &str, default: u64| match text(name) {
            None => Ok(default),
            Some(text) => parse(&text).ok_or_else(|| format!("aqfault: {name} is no number")),
        };
        if text("clear").as_deref() == Some("true") {
            self.0.clear();
        } else if let Some(op) = text("op") {
            let code = number("code", Code::Enospc as u64)?;
            let order = Order {
                opcode: opcode(&op)?,
                code: Code::ALL
                    .into_iter()
                    .find(|known| *known as u64 == code)
                    .ok_or_else(|| format!("aqfault: code {code} is unknown"))?,
                nth: number("nth", 1)?,
                count: number("count", 1)?,
                seen: 0,
                fired: 0,
            };
            if order.nth == 0 || order.count == 0 {
                return Err("aqfault: nth and count start at 1".to_owned());
            }
            if self.0.len() >= MAX_ORDERS {
                return Err(format!("aqfault: {MAX_ORDERS} orders already: clear them"));
            }
            self.0.push(order);
        }
        Ok(self.json())
    }

    fn json(&self) -> Value {
        self.0
            .iter()
            .map(|o| {
                json!({
                    "op": format!("{:#06x}", o.opcode),
                    "code": o.code as u16,
                    "nth": o.nth,
                    "count": o.count,
                    "seen": o.seen,
                    "fired": o.fired,
                    "armed": o.fired < o.count,
                })
            })
            .collect()
    }
}

fn parse(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn opcode(text: &str) -> Result<u16, String> {
    if let Some((_, opcode)) = NAMES.iter().find(|(name, _)| *name == text) {
        return Ok(*opcode);
    }
    parse(text)
        .and_then(|number| u16::try_from(number).ok())
        .ok_or_else(|| {
            let names = NAMES.map(|(name, _)| name).join(", ");
            format!("aqfault: op {text}: not a number and not one of {names}")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_command_fails_and_is_counted() {
        let mut faults = Faults::default();
        faults
            .control(&json!({"op": "ADD_RDMA_QSETS", "nth": "2"}))
            .unwrap();
        let hits = [0x0c33, 0x0c31, 0x0c33, 0x0c33].map(|op| faults.take(op));
        assert_eq!(hits, [None, None, Some(Code::Enospc), None]);
        let orders = faults.control(&json!({})).unwrap();
        assert_eq!(
            (&orders[0]["seen"], &orders[0]["fired"], &orders[0]["armed"]),
            (&json!(3), &json!(1), &json!(false))
        );
        assert_eq!(faults.control(&json!({"clear": true})), Ok(json!([])));
    }

    #[test]
    fn nonsense_is_refused() {
        for args in [
            json!({"op": "ADD"}),
            json!({"op": "0x10000"}),
            json!({"op": 1, "nth": 0}),
            json!({"op": 1, "code": 1}),
        ] {
            assert!(Faults::default().control(&args).is_err(), "{args}");
        }
    }
}
