// SPDX-License-Identifier: GPL-2.0

//! Random operations on the list, next to a reference model that is too simple to be wrong.
//!
//! After each step the list, the device and the model are compared. The model is a table of counts:
//! how often each queue pair is attached to each group. Whatever fails on the way, the three agree, or
//! the list knows the difference.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};
use rdma::testing::random::Random;

use super::{
    device::{
        key,
        Device,
        Held,
        Share,
        Temper, //
    },
    view::View,
};
use crate::mcast::{
    context::MAX_MEMBERS,
    list::{
        List,
        Occasion, //
    }, //
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
    seed: u64,
    step: u32,
    random: Random,
    device: Arc<Device>,
    list: Arc<List<Arc<Held>, Share>>,
    /// By key and queue pair: how often attached.
    counts: KVec<[u32; QPS]>,
    /// The number of a queue pair is free: the queue pair does not exist.
    free: KVec<Arc<Atomic<bool>>>,
    /// The queue pairs that exist.
    qps: [Option<Arc<Held>>; QPS],
}

/// Number of the queue pair with this index; at the upper end of what members can name.
fn number(qp: usize) -> u32 {
    // CAST: Below `QPS`.
    0x3ffff - qp as u32
}

impl Run {
    fn new(plan: Plan, seed: u64) -> Result<Self> {
        let list = Arc::pin_init(List::new(plan.objects), GFP_KERNEL)?;
        let mut free = KVec::with_capacity(QPS, GFP_KERNEL)?;
        let mut counts = KVec::new();

        for _ in 0..QPS {
            free.push(Arc::new(Atomic::new(true), GFP_KERNEL)?, GFP_KERNEL)?;
        }
        for _ in 0..plan.keys {
            counts.push([0; QPS], GFP_KERNEL)?;
        }
        Ok(Self {
            plan,
            seed,
            step: 0,
            random: Random::new(seed),
            device: Device::new(list.limit(), seed ^ 0x5eed, plan.temper)?,
            list,
            counts,
            free,
            qps: [const { None }; QPS],
        })
    }

    /// Ends the run with a line that says where it can be looked at, unless `good`.
    fn expect(&self, good: bool, what: &str) -> Result {
        if good {
            return Ok(());
        }
        pr_err!(
            "irdma_rs: mcast: seed {}, step {}: {what}\n",
            self.seed,
            self.step
        );
        Err(EINVAL)
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
        let before = self.device.commands();
        let held = self.qps.get(qp).and_then(Option::as_ref).ok_or(EINVAL)?;
        let result = self.list.attach(&self.device, key(k), held);

        match result {
            Ok(()) => {
                self.expect(!full, "a ninth member was accepted")?;
                *self.count_mut(k, qp)? += 1;
            }
            Err(error) if full => {
                self.expect(error == ENOMEM, "a ninth member is not ENOMEM")?;
            }
            Err(error) if self.device.failed_with(error) => {}
            Err(error) => {
                self.expect(error == ENOMEM, "an attach failed for no reason")?;
                // All indexes are taken, and none of them by mistake.
                self.expect(
                    self.device.is_dead() || !self.device.has(&key(k)),
                    "a group that exists had no index",
                )?;
                let taken = u32::try_from(self.device.groups())?;
                self.expect(
                    taken == self.list.capacity() || self.device.is_dead(),
                    "out of indexes before all were in use",
                )?;
            }
        }
        if is_member {
            self.expect(result.is_ok(), "another use of a member failed")?;
            self.expect(
                self.device.commands() == before,
                "another use of a member cost a command",
            )?;
        }
        Ok(())
    }

    fn detach(&mut self, k: u32, qp: usize) -> Result {
        let count = self.count(k, qp);
        let before = self.device.commands();
        let result = self.list.detach(&self.device, key(k), number(qp));

        if count == 0 {
            self.expect(result == Err(EINVAL), "a detach of no member succeeded")?;
            return self.expect(
                self.device.commands() == before,
                "a detach of no member cost a command",
            );
        }
        self.expect(result.is_ok(), "a detach failed")?;
        if count > 1 {
            self.expect(
                self.device.commands() == before,
                "a use that was not the last cost a command",
            )?;
        }
        *self.count_mut(k, qp)? -= 1;
        Ok(())
    }

    /// Creates the queue pair if its number is free; returns whether it exists.
    fn create_qp(&mut self, qp: usize) -> Result<bool> {
        let free = self.free.get(qp).ok_or(EINVAL)?;
        let place = self.qps.get_mut(qp).ok_or(EINVAL)?;

        if place.is_none() && free.load(Relaxed) {
            *place = Some(Held::new(number(qp), free, &self.device)?);
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
        self.list.retry(&self.device, Occasion::Cleanup);
        Ok(())
    }

    fn step(&mut self) -> Result {
        let k = self.random.below(self.plan.keys);
        let qp = self.random.index(QPS);

        self.device.forget_errors();
        match self.random.below(100) {
            0..50 => {
                if self.create_qp(qp)? {
                    self.attach(k, qp)?;
                }
            }
            50..85 => self.detach(k, qp)?,
            85..91 => self.destroy_qp(qp)?,
            91..96 => {
                let occasion = match self.random.below(3) {
                    0 => Occasion::Cleanup,
                    1 => Occasion::Shortage,
                    _ => Occasion::Last,
                };
                self.list.retry(&self.device, occasion);
            }
            96..98 => {
                self.device.renew_shares();
                self.list.refresh(&self.device);
            }
            _ => self.device.wake(),
        }
        if let Some(violation) = self.device.violation() {
            return self.expect(false, violation);
        }
        self.check_group(k)?;
        // All groups now and then: each costs locks and, on a debug kernel, time.
        if self.step % 8 == 0 {
            self.check()?;
        }
        Ok(())
    }

    /// Compares the three for one group; returns its index.
    fn check_group(&self, k: u32) -> Result<Option<u16>> {
        let Some(view) = View::of(&self.list, &key(k)) else {
            self.expect(self.members(k) == 0, "a group with members is not found")?;
            self.expect(
                self.device.is_dead() || !self.device.has(&key(k)),
                "the device has a group that the list does not know of",
            )?;
            return Ok(None);
        };
        self.expect(
            view.index != 0 && view.index < self.list.limit(),
            "an index is out of range",
        )?;
        self.expect(
            view.members() == self.members(k),
            "the number of members is wrong",
        )?;
        for qp in 0..QPS {
            self.expect(
                view.uses(number(qp)) == self.count(k, qp),
                "a count of uses is wrong",
            )?;
        }
        // What a dead device holds is open until its reset.
        if !self.device.is_dead() {
            self.expect(!view.is_void(), "an empty group stays for no reason")?;
            if let Some(what) = view.disagreement(&self.device) {
                self.expect(false, what)?;
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
            self.expect(!seen.contains(&index), "two groups have one index")?;
            *indexes.get_mut(groups).ok_or(EINVAL)? = index;
            groups += 1;
        }
        if !self.device.is_dead() {
            self.expect(
                groups == self.device.groups(),
                "list and device differ in the number of groups",
            )?;
            self.expect(
                usize::try_from(self.device.shares()) == Ok(groups),
                "groups and shares differ in number",
            )?;
        }
        Ok(())
    }

    /// Takes everything apart on a device that obeys; nothing may be left, and all be usable again.
    fn finish(&mut self) -> Result {
        self.step = u32::MAX;
        self.device.set_temper(Temper::default());
        for qp in 0..QPS {
            self.destroy_qp(qp)?;
        }
        self.list.retry(&self.device, Occasion::Last);
        self.check()?;
        if self.device.is_dead() {
            return Ok(());
        }
        self.expect(self.device.groups() == 0, "a group is left in the device")?;
        self.expect(self.device.shares() == 0, "a share is left")?;
        for free in &self.free {
            self.expect(free.load(Relaxed), "a number is held back for no reason")?;
        }

        // The capacity is exact, whatever went before.
        let capacity = self.list.capacity();
        let free = Arc::new(Atomic::new(true), GFP_KERNEL)?;
        let held = Held::new(1, &free, &self.device)?;
        for n in 0..capacity {
            let attached = self.list.attach(&self.device, key(n), &held);
            self.expect(attached.is_ok(), "an index was lost")?;
        }
        let over = self.list.attach(&self.device, key(capacity), &held);
        self.expect(over == Err(ENOMEM), "one group too many")?;
        for n in 0..capacity {
            let detached = self.list.detach(&self.device, key(n), 1);
            self.expect(detached.is_ok(), "a detach failed at the end")?;
        }
        drop(held);
        self.expect(free.load(Relaxed), "a number is held back at the end")?;
        self.expect(self.device.groups() == 0, "a group is left at the end")
    }

    fn run(plan: Plan, seed: u64) -> Result {
        let mut run = Self::new(plan, seed)?;

        for step in 0..plan.steps {
            run.step = step;
            run.step()?;
        }
        run.finish()
    }
}

const OBEDIENT: Temper = Temper {
    refuse: 0,
    swallow: 0,
    no_share: 0,
    slow: false,
};

/// As many groups as keys.
const ROOMY: Plan = Plan {
    objects: 64,
    keys: 14,
    steps: 2000,
    temper: OBEDIENT,
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
            ..OBEDIENT
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
            ..OBEDIENT
        };

        for seed in 30..33 {
            Run::run(Plan { temper, ..ROOMY }, seed)?;
            Run::run(Plan { temper, ..TIGHT }, seed)?;
        }
        Ok(())
    }

    /// Many short runs, each with one command that is never answered, or late.
    #[test]
    fn lets_go_of_members_of_a_device_that_died() -> Result {
        let temper = Temper {
            refuse: 50,
            swallow: 20,
            ..OBEDIENT
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
                run.step = step;
                run.step()?;
            }
            died += u32::from(run.device.is_dead());
            run.finish()?;
        }
        // Else the test showed nothing.
        assert!(died > 20);
        Ok(())
    }
}
