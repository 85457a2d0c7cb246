// SPDX-License-Identifier: GPL-2.0
//! The switch of the function: which VSIs a frame from the wire reaches, and which frames may leave
//! (section 6.4 of the hardware contract). A strict filter: what no rule asks for is dropped.

use crate::frame::Header;
use crate::rss::Rss;
use crate::vsi::Vsi;
use std::collections::{BTreeMap, BTreeSet};

/// Rules at most. The driver turns to promiscuous mode when a MAC rule does not fit.
pub const MAX_RULES: usize = 4096;
/// Bytes of a rule's header pattern.
pub const PATTERN: usize = 16;

/// Which frames a rule looks at. Address rules of `ice` are of the transmit kind and mean received
/// frames as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the wire.
    Receive,
    /// From the function.
    Transmit,
}

/// What a rule compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// EtherType.
    EtherType,
    /// Destination address.
    Mac,
    /// Class of destination: unicast, multicast, broadcast.
    Promiscuous,
    /// VLAN id, for pruning.
    Vlan,
    /// Everything.
    Default,
    /// EtherType and destination address.
    EtherTypeMac,
    /// Class of destination within a VLAN.
    PromiscuousVlan,
}

impl Recipe {
    /// The recipe with a number.
    pub fn decode(number: u16) -> Option<Self> {
        Some(match number {
            0 => Recipe::EtherType,
            1 => Recipe::Mac,
            3 => Recipe::Promiscuous,
            4 => Recipe::Vlan,
            5 => Recipe::Default,
            8 => Recipe::EtherTypeMac,
            9 => Recipe::PromiscuousVlan,
            _ => return None,
        })
    }
}

/// What happens to a matching frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// To a VSI.
    Vsi(u16),
    /// To each VSI of a replication list.
    List(u16),
    /// Passes pruning for the VSIs of a prune list.
    PruneList(u16),
    /// Passes pruning for a VSI.
    PruneVsi(u16),
    /// Dropped.
    Drop,
    /// Nothing the model knows.
    Other,
}

impl Action {
    /// Decodes the action word.
    pub fn decode(word: u32) -> Self {
        const IS_LIST: u32 = 1 << 14;
        const VALID: u32 = 1 << 17;
        const DROP: u32 = 1 << 18;
        // Ten bits.
        let target = u16::try_from(word >> 4 & 0x3ff).unwrap_or(0);
        match (word & VALID != 0, word & 3, word & IS_LIST != 0) {
            (false, 2, true) | (true, 2, true) => Action::PruneList(target),
            (false, 2, false) | (true, 2, false) => Action::PruneVsi(target),
            (false, _, _) => Action::Other,
            (true, 0, _) if word & DROP != 0 => Action::Drop,
            (true, 0, true) => Action::List(target),
            (true, 0, false) => Action::Vsi(target),
            _ => Action::Other,
        }
    }
}

/// A lookup rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Which frames.
    pub direction: Direction,
    /// What is compared.
    pub recipe: Recipe,
    /// With what: an Ethernet header with one VLAN tag.
    pub pattern: [u8; PATTERN],
    /// What follows.
    pub action: Action,
}

impl Rule {
    fn destination(&self) -> [u8; 6] {
        let [a, b, c, d, e, f, ..] = self.pattern;
        [a, b, c, d, e, f]
    }

    fn ether_type(&self) -> u16 {
        let [.., high, low, _, _] = self.pattern;
        u16::from_be_bytes([high, low])
    }

    /// The class of destination the rule is about.
    pub fn class(&self) -> Class {
        Class::of(self.destination())
    }

    /// The destination in the usual notation.
    pub fn mac(&self) -> String {
        self.destination()
            .map(|byte| format!("{byte:02x}"))
            .join(":")
    }

    /// The VLAN id the rule is about.
    pub fn vlan(&self) -> u16 {
        let [.., high, low] = self.pattern;
        u16::from_be_bytes([high, low]) & 0xfff
    }

    /// Whether a frame matches, pruning rules aside.
    fn matches(&self, frame: &Header) -> bool {
        let class = || self.class() == Class::of(frame.destination);
        match self.recipe {
            Recipe::EtherType => self.ether_type() == frame.ether_type,
            Recipe::Mac => self.destination() == frame.destination,
            Recipe::Promiscuous => class(),
            Recipe::PromiscuousVlan => class() && self.vlan() == frame.vlan_id(),
            Recipe::Default => true,
            Recipe::EtherTypeMac => {
                self.ether_type() == frame.ether_type && self.destination() == frame.destination
            }
            Recipe::Vlan => false,
        }
    }
}

/// Class of a destination address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// One station.
    Unicast,
    /// A group.
    Multicast,
    /// All.
    Broadcast,
}

impl Class {
    /// The class of an address.
    pub fn of(address: [u8; 6]) -> Self {
        if address == [0xff; 6] {
            Class::Broadcast
        } else if address[0] & 1 != 0 {
            Class::Multicast
        } else {
            Class::Unicast
        }
    }
}

/// Kinds of VSI lists; each has its own ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListKind {
    /// Frames are copied to the members.
    Replicate,
    /// Frames of a VLAN may reach the members.
    Prune,
}

/// VSIs, rules and lists of the function.
#[derive(Default)]
pub struct Switch {
    vsis: BTreeMap<u16, Vsi>,
    rules: BTreeMap<u16, Rule>,
    lists: BTreeMap<(ListKind, u16), BTreeSet<u16>>,
    /// RSS keys and tables of the VSIs.
    pub rss: Rss,
}

impl Switch {
    /// Adds a VSI under `number`, or under the smallest free one below `limit`. `None` if none is
    /// left.
    pub fn add_vsi(&mut self, number: Option<u16>, limit: u16, vsi: Vsi) -> Option<u16> {
        let number = number
            .or_else(|| (0..limit).find(|number| !self.vsis.contains_key(number)))
            .filter(|number| *number < limit)?;
        self.vsis.insert(number, vsi);
        Some(number)
    }

    /// A VSI.
    pub fn vsi(&self, number: u16) -> Option<&Vsi> {
        self.vsis.get(&number)
    }

    /// A VSI, to be changed.
    pub fn vsi_mut(&mut self, number: u16) -> Option<&mut Vsi> {
        self.vsis.get_mut(&number)
    }

    /// Removes a VSI.
    pub fn remove_vsi(&mut self, number: u16) -> Option<Vsi> {
        self.rss.remove_vsi(number);
        for members in self.lists.values_mut() {
            members.remove(&number);
        }
        self.vsis.remove(&number)
    }

    /// The VSIs by number.
    pub fn vsis(&self) -> &BTreeMap<u16, Vsi> {
        &self.vsis
    }

    /// Adds a rule and returns its index, or `None` if the table is full.
    pub fn add_rule(&mut self, rule: Rule) -> Option<u16> {
        if self.rules.len() >= MAX_RULES {
            return None;
        }
        let index = (1..=u16::MAX).find(|index| !self.rules.contains_key(index))?;
        self.rules.insert(index, rule);
        Some(index)
    }

    /// Gives a rule another action; `false` if there is no such rule.
    pub fn update_rule(&mut self, index: u16, action: Action) -> bool {
        self.rules
            .get_mut(&index)
            .map(|rule| rule.action = action)
            .is_some()
    }

    /// Removes a rule; `false` if there is no such rule.
    pub fn remove_rule(&mut self, index: u16) -> bool {
        self.rules.remove(&index).is_some()
    }

    /// Removes all rules and lists.
    pub fn clear_rules(&mut self) {
        self.rules.clear();
        self.lists.clear();
    }

    /// The rules by index.
    pub fn rules(&self) -> &BTreeMap<u16, Rule> {
        &self.rules
    }

    /// Whether a rule takes frames for this unicast address to some VSI.
    pub fn has_address(&self, mac: [u8; 6]) -> bool {
        Class::of(mac) == Class::Unicast
            && self.rules.values().any(|rule| {
                rule.recipe == Recipe::Mac
                    && rule.destination() == mac
                    && match rule.action {
                        Action::Vsi(vsi) => self.vsis.contains_key(&vsi),
                        Action::List(list) => self
                            .lists
                            .get(&(ListKind::Replicate, list))
                            .is_some_and(|members| !members.is_empty()),
                        _ => false,
                    }
            })
    }

    /// Adds or removes members of a list.
    pub fn change_list(&mut self, kind: ListKind, id: u16, member: bool, vsis: &[u16]) {
        let members = self.lists.entry((kind, id)).or_default();
        for vsi in vsis {
            if member {
                members.insert(*vsi);
            } else {
                members.remove(vsi);
            }
        }
    }

    /// Removes a list.
    pub fn remove_list(&mut self, kind: ListKind, id: u16) {
        self.lists.remove(&(kind, id));
    }

    fn listed(&self, kind: ListKind, id: u16, vsi: u16) -> bool {
        self.lists
            .get(&(kind, id))
            .is_some_and(|members| members.contains(&vsi))
    }

    /// Whether a frame may leave.
    pub fn may_leave(&self, frame: &Header) -> bool {
        !self.rules.values().any(|rule| {
            rule.direction == Direction::Transmit
                && rule.action == Action::Drop
                && rule.matches(frame)
        })
    }

    /// Whether a rule concerns received frames: those of the receive kind and, of the transmit
    /// kind, the address rules.
    fn receives(rule: &Rule) -> bool {
        rule.direction == Direction::Receive || rule.recipe == Recipe::Mac
    }

    /// The VSIs that receive a frame, in order.
    pub fn receivers(&self, frame: &Header) -> Vec<u16> {
        let mut vsis = BTreeSet::new();
        for rule in self.rules.values() {
            if !Self::receives(rule) || !rule.matches(frame) {
                continue;
            }
            match rule.action {
                Action::Drop => return Vec::new(),
                Action::Vsi(vsi) => {
                    vsis.insert(vsi);
                }
                Action::List(list) => {
                    if let Some(members) = self.lists.get(&(ListKind::Replicate, list)) {
                        vsis.extend(members);
                    }
                }
                _ => {}
            }
        }
        vsis.retain(|vsi| self.accepts_vlan(*vsi, frame));
        vsis.into_iter().collect()
    }

    /// Whether a VSI exists and its VLAN pruning lets a frame through. Untagged frames are of VLAN 0.
    fn accepts_vlan(&self, number: u16, frame: &Header) -> bool {
        let Some(vsi) = self.vsis.get(&number) else {
            return false;
        };
        !vsi.prunes_vlans()
            || self.rules.values().any(|rule| {
                rule.recipe == Recipe::Vlan
                    && rule.vlan() == frame.vlan_id()
                    && match rule.action {
                        Action::PruneList(list) => self.listed(ListKind::Prune, list, number),
                        Action::PruneVsi(vsi) | Action::Vsi(vsi) => vsi == number,
                        _ => false,
                    }
            })
    }
}

#[cfg(test)]
mod tests;
