// SPDX-License-Identifier: GPL-2.0

//! Long runs of the control ring next to a plain model; the device completes in any order, and makes
//! indexes up.

use super::{
    request::Pending,
    ring::Ring,
    Failure,
    Op,
    Outcome,
    Wqe, //
};
use kernel::{
    num::Bounded,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    time::Delta, //
};
use rdma::testing::random::Random;

/// Somebody who counts how often he was told.
struct Waiter(Atomic<u32>);

impl Pending for Waiter {
    fn finish(&self, _: Outcome) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn waiter() -> Result<Arc<Waiter>> {
    Ok(Arc::new(Waiter(Atomic::new(0)), GFP_KERNEL)?)
}

/// What should be on the ring, oldest first: the number of each entry since the beginning, its
/// operation, and whether it is still outstanding.
struct Model {
    head: u64,
    entries: KVec<(u64, Op, Arc<Waiter>, bool)>,
}

const ENTRIES: u64 = Ring::ENTRIES as u64;

impl Model {
    /// The place of the `n`-th entry.
    fn index(n: u64) -> Result<u16> {
        Ok(u16::try_from(n % ENTRIES)?)
    }

    /// Entries that take a place: from the oldest outstanding one on.
    fn is_full(&self) -> bool {
        self.entries.len() as u64 == ENTRIES - 1
    }

    /// The place `index` was completed; returns the operation if one was outstanding there.
    fn complete(&mut self, index: u16) -> Result<Option<(Op, Arc<Waiter>)>> {
        let mut found = None;

        for (n, op, waiter, outstanding) in &mut self.entries {
            if *outstanding && Self::index(*n)? == index {
                *outstanding = false;
                found = Some((*op, waiter.clone()));
            }
        }
        while self.entries.first().is_some_and(|(.., open)| !*open) {
            self.entries.remove(0).map_err(|_| EINVAL)?;
        }
        Ok(found)
    }
}

fn operation(random: &mut Random) -> Op {
    loop {
        let code = Bounded::<u64, 6>::try_new(u64::from(random.below(64)));
        if let Some(Ok(op)) = code.map(Op::try_from) {
            return op;
        }
    }
}

fn expect(good: bool, step: u32, what: &str) -> Result {
    if good {
        return Ok(());
    }
    pr_err!("irdma_rs: cqp: step {step}: {what}\n");
    Err(EINVAL)
}

/// One run; the device is `lag` operations behind, more or less.
fn run(seed: u64, steps: u32, lag: usize) -> Result {
    let mut ring = Ring::new()?;
    let mut random = Random::new(seed);
    let mut model = Model {
        head: 0,
        entries: KVec::with_capacity(usize::from(Ring::ENTRIES), GFP_KERNEL)?,
    };

    ring.revive();
    for step in 0..steps {
        if random.chance(1, 20) {
            // Any number the device can make up, also one that is outstanding.
            let index = random.bits16(16);
            let expected = model.complete(index)?;
            let slot = ring.complete(index);
            expect(
                slot.map(|slot| slot.op) == expected.map(|(op, _)| op),
                step,
                "completion of a made up index",
            )?;
        } else if model.entries.len() < lag || random.chance(9, 20) {
            let op = operation(&mut random);
            let waiter = waiter()?;
            let posted = ring.post(op, &Wqe::new(), waiter.clone());

            if model.is_full() {
                let refused = matches!(posted, Err(Failure::NotSent(EAGAIN)));
                expect(refused, step, "a full ring took an operation")?;
                continue;
            }
            let Ok(posted) = posted else {
                return expect(false, step, "a ring with room refused");
            };
            let valid = (model.head / ENTRIES) % 2 == 0;
            let [.., header, _, _, _, _] = posted.words;
            let code = u64::from(Bounded::<u64, 6>::from(op).get());
            expect(posted.index == Model::index(model.head)?, step, "place")?;
            expect(posted.head == Model::index(model.head + 1)?, step, "head")?;
            expect(header >> 63 == u64::from(valid), step, "polarity")?;
            expect(header >> 32 & 0x3f == code, step, "operation code")?;
            model
                .entries
                .push((model.head, op, waiter, true), GFP_KERNEL)?;
            model.head += 1;
        } else {
            // Mostly the old ones, as otherwise the ring would soon be full for good.
            let all = model.entries.len();
            let old = random.chance(3, 4);
            let at = random.index(if old { all.min(4) } else { all });
            let Some(index) = model.entries.get(at).map(|(n, ..)| Model::index(*n)) else {
                continue;
            };
            let index = index?;
            let expected = model.complete(index)?;
            let slot = ring.complete(index);
            expect(
                slot.is_some() == expected.is_some(),
                step,
                "a completion was lost or made up",
            )?;
            if let (Some(slot), Some((op, waiter))) = (slot, expected) {
                expect(slot.op == op, step, "operation of a completion")?;
                slot.pending.finish(Err(Failure::TimedOut));
                expect(waiter.0.load(Relaxed) == 1, step, "the wrong one was told")?;
            }
        }
    }

    // A dead ring gives every operation back, once, oldest first.
    let oldest = model.entries.first().map(|(_, op, ..)| *op);
    expect(ring.die(ETIMEDOUT) == oldest, steps, "oldest operation")?;
    for (_, op, waiter, outstanding) in &model.entries {
        if !*outstanding {
            continue;
        }
        let slot = ring.retire_oldest().ok_or(EINVAL)?;
        slot.pending.finish(Err(Failure::TimedOut));
        expect(slot.op == *op, steps, "order of what is given back")?;
        expect(waiter.0.load(Relaxed) == 1, steps, "who is told at the end")?;
    }
    expect(ring.retire_oldest().is_none(), steps, "something is left")?;
    expect(model.head > 3 * ENTRIES, steps, "too few passes")
}

#[kernel::macros::kunit_tests(irdma_rs_cqp_ring_model)]
mod suite {
    use super::*;

    #[test]
    fn agrees_with_a_model_over_several_passes() -> Result {
        run(1, 16_000, 4)?;
        run(2, 16_000, 60)
    }

    /// The device completes all but one: the ring fills up behind it, and goes on when that one is
    /// there.
    #[test]
    fn one_slow_operation_fills_the_ring() -> Result {
        let mut ring = Ring::new()?;
        ring.revive();

        for pass in 0..3u64 {
            let slow = ring.post(Op::CreateQp, &Wqe::new(), waiter()?)?;
            for _ in 0..ENTRIES - 2 {
                let posted = ring.post(Op::CreateCq, &Wqe::new(), waiter()?)?;
                assert!(ring.complete(posted.index).is_some());
            }
            assert!(matches!(
                ring.post(Op::CreateCq, &Wqe::new(), waiter()?),
                Err(Failure::NotSent(EAGAIN))
            ));
            assert!(ring.complete(slow.index).is_some());
            assert!(ring.retire_oldest().is_none());
            let next = ring.post(Op::CreateCq, &Wqe::new(), waiter()?)?;
            assert_eq!(u64::from(next.index), ((pass + 1) * ENTRIES - 1) % ENTRIES);
            assert!(ring.complete(next.index).is_some());
        }
        Ok(())
    }

    #[test]
    fn nothing_stalls_on_an_idle_or_dead_ring() -> Result {
        let mut ring = Ring::new()?;
        let never = Delta::from_nanos(-1);

        assert!(!ring.has_stalled(never) && !ring.has_lost(never));
        ring.revive();
        assert!(!ring.has_stalled(never) && !ring.has_lost(never));
        let posted = ring.post(Op::CreateQp, &Wqe::new(), waiter()?)?;
        assert!(ring.has_stalled(never) && ring.has_lost(never));
        assert!(!ring.has_stalled(Delta::from_secs(3600)));
        assert!(!ring.has_lost(Delta::from_secs(3600)));
        assert!(ring.complete(posted.index).is_some());
        assert!(!ring.has_stalled(never) && !ring.has_lost(never));
        ring.post(Op::CreateQp, &Wqe::new(), waiter()?)?;
        ring.shut(EBUSY);
        assert!(!ring.has_stalled(never) && !ring.has_lost(never));
        Ok(())
    }
}
