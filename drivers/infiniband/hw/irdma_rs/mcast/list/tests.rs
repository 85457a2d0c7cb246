// SPDX-License-Identifier: GPL-2.0

//! The list, one rule after the other, on a device that does as it is told.

use core::net::Ipv4Addr;

use kernel::{
    new_spinlock,
    sync::{
        atomic::Relaxed,
        SpinLock, //
    },
    time::Delta,
};

use super::{
    stale::REFUSALS_PER_RETRY,
    *, //
};
use crate::mcast::{
    context::McgMember,
    index::GroupIndex,
    view::GroupState, //
};

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

#[kernel::macros::kunit_tests(irdma_rs_mcast_list)]
mod suite {
    use super::*;

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
