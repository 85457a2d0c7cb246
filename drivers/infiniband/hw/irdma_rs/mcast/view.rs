// SPDX-License-Identifier: GPL-2.0

//! Groups as they are shown to those who operate the machine.
//!
//! [`super::Groups::view`] goes through the groups one by one. What it returns is a copy, so the reader
//! may take as long as he likes.

use super::{
    context::MAX_MEMBERS,
    group::{
        Group,
        GroupKey,
        Number,
        Phase,
        State, //
    },
    list::PATIENCE,
    mac::{
        group_mac,
        Mac, //
    },
};

/// How a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupState {
    /// A command for it is running.
    Busy,
    /// The device has not been told of it yet.
    New,
    /// The device holds what was asked for.
    Live,
    /// The device refused the last change, and is asked again.
    Stale,
    /// The device refused so often that it is only asked again when the index is needed, or time has
    /// passed.
    Quarantined,
    /// It has left the list just now.
    Retired,
}

impl GroupState {
    /// Returns the word for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::New => "new",
            Self::Live => "live",
            Self::Stale => "stale",
            Self::Quarantined => "quarantined",
            Self::Retired => "retired",
        }
    }
}

/// A member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberView {
    /// Number of the queue pair.
    pub(crate) qp: u32,
    /// Attaches that have not been taken back.
    pub(crate) uses: u32,
}

/// A group at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupView {
    /// Address and VLAN.
    pub(crate) key: GroupKey,
    /// The Ethernet address that the device was given.
    pub(crate) mac: Mac,
    /// The device's name of it.
    pub(crate) index: u16,
    /// How it is.
    pub(crate) state: GroupState,
    /// Who is attached; nobody is told of while it is busy.
    pub(crate) members: [Option<MemberView>; MAX_MEMBERS],
    /// The queue pairs in the list that the device last accepted; as above.
    pub(crate) device: [Option<u32>; MAX_MEMBERS],
    /// How often the device refused the change that is due.
    pub(crate) refusals: u32,
}

impl GroupView {
    /// Describes `group`, of which nothing but the name is known now.
    pub(super) fn busy<N, S>(group: &Group<N, S>) -> Self {
        Self {
            key: group.key,
            mac: group_mac(group.key.ip),
            index: group.index.get(),
            state: GroupState::Busy,
            members: [None; MAX_MEMBERS],
            device: [None; MAX_MEMBERS],
            refusals: 0,
        }
    }

    /// Describes `group`, whose locked state is `state`.
    pub(super) fn new<N: Number, S>(group: &Group<N, S>, state: &State<N, S>) -> Self {
        let mut view = Self::busy(group);

        view.state = match state.phase {
            Phase::New => GroupState::New,
            Phase::Retired => GroupState::Retired,
            Phase::Live if !state.is_stale() => GroupState::Live,
            Phase::Live if state.refusals < PATIENCE => GroupState::Stale,
            Phase::Live => GroupState::Quarantined,
        };
        for (place, member) in view.members.iter_mut().zip(state.members()) {
            *place = Some(MemberView {
                qp: member.qp(),
                uses: member.uses,
            });
        }
        for (place, qp) in view.device.iter_mut().zip(state.device()) {
            *place = Some(qp);
        }
        view.refusals = state.refusals;
        view
    }
}

#[kernel::macros::kunit_tests(irdma_rs_mcast_view)]
mod tests {
    use super::*;
    use crate::mcast::index::IndexPool;
    use core::net::{
        IpAddr,
        Ipv4Addr, //
    };
    use kernel::{
        prelude::*,
        sync::Arc, //
    };

    #[test]
    fn a_group_is_shown_as_it_is() -> Result {
        let key = GroupKey {
            ip: IpAddr::V4(Ipv4Addr::new(239, 129, 2, 3)),
            vlan: Some(5),
        };
        let index = IndexPool::new(4)?.take().ok_or(ENOMEM)?;
        let group = Arc::pin_init(Group::<Arc<u32>, ()>::new(key, index), GFP_KERNEL)?;
        let busy = GroupView::busy(&group);
        let mut state = group.state.lock();

        assert_eq!((busy.key, busy.index), (key, index.get()));
        assert_eq!(busy.mac, [0x01, 0x00, 0x5e, 1, 2, 3]);
        assert_eq!(busy.state.name(), "busy");
        for (phase, outdated, refusals, shown) in [
            (Phase::New, false, 0, "new"),
            (Phase::Live, false, 0, "live"),
            (Phase::Live, true, PATIENCE - 1, "stale"),
            (Phase::Live, true, PATIENCE, "quarantined"),
            (Phase::Retired, false, 0, "retired"),
        ] {
            state.phase = phase;
            state.outdated = outdated;
            state.refusals = refusals;
            let view = GroupView::new(&group, &state);
            assert_eq!((view.state.name(), view.refusals), (shown, refusals));
        }
        Ok(())
    }
}
