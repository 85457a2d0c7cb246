// SPDX-License-Identifier: GPL-2.0
//! Snooping of group management (RFC 4541): the switch listens to what hosts and routers say to each
//! other, sends a group's frames to those who want them, and asks itself where no router does.
//!
//! The rules, with those that the RFC leaves open decided as follows:
//!
//! - A frame of a group goes to the ports that joined it and to those with routers. Sources are not
//!   told apart: who wants one of a group's sources gets all.
//! - A frame of a group that nobody joined goes to routers only, or everywhere by option.
//! - 224.0.0.0/24, ff02::1, groups outside IP, and messages of unknown type go everywhere.
//! - Reports go to routers only, so that hosts do not hear, and suppress, each other's.
//! - Queries go everywhere. A port where one with a source address comes in has a router, and so has
//!   one with PIM.
//! - Messages with a wrong checksum go nowhere and are counted.
//! - The switch asks if it may and no router does; of several that ask, the one with the lowest
//!   address goes on. When a link comes up it asks once, whoever else does: without a source address
//!   then, since that is no router's query.

pub mod config;
pub mod message;
pub mod query;
pub mod table;

pub use config::Config;

use crate::forward::PortId;
use crate::view::Mac;
use message::{Change, Message};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use table::{Key, Table};

/// VLANs in which a switch asks at most.
const MAX_VLANS: usize = 256;

/// Where a frame goes, the port it came from aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// To all ports.
    All,
    /// To these.
    Ports(BTreeSet<PortId>),
}

/// A frame that the switch itself sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// Its VLAN; the frame has no tag.
    pub vlan: u16,
    /// Where it goes.
    pub way: Way,
    /// The frame.
    pub frame: Vec<u8>,
}

/// The families that are asked separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Family {
    V4,
    V6,
}

/// Asking in one VLAN and family.
#[derive(Clone, Copy, Debug)]
struct Asking {
    /// Another one asks, until this time.
    other: Option<Duration>,
    /// The next general query of our own.
    next: Duration,
    /// How many more come in quick succession.
    startup: u8,
}

/// A question whether anybody is left in a group.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    next: Duration,
    left: u8,
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Joins of groups, in reports of any version.
    pub joins: u64,
    /// Leaves.
    pub leaves: u64,
    /// Queries of others.
    pub queries: u64,
    /// Queries of the switch's own.
    pub sent: u64,
    /// Frames of groups that somebody joined.
    pub registered: u64,
    /// Frames of groups that nobody joined.
    pub unregistered: u64,
    /// Messages with a wrong checksum.
    pub damaged: u64,
}

/// The state of a snooping switch.
pub struct Snooping {
    config: Config,
    mac: Mac,
    address4: Ipv4Addr,
    address6: Ipv6Addr,
    table: Table,
    asking: BTreeMap<(u16, Family), Asking>,
    doubts: BTreeMap<(Key, PortId), Doubt>,
    /// What was counted.
    pub counts: Counts,
}

impl Snooping {
    /// Starts to listen, as switch number `id`: its addresses follow from it.
    pub fn new(config: Config, id: u8, now: Duration) -> Self {
        let mut snooping = Self {
            config,
            mac: [0x02, 0xe8, 0x10, 0x00, 0x01, id],
            // Documentation addresses: no guest has them.
            address4: Ipv4Addr::new(192, 0, 2, id.saturating_add(1)),
            address6: Ipv6Addr::new(
                0xfe80,
                0,
                0,
                0,
                0x00e8,
                0x10ff,
                0xfe00,
                0x0100 | u16::from(id),
            ),
            table: Table::default(),
            asking: BTreeMap::new(),
            doubts: BTreeMap::new(),
            counts: Counts::default(),
        };
        snooping.know_vlan(0, now);
        snooping
    }

    /// As after a restart of the switch: asks at once, where it asked before, and knows and has
    /// counted nothing.
    pub fn restart(&mut self, now: Duration) {
        let [.., id] = self.mac;
        let vlans: Vec<u16> = self.asking.keys().map(|(vlan, _)| *vlan).collect();
        *self = Self::new(self.config, id, now);
        vlans.into_iter().for_each(|vlan| self.know_vlan(vlan, now));
    }

    /// The settings.
    pub fn config(&self) -> Config {
        self.config
    }

    /// Other settings from now on; what is known stays.
    pub fn set_config(&mut self, config: Config, now: Duration) {
        self.config = config;
        // Who leaves the asking to another has nothing to announce.
        let own = self.asking.values_mut().filter(|a| a.other.is_none());
        for asking in own {
            asking.next = now;
            asking.startup = config.robustness;
        }
    }

    /// Members and routers.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The VLANs, with `true` if the switch asks there (IPv4).
    pub fn vlans(&self, now: Duration) -> Vec<(u16, bool)> {
        let vlans = self
            .asking
            .iter()
            .filter(|((_, family), _)| *family == Family::V4);
        vlans
            .map(|((vlan, _), asking)| (*vlan, self.asks(asking, now)))
            .collect()
    }

    fn asks(&self, asking: &Asking, now: Duration) -> bool {
        self.config.querier && asking.other.is_none_or(|until| until <= now)
    }

    /// Frames of this VLAN are forwarded: hosts in it are asked as well.
    pub fn know_vlan(&mut self, vlan: u16, now: Duration) {
        if self.asking.len() >= 2 * MAX_VLANS {
            return;
        }
        for family in [Family::V4, Family::V6] {
            self.asking.entry((vlan, family)).or_insert(Asking {
                other: None,
                next: now,
                startup: self.config.robustness,
            });
        }
    }

    /// A link came up: whoever is behind it is asked soon.
    pub fn ask_soon(&mut self, now: Duration) {
        for asking in self.asking.values_mut() {
            asking.next = asking.next.min(now);
        }
    }

    /// A link went down.
    pub fn forget_port(&mut self, port: PortId) {
        self.table.forget_port(port);
        self.doubts.retain(|(_, at), _| *at != port);
    }

    /// Where a frame of a group goes.
    pub fn group(&mut self, vlan: u16, group: IpAddr) -> Way {
        let mut ports = self.table.routers(vlan);
        match self.table.members((vlan, group)) {
            Some(members) => {
                self.counts.registered += 1;
                ports.extend(members);
            }
            None => {
                self.counts.unregistered += 1;
                if self.config.flood_unregistered {
                    return Way::All;
                }
            }
        }
        Way::Ports(ports)
    }

    /// Takes a message in, and says where it goes.
    pub fn message(&mut self, now: Duration, vlan: u16, port: PortId, message: &Message) -> Way {
        match message {
            Message::Query {
                source,
                group,
                response,
                keep_timers,
            } => {
                self.counts.queries += 1;
                if !source.is_unspecified() {
                    self.table.router(vlan, port, now + self.config.router());
                    self.yield_to(now, vlan, *source);
                }
                if let (Some(group), false) = (group, keep_timers) {
                    let until = now + *response * u32::from(self.config.robustness);
                    self.table.shorten((vlan, *group), None, until);
                }
                Way::All
            }
            Message::Report(changes) => {
                for (group, change) in changes {
                    self.change(now, (vlan, *group), port, *change);
                }
                Way::Ports(self.table.routers(vlan))
            }
            Message::Router => {
                self.table.router(vlan, port, now + self.config.router());
                Way::All
            }
            Message::Unknown => Way::All,
            Message::Damaged => {
                self.counts.damaged += 1;
                Way::Ports([].into())
            }
        }
    }

    /// Another one asks. The lowest address goes on.
    fn yield_to(&mut self, now: Duration, vlan: u16, source: IpAddr) {
        let (family, lower) = match source {
            IpAddr::V4(a) => (Family::V4, a < self.address4),
            IpAddr::V6(a) => (Family::V6, a < self.address6),
        };
        let until = now + self.config.router();
        if let Some(asking) = self.asking.get_mut(&(vlan, family)).filter(|_| lower) {
            asking.other = Some(until);
            asking.next = until;
        }
    }

    fn change(&mut self, now: Duration, key: Key, port: PortId, change: Change) {
        match change {
            Change::Join => {
                self.counts.joins += 1;
                self.doubts.remove(&(key, port));
                if is_reported(key.1) {
                    self.table.join(key, port, now + self.config.membership());
                }
            }
            Change::Leave => {
                self.counts.leaves += 1;
                self.leave(now, key, port);
            }
        }
    }

    fn leave(&mut self, now: Duration, key: Key, port: PortId) {
        if self.config.fast_leave {
            self.table.leave(key, port);
            return;
        }
        let family = family(key.1);
        let asks = self
            .asking
            .get(&(key.0, family))
            .is_some_and(|asking| self.asks(asking, now));
        // Where a router asks, it asks now as well, and its query shortens the time.
        if asks && self.table.has(key, port) {
            self.table
                .shorten(key, Some(port), now + self.config.leave());
            self.doubts.entry((key, port)).or_insert(Doubt {
                next: now,
                left: self.config.robustness,
            });
        }
    }

    /// The next time at which [`tick`](Self::tick) has something to do.
    pub fn next_tick(&self) -> Option<Duration> {
        let asking = self
            .asking
            .values()
            .map(|a| a.next)
            .min()
            .filter(|_| self.config.querier);
        let doubts = self.doubts.values().map(|d| d.next).min();
        [asking, doubts, self.table.next_end()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Does what is due, and returns what the switch sends.
    pub fn tick(&mut self, now: Duration) -> Vec<Own> {
        self.table.expire(now);
        let mut out = Vec::new();
        if self.config.querier {
            self.ask_all(now, &mut out);
        }
        self.ask_last(now, &mut out);
        self.counts.sent += u64::try_from(out.len()).unwrap_or(0);
        out
    }

    fn ask_all(&mut self, now: Duration, out: &mut Vec<Own>) {
        let form = self.form(self.config.response);
        for (&(vlan, family), asking) in &mut self.asking {
            if asking.next > now {
                continue;
            }
            let other = asking.other.filter(|until| *until > now);
            if asking.other != other {
                asking.startup = self.config.robustness;
                asking.other = None;
            }
            asking.next = if let Some(until) = other {
                until
            } else {
                asking.startup = asking.startup.saturating_sub(1);
                now + match asking.startup {
                    0 => self.config.interval,
                    _ => self.config.startup(),
                }
            };
            let frame = match family {
                Family::V4 if other.is_some() => query::igmp(&form, Ipv4Addr::UNSPECIFIED, None),
                Family::V4 => query::igmp(&form, self.address4, None),
                // Hosts take no MLD query without a source; being the higher one, this one does not
                // take over.
                Family::V6 => query::mld(&form, self.address6, None),
            };
            out.push(Own {
                vlan,
                way: Way::All,
                frame,
            });
        }
    }

    fn ask_last(&mut self, now: Duration, out: &mut Vec<Own>) {
        let form = self.form(self.config.last_member);
        let last_member = self.config.last_member;
        self.doubts.retain(|&((vlan, group), port), doubt| {
            if doubt.next > now {
                return true;
            }
            let frame = match group {
                IpAddr::V4(group) => query::igmp(&form, self.address4, Some(group)),
                IpAddr::V6(group) => query::mld(&form, self.address6, Some(group)),
            };
            out.push(Own {
                vlan,
                way: Way::Ports([port].into()),
                frame,
            });
            doubt.next = now + last_member;
            doubt.left = doubt.left.saturating_sub(1);
            doubt.left > 0
        });
    }

    fn form(&self, response: Duration) -> query::Form {
        query::Form {
            mac: self.mac,
            robustness: self.config.robustness,
            interval: self.config.interval,
            response,
        }
    }
}

fn family(group: IpAddr) -> Family {
    match group {
        IpAddr::V4(_) => Family::V4,
        IpAddr::V6(_) => Family::V6,
    }
}

/// Whether a group can be joined: 224.0.0.0/24 goes everywhere anyway.
fn is_reported(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(a) => a.is_multicast() && !a.octets().starts_with(&[224, 0, 0]),
        IpAddr::V6(a) => a.is_multicast(),
    }
}

#[cfg(test)]
mod tests;
