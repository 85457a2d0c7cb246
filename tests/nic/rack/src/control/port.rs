// SPDX-License-Identifier: GPL-2.0
//! Commands about a port of the fabric.

use super::request::Request;
use super::Answer;
use nic_fabric::impair::{Action, Choice, Kind, Rule, Status, MILLION};
use nic_fabric::{Direction, Port};
use serde_json::{json, Map, Value};
use std::time::Duration;

/// Carries out `request`, or `None` if it is not about the port.
pub fn execute(port: &Port, request: &Request) -> Option<Answer> {
    Some(match request.command.as_str() {
        "state" => Ok(json!({"port": state(port)})),
        "counters" => Ok(json!({"port": counters(port)})),
        "frames" => frames(port, request),
        "link" => link(port, request),
        "drop" => impair(port, request, Action::Drop),
        "duplicate" => impair(port, request, Action::Duplicate),
        "hold" => hold(port, request),
        "delay" => delay(port, request),
        "corrupt" => corrupt(port, request),
        "impairments" => Ok(impairments(port)),
        "inject" if request.get("frame").is_some() => inject(port, request),
        "capture" => capture(port, request),
        _ => return None,
    })
}

/// The port's part of `state`.
pub fn state(port: &Port) -> Value {
    json!({"name": port.name(), "link": port.link_up()})
}

/// The port's part of `counters`.
pub fn counters(port: &Port) -> Value {
    port.counters()
        .list()
        .into_iter()
        .map(|(n, v)| (n.to_owned(), v.into()))
        .collect::<Map<_, _>>()
        .into()
}

/// `frames [count=N]`: the last frames, oldest first.
fn frames(port: &Port, request: &Request) -> Answer {
    let all = port.recent();
    let count = request.index("count")?.unwrap_or(all.len());
    let list = all.into_iter().rev().take(count).map(|(number, direction, frame)| {
        json!({"n": number, "dir": direction.name(), "hex": hex::encode(&frame)})
    });
    let mut list: Vec<Value> = list.collect();
    list.reverse();
    Ok(list.into())
}

/// `link up=BOOL`.
fn link(port: &Port, request: &Request) -> Answer {
    if let Some(up) = request.flag("up")? {
        port.set_link(up);
    }
    Ok(json!({"up": port.link_up()}))
}

fn direction(request: &Request) -> Result<Direction, String> {
    let name = request.text("dir")?.unwrap_or("rx");
    Direction::from_name(name).ok_or_else(|| format!("dir must be rx or tx, not {name}"))
}

fn kind(request: &Request) -> Result<Kind, String> {
    let name = request.text("kind")?.unwrap_or("roce");
    Kind::from_name(name)
        .ok_or_else(|| format!("kind must be any, roce, other or membership, not {name}"))
}

/// `drop|duplicate|.. [dir=rx|tx] [kind=any|roce|other|membership]` with `[nth=N] [count=N]` or
/// `rate=N [seed=N]`, or `clear=true`.
fn impair(port: &Port, request: &Request, action: Action) -> Answer {
    if request.flag("clear")? == Some(true) {
        port.clear_impairments();
        return Ok(json!({}));
    }
    let rule = Rule {
        kind: kind(request)?,
        choice: choice(request)?,
        action,
        seed: request.number("seed")?.unwrap_or(0),
    };
    port.impair(direction(request)?, rule);
    Ok(json!({}))
}

/// `nth` and `count`, or `rate`, so many of a million.
fn choice(request: &Request) -> Result<Choice, String> {
    match request.number("rate")? {
        None => Ok(Choice::Count {
            nth: request.number("nth")?.unwrap_or(1),
            count: request.number("count")?.unwrap_or(1),
        }),
        Some(rate) => u32::try_from(rate)
            .ok()
            .filter(|rate| *rate <= MILLION)
            .map(Choice::Rate)
            .ok_or_else(|| format!("rate {rate}: of a million")),
    }
}

/// `delay ms=N ...`: the frame goes on after N milliseconds.
fn delay(port: &Port, request: &Request) -> Answer {
    let time = Duration::from_millis(request.number("ms")?.unwrap_or(1));
    impair(port, request, Action::Delay(time))
}

/// `corrupt [bit=N] ...`: one bit of the frame is changed.
fn corrupt(port: &Port, request: &Request) -> Answer {
    let bit = request.number("bit")?.map(u32::try_from).transpose();
    let bit = bit.map_err(|_| "corrupt: bit is too large")?;
    impair(port, request, Action::Corrupt(bit))
}

/// `impairments`: what still acts, how many frames of its kind it has seen, and how often it has acted.
fn impairments(port: &Port) -> Value {
    let of = |direction: Direction| -> Vec<Value> {
        let rules = port.impairments(direction).into_iter();
        rules
            .map(|Status { rule, seen, acted }| {
                let (nth, count, rate) = match rule.choice {
                    Choice::Count { nth, count } => (Some(nth), Some(count), None),
                    Choice::Rate(rate) => (None, None, Some(rate)),
                };
                json!({
                    "action": rule.action.name(),
                    "kind": rule.kind.name(),
                    "nth": nth,
                    "count": count,
                    "rate": rate,
                    "seen": seen,
                    "acted": acted,
                })
            })
            .collect()
    };
    json!({"tx": of(Direction::Transmit), "rx": of(Direction::Receive)})
}

/// `hold after=K ...`: the frame goes on after K later ones.
fn hold(port: &Port, request: &Request) -> Answer {
    let after = request.number("after")?.unwrap_or(1);
    let after = u32::try_from(after).map_err(|_| "hold: after is too large")?;
    impair(port, request, Action::Hold(after))
}

/// `inject frame=HEX`: the device receives it next.
fn inject(port: &Port, request: &Request) -> Answer {
    let frame =
        hex::decode(request.need_text("frame")?).map_err(|e| format!("inject: frame: {e}"))?;
    if port.inject(frame) {
        Ok(json!({}))
    } else {
        Err("inject: no frame, or the queue is full".into())
    }
}

/// `capture on=BOOL`: starts the port's file afresh, or ends it.
fn capture(port: &Port, request: &Request) -> Answer {
    match request.flag("on")? {
        Some(false) => Ok(json!({"stopped": port.stop_capture()})),
        _ => match port.start_capture() {
            Ok(true) => Ok(json!({})),
            Ok(false) => Err("capture: the rack was started without a capture directory".into()),
            Err(e) => Err(format!("capture: {e}")),
        },
    }
}
