// SPDX-License-Identifier: GPL-2.0
//! Commands about a switch: what it learned and heard, how it forwards, and the VLANs of its ports.

use super::request::Request;
use super::Answer;
use nic_fabric::forward::PortId;
use nic_fabric::snoop::{self, Snooping};
use nic_fabric::vlan::Vlans;
use nic_fabric::{Fabric, Port};
use serde_json::{json, Value};
use std::collections::BTreeSet;
use std::time::Duration;

/// Largest VLAN id; 4095 is reserved.
const MAX_VLAN: u16 = 4094;

/// Whether a command is one of these.
pub fn knows(command: &str) -> bool {
    matches!(command, "switch" | "stations" | "members" | "vlan")
}

/// Carries out `request` on the switch, or on its port.
pub fn execute(fabric: &Fabric, port: &Port, request: &Request) -> Answer {
    match request.command.as_str() {
        "switch" => switch(fabric, request),
        "stations" => Ok(stations(fabric)),
        "members" => Ok(members(fabric)),
        "vlan" => vlan(fabric, port, request),
        other => Err(format!("{other}: unknown command")),
    }
}

fn names(fabric: &Fabric) -> Vec<String> {
    let ports = fabric.ports();
    ports.iter().map(|port| port.name().to_owned()).collect()
}

fn name(names: &[String], id: PortId) -> Value {
    names.get(id).map_or(Value::Null, |name| json!(name))
}

/// `switch [learn=BOOL] [aging=SECONDS] [snoop=BOOL|SETTINGS] [restart=true] [power=BOOL]`: changes
/// what is named, shows all.
fn switch(fabric: &Fabric, request: &Request) -> Answer {
    let learn = request.flag("learn")?;
    let aging = request.number("aging")?.map(Duration::from_secs);
    let snooping = snooping(fabric, request)?;
    let (restart, power) = (request.flag("restart")?, request.flag("power")?);
    fabric.forwarding(|forwarding, now| {
        if let Some(on) = learn {
            forwarding.learn(on);
        }
        if let Some(config) = snooping {
            forwarding.learn(forwarding.stations().is_some() || config.is_some());
            forwarding.snoop(config, fabric.id(), now);
        }
        if let (Some(aging), Some(stations)) = (aging, forwarding.stations_mut()) {
            stations.aging = aging;
        }
    });
    if restart == Some(true) {
        fabric.restart();
    }
    if let Some(on) = power {
        fabric.power(on);
    }
    Ok(show(fabric))
}

/// What `snoop` asks for: nothing, an end, or settings, which change those in force.
fn snooping(fabric: &Fabric, request: &Request) -> Result<Option<Option<snoop::Config>>, String> {
    let current = fabric.forwarding(|f, _| f.snooping().map(Snooping::config));
    match request.get("snoop") {
        None => Ok(None),
        Some(Value::Bool(false)) => Ok(Some(None)),
        Some(Value::Bool(true)) => Ok(Some(Some(current.unwrap_or_default()))),
        Some(Value::String(text)) if text == "false" => Ok(Some(None)),
        Some(Value::String(text)) => {
            let text = if text == "true" { "" } else { text };
            let config = current.unwrap_or_default().change(text)?;
            Ok(Some(Some(config)))
        }
        Some(_) => Err("switch: snoop is true, false or settings".to_owned()),
    }
}

fn show(fabric: &Fabric) -> Value {
    let (names, on) = (names(fabric), fabric.is_on());
    fabric.forwarding(|forwarding, now| {
        let counts = forwarding.counts;
        let snooping = forwarding.snooping().map(|s| {
            let (config, counts) = (s.config(), s.counts);
            json!({
                "interval": config.interval.as_secs_f64(),
                "response": config.response.as_secs_f64(),
                "last_member": config.last_member.as_secs_f64(),
                "robustness": config.robustness,
                "querier": config.querier,
                "fast_leave": config.fast_leave,
                "flood_unregistered": config.flood_unregistered,
                "asks": s.vlans(now).into_iter().filter(|v| v.1).map(|v| v.0).collect::<Vec<_>>(),
                "joins": counts.joins,
                "leaves": counts.leaves,
                "queries": counts.queries,
                "queries_sent": counts.sent,
                "registered": counts.registered,
                "unregistered": counts.unregistered,
                "damaged": counts.damaged,
                "full": s.table().full,
            })
        });
        let stations = forwarding.stations().map(|s| {
            json!({
                "aging": s.aging.as_secs(),
                "known": s.list(now).len(),
                "moved": s.moved,
                "full": s.full,
            })
        });
        json!({
            "switch": fabric.id(),
            "power": on,
            "ports": names,
            "learn": stations,
            "snoop": snooping,
            "known": counts.known,
            "unknown": counts.unknown,
            "flooded": counts.flooded,
            "grouped": counts.grouped,
            "returned": counts.returned,
            "filtered": counts.filtered,
        })
    })
}

/// `stations`: where each station was heard.
fn stations(fabric: &Fabric) -> Value {
    let names = names(fabric);
    fabric.forwarding(|forwarding, now| {
        let list = forwarding
            .stations()
            .map(|s| s.list(now))
            .unwrap_or_default();
        list.into_iter()
            .map(|(vlan, mac, port)| {
                let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
                json!({"vlan": vlan, "mac": mac, "port": name(&names, port)})
            })
            .collect()
    })
}

/// `members`: groups with their ports, and ports with routers.
fn members(fabric: &Fabric) -> Value {
    let names = names(fabric);
    fabric.forwarding(|forwarding, now| {
        let Some(snooping) = forwarding.snooping() else {
            return json!({"groups": [], "routers": []});
        };
        let groups: Vec<Value> = snooping
            .table()
            .list()
            .map(|((vlan, group), ports)| {
                let ports: Vec<Value> = ports
                    .iter()
                    .map(|(port, end)| {
                        let left = end.saturating_sub(now).as_secs_f64();
                        json!({"port": name(&names, *port), "seconds": left})
                    })
                    .collect();
                json!({"vlan": vlan, "group": group.to_string(), "ports": ports})
            })
            .collect();
        let routers: Vec<Value> = snooping
            .table()
            .router_list()
            .map(|(vlan, port)| json!({"vlan": vlan, "port": name(&names, port)}))
            .collect();
        json!({"groups": groups, "routers": routers})
    })
}

/// `vlan [untagged=N] [tagged=N,N,..]` or `transparent=true`: the VLANs of the port.
fn vlan(fabric: &Fabric, port: &Port, request: &Request) -> Answer {
    let untagged = request.number("untagged")?.map(id).transpose()?;
    let tagged = match request.get("tagged") {
        None => None,
        Some(Value::String(text)) => Some(list(text)?),
        Some(one) => Some([id(one.as_u64().ok_or("vlan: tagged is a list")?)?].into()),
    };
    let wanted = match (request.flag("transparent")?, untagged, tagged) {
        (Some(true), None, None) => Some(Vlans::Transparent),
        (Some(true), ..) => return Err("vlan: transparent excludes the others".to_owned()),
        (_, None, None) => None,
        (_, untagged, tagged) => Some(Vlans::Only {
            untagged,
            tagged: tagged.unwrap_or_default(),
        }),
    };
    let vlans = fabric.forwarding(|forwarding, _| {
        if let Some(vlans) = wanted {
            forwarding.set_vlans(port.id(), vlans);
        }
        forwarding.vlans(port.id()).cloned()
    });
    match vlans {
        Some(Vlans::Only { untagged, tagged }) => {
            Ok(json!({"transparent": false, "untagged": untagged, "tagged": tagged}))
        }
        _ => Ok(json!({"transparent": true})),
    }
}

fn id(number: u64) -> Result<u16, String> {
    u16::try_from(number)
        .ok()
        .filter(|id| (1..=MAX_VLAN).contains(id))
        .ok_or_else(|| format!("vlan: {number}: 1 to {MAX_VLAN}"))
}

fn list(text: &str) -> Result<BTreeSet<u16>, String> {
    text.split(',')
        .filter(|part| !part.is_empty())
        .map(|part| {
            let number = part
                .parse()
                .map_err(|_| format!("vlan: {part}: no number"))?;
            id(number)
        })
        .collect()
}
