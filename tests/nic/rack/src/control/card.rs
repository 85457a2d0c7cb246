// SPDX-License-Identifier: GPL-2.0
//! Commands about a card. State and counters are put together from all parts of the card.

use super::request::Request;
use super::{port, Answer};
use crate::card::Card;
use nic_bus::Reset;
use serde_json::{json, Map, Value};

/// What there is, for whoever sits at a prompt.
const HELP: &[&str] = &[
    "state | counters | ops | groups | qps | cqs | lan",
    "frames [count=N]",
    "link up=BOOL",
    "reset kind=pfr|corer|silent",
    "aqfault [op=NAME|NUMBER [nth=N] [count=N] [code=N]] | clear=true",
    "inject frame=HEX | cause=NAME | ae=.. | critical=..",
    "drop|duplicate [dir=rx|tx] [kind=roce|any|other|membership] [nth=N] [count=N] | clear=true",
    "hold [after=K] | delay [ms=N] | corrupt [bit=N]  with dir, kind, nth and count as well",
    "all of these with rate=N [seed=N], of a million, instead of nth and count",
    "impairments | stations | members",
    "switch [learn=BOOL] [aging=SECONDS] [snoop=BOOL|interval=SECONDS,..] [restart=true] [power=BOOL]",
    "vlan [untagged=N] [tagged=N,N,..] | transparent=true",
    "interrupts [lose=N vector=V]",
    "capture on=BOOL",
    "nic=N | port=N | at=NAME  with any of these: another card, port, or link between switches",
];

/// Carries out `request` on `card`.
pub fn execute(card: &Card, request: &Request) -> Answer {
    match request.command.as_str() {
        "help" => Ok(HELP.iter().chain(nic_rdma::HELP).copied().collect()),
        "state" => assemble(card, request, port::state(card.port())),
        "counters" => assemble(card, request, port::counters(card.port())),
        "reset" => reset(card, request),
        "interrupts" => interrupts(card, request),
        "inject" if request.get("datagram").is_some() => datagram(card, request),
        command => port::execute(card.port(), request)
            .or_else(|| card.lan().control(command, &request.args))
            .or_else(|| card.rdma().control(command, &request.args))
            .unwrap_or_else(|| Err(format!("{command}: unknown command"))),
    }
}

/// Puts the parts' answers to one command side by side.
fn assemble(card: &Card, request: &Request, port: Value) -> Answer {
    let mut parts = Map::new();
    parts.insert("port".into(), port);
    parts.insert("interrupts".into(), interrupt_state(card));
    let halves = [
        ("rdma", card.rdma().control(&request.command, &request.args)),
        ("lan", card.lan().control(&request.command, &request.args)),
    ];
    for (name, part) in halves {
        parts.insert(name.into(), part.transpose()?.unwrap_or_default());
    }
    Ok(parts.into())
}

fn interrupt_state(card: &Card) -> Value {
    let (raised, unconnected) = card.msix().counters();
    let status = card.gates().status();
    let of = |wanted: fn(&crate::gates::Status) -> bool| -> Vec<u16> {
        status
            .iter()
            .filter(|s| wanted(s))
            .map(|s| s.vector)
            .collect()
    };
    json!({
        "raised": raised,
        "unconnected": unconnected,
        "enabled": of(|s| s.enabled),
        "pending": of(|s| s.pending),
    })
}

/// `interrupts [lose=N vector=V]`: shows the vectors, or loses the next N events of one.
fn interrupts(card: &Card, request: &Request) -> Answer {
    if let Some(count) = request.number("lose")? {
        let vector = request
            .number("vector")?
            .ok_or("interrupts: vector is missing")?;
        let count = u32::try_from(count).map_err(|_| "interrupts: lose is too large")?;
        let known = u16::try_from(vector).is_ok_and(|vector| card.gates().lose(vector, count));
        if !known {
            return Err(format!("interrupts: no vector {vector}"));
        }
    }
    Ok(interrupt_state(card))
}

/// `inject datagram=true to=IP ..`: the card receives a datagram that its RDMA half builds.
fn datagram(card: &Card, request: &Request) -> Answer {
    let built = card
        .rdma()
        .control("datagram", &request.args)
        .ok_or("inject: no RDMA half")??;
    let hex = built.get("frame").and_then(Value::as_str);
    let frame = hex::decode(hex.unwrap_or_default()).map_err(|e| format!("inject: {e}"))?;
    if card.port().inject(frame) {
        Ok(built)
    } else {
        Err("inject: the queue is full".into())
    }
}

/// `PFINT_OICR` cause: a PCI exception, upon which the driver resets its function.
const OICR_PCI_EXCEPTION: u32 = 1 << 21;

/// `reset kind=pfr|corer|silent`: a function reset that the driver is made to do, a core reset that
/// it learns of by interrupt, or a function reset that nobody tells it of.
fn reset(card: &Card, request: &Request) -> Answer {
    match request.need_text("kind")? {
        "pfr" => card.lan().other_cause(OICR_PCI_EXCEPTION),
        "corer" => {
            if let Some(answer) = card.lan().control("announce_core_reset", &Value::Null) {
                return answer;
            }
            nic_bus::Card::reset(card, Reset::Core);
        }
        "silent" => nic_bus::Card::reset(card, Reset::Function),
        other => {
            return Err(format!(
                "reset: kind must be pfr, corer or silent, not {other}"
            ))
        }
    }
    Ok(json!({}))
}
