// SPDX-License-Identifier: GPL-2.0
//! Which ports want a group, and behind which ports routers are.

use crate::forward::PortId;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// Groups remembered; frames of others go where those of unregistered groups go.
pub const CAPACITY: usize = 16384;

/// A group in a VLAN.
pub type Key = (u16, IpAddr);

/// Members and routers, each until the time at which it is gone unless it is heard again.
#[derive(Default)]
pub struct Table {
    groups: BTreeMap<Key, BTreeMap<PortId, Duration>>,
    routers: BTreeMap<(u16, PortId), Duration>,
    /// No end is earlier.
    earliest: Option<Duration>,
    /// Joins for which there was no room.
    pub full: u64,
}

impl Table {
    fn ends_at(&mut self, end: Duration) {
        self.earliest = Some(self.earliest.map_or(end, |earliest| earliest.min(end)));
    }

    /// A port wants a group, at least until `until`.
    pub fn join(&mut self, key: Key, port: PortId, until: Duration) {
        if self.groups.len() >= CAPACITY && !self.groups.contains_key(&key) {
            self.full += 1;
            return;
        }
        let end = self.groups.entry(key).or_default().entry(port).or_default();
        *end = until.max(*end);
        self.ends_at(until);
    }

    /// A port is off a group; `false` if it was not in it.
    pub fn leave(&mut self, key: Key, port: PortId) -> bool {
        let Some(ports) = self.groups.get_mut(&key) else {
            return false;
        };
        let was = ports.remove(&port).is_some();
        if ports.is_empty() {
            self.groups.remove(&key);
        }
        was
    }

    /// A group's ports, or one of them, are gone at `until` unless somebody answers.
    pub fn shorten(&mut self, key: Key, port: Option<PortId>, until: Duration) {
        let ports = self.groups.get_mut(&key).into_iter().flatten();
        for (_, end) in ports.filter(|(at, _)| port.is_none_or(|port| port == **at)) {
            *end = until.min(*end);
        }
        self.ends_at(until);
    }

    /// Whether a port is in a group.
    pub fn has(&self, key: Key, port: PortId) -> bool {
        self.groups
            .get(&key)
            .is_some_and(|ports| ports.contains_key(&port))
    }

    /// The ports of a group; `None` if nobody joined it.
    pub fn members(&self, key: Key) -> Option<BTreeSet<PortId>> {
        self.groups
            .get(&key)
            .map(|ports| ports.keys().copied().collect())
    }

    /// A router was heard.
    pub fn router(&mut self, vlan: u16, port: PortId, until: Duration) {
        self.routers.insert((vlan, port), until);
        self.ends_at(until);
    }

    /// The ports with routers in a VLAN.
    pub fn routers(&self, vlan: u16) -> BTreeSet<PortId> {
        let all = (vlan, PortId::MIN)..=(vlan, PortId::MAX);
        self.routers
            .range(all)
            .map(|(&(_, port), _)| port)
            .collect()
    }

    /// Forgets what was not heard in time.
    pub fn expire(&mut self, now: Duration) {
        self.groups.retain(|_, ports| {
            ports.retain(|_, end| *end > now);
            !ports.is_empty()
        });
        self.routers.retain(|_, end| *end > now);
        let members = self.groups.values().flat_map(BTreeMap::values);
        self.earliest = members.chain(self.routers.values()).min().copied();
    }

    /// Forgets what is behind a port.
    pub fn forget_port(&mut self, port: PortId) {
        self.groups.retain(|_, ports| {
            ports.remove(&port);
            !ports.is_empty()
        });
        self.routers.retain(|(_, at), _| *at != port);
    }

    /// The next time at which something may have to be forgotten.
    pub fn next_end(&self) -> Option<Duration> {
        self.earliest
    }

    /// Each group with its ports and the time that each has left.
    pub fn list(&self) -> impl Iterator<Item = (Key, &BTreeMap<PortId, Duration>)> {
        self.groups.iter().map(|(key, ports)| (*key, ports))
    }

    /// Each port with a router.
    pub fn router_list(&self) -> impl Iterator<Item = (u16, PortId)> + '_ {
        self.routers.keys().copied()
    }
}
