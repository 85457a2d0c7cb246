// SPDX-License-Identifier: GPL-2.0
//! CREATE_MCAST_GRP, MODIFY_MCAST_GRP and DESTROY_MCAST_GRP.
//!
//! The member list is copied from the group context at the time of the operation, so that what the
//! driver does to the memory afterwards changes nothing.

use super::{ip_words, Done, OpResult, Wqe};
use crate::bits::{bit, bits, low16, mac_from, words, Field};
use crate::config::Kind;
use crate::cqp::error::CqpError;
use crate::ip::Ip;
use crate::mcast::{Group, MAX_INDEX, MAX_MEMBERS};
use crate::model::Model;
use crate::qp::QpType;

/// Word 0.
const MAC: Field = bits(47, 0);
/// Word 2.
const QUEUE_SET: Field = bits(9, 0);
const VLAN_ID: Field = bits(43, 32);
/// Word 3.
const INDEX: Field = bits(12, 0);
const VLAN_VALID: Field = bit(59);
const IPV4: Field = bit(60);

/// A member word of the group context.
const MEMBER_QP: Field = bits(17, 0);
const MEMBER_VALID: Field = bit(31);

impl Model {
    fn group_index(&self, wqe: &Wqe) -> Result<u16, CqpError> {
        let index = INDEX.get32(wqe[3]);
        self.in_range(Kind::Fsimc, "group", index)?;
        if index == 0 || index > MAX_INDEX {
            return Err(CqpError::range("group", index, MAX_INDEX + 1));
        }
        self.own_function(wqe[1])?;
        Ok(low16(index.into()))
    }

    fn group_from(&mut self, index: u16, wqe: &Wqe) -> Result<Group, CqpError> {
        let ipv4 = IPV4.is_set(wqe[3]);
        let ip = Ip::from_words(ip_words(wqe[6], wqe[7]), ipv4);
        if !ip.is_multicast() {
            return Err(CqpError::parameter(format_args!(
                "{ip} is no multicast address"
            )));
        }
        let members = self.group_members(index, wqe[4])?;
        if members.is_empty() {
            return Err(CqpError::parameter("no member"));
        }
        let group = Group {
            ip,
            vlan: VLAN_VALID.is_set(wqe[3]).then(|| VLAN_ID.get16(wqe[2])),
            mac: mac_from(MAC.get(wqe[0])),
            queue_set: QUEUE_SET.get16(wqe[2]),
            members,
        };
        if let Some(text) = self.bad_queue_set(index, &group) {
            self.violate_once(format_args!("{text}"));
        }
        Ok(group)
    }

    fn group_members(&mut self, index: u16, context: u64) -> Result<Vec<u32>, CqpError> {
        let mut buf = [0; MAX_MEMBERS * 8];
        self.host.dma.read(context, &mut buf)?;
        let list: [u64; MAX_MEMBERS] = words(&buf);
        let mut members = Vec::new();
        let mut gap = false;
        for word in list {
            if !MEMBER_VALID.is_set(word) {
                gap = true;
                continue;
            }
            let qp = MEMBER_QP.get32(word);
            if gap {
                self.violate(format_args!(
                    "group {index}: member {qp} after an empty slot"
                ));
            }
            if members.contains(&qp) {
                self.violate(format_args!("group {index}: member {qp} listed twice"));
                continue;
            }
            if let Some(text) = self.bad_member(index, qp) {
                self.violate(format_args!("{text}"));
            }
            members.push(qp);
        }
        Ok(members)
    }

    /// What is wrong with a member of a group, if anything.
    pub(crate) fn bad_member(&self, group: u16, qp: u32) -> Option<String> {
        match self.qps.get(&qp).map(|qp| qp.kind) {
            Some(QpType::Ud) => None,
            Some(kind) => Some(format!(
                "group {group}: member {qp} is of type {}",
                kind.name()
            )),
            None => Some(format!("group {group}: member {qp} is no live QP")),
        }
    }

    /// What is wrong with the queue set of a group, if anything.
    pub(crate) fn bad_queue_set(&self, index: u16, group: &Group) -> Option<String> {
        let alive = self.sched.get(&group.queue_set).is_some_and(|n| n.leaf);
        (!alive).then(|| {
            format!(
                "group {index}: queue set {} does not exist",
                group.queue_set
            )
        })
    }

    pub(super) fn op_create_group(&mut self, wqe: &Wqe) -> OpResult {
        let index = self.group_index(wqe)?;
        if self.groups.get(index).is_some() {
            return Err(CqpError::in_use("group", index.into()));
        }
        let group = self.group_from(index, wqe)?;
        let other = self.groups.same_key(&group).next();
        if let Some(other) = other {
            self.violate(format_args!(
                "groups {other} and {index} are both for {}",
                group.key_text()
            ));
        }
        self.groups.insert(index, group);
        Ok(Done::default())
    }

    pub(super) fn op_modify_group(&mut self, wqe: &Wqe) -> OpResult {
        let index = self.group_index(wqe)?;
        let Some(old) = self.groups.get(index) else {
            return Err(CqpError::unused("group", index.into()));
        };
        let (old_ip, old_vlan) = (old.ip, old.vlan);
        let group = self.group_from(index, wqe)?;
        if (old_ip, old_vlan) != (group.ip, group.vlan) {
            self.violate(format_args!(
                "group {index} changes its address to {}",
                group.ip
            ));
        }
        self.groups.insert(index, group);
        Ok(Done::default())
    }

    pub(super) fn op_destroy_group(&mut self, wqe: &Wqe) -> OpResult {
        let index = self.group_index(wqe)?;
        if self.groups.remove(index).is_none() {
            return Err(CqpError::unused("group", index.into()));
        }
        let left = self.group_members(index, wqe[4])?;
        if !left.is_empty() {
            self.violate(format_args!(
                "group {index} destroyed with members {left:?} in its context"
            ));
        }
        Ok(Done::default())
    }
}
