// SPDX-License-Identifier: GPL-2.0

//! Random operations on the list, next to a reference model that is too simple to be wrong.
//!
//! After each step the list, the device and the model are compared. The model is a table of counts:
//! how often each queue pair is attached to each group. Whatever fails on the way, the three agree, or
//! the list knows the difference.

use kernel::{
    prelude::*,
    sync::Arc,
    time::Delta, //
};
use rdma::testing::random::Random;

use super::{
    device::{
        key,
        Held,
        Temper, //
    },
    rig::{
        number,
        Rig, //
    },
    view::View,
};
use crate::mcast::{
    context::MAX_MEMBERS,
    list::Occasion, //
};

/// Queue pairs; more than a group has places.
const QPS: usize = 12;

/// Most groups of a run.
const MAX_KEYS: usize = 16;

/// What a sequence is made of.
#[derive(Clone, Copy)]
struct Plan {
    /// Group objects the device granted.
    objects: u32,
    /// Groups in use; more than `objects - 1` to run out of them.
    keys: u32,
    steps: u32,
    temper: Temper,
}

/// One run.
struct Run {
    plan: Plan,
    rig: Rig,
    random: Random,
    /// By key and queue pair: how often attached.
    counts: KVec<[u32; QPS]>,
    /// The queue pairs that exist.
    qps: [Option<Arc<Held>>; QPS],
}

impl Run {
    fn new(plan: Plan, seed: u64) -> Result<Self> {
        let mut counts = KVec::new();

        for _ in 0..plan.keys {
            counts.push([0; QPS], GFP_KERNEL)?;
        }
        Ok(Self {
            plan,
            rig: Rig::new("sequences", plan.objects, plan.temper, QPS, seed)?,
            random: Random::new(seed),
            counts,
            qps: [const { None }; QPS],
        })
    }

    fn count(&self, k: u32, qp: usize) -> u32 {
        self.counts
            .get(k as usize)
            .and_then(|row| row.get(qp))
            .copied()
            .unwrap_or(0)
    }

    fn count_mut(&mut self, k: u32, qp: usize) -> Result<&mut u32> {
        self.counts
            .get_mut(k as usize)
            .and_then(|row| row.get_mut(qp))
            .ok_or(EINVAL)
    }

    fn members(&self, k: u32) -> usize {
        self.counts
            .get(k as usize)
            .map_or(0, |row| row.iter().filter(|count| **count > 0).count())
    }

    fn attach(&mut self, k: u32, qp: usize) -> Result {
        let is_member = self.count(k, qp) > 0;
        let full = !is_member && self.members(k) == MAX_MEMBERS;
        let before = self.rig.device.commands();
        let held = self.qps.get(qp).and_then(Option::as_ref).ok_or(EINVAL)?;
        let result = self.rig.list.attach(&self.rig.device, key(k), held);

        match result {
            Ok(()) => {
                self.rig.expect(!full, "a ninth member was accepted")?;
                *self.count_mut(k, qp)? += 1;
            }
            Err(error) if full => {
                self.rig
                    .expect(error == ENOMEM, "a ninth member is not ENOMEM")?;
            }
            Err(error) if self.rig.device.failed_with(error) => {}
            Err(error) => {
                self.rig
                    .expect(error == ENOMEM, "an attach failed for no reason")?;
                // All indexes are taken, and none of them by mistake.
                self.rig.expect(
                    self.rig.device.is_dead() || !self.rig.device.has(&key(k)),
                    "a group that exists had no index",
                )?;
                let taken = u32::try_from(self.rig.device.groups())?;
                self.rig.expect(
                    taken == self.rig.list.capacity() || self.rig.device.is_dead(),
                    "out of indexes before all were in use",
                )?;
            }
        }
        if is_member {
            self.rig
                .expect(result.is_ok(), "another use of a member failed")?;
            self.rig.expect(
                self.rig.device.commands() == before,
                "another use of a member cost a command",
            )?;
        }
        Ok(())
    }

    fn detach(&mut self, k: u32, qp: usize) -> Result {
        let count = self.count(k, qp);
        let before = self.rig.device.commands();
        let result = self.rig.list.detach(&self.rig.device, key(k), number(qp));

        if count == 0 {
            self.rig
                .expect(result == Err(EINVAL), "a detach of no member succeeded")?;
            return self.rig.expect(
                self.rig.device.commands() == before,
                "a detach of no member cost a command",
            );
        }
        self.rig.expect(result.is_ok(), "a detach failed")?;
        if count > 1 {
            self.rig.expect(
                self.rig.device.commands() == before,
                "a use that was not the last cost a command",
            )?;
        }
        *self.count_mut(k, qp)? -= 1;
        Ok(())
    }

    /// Creates the queue pair if its number is free; returns whether it exists.
    fn create_qp(&mut self, qp: usize) -> Result<bool> {
        let place = self.qps.get_mut(qp).ok_or(EINVAL)?;

        if place.is_none() {
            *place = self.rig.hold(qp)?;
        }
        Ok(place.is_some())
    }

    /// Detaches the queue pair from everything, as the core does, and destroys it.
    fn destroy_qp(&mut self, qp: usize) -> Result {
        for k in 0..self.plan.keys {
            while self.count(k, qp) > 0 {
                self.detach(k, qp)?;
            }
        }
        drop(self.qps.get_mut(qp).and_then(Option::take));
        self.rig.list.retry(&self.rig.device, Occasion::Cleanup);
        Ok(())
    }

    fn step(&mut self) -> Result {
        let k = self.random.below(self.plan.keys);
        let qp = self.random.index(QPS);

        self.rig.device.forget_errors();
        match self.random.below(100) {
            0..50 => {
                if self.create_qp(qp)? {
                    self.attach(k, qp)?;
                }
            }
            50..85 => self.detach(k, qp)?,
            85..91 => self.destroy_qp(qp)?,
            91..96 => {
                let occasion = match self.random.below(4) {
                    0 => Occasion::Cleanup,
                    1 => Occasion::Shortage,
                    2 => Occasion::Overdue(Delta::ZERO),
                    _ => Occasion::Last,
                };
                self.rig.list.retry(&self.rig.device, occasion);
            }
            96..98 => {
                self.rig.device.renew_shares();
                self.rig.list.refresh(&self.rig.device);
            }
            _ => self.rig.device.wake(),
        }
        self.rig.expect_no_violation()?;
        self.check_group(k)?;
        // All groups now and then: each costs locks and, on a debug kernel, time.
        if self.rig.step % 8 == 0 {
            self.check()?;
        }
        Ok(())
    }

    /// Compares the three for one group; returns its index.
    fn check_group(&self, k: u32) -> Result<Option<u16>> {
        let Some(view) = View::of(&self.rig.list, &key(k)) else {
            self.rig
                .expect(self.members(k) == 0, "a group with members is not found")?;
            self.rig.expect(
                self.rig.device.is_dead() || !self.rig.device.has(&key(k)),
                "the device has a group that the list does not know of",
            )?;
            return Ok(None);
        };
        self.rig.expect(
            view.index != 0 && view.index < self.rig.list.limit(),
            "an index is out of range",
        )?;
        self.rig.expect(
            view.members() == self.members(k),
            "the number of members is wrong",
        )?;
        for qp in 0..QPS {
            self.rig.expect(
                view.uses(number(qp)) == self.count(k, qp),
                "a count of uses is wrong",
            )?;
        }
        // What a dead device holds is open until its reset.
        if !self.rig.device.is_dead() {
            self.rig
                .expect(!view.is_void(), "an empty group stays for no reason")?;
            if let Some(what) = view.disagreement(&self.rig.device) {
                self.rig.expect(false, what)?;
            }
        }
        Ok(Some(view.index))
    }

    /// Compares the three.
    fn check(&self) -> Result {
        let mut indexes = [0; MAX_KEYS];
        let mut groups = 0;

        for k in 0..self.plan.keys {
            let Some(index) = self.check_group(k)? else {
                continue;
            };
            let seen = indexes.get(..groups).ok_or(EINVAL)?;
            self.rig
                .expect(!seen.contains(&index), "two groups have one index")?;
            *indexes.get_mut(groups).ok_or(EINVAL)? = index;
            groups += 1;
        }
        self.rig.expect(
            usize::try_from(self.rig.list.count()) == Ok(groups),
            "the list counts another number of groups",
        )?;
        if !self.rig.device.is_dead() {
            self.rig.expect(
                groups == self.rig.device.groups(),
                "list and device differ in the number of groups",
            )?;
            self.rig.expect(
                usize::try_from(self.rig.device.shares()) == Ok(groups),
                "groups and shares differ in number",
            )?;
        }
        Ok(())
    }

    /// Takes everything apart on a device that obeys; nothing may be left, and all be usable again.
    fn finish(&mut self) -> Result {
        self.rig.step = u32::MAX;
        self.rig.obey();
        for qp in 0..QPS {
            self.destroy_qp(qp)?;
        }
        self.check()?;
        if self.rig.device.is_dead() {
            return Ok(());
        }
        self.rig.expect_empty()?;

        // The capacity is exact, whatever went before.
        let capacity = self.rig.list.capacity();
        let held = self.rig.hold(0)?.ok_or(EINVAL)?;
        for n in 0..capacity {
            let attached = self.rig.list.attach(&self.rig.device, key(n), &held);
            self.rig.expect(attached.is_ok(), "an index was lost")?;
        }
        let over = self.rig.list.attach(&self.rig.device, key(capacity), &held);
        self.rig.expect(over == Err(ENOMEM), "one group too many")?;
        for n in 0..capacity {
            let detached = self.rig.list.detach(&self.rig.device, key(n), number(0));
            self.rig
                .expect(detached.is_ok(), "a detach failed at the end")?;
        }
        drop(held);
        self.rig.expect_empty()
    }

    fn run(plan: Plan, seed: u64) -> Result {
        let mut run = Self::new(plan, seed)?;

        for step in 0..plan.steps {
            run.rig.step = step;
            run.step()?;
        }
        run.finish()
    }
}

/// As many groups as keys.
const ROOMY: Plan = Plan {
    objects: 64,
    keys: 14,
    steps: 2000,
    temper: Temper::OBEDIENT,
};

/// More keys than groups.
const TIGHT: Plan = Plan {
    objects: 7,
    keys: 11,
    ..ROOMY
};

#[kernel::macros::kunit_tests(irdma_rs_mcast_sequences)]
mod suite {
    use super::*;

    #[test]
    fn agrees_with_the_model_on_a_device_that_obeys() -> Result {
        for seed in 0..3 {
            Run::run(ROOMY, seed)?;
        }
        Ok(())
    }

    #[test]
    fn agrees_with_the_model_when_groups_run_out() -> Result {
        for seed in 10..13 {
            Run::run(TIGHT, seed)?;
        }
        Ok(())
    }

    #[test]
    fn agrees_with_the_model_when_commands_are_refused_now_and_then() -> Result {
        let temper = Temper {
            refuse: 50,
            no_share: 20,
            ..Temper::OBEDIENT
        };

        for seed in 20..23 {
            Run::run(Plan { temper, ..ROOMY }, seed)?;
            Run::run(Plan { temper, ..TIGHT }, seed)?;
        }
        Ok(())
    }

    #[test]
    fn agrees_with_the_model_when_most_commands_are_refused() -> Result {
        let temper = Temper {
            refuse: 700,
            no_share: 100,
            ..Temper::OBEDIENT
        };

        for seed in 30..33 {
            Run::run(Plan { temper, ..ROOMY }, seed)?;
            Run::run(Plan { temper, ..TIGHT }, seed)?;
        }
        Ok(())
    }

    /// The device's resources are free with the last member, not with the last reference.
    #[test]
    fn a_group_that_has_gone_keeps_no_share_for_those_who_look_at_it() -> Result {
        let rig = Rig::new("share", 8, Temper::OBEDIENT, 1, 0)?;
        let held = rig.hold(0)?.ok_or(EINVAL)?;

        rig.list.attach(&rig.device, key(0), &held)?;
        let group = rig.list.lookup_ip(key(0).ip, key(0).vlan).ok_or(EINVAL)?;
        rig.list.detach(&rig.device, key(0), number(0))?;
        drop(held);
        rig.expect_empty()?;
        drop(group);
        Ok(())
    }

    /// Many short runs, each with one command that is never answered, or late.
    #[test]
    fn lets_go_of_members_of_a_device_that_died() -> Result {
        let temper = Temper {
            refuse: 50,
            swallow: 20,
            ..Temper::OBEDIENT
        };
        let mut died = 0;

        for seed in 40..80 {
            let plan = Plan {
                steps: 250,
                temper,
                ..TIGHT
            };
            let mut run = Run::new(plan, seed)?;

            for step in 0..plan.steps {
                run.rig.step = step;
                run.step()?;
            }
            died += u32::from(run.rig.device.is_dead());
            run.finish()?;
        }
        // Else the test showed nothing.
        assert!(died > 20);
        Ok(())
    }
}
