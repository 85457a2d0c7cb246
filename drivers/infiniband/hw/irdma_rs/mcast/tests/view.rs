// SPDX-License-Identifier: GPL-2.0

//! What a list holds, and how that compares with the device.

use super::device::Device;
use crate::mcast::{
    context::MAX_MEMBERS,
    group::{
        Group,
        GroupKey,
        Number,
        Phase, //
    },
    list::List, //
};

/// A group as the list sees it.
pub(super) struct View {
    pub(super) index: u16,
    live: bool,
    /// Queue pairs, and how often each is attached.
    members: [Option<(u32, u32)>; MAX_MEMBERS],
    /// Queue pairs that left, to which the device may still deliver.
    stale: [Option<u32>; MAX_MEMBERS],
    /// The device has to be told of another share.
    outdated: bool,
}

impl View {
    /// The group with `key`.
    pub(super) fn of<N, S>(list: &List<N, S>, key: &GroupKey) -> Option<Self>
    where
        N: Number + Unpin,
        S: Unpin,
    {
        list.lookup_ip(key.ip, key.vlan)
            .map(|group| Self::of_group(&group))
    }

    fn of_group<N: Number, S>(group: &Group<N, S>) -> Self {
        let state = group.state.lock();
        let mut view = Self {
            index: group.index.get(),
            live: state.phase == Phase::Live,
            members: [None; MAX_MEMBERS],
            stale: [None; MAX_MEMBERS],
            outdated: state.outdated,
        };

        for (place, member) in view.members.iter_mut().zip(state.members()) {
            *place = Some((member.qp(), member.uses));
        }
        for (place, qp) in view.stale.iter_mut().zip(state.stale()) {
            *place = Some(qp);
        }
        view
    }

    /// How many members there are.
    pub(super) fn members(&self) -> usize {
        self.members.iter().flatten().count()
    }

    /// How often `qp` is attached.
    pub(super) fn uses(&self, qp: u32) -> u32 {
        self.members
            .iter()
            .flatten()
            .find(|(member, _)| *member == qp)
            .map_or(0, |(_, uses)| *uses)
    }

    /// Whether nobody is attached, and the device serves nobody.
    pub(super) fn is_void(&self) -> bool {
        self.members() == 0 && self.stale.iter().flatten().count() == 0
    }

    /// What is wrong between this group and the device, if something is.
    ///
    /// The device delivers to every member, and to no one else but to those the list knows about.
    pub(super) fn disagreement(&self, device: &Device) -> Option<&'static str> {
        let Some(entry) = device.entry(self.index) else {
            return Some("the device does not have the group");
        };
        let in_list = |qp: u32| self.uses(qp) > 0;
        let in_device = |qp: u32| entry.members().any(|member| member == qp);
        let is_stale = |qp: u32| self.stale.contains(&Some(qp));

        if !self.live {
            return Some("the group is in the list, and not live");
        }
        if self.members.iter().flatten().any(|(qp, _)| !in_device(*qp)) {
            return Some("the device does not deliver to a member");
        }
        if entry.members().any(|qp| !in_list(qp) && !is_stale(qp)) {
            return Some("the device delivers to a queue pair that the list does not know of");
        }
        if !device.is_renewed(&entry) && !self.outdated && self.members() != 0 {
            return Some("the device serves a group by a share that is no more");
        }
        if self
            .stale
            .iter()
            .flatten()
            .any(|qp| in_list(*qp) || !in_device(*qp))
        {
            return Some("the list holds on to a queue pair that the device does not serve");
        }
        None
    }
}
