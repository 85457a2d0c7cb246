// SPDX-License-Identifier: GPL-2.0
//! Control commands: the function's state as JSON, and faults on order.

use crate::aeq::{Event, Source};
use crate::args::{flag, number, number_or, text};
use crate::model::Model;
use serde_json::{json, Value};

/// The commands of the RDMA half, for the card's `help`.
pub const HELP: &[&str] = &[
    "check [clear=true] | mark",
    "fault op=PATTERN [nth=N] [every=N] [count=N] action=fail [major=N] [minor=N]",
    "fault op=PATTERN [nth=N] [every=N] [count=N] action=swallow [execute=true]",
    "fault op=PATTERN [nth=N] [every=N] [count=N] action=delay|late [until_ops=K]",
    "faults | fault clear=true",
    "release",
    "inject ae=CODE qp=N|cq=N [source=none|rq|sq|cq] [state=N] [wqe=N]",
    "inject datagram=true to=IP [vlan=N] [priority=N] [from=IP] [qpn=N mac=MAC] [qkey=N] [size=N]",
    "inject critical=CODE | hmc_error=INFO [data=N] | push_error=true",
];

/// Bits of the other interrupt cause.
mod cause {
    pub(super) const PE_CRITICAL: u32 = 1 << 28;
    pub(super) const PE_PUSH: u32 = 1 << 27;
    pub(super) const HMC_ERROR: u32 = 1 << 26;
}

impl Model {
    /// Answers a command, or `None` if it is another half's.
    pub(crate) fn control(&mut self, command: &str, args: &Value) -> Option<Result<Value, String>> {
        Some(match command {
            "state" => Ok(self.state_json()),
            "groups" => Ok(self.groups_json()),
            "qps" => Ok(self.qps_json()),
            "cqs" => Ok(self.cqs_json()),
            "counters" => Ok(self.counters_json()),
            "ops" => Ok(self.counts.ops_json()),
            "check" => Ok(self.control_check(flag(args, "clear"))),
            "mark" => Ok(self.control_mark()),
            "fault" => self.control_fault(args),
            "faults" => Ok(self.faults.json()),
            "release" => Ok(json!({"released": self.cqp_release()})),
            "datagram" => crate::craft::control(args),
            "inject" => self.control_inject(args),
            _ => return None,
        })
    }

    /// Counts of live objects.
    pub(crate) fn counts_json(&self) -> Value {
        json!({
            "qps": self.qps.len(),
            "cqs": self.cqs.len(),
            "mrs": self.stags.len(),
            "ahs": self.ahs.len(),
            "arps": self.arps.len(),
            "groups": self.groups.len(),
            "ceqs": self.ceqs.len(),
            "aeq": self.aeq.is_some(),
            "sched_nodes": self.sched.len(),
            "sds": self.hmc.segments(),
        })
    }

    fn state_json(&self) -> Value {
        let mut state = self.counts_json();
        let more = json!({
            "cqp": self.cqp.is_some(),
            "cqp_pending": self.cqp.as_ref().map_or(0, |c| c.pending()),
            "filter": !self.filters.is_empty(),
            "filters": self.filters,
            "queue_sets": self
                .queue_sets
                .iter()
                .map(|(handle, teid)| json!({"handle": handle, "teid": teid}))
                .collect::<Vec<_>>(),
            "ceq_list": self
                .ceqs
                .iter()
                .map(|(id, c)| json!({"id": id, "entries": c.entries(), "written": c.written}))
                .collect::<Vec<_>>(),
            "events": self.aeq.as_ref().map_or(0, |a| a.written),
            "events_lost": self.aeq.as_ref().map_or(0, |a| a.lost),
            "violations": self.violations.texts,
            "violation_count": self.violations.count,
            "leftovers": self.leftovers,
            "faults": self.faults.json(),
        });
        if let (Value::Object(state), Value::Object(more)) = (&mut state, more) {
            state.extend(more);
        }
        state
    }

    fn groups_json(&self) -> Value {
        self.groups
            .iter()
            .map(|(index, g)| {
                let mac: Vec<String> = g.mac.iter().map(|b| format!("{b:02x}")).collect();
                let members: Vec<Value> = g.members.iter().map(|qp| json!({"qp": qp})).collect();
                json!({
                    "index": index,
                    "ip": g.ip.to_string(),
                    "vlan": g.vlan,
                    "mac": mac.join(":"),
                    "queue_set": g.queue_set,
                    "members": members,
                })
            })
            .collect()
    }

    fn qps_json(&self) -> Value {
        self.qps
            .iter()
            .map(|(id, q)| {
                json!({
                    "qp": id,
                    "type": q.kind.name(),
                    "state": q.state.name(),
                    "suspended": q.suspended,
                    "pd": q.context.pd,
                    "qkey": q.context.qkey,
                    "pkey": q.context.pkey,
                    "mtu": q.context.mtu,
                    "send_cq": q.context.send_cq,
                    "recv_cq": q.context.recv_cq,
                    "queue_set": q.context.queue_set,
                    "sq_index": q.sq.index,
                    "sq_quanta": q.sq.size,
                    "rq_index": q.rq.index,
                    "rq_wqes": q.rq.size,
                    "sent": q.sent,
                    "received": q.received,
                    "groups": self.groups.of_member(*id),
                })
            })
            .collect()
    }

    fn cqs_json(&self) -> Value {
        self.cqs
            .iter()
            .map(|(id, c)| {
                json!({
                    "cq": id,
                    "entries": c.entries(),
                    "written": c.produced(),
                    "unread": c.unread(),
                    "armed": c.armed(),
                    "ceq": c.ceq(),
                    "events": c.events,
                    "failed": c.overflowed(),
                })
            })
            .collect()
    }

    fn counters_json(&self) -> Value {
        let s = &self.stats;
        let flow = |f: &crate::stats::IpStats| {
            json!({
                "packets": f.all.packets,
                "octets": f.all.octets,
                "multicast_packets": f.multicast.packets,
                "multicast_octets": f.multicast.octets,
                "discards": f.discards,
                "no_route": f.no_route,
            })
        };
        json!({
            "rx_ipv4": flow(&s.rx4),
            "rx_ipv6": flow(&s.rx6),
            "tx_ipv4": flow(&s.tx4),
            "tx_ipv6": flow(&s.tx6),
            "rx_udp": s.udp_rx,
            "tx_udp": s.udp_tx,
            "rx_sends": s.sends_rx,
            "tx_sends": s.sends_tx,
            "loopback": self.counts.loopback,
            "dropped": self.counts.drops_json(),
            "cq_failures": self.counts.cq_failures,
        })
    }

    fn control_fault(&mut self, args: &Value) -> Result<Value, String> {
        if flag(args, "clear") {
            self.faults.clear();
            self.cqp_release();
            return Ok(self.faults.json());
        }
        let id = self.faults.order(args)?;
        Ok(json!({"id": id, "faults": self.faults.json()}))
    }

    fn control_inject(&mut self, args: &Value) -> Result<Value, String> {
        if args.get("ae").is_some() {
            return self.inject_ae(args);
        }
        if args.get("critical").is_some() {
            self.regs.critical_error = number_or(args, "critical", 0)?;
            self.out.causes |= cause::PE_CRITICAL;
        } else if args.get("hmc_error").is_some() {
            self.regs.hmc_error_info = number_or(args, "hmc_error", 0)?;
            self.regs.hmc_error_data = number_or(args, "data", 0)?;
            self.out.causes |= cause::HMC_ERROR;
        } else if flag(args, "push_error") {
            self.out.causes |= cause::PE_PUSH;
        } else {
            return Err("inject what? frame, ae, critical, hmc_error or push_error".to_owned());
        }
        Ok(json!({}))
    }

    fn inject_ae(&mut self, args: &Value) -> Result<Value, String> {
        let code = number_or(args, "ae", 0)?;
        let wqe_index = number_or(args, "wqe", 0)?;
        // Drivers use the id as an index without a check, so only live objects are named.
        let (id, context, source, state) = if number(args, "cq")?.is_some() {
            let id = number_or(args, "cq", 0)?;
            if !self.cqs.contains_key(&id) {
                return Err(format!("no CQ {id}"));
            }
            (id, u64::from(id), Source::Cq, 0)
        } else {
            let id = number_or(args, "qp", 0)?;
            let Some(qp) = self.qps.get(&id) else {
                return Err(format!("no QP {id}"));
            };
            let context = qp.context.completion_context;
            (id, context, Source::Sq, qp.state.reported())
        };
        let source = match text(args, "source") {
            None => source,
            Some(name) => Source::from_name(name).ok_or("source is none, rq, cq or sq")?,
        };
        let state = number_or(args, "state", state)?;
        if self.aeq.is_none() {
            return Err("no AEQ".to_owned());
        }
        self.raise(Event {
            code,
            source,
            id,
            context,
            wqe_index,
            state,
        });
        Ok(json!({"injected": "ae", "code": code, "id": id}))
    }
}
