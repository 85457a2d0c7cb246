// SPDX-License-Identifier: GPL-2.0

//! The multicast groups of a device, by address and VLAN.
//!
//! # Locking
//!
//! 1. [`Group::state`], a mutex per group, held from the decision about a change until the device has
//!    answered. Changes of one group are thereby one after the other; different groups do not meet.
//! 2. [`List::inner`], a mutex around the tree, the index pool and the queue of stale groups, held for
//!    a lookup, an insertion or a removal and never while waiting for the device.
//!
//! The second nests in the first. A group is found under the second alone, which is then dropped
//! before the first is taken; whoever finds the group [`Phase::Retired`] by then starts over.
//!
//! # Life of a group
//!
//! [`List::add`] enters an empty group under a fresh index. Those who meet in it take turns: the
//! first sends `CREATE_MCAST_GRP`, later ones `MODIFY_MCAST_GRP`. If the creation fails the group is
//! retired, and the others begin again with one of their own. When the last member has left,
//! `DESTROY_MCAST_GRP` is sent and the group leaves the list with the answer.
//!
//! # When the device refuses
//!
//! A refused attach has no effect. A detach succeeds whatever the device says: nobody above could
//! try again. The group then stays in the list, *stale* ([`State::is_stale`]), with the numbers of the
//! queue pairs that the device may still deliver to. The next attach to it makes it whole by the way;
//! otherwise [`List::retry`] repeats the command that was refused, when a queue pair is destroyed, when
//! indexes run short, when time has passed, and when the driver goes. A group that was refused
//! [`PATIENCE`] times is *quarantined*: the first of these occasions does not count for it.
//!
//! An index whose command timed out is never used again.

use core::net::IpAddr;

use kernel::{
    new_mutex,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        atomic::Atomic,
        Arc,
        Mutex, //
    },
};

use super::{
    context::{
        encode,
        MAX_MEMBERS, //
    },
    group::{
        Change,
        Group,
        GroupKey,
        Number,
        Phase,
        State, //
    },
    hardware::{
        Command,
        Failure,
        Hardware, //
    },
    index::IndexPool,
    view::GroupView,
};

mod stale;
#[cfg(CONFIG_KUNIT = "y")]
mod tests;

pub(crate) use stale::{
    Occasion,
    PATIENCE, //
};

struct Inner<N, S> {
    groups: RBTree<GroupKey, Arc<Group<N, S>>>,
    indexes: IndexPool,
    /// Groups in `groups`.
    count: usize,
    /// Groups of `groups` with work left, each once. There is room for all of them, so entering one
    /// cannot fail.
    stale: KVec<Arc<Group<N, S>>>,
}

/// The groups of one device.
///
/// `N` is the number of a queue pair, `S` see [`Hardware::Share`].
#[pin_data]
pub(crate) struct List<N, S> {
    limit: u16,
    /// How many groups are stale; spares the lock when there is none.
    stale: Atomic<u32>,
    #[pin]
    inner: Mutex<Inner<N, S>>,
}

impl<N: Number + Unpin, S: Unpin> List<N, S> {
    /// Creates the list of a device that granted `objects` multicast objects.
    pub(crate) fn new(objects: u32) -> impl PinInit<Self, Error> {
        let limit = IndexPool::limit_for(objects);

        try_pin_init!(Self {
            limit,
            stale: Atomic::new(0),
            inner <- new_mutex!(
                Inner {
                    groups: RBTree::new(),
                    indexes: IndexPool::new(*limit)?,
                    count: 0,
                    stale: KVec::new(),
                },
                "irdma_rs::mcast::List"
            ),
        })
    }

    /// Returns the index from which on none is valid.
    pub(crate) fn limit(&self) -> u16 {
        self.limit
    }

    /// Returns how many groups the device can hold at a time.
    pub(crate) fn capacity(&self) -> u32 {
        IndexPool::capacity(self.limit)
    }

    /// Returns how many groups there are.
    pub(crate) fn count(&self) -> u32 {
        // At most 4095.
        u32::try_from(self.inner.lock().count).unwrap_or(u32::MAX)
    }

    /// Returns the group with this address, if there is one.
    pub(crate) fn lookup_ip(&self, ip: IpAddr, vlan: Option<u16>) -> Option<Arc<Group<N, S>>> {
        self.inner
            .lock()
            .groups
            .get(&GroupKey { ip, vlan })
            .cloned()
    }

    /// Returns the group with this key, entering a new one if there is none.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if all groups of the device are in use, or memory is short.
    fn add(&self, key: GroupKey) -> Result<Arc<Group<N, S>>> {
        let mut guard = self.inner.lock();
        let inner = &mut *guard;

        if let Some(group) = inner.groups.get(&key) {
            return Ok(group.clone());
        }
        let wanted = inner.count.saturating_add(1);
        let room = wanted.saturating_sub(inner.stale.len());
        inner.stale.reserve(room, GFP_KERNEL)?;

        let index = inner.indexes.take().ok_or(ENOMEM)?;
        let entered = Arc::pin_init(Group::new(key, index), GFP_KERNEL).and_then(|group| {
            let node = RBTreeNode::new(key, group.clone(), GFP_KERNEL)?;
            inner.groups.insert(node);
            inner.count = wanted;
            Ok(group)
        });
        if entered.is_err() {
            inner.indexes.release(index);
        }
        entered
    }

    /// Takes a group out of the list; its index is free again if the device does not know it.
    fn del(&self, group: &Group<N, S>, state: &mut State<N, S>, free_index: bool) {
        let mut guard = self.inner.lock();
        let inner = &mut *guard;

        state.phase = Phase::Retired;
        let removed = inner.groups.remove(&group.key);
        if removed.is_some() {
            inner.count = inner.count.saturating_sub(1);
        }
        // Under the same lock: the room among the stale ones is for as many as there are.
        let stale = state.queued.take().and_then(|_| inner.not_stale(group));
        self.count_stale(inner);
        if free_index {
            inner.indexes.release(group.index);
        }
        drop(guard);
        drop((removed, stale));
        // Not only when the last reference goes: somebody may be waiting for the group's lock.
        drop(state.share.take());
    }

    /// Attaches the queue pair `number` once more to the group with this key.
    ///
    /// When this returns, the device delivers the next packet to the queue pair.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the group has no place left for the queue pair, or all groups are in use; else
    /// what became of the command. The queue pair is then attached as often as before.
    pub(crate) fn attach<H: Hardware<Share = S>>(
        &self,
        hw: &H,
        key: GroupKey,
        number: &N,
    ) -> Result {
        let mut retried = false;

        loop {
            let group = match self.add(key) {
                // A group nobody uses may be waiting for its second chance to be destroyed.
                Err(e) if e == ENOMEM && !retried => {
                    retried = true;
                    self.retry(hw, Occasion::Shortage);
                    continue;
                }
                other => other?,
            };
            let mut state = group.state.lock();

            match state.phase {
                Phase::Retired => continue,
                Phase::New => {
                    if let Err(error) = state.join(number) {
                        self.del(&group, &mut state, true);
                        return Err(error);
                    }
                    return self.create(hw, &group, &mut state);
                }
                Phase::Live => {
                    if state.join(number)? == Change::Nothing {
                        return Ok(());
                    }
                    let told = Self::tell(hw, Command::Modify, &group, &mut state);
                    if told.is_err() {
                        state.leave(number.get())?;
                    }
                    self.note(&group, &mut state);
                    return told.map_err(Error::from);
                }
            }
        }
    }

    fn create<H: Hardware<Share = S>>(
        &self,
        hw: &H,
        group: &Group<N, S>,
        state: &mut State<N, S>,
    ) -> Result {
        match Self::tell(hw, Command::Create, group, state) {
            Ok(()) => {
                state.phase = Phase::Live;
                Ok(())
            }
            Err(failure) => {
                let told = matches!(failure, Failure::Unanswered(_));
                self.del(group, state, !told);
                Err(failure.into())
            }
        }
    }

    /// Detaches the queue pair `qp` once from the group with this key.
    ///
    /// Once a queue pair has been found attached, this succeeds whatever the device answers.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the queue pair is not attached to the group; nothing has changed then.
    pub(crate) fn detach<H: Hardware<Share = S>>(&self, hw: &H, key: GroupKey, qp: u32) -> Result {
        loop {
            let group = self.lookup_ip(key.ip, key.vlan).ok_or(EINVAL)?;
            let mut state = group.state.lock();

            if state.phase == Phase::Retired {
                continue;
            }
            if state.leave(qp)? == Change::Members {
                let _ = self.settle(hw, &group, &mut state);
            }
            return Ok(());
        }
    }

    /// Brings the device in line with a group that lost a member, now or before.
    ///
    /// # Errors
    ///
    /// What became of the command; the group is stale then, or gone with the device.
    fn settle<H: Hardware<Share = S>>(
        &self,
        hw: &H,
        group: &Arc<Group<N, S>>,
        state: &mut State<N, S>,
    ) -> Result<(), Failure> {
        let command = if state.is_empty() {
            Command::Destroy
        } else {
            Command::Modify
        };

        let told = Self::tell(hw, command, group, state);
        match (command, told) {
            (Command::Destroy, Ok(())) => {
                state.destroyed();
                self.del(group, state, true);
            }
            // Nothing reaches a member through a device that is gone, and its reset forgets the
            // group. The index stays taken, as the tables do not outlive the device.
            (Command::Destroy, Err(Failure::Gone(_))) => self.del(group, state, false),
            (_, answer) => {
                if answer.is_err() {
                    state.refusals = state.refusals.saturating_add(1);
                }
                self.note(group, state);
            }
        }
        told
    }

    /// Sends `command` with the members of `state`, and a share that is current, and notes the answer.
    fn tell<H: Hardware<Share = S>>(
        hw: &H,
        command: Command,
        group: &Group<N, S>,
        state: &mut State<N, S>,
    ) -> Result<(), Failure> {
        let mut members = [0; MAX_MEMBERS];
        let mut count = 0;

        for (place, member) in members.iter_mut().zip(state.members()) {
            *place = member.qp();
            count += 1;
        }
        let words = members
            .get(..count)
            .ok_or(EINVAL)
            .and_then(encode)
            .map_err(Failure::Refused)?;
        if command != Command::Destroy && !state.share.as_ref().is_some_and(|s| hw.is_current(s)) {
            state.share = Some(hw.share().map_err(Failure::Refused)?);
            // Until the device has accepted it, the device serves the group by the one before.
            state.outdated = state.phase == Phase::Live;
        }
        let share = state.share.as_ref().ok_or(Failure::Refused(EINVAL))?;
        let outcome = hw.execute(command, &group.key, group.index, share, &words);
        if outcome.is_ok() {
            state.accepted();
        }
        outcome
    }

    /// Tells the device of the shares that the groups have from now on: those from before are no more.
    /// A group for which that fails is stale. Process context.
    pub(crate) fn refresh<H: Hardware<Share = S>>(&self, hw: &H) {
        let mut from = None;

        while let Some(group) = self.next_after(from) {
            from = Some(group.key);

            let mut state = group.state.lock();
            let current = state.share.as_ref().is_some_and(|s| hw.is_current(s));
            if state.phase != Phase::Live || state.is_empty() || (current && !state.outdated) {
                continue;
            }
            state.outdated = true;
            let _ = self.settle(hw, &group, &mut state);
        }
    }

    /// Returns the group that follows `key` in the order of the tree, or the first.
    fn next_after(&self, key: Option<GroupKey>) -> Option<Arc<Group<N, S>>> {
        let inner = self.inner.lock();

        match key {
            None => inner.groups.iter().next().map(|(_, group)| group.clone()),
            Some(key) => {
                let cursor = inner.groups.cursor_lower_bound(&key)?;
                let (found, group) = cursor.current();
                if *found > key {
                    return Some(group.clone());
                }
                cursor.peek_next().map(|(_, group)| group.clone())
            }
        }
    }

    /// Describes the group that follows `after` in the order of keys, or the first.
    ///
    /// No lock is held between two calls, and none is waited for that is held over a command: of a
    /// group that a command is running for, only the name is told. Process context.
    pub(crate) fn view(&self, after: Option<GroupKey>) -> Option<GroupView> {
        self.next_after(after).map(|group| Self::describe(&group))
    }

    /// Describes the group with this key, if there is one, as [`Self::view`] does.
    pub(crate) fn view_of(&self, key: GroupKey) -> Option<GroupView> {
        self.lookup_ip(key.ip, key.vlan)
            .map(|group| Self::describe(&group))
    }

    fn describe(group: &Group<N, S>) -> GroupView {
        match group.state.try_lock() {
            Some(state) => GroupView::new(group, &state),
            None => GroupView::busy(group),
        }
    }
}
