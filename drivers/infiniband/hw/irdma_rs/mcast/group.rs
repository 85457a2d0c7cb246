// SPDX-License-Identifier: GPL-2.0

//! One multicast group: who asked for it, and what the device was last told.
//!
//! The two differ only while a command runs or after one was refused. A detach never waits for the
//! device to agree: the member leaves [`State`] at once, which remembers the list that the device last
//! accepted and so knows the queue pairs that it may still deliver to ([`State::stale`]).
//!
//! Both lists hold the queue pairs' numbers as owners ([`Number`]). A number is free for another queue
//! pair when nobody holds it, so no new queue pair ever gets the packets of an old one.

use core::net::IpAddr;

use kernel::{
    new_mutex,
    prelude::*,
    sync::Mutex,
    time::{
        Instant,
        Monotonic, //
    },
};

use super::{
    context::MAX_MEMBERS,
    index::GroupIndex, //
};

/// What a group is looked up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupKey {
    /// The group address; IPv4 if the MGID was v4-mapped.
    pub(crate) ip: IpAddr,
    /// Deliver only packets of this VLAN; `None` takes tagged and untagged packets alike. See
    /// [`super::vlan`].
    pub(crate) vlan: Option<u16>,
}

/// The number of a queue pair. It is not used again as long as somebody has a clone of it.
pub(crate) trait Number: Clone {
    /// Returns the number as the device knows it.
    fn get(&self) -> u32;
}

/// A member and how often it was attached: the core tells attaches under different MLIDs apart, the
/// device does not.
pub(crate) struct Member<N> {
    pub(crate) number: N,
    pub(crate) uses: u32,
}

impl<N: Number> Member<N> {
    /// Returns the number of the queue pair.
    pub(crate) fn qp(&self) -> u32 {
        self.number.get()
    }
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
/// `N` is the number of a queue pair, `S` the group's share in a resource of the device, such as the
/// queue set it is served by.
pub(crate) struct State<N, S> {
    pub(crate) phase: Phase,
    /// Taken before the device is told of the group.
    pub(crate) share: Option<S>,
    /// The device was told of a share that is no more.
    pub(crate) outdated: bool,
    /// How often the device refused the change that is due since a member left.
    pub(crate) refusals: u32,
    /// Since when the list counts the group among those with work left, or when the device was last
    /// asked to do it.
    pub(crate) queued: Option<Instant<Monotonic>>,
    members: [Option<Member<N>>; MAX_MEMBERS],
    /// The list in the last command that the device accepted.
    device: [Option<N>; MAX_MEMBERS],
}

/// A group in the list.
#[pin_data]
pub(crate) struct Group<N, S> {
    pub(crate) key: GroupKey,
    pub(crate) index: GroupIndex,
    #[pin]
    pub(crate) state: Mutex<State<N, S>>,
}

/// What adding a member asks of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Only a count changed.
    Nothing,
    /// The member list changed.
    Members,
}

impl<N, S> Group<N, S> {
    /// Creates a group without members that the device does not know.
    pub(crate) fn new(key: GroupKey, index: GroupIndex) -> impl PinInit<Self> {
        pin_init!(Self {
            key,
            index,
            state <- new_mutex!(State::new(), "irdma_rs::mcast::Group"),
        })
    }
}

impl<N, S> State<N, S> {
    const fn new() -> Self {
        Self {
            phase: Phase::New,
            share: None,
            outdated: false,
            refusals: 0,
            queued: None,
            members: [const { None }; MAX_MEMBERS],
            device: [const { None }; MAX_MEMBERS],
        }
    }
}

impl<N: Number, S> State<N, S> {
    /// Counts one more use of the queue pair `number`, which joins the members with its first.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if it is no member and all places are taken.
    pub(crate) fn join(&mut self, number: &N) -> Result<Change> {
        let qp = number.get();

        if let Some(member) = self.members.iter_mut().flatten().find(|m| m.qp() == qp) {
            member.uses = member.uses.checked_add(1).ok_or(ENOMEM)?;
            return Ok(Change::Nothing);
        }
        let place = self
            .members
            .iter_mut()
            .find(|m| m.is_none())
            .ok_or(ENOMEM)?;
        *place = Some(Member {
            number: number.clone(),
            uses: 1,
        });
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
            .find(|m| m.as_ref().is_some_and(|m| m.qp() == qp))
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
    pub(crate) fn members(&self) -> impl Iterator<Item = &Member<N>> + '_ {
        self.members.iter().flatten()
    }

    /// Returns whether nobody is attached.
    pub(crate) fn is_empty(&self) -> bool {
        self.members().next().is_none()
    }

    /// Returns the queue pairs in the list that the device last accepted.
    pub(crate) fn device(&self) -> impl Iterator<Item = u32> + '_ {
        self.device.iter().flatten().map(N::get)
    }

    /// Returns whether the device has to be told something: it may still deliver to a queue pair that
    /// has left, or serves the group by what is no more.
    pub(crate) fn is_stale(&self) -> bool {
        self.outdated || self.stale().next().is_some()
    }

    /// Returns the queue pairs that have left and to which the device may still deliver.
    pub(crate) fn stale(&self) -> impl Iterator<Item = u32> + '_ {
        self.device()
            .filter(|qp| self.members().all(|m| m.qp() != *qp))
    }

    /// Notes that the device now holds exactly the members, and the group's share.
    pub(crate) fn accepted(&mut self) {
        for (place, member) in self.device.iter_mut().zip(&self.members) {
            *place = member.as_ref().map(|m| m.number.clone());
        }
        self.refusals = 0;
        self.outdated = false;
    }

    /// Notes that the device holds nothing of the group.
    pub(crate) fn destroyed(&mut self) {
        self.device = [const { None }; MAX_MEMBERS];
        self.refusals = 0;
        self.outdated = false;
    }
}

#[kernel::macros::kunit_tests(irdma_rs_mcast_group)]
mod tests {
    use super::*;
    use kernel::sync::Arc;

    impl Number for Arc<u32> {
        fn get(&self) -> u32 {
            **self
        }
    }

    fn qp(number: u32) -> Result<Arc<u32>> {
        Ok(Arc::new(number, GFP_KERNEL)?)
    }

    #[test]
    fn counts_attaches_of_one_member() -> Result {
        let mut state = State::<_, ()>::new();

        assert_eq!(state.join(&qp(7)?)?, Change::Members);
        assert_eq!(state.join(&qp(7)?)?, Change::Nothing);
        assert_eq!(state.members().count(), 1);
        assert_eq!(state.leave(7)?, Change::Nothing);
        assert_eq!(state.leave(7)?, Change::Members);
        assert!(state.is_empty());
        assert_eq!(state.leave(7), Err(EINVAL));
        Ok(())
    }

    #[test]
    fn has_eight_places_and_fills_gaps() -> Result {
        let mut state = State::<_, ()>::new();

        for number in 1..=8 {
            state.join(&qp(number)?)?;
        }
        assert_eq!(state.join(&qp(9)?), Err(ENOMEM));
        assert_eq!(state.join(&qp(8)?)?, Change::Nothing);
        state.leave(3)?;
        assert_eq!(state.join(&qp(9)?)?, Change::Members);
        assert_eq!(state.members().count(), 8);
        Ok(())
    }

    #[test]
    fn remembers_whom_the_device_may_still_serve() -> Result {
        let mut state = State::<_, ()>::new();

        state.join(&qp(1)?)?;
        state.join(&qp(2)?)?;
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

    #[test]
    fn holds_a_number_as_long_as_the_device_may_use_it() -> Result {
        let mut state = State::<_, ()>::new();
        let number = qp(5)?;

        state.join(&number)?;
        state.accepted();
        state.leave(5)?;
        let number = Arc::into_unique_or_drop(number);
        assert!(number.is_none());
        assert!(state.stale().eq([5]));
        state.destroyed();
        assert!(state.stale().next().is_none());
        Ok(())
    }
}
