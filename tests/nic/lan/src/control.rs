// SPDX-License-Identifier: GPL-2.0
//! The LAN half's part of the control channel.

use crate::switch::{Rule, Switch};
use crate::Lan;
use nic_bus::LanFunction;
use serde_json::{json, Value};
use std::sync::atomic::{AtomicU64, Ordering};

/// Causes of `PFINT_OICR` that may be injected, by name. `ice` answers both with a function reset.
/// Those of the protocol engine are the RDMA half's to inject.
const CAUSES: [(&str, u32); 2] = [("ecc", 1 << 16), ("pci", 1 << 21)];

/// Answers `state` (counts of live objects), `lan` (the objects themselves) and `inject` with
/// `cause`, a name of an "other interrupt cause"; `aqfault` has admin commands fail; `announce_core_reset` has the driver warned of a
/// core reset.
pub fn execute(lan: &Lan, command: &str, args: &Value) -> Option<Result<Value, String>> {
    match command {
        "state" => Some(Ok(state(lan))),
        "lan" => Some(Ok(detail(lan))),
        "aqfault" => Some(lan.firmware.lock().faults.control(args)),
        "inject" => args.get("cause").map(|cause| inject(lan, cause)),
        "announce_core_reset" => {
            lan.announce_core_reset();
            Some(Ok(Value::Null))
        }
        _ => None,
    }
}

/// Counts of live objects.
fn state(lan: &Lan) -> Value {
    let firmware = lan.firmware.lock();
    let txqs = lan.tx.lock().len();
    let switch = lan.switch.read();
    json!({
        "vsis": switch.vsis().len(),
        "rules": switch.rules().len(),
        "txqs": txqs,
        "rxqs": lan.rx.lock().len(),
        "resources": firmware.resources.count(),
        "scheduler": firmware.scheduler.len(),
        "qsets": firmware.queue_sets.len(),
        "package": firmware.package.is_some(),
        "link": lan.link_up(),
        "promiscuous": promiscuous(&switch),
    })
}

/// Whether some VSI takes unicast frames for others.
fn promiscuous(switch: &Switch) -> bool {
    use crate::switch::{Class, Recipe};
    switch.rules().values().any(|rule| match rule.recipe {
        Recipe::Default => true,
        Recipe::Promiscuous | Recipe::PromiscuousVlan => rule.class() == Class::Unicast,
        _ => false,
    })
}

/// The objects.
fn detail(lan: &Lan) -> Value {
    let firmware = lan.firmware.lock();
    let commands: serde_json::Map<String, Value> = firmware
        .counts()
        .iter()
        .map(|(opcode, count)| (format!("{opcode:#06x}"), json!(count)))
        .collect();
    let switch = lan.switch.read();
    let rules: Vec<Value> = switch.rules().iter().map(rule).collect();
    let vsis: Vec<Value> = switch
        .vsis()
        .iter()
        .map(|(number, vsi)| {
            json!({
                "vsi": number,
                "pe_filter": vsi.pe_filter(),
                "vlan_pruning": vsi.prunes_vlans(),
                "first_queue": vsi.queue(0),
            })
        })
        .collect();
    json!({
        "commands": commands,
        "offloads": offloads(lan),
        "promiscuous": promiscuous(&switch),
        "rules": rules,
        "vsis": vsis,
    })
}

fn offloads(lan: &Lan) -> Value {
    let offloads = &lan.stats.offloads;
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    json!({
        "segmented": read(&offloads.segmented),
        "checksums": read(&offloads.checksums),
        "bad_checksums": read(&offloads.bad_checksums),
        "tags_inserted": read(&offloads.tags_inserted),
        "tags_stripped": read(&offloads.tags_stripped),
    })
}

fn rule((index, rule): (&u16, &Rule)) -> Value {
    json!({
        "index": index,
        "recipe": format!("{:?}", rule.recipe),
        "direction": format!("{:?}", rule.direction),
        "action": format!("{:?}", rule.action),
        "mac": rule.mac(),
        "vlan": rule.vlan(),
    })
}

fn inject(lan: &Lan, cause: &Value) -> Result<Value, String> {
    let name = cause.as_str().unwrap_or_default();
    let (_, bit) = CAUSES
        .iter()
        .find(|(known, _)| *known == name)
        .ok_or_else(|| {
            let known = CAUSES.map(|(known, _)| known).join(", ");
            format!("inject: cause {cause}: not one of {known}")
        })?;
    lan.other_cause(*bit);
    Ok(Value::Null)
}
