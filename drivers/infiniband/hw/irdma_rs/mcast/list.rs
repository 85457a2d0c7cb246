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
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
    time::{
        Delta,
        Instant, //
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
    index::{
        GroupIndex,
        IndexPool, //
    },
    view::GroupView,
};

/// Refusals after which a group is quarantined.
pub(crate) const PATIENCE: u32 = 8;

/// Refusals after which [`List::retry`] gives up for this time.
const REFUSALS_PER_RETRY: u32 = 2;

/// The operation asked of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// `CREATE_MCAST_GRP`
    Create,
    /// `MODIFY_MCAST_GRP`
    Modify,
    /// `DESTROY_MCAST_GRP`
    Destroy,
}

/// How a command ended without success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The device answered with an error, or was never asked: it is as it was before.
    Refused(Error),
    /// The device has not answered and may act on the command at any time.
    Unanswered(Error),
    /// The device takes no commands any more and will be reset before it is used again. It was not
    /// told of this one.
    Gone(Error),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(e) | Failure::Unanswered(e) | Failure::Gone(e) => e,
        }
    }
}

/// The device as the list sees it.
pub(crate) trait Hardware {
    /// What a group needs of the device besides its index, for as long as it exists.
    type Share: Send + Unpin;

    /// Takes such a share. May sleep.
    fn share(&self) -> Result<Self::Share>;

    /// Returns whether a share is still what it was when it was taken.
    fn is_current(&self, _share: &Self::Share) -> bool {
        true
    }

    /// Carries out `command` on the group with the given key and index and member words; returns
    /// when the device has answered. May sleep.
    ///
    /// Calls for one index do not overlap.
    fn execute(
        &self,
        command: Command,
        key: &GroupKey,
        index: GroupIndex,
        share: &Self::Share,
        members: &[u64; MAX_MEMBERS],
    ) -> Result<(), Failure>;
}

/// Why commands that were refused are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// A queue pair goes away, which the device should not deliver to any more.
    Cleanup,
    /// There is no free index.
    Shortage,
    /// The device was not asked for so long.
    Overdue(Delta),
    /// The driver goes away.
    Last,
}

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
        if free_index {
            inner.indexes.release(group.index);
        }
        drop(guard);
        drop(removed);
        self.note(group, state, None);
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
                    self.note(&group, &mut state, Some(&group));
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
                self.note(group, state, Some(group));
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

    /// Enters the group among the stale ones or takes it from there, as it is now.
    ///
    /// `owner` is what to enter; without it the group is taken away whatever its state.
    fn note(&self, group: &Group<N, S>, state: &mut State<N, S>, owner: Option<&Arc<Group<N, S>>>) {
        let stale = owner.filter(|_| state.is_stale());

        if stale.is_some() == state.queued.is_some() {
            state.queued = stale.map(|_| Instant::now());
            return;
        }
        let mut inner = self.inner.lock();
        let removed = match stale {
            Some(owner) => {
                // There is room for every group in the list.
                let queued = inner.stale.push_within_capacity(owner.clone()).is_ok();
                state.queued = queued.then(Instant::now);
                None
            }
            None => {
                state.queued = None;
                let place = inner.stale.iter().position(|g| core::ptr::eq(&**g, group));
                place.and_then(|place| inner.stale.remove(place).ok())
            }
        };
        // CAST: At most as many as there are indexes.
        self.stale.store(inner.stale.len() as u32, Relaxed);
        drop(inner);
        drop(removed);
    }

    /// Repeats commands that the device refused when members left, with few refusals at a time:
    /// a device that goes on refusing costs little.
    pub(crate) fn retry<H: Hardware<Share = S>>(&self, hw: &H, occasion: Occasion) {
        let mut refusals = 0;

        for _ in 0..self.stale.load(Relaxed) {
            let Some(group) = self.next_stale() else {
                return;
            };
            let mut state = group.state.lock();
            if state.phase != Phase::Live || !state.is_stale() {
                continue;
            }
            let due = match occasion {
                Occasion::Cleanup => state.refusals < PATIENCE,
                Occasion::Overdue(time) => state.queued.is_some_and(|at| at.elapsed() >= time),
                Occasion::Shortage | Occasion::Last => true,
            };
            if !due {
                continue;
            }
            match self.settle(hw, &group, &mut state) {
                Ok(()) if occasion == Occasion::Shortage && state.phase == Phase::Retired => return,
                Ok(()) => {}
                Err(_) => refusals += 1,
            }
            if refusals >= REFUSALS_PER_RETRY && occasion != Occasion::Last {
                return;
            }
        }
    }

    /// Returns the stale group that has waited for longest; it waits for longest no more.
    fn next_stale(&self) -> Option<Arc<Group<N, S>>> {
        let mut inner = self.inner.lock();
        let group = inner.stale.remove(0).ok()?;

        // Where one was taken from there is room for one.
        inner.stale.push_within_capacity(group.clone()).ok()?;
        Some(group)
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

#[kernel::macros::kunit_tests(irdma_rs_mcast_list)]
mod tests {
    use super::*;
    use crate::mcast::{
        context::McgMember,
        view::GroupState, //
    };
    use core::net::Ipv4Addr;
    use kernel::new_spinlock;
    use kernel::sync::SpinLock;

    /// A device that keeps groups the way the contract says and fails when told to.
    #[pin_data]
    struct Fake {
        #[pin]
        inner: SpinLock<FakeInner>,
    }

    #[derive(Default)]
    struct FakeInner {
        /// By group index: the member words, if the group exists.
        groups: [Option<[u64; MAX_MEMBERS]>; 8],
        commands: u32,
        /// Commands to let through before `failure` strikes, and what it is.
        plan: Option<(u32, Failure)>,
        /// Every `Destroy` is refused.
        refuse_destroy: bool,
        /// Shares are of this generation.
        generation: u32,
    }

    impl Fake {
        fn new() -> Result<Arc<Self>> {
            Arc::pin_init(
                pin_init!(Self {
                    inner <- new_spinlock!(FakeInner::default()),
                }),
                GFP_KERNEL,
            )
        }

        fn fail(&self, after: u32, failure: Failure) {
            self.inner.lock().plan = Some((after, failure));
        }

        fn refuse_destroy(&self, refuse: bool) {
            self.inner.lock().refuse_destroy = refuse;
        }

        fn commands(&self) -> u32 {
            self.inner.lock().commands
        }

        fn groups(&self) -> usize {
            self.inner.lock().groups.iter().flatten().count()
        }

        fn serves(&self, index: GroupIndex, qp: u32) -> bool {
            let inner = self.inner.lock();
            let words = inner
                .groups
                .get(usize::from(index.get()))
                .copied()
                .flatten();

            words.is_some_and(|words| {
                words.iter().any(|word| {
                    let word = McgMember::from_raw(*word);
                    word.valid().into_bool() && word.qp_id() == u64::from(qp)
                })
            })
        }
    }

    impl Hardware for Arc<Fake> {
        type Share = u32;

        fn share(&self) -> Result<u32> {
            Ok(self.inner.lock().generation)
        }

        fn is_current(&self, share: &u32) -> bool {
            self.inner.lock().generation == *share
        }

        fn execute(
            &self,
            command: Command,
            _key: &GroupKey,
            index: GroupIndex,
            share: &u32,
            members: &[u64; MAX_MEMBERS],
        ) -> Result<(), Failure> {
            let mut inner = self.inner.lock();

            inner.commands += 1;
            assert!(command == Command::Destroy || inner.generation == *share);
            match inner.plan.take() {
                Some((0, failure)) => return Err(failure),
                Some((n, failure)) => inner.plan = Some((n - 1, failure)),
                None => {}
            }
            if inner.refuse_destroy && command == Command::Destroy {
                return Err(Failure::Refused(EIO));
            }
            let place = inner
                .groups
                .get_mut(usize::from(index.get()))
                .ok_or(Failure::Refused(EIO))?;
            match (command, place.is_some()) {
                (Command::Create, false) | (Command::Modify, true) => *place = Some(*members),
                (Command::Destroy, true) => *place = None,
                _ => return Err(Failure::Refused(EIO)),
            }
            Ok(())
        }
    }

    fn list(objects: u32) -> Result<Arc<List<Arc<u32>, u32>>> {
        Arc::pin_init(List::new(objects), GFP_KERNEL)
    }

    fn qp(number: u32) -> Result<Arc<u32>> {
        Ok(Arc::new(number, GFP_KERNEL)?)
    }

    fn key(last: u8) -> GroupKey {
        GroupKey {
            ip: IpAddr::V4(Ipv4Addr::new(239, 1, 2, last)),
            vlan: None,
        }
    }

    #[test]
    fn makes_one_group_and_removes_it_with_the_last_member() -> Result {
        let (list, hw) = (list(8)?, Fake::new()?);

        list.attach(&hw, key(1), &qp(5)?)?;
        list.attach(&hw, key(1), &qp(6)?)?;
        list.attach(&hw, key(1), &qp(5)?)?;
        assert_eq!(hw.commands(), 2);
        let index = list.lookup_ip(key(1).ip, None).ok_or(EINVAL)?.index;
        assert!(hw.serves(index, 5) && hw.serves(index, 6));
        list.detach(&hw, key(1), 5)?;
        assert_eq!(hw.commands(), 2);
        list.detach(&hw, key(1), 5)?;
        assert!(!hw.serves(index, 5) && hw.serves(index, 6));
        list.detach(&hw, key(1), 6)?;
        assert_eq!(hw.groups(), 0);
        assert!(list.lookup_ip(key(1).ip, None).is_none());
        Ok(())
    }

    #[test]
    fn refuses_what_is_not_attached_without_a_command() -> Result {
        let (list, hw) = (list(8)?, Fake::new()?);

        assert_eq!(list.detach(&hw, key(1), 5), Err(EINVAL));
        list.attach(&hw, key(1), &qp(5)?)?;
        let before = hw.commands();
        assert_eq!(list.detach(&hw, key(1), 6), Err(EINVAL));
        assert_eq!(hw.commands(), before);
        Ok(())
    }

    #[test]
    fn runs_out_of_groups_exactly_at_the_capacity() -> Result {
        let (list, hw) = (list(4)?, Fake::new()?);

        assert_eq!(list.capacity(), 3);
        for i in 0..3 {
            list.attach(&hw, key(i), &qp(5)?)?;
        }
        assert_eq!(list.attach(&hw, key(3), &qp(5)?), Err(ENOMEM));
        list.detach(&hw, key(1), 5)?;
        list.attach(&hw, key(3), &qp(5)?)?;
        assert_eq!(list.attach(&hw, key(1), &qp(5)?), Err(ENOMEM));
        Ok(())
    }

    #[test]
    fn leaves_no_trace_of_a_failed_first_attach() -> Result {
        let (list, hw) = (list(2)?, Fake::new()?);

        hw.fail(0, Failure::Refused(EIO));
        assert_eq!(list.attach(&hw, key(1), &qp(5)?), Err(EIO));
        assert!(list.lookup_ip(key(1).ip, None).is_none());
        // The only index there is.
        list.attach(&hw, key(2), &qp(5)?)
    }

    #[test]
    fn never_reuses_an_index_the_device_may_still_act_on() -> Result {
        let (list, hw) = (list(2)?, Fake::new()?);

        hw.fail(0, Failure::Unanswered(ETIMEDOUT));
        assert_eq!(list.attach(&hw, key(1), &qp(5)?), Err(ETIMEDOUT));
        assert_eq!(list.attach(&hw, key(1), &qp(5)?), Err(ENOMEM));
        Ok(())
    }

    #[test]
    fn detaches_even_if_the_device_refuses_and_tries_again() -> Result {
        let (list, hw) = (list(2)?, Fake::new()?);

        list.attach(&hw, key(1), &qp(5)?)?;
        hw.fail(0, Failure::Refused(EIO));
        list.detach(&hw, key(1), 5)?;
        assert_eq!(hw.groups(), 1);
        // The index is needed: the list tries again and finds it free.
        list.attach(&hw, key(2), &qp(5)?)?;
        assert_eq!(hw.groups(), 1);
        assert!(list.lookup_ip(key(1).ip, None).is_none());
        Ok(())
    }

    #[test]
    fn reuses_a_group_that_could_not_be_destroyed() -> Result {
        let (list, hw) = (list(8)?, Fake::new()?);

        list.attach(&hw, key(1), &qp(5)?)?;
        hw.fail(0, Failure::Refused(EIO));
        list.detach(&hw, key(1), 5)?;
        list.attach(&hw, key(1), &qp(6)?)?;
        let index = list.lookup_ip(key(1).ip, None).ok_or(EINVAL)?.index;
        assert!(hw.serves(index, 6) && !hw.serves(index, 5));
        list.detach(&hw, key(1), 6)?;
        assert_eq!(hw.groups(), 0);
        Ok(())
    }

    #[test]
    fn holds_back_the_number_of_a_queue_pair_still_served() -> Result {
        let (list, hw) = (list(8)?, Fake::new()?);
        let five = qp(5)?;

        list.attach(&hw, key(1), &five)?;
        list.attach(&hw, key(1), &qp(6)?)?;
        hw.fail(0, Failure::Refused(EIO));
        list.detach(&hw, key(1), 5)?;
        hw.fail(0, Failure::Refused(EIO));
        list.retry(&hw, Occasion::Cleanup);
        // The list has another reference.
        assert!(Arc::into_unique_or_drop(five.clone()).is_none());
        list.retry(&hw, Occasion::Cleanup);
        assert!(Arc::into_unique_or_drop(five).is_some());
        Ok(())
    }

    #[test]
    fn lets_go_of_a_number_when_an_attach_made_the_group_whole() -> Result {
        let (list, hw) = (list(8)?, Fake::new()?);
        let five = qp(5)?;

        list.attach(&hw, key(1), &five)?;
        list.attach(&hw, key(1), &qp(6)?)?;
        hw.fail(0, Failure::Refused(EIO));
        list.detach(&hw, key(1), 5)?;
        list.attach(&hw, key(1), &qp(7)?)?;
        assert!(Arc::into_unique_or_drop(five).is_some());
        assert_eq!(list.stale.load(Relaxed), 0);
        Ok(())
    }

    #[test]
    fn quarantines_what_is_refused_again_and_again() -> Result {
        let (list, hw) = (list(2)?, Fake::new()?);

        list.attach(&hw, key(1), &qp(5)?)?;
        hw.refuse_destroy(true);
        list.detach(&hw, key(1), 5)?;
        for _ in 0..2 * PATIENCE {
            list.retry(&hw, Occasion::Cleanup);
        }
        // One to create, and as many refusals as it has patience for.
        assert_eq!(hw.commands(), 1 + PATIENCE);
        let view = list.view(None).ok_or(EINVAL)?;
        assert_eq!(view.state, GroupState::Quarantined);
        assert_eq!(view.refusals, PATIENCE);
        assert!(list.view(Some(view.key)).is_none());

        assert_eq!(list.attach(&hw, key(2), &qp(6)?), Err(ENOMEM));
        assert_eq!(hw.commands(), 2 + PATIENCE);
        hw.refuse_destroy(false);
        // When the index is needed it is asked for once more.
        list.attach(&hw, key(2), &qp(6)?)?;
        assert_eq!(hw.groups(), 1);
        Ok(())
    }

    #[test]
    fn asks_again_when_time_has_passed() -> Result {
        let (list, hw) = (list(8)?, Fake::new()?);

        list.attach(&hw, key(1), &qp(5)?)?;
        hw.refuse_destroy(true);
        list.detach(&hw, key(1), 5)?;
        for _ in 0..PATIENCE {
            list.retry(&hw, Occasion::Cleanup);
        }
        let before = hw.commands();
        list.retry(&hw, Occasion::Overdue(Delta::from_secs(3600)));
        assert_eq!(hw.commands(), before);
        // In quarantine, too.
        list.retry(&hw, Occasion::Overdue(Delta::ZERO));
        assert_eq!(hw.commands(), before + 1);
        hw.refuse_destroy(false);
        list.retry(&hw, Occasion::Overdue(Delta::ZERO));
        assert!(list.view(None).is_none());
        Ok(())
    }

    #[test]
    fn tells_the_device_of_new_shares() -> Result {
        let (list, hw) = (list(8)?, Fake::new()?);

        for i in 0..3 {
            list.attach(&hw, key(i), &qp(5)?)?;
        }
        hw.inner.lock().generation += 1;
        // Whatever has to be told anyway tells this, too.
        list.attach(&hw, key(0), &qp(6)?)?;
        hw.fail(0, Failure::Refused(EIO));
        let before = hw.commands();
        list.refresh(&hw);
        assert_eq!(hw.commands(), before + 2);
        assert_eq!(list.stale.load(Relaxed), 1);
        list.retry(&hw, Occasion::Cleanup);
        assert_eq!(list.stale.load(Relaxed), 0);
        let before = hw.commands();
        list.refresh(&hw);
        assert_eq!(hw.commands(), before);
        Ok(())
    }

    #[test]
    fn gives_up_early_on_a_device_that_refuses() -> Result {
        let (list, hw) = (list(8)?, Fake::new()?);

        for i in 0..6 {
            list.attach(&hw, key(i), &qp(5)?)?;
        }
        hw.refuse_destroy(true);
        for i in 0..6 {
            list.detach(&hw, key(i), 5)?;
        }
        let before = hw.commands();
        list.retry(&hw, Occasion::Cleanup);
        assert_eq!(hw.commands(), before + REFUSALS_PER_RETRY);
        hw.refuse_destroy(false);
        list.retry(&hw, Occasion::Cleanup);
        assert_eq!(hw.groups(), 0);
        assert!(list.view(None).is_none());
        Ok(())
    }

    #[test]
    fn lets_go_of_everything_on_a_device_that_is_gone() -> Result {
        let (list, hw) = (list(8)?, Fake::new()?);

        list.attach(&hw, key(1), &qp(5)?)?;
        hw.fail(0, Failure::Gone(EBUSY));
        list.detach(&hw, key(1), 5)?;
        assert!(list.lookup_ip(key(1).ip, None).is_none());
        Ok(())
    }

    #[test]
    fn a_failed_later_attach_keeps_the_others() -> Result {
        let (list, hw) = (list(8)?, Fake::new()?);

        list.attach(&hw, key(1), &qp(5)?)?;
        hw.fail(0, Failure::Refused(EIO));
        assert_eq!(list.attach(&hw, key(1), &qp(6)?), Err(EIO));
        let index = list.lookup_ip(key(1).ip, None).ok_or(EINVAL)?.index;
        assert!(hw.serves(index, 5) && !hw.serves(index, 6));
        assert_eq!(list.detach(&hw, key(1), 6), Err(EINVAL));
        list.detach(&hw, key(1), 5)
    }
}
