// SPDX-License-Identifier: GPL-2.0

//! One multicast group: who asked for it, and what the device was last told.
//!
//! The two differ only while a command runs or after one was refused. A detach never waits for the
//! device to agree: the member leaves [`State`] at once, which remembers the list that the device last
//! accepted and so knows the queue pairs that it may still deliver to ([`State::stale`]).

use core::net::IpAddr;

use kernel::{
    new_mutex,
    prelude::*,
    sync::Mutex, //
};

use super::{
    context::MAX_MEMBERS,
    index::GroupIndex, //
};

/// What a group is looked up by.
///
/// A queue pair has no VLAN of its own and `ib_attach_mcast` names none, so groups made by the verbs
/// carry `None`: the device then matches tagged and untagged packets alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupKey {
    /// The group address; IPv4 if the MGID was v4-mapped.
    pub(crate) ip: IpAddr,
    /// Deliver only packets of this VLAN.
    pub(crate) vlan: Option<u16>,
}

/// A member and how often it was attached: the core tells attaches under different MLIDs apart, the
/// device does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) qp: u32,
    pub(crate) uses: u32,
}

/// How far the device knows the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No command for it succeeded yet.
    New,
    /// The device has it.
    Live,
    /// It left the list: whoever still holds it looks the address up again.
    Retired,
}

/// What changes about a group; locked by [`Group::state`] over the command that makes the change.
///
/// `S` is the group's share in a resource of the device, such as the queue set it is served by.
pub(crate) struct State<S> {
    pub(crate) phase: Phase,
    /// Taken before the device is told of the group.
    pub(crate) share: Option<S>,
    members: [Option<Member>; MAX_MEMBERS],
    /// The list in the last command that the device accepted.
    device: [Option<u32>; MAX_MEMBERS],
}

/// A group in the list.
#[pin_data]
pub(crate) struct Group<S> {
    pub(crate) key: GroupKey,
    pub(crate) index: GroupIndex,
    #[pin]
    pub(crate) state: Mutex<State<S>>,
}

/// What adding a member asks of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Only a count changed.
    Nothing,
    /// The member list changed.
    Members,
}

impl<S> Group<S> {
    /// Creates a group without members that the device does not know.
    pub(crate) fn new(key: GroupKey, index: GroupIndex) -> impl PinInit<Self> {
        pin_init!(Self {
            key,
            index,
            state <- new_mutex!(State::new(), "irdma_rs::mcast::Group"),
        })
    }
}

impl<S> State<S> {
    const fn new() -> Self {
        Self {
            phase: Phase::New,
            share: None,
            members: [None; MAX_MEMBERS],
            device: [None; MAX_MEMBERS],
        }
    }

    /// Counts one more use of `qp`, which joins the members with its first.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if `qp` is no member and all places are taken.
    pub(crate) fn join(&mut self, qp: u32) -> Result<Change> {
        if let Some(member) = self.members.iter_mut().flatten().find(|m| m.qp == qp) {
            member.uses = member.uses.checked_add(1).ok_or(ENOMEM)?;
            return Ok(Change::Nothing);
        }
        let place = self
            .members
            .iter_mut()
            .find(|m| m.is_none())
            .ok_or(ENOMEM)?;
        *place = Some(Member { qp, uses: 1 });
        Ok(Change::Members)
    }

    /// Takes one use of `qp` back; with its last the queue pair leaves the members.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `qp` is no member.
    pub(crate) fn leave(&mut self, qp: u32) -> Result<Change> {
        let place = self
            .members
            .iter_mut()
            .find(|m| m.is_some_and(|m| m.qp == qp))
            .ok_or(EINVAL)?;

        match place {
            Some(member) if member.uses > 1 => {
                member.uses -= 1;
                Ok(Change::Nothing)
            }
            _ => {
                *place = None;
                Ok(Change::Members)
            }
        }
    }

    /// Returns the members.
    pub(crate) fn members(&self) -> impl Iterator<Item = Member> + '_ {
        self.members.iter().flatten().copied()
    }

    /// Returns whether nobody is attached.
    pub(crate) fn is_empty(&self) -> bool {
        self.members().next().is_none()
    }

    /// Returns whether the device may still deliver to a queue pair that has left.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale().next().is_some()
    }

    /// Returns the queue pairs that have left and to which the device may still deliver.
    pub(crate) fn stale(&self) -> impl Iterator<Item = u32> + '_ {
        self.device
            .iter()
            .flatten()
            .copied()
            .filter(|qp| self.members().all(|m| m.qp != *qp))
    }

    /// Notes that the device now holds exactly the members.
    pub(crate) fn accepted(&mut self) {
        for (place, member) in self.device.iter_mut().zip(&self.members) {
            *place = member.map(|m| m.qp);
        }
    }

    /// Notes that the device holds nothing of the group.
    pub(crate) fn destroyed(&mut self) {
        self.device = [None; MAX_MEMBERS];
    }
}

#[kernel::macros::kunit_tests(irdma_rs_mcast_group)]
mod tests {
    use super::*;

    #[test]
    fn counts_attaches_of_one_member() -> Result {
        let mut state = State::<()>::new();

        assert_eq!(state.join(7)?, Change::Members);
        assert_eq!(state.join(7)?, Change::Nothing);
        assert_eq!(state.members().count(), 1);
        assert_eq!(state.leave(7)?, Change::Nothing);
        assert_eq!(state.leave(7)?, Change::Members);
        assert!(state.is_empty());
        assert_eq!(state.leave(7), Err(EINVAL));
        Ok(())
    }

    #[test]
    fn has_eight_places_and_fills_gaps() -> Result {
        let mut state = State::<()>::new();

        for qp in 1..=8 {
            state.join(qp)?;
        }
        assert_eq!(state.join(9), Err(ENOMEM));
        assert_eq!(state.join(8)?, Change::Nothing);
        state.leave(3)?;
        assert_eq!(state.join(9)?, Change::Members);
        assert_eq!(state.members().count(), 8);
        Ok(())
    }

    #[test]
    fn remembers_whom_the_device_may_still_serve() -> Result {
        let mut state = State::<()>::new();

        state.join(1)?;
        state.join(2)?;
        assert!(!state.is_stale());
        state.accepted();
        state.leave(1)?;
        assert!(state.stale().eq([1]));
        state.accepted();
        assert!(!state.is_stale());
        state.leave(2)?;
        state.destroyed();
        assert!(!state.is_stale());
        Ok(())
    }
}
