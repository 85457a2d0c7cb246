// SPDX-License-Identifier: GPL-2.0
//! The table of multicast groups: by index for commands, by address for packets.

use crate::ip::Ip;
use std::collections::{BTreeMap, HashMap};

/// Most members of a group.
pub(crate) const MAX_MEMBERS: usize = 8;
/// Largest group index a command can name.
pub(crate) const MAX_INDEX: u32 = 4095;

/// One group entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) ip: Ip,
    /// The VLAN it is limited to; without one, tagged and untagged packets match.
    pub(crate) vlan: Option<u16>,
    pub(crate) mac: [u8; 6],
    pub(crate) queue_set: u16,
    /// Ids of the member queue pairs.
    pub(crate) members: Vec<u32>,
}

impl Group {
    /// Address and VLAN for messages.
    pub(crate) fn key_text(&self) -> String {
        match self.vlan {
            Some(vlan) => format!("{} on VLAN {vlan}", self.ip),
            None => self.ip.to_string(),
        }
    }
}

/// All groups.
#[derive(Default)]
pub(crate) struct Groups {
    by_index: BTreeMap<u16, Group>,
    by_ip: HashMap<Ip, Vec<u16>>,
}

impl Groups {
    pub(crate) fn len(&self) -> usize {
        self.by_index.len()
    }

    pub(crate) fn get(&self, index: u16) -> Option<&Group> {
        self.by_index.get(&index)
    }

    /// All groups in the order of their indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, &Group)> {
        self.by_index.iter().map(|(&i, g)| (i, g))
    }

    /// The indices in use.
    pub(crate) fn indices(&self) -> impl Iterator<Item = u32> + '_ {
        self.by_index.keys().map(|&i| u32::from(i))
    }

    /// Adds or replaces a group.
    pub(crate) fn insert(&mut self, index: u16, group: Group) {
        self.remove(index);
        self.by_ip.entry(group.ip).or_default().push(index);
        self.by_index.insert(index, group);
    }

    pub(crate) fn remove(&mut self, index: u16) -> Option<Group> {
        let group = self.by_index.remove(&index)?;
        if let Some(list) = self.by_ip.get_mut(&group.ip) {
            list.retain(|&i| i != index);
            if list.is_empty() {
                self.by_ip.remove(&group.ip);
            }
        }
        Some(group)
    }

    fn at(&self, ip: Ip) -> impl Iterator<Item = (u16, &Group)> {
        self.by_ip
            .get(&ip)
            .into_iter()
            .flatten()
            .filter_map(|&i| self.by_index.get(&i).map(|g| (i, g)))
    }

    /// Other groups with the address and VLAN of this one.
    pub(crate) fn same_key<'a>(&'a self, group: &'a Group) -> impl Iterator<Item = u16> + 'a {
        self.at(group.ip)
            .filter(|(_, g)| g.vlan == group.vlan)
            .map(|(i, _)| i)
    }

    /// Whether any group takes this packet.
    pub(crate) fn matches(&self, ip: Ip, vlan: Option<u16>) -> bool {
        self.at(ip).any(|(_, g)| takes(g, vlan))
    }

    /// The members of all groups that take this packet, each once.
    pub(crate) fn members(&self, ip: Ip, vlan: Option<u16>) -> Vec<u32> {
        let mut out = Vec::new();
        for (_, group) in self.at(ip).filter(|(_, g)| takes(g, vlan)) {
            for &qp in &group.members {
                if !out.contains(&qp) {
                    out.push(qp);
                }
            }
        }
        out
    }

    /// The groups that list this queue pair.
    pub(crate) fn of_member(&self, qp: u32) -> Vec<u16> {
        self.iter()
            .filter(|(_, g)| g.members.contains(&qp))
            .map(|(i, _)| i)
            .collect()
    }
}

fn takes(group: &Group, vlan: Option<u16>) -> bool {
    group.vlan.is_none_or(|v| vlan == Some(v))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(vlan: Option<u16>, members: &[u32]) -> Group {
        Group {
            ip: Ip::from_words([0, 0, 0, 0xEF01_0203], true),
            vlan,
            mac: [1, 0, 0x5E, 1, 2, 3],
            queue_set: 2,
            members: members.to_vec(),
        }
    }

    #[test]
    fn each_member_of_overlapping_groups_is_named_once() {
        let mut groups = Groups::default();
        groups.insert(1, group(None, &[4, 5]));
        groups.insert(2, group(None, &[5, 6]));
        let ip = group(None, &[]).ip;
        assert_eq!(groups.members(ip, None), [4, 5, 6]);
        groups.remove(1);
        assert_eq!(groups.members(ip, Some(9)), [5, 6]);
        groups.remove(2);
        assert!(!groups.matches(ip, None));
        assert_eq!(groups.len(), 0);
    }

    #[test]
    fn a_vlan_limits_a_group() {
        let mut groups = Groups::default();
        groups.insert(1, group(Some(100), &[4]));
        let ip = group(None, &[]).ip;
        assert!(groups.matches(ip, Some(100)));
        assert!(!groups.matches(ip, Some(101)));
        assert!(!groups.matches(ip, None));
        assert_eq!(groups.of_member(4), [1]);
    }
}
