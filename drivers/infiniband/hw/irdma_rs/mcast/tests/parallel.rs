// SPDX-License-Identifier: GPL-2.0

//! Several threads on one list.
//!
//! Each thread counts what it attached itself. A queue pair may belong to one thread or to all: the
//! counts of a shared one add up. The device notes commands that overlap, and the threads meet often,
//! as a command takes a while and there are few groups.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};
use rdma::testing::{
    parallel,
    random::Random, //
};

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
use crate::mcast::list::Occasion;

const THREADS: usize = 4;
const KEYS: usize = 6;
const STEPS: u32 = 150;

/// The queue pair that all threads use.
const SHARED: usize = THREADS;

/// How often each queue pair is attached to each group: of the threads, and the shared one.
type Counts = [[u32; THREADS + 1]; KEYS];

#[pin_data]
struct Total {
    #[pin]
    counts: Mutex<Counts>,
}

struct Table {
    rig: Arc<Rig>,
    /// Of the threads, and the shared one.
    qps: KVec<Arc<Held>>,
    total: Arc<Total>,
    seed: u64,
}

/// The `k`-th group.
fn group(k: usize) -> crate::mcast::group::GroupKey {
    // CAST: A few.
    key(k as u32)
}

impl Table {
    /// What one thread does.
    fn work(&self, thread: usize) -> Result {
        let mut random = Random::new(self.seed.wrapping_mul(31).wrapping_add(thread as u64));
        let mut mine: [[u32; 2]; KEYS] = [[0; 2]; KEYS];

        for _ in 0..STEPS {
            let k = random.index(KEYS);
            let shared = random.flip();
            let qp = if shared { SHARED } else { thread };
            let count = mine
                .get_mut(k)
                .and_then(|row| row.get_mut(usize::from(shared)))
                .ok_or(EINVAL)?;

            if random.chance(3, 5) {
                let held = self.qps.get(qp).ok_or(EINVAL)?;
                match self.rig.list.attach(&self.rig.device, group(k), held) {
                    Ok(()) => *count += 1,
                    // Refused by the device, or no index or no place at this moment.
                    Err(error) if [EIO, EBUSY, ENOMEM, ENOSPC].contains(&error) => {}
                    Err(error) => return Err(error),
                }
            } else if *count > 0 {
                // Whatever others do, this thread's own uses are there.
                self.rig
                    .list
                    .detach(&self.rig.device, group(k), number(qp))?;
                *count -= 1;
            } else if random.chance(1, 10) {
                let occasion = if random.flip() {
                    Occasion::Cleanup
                } else {
                    Occasion::Shortage
                };
                self.rig.list.retry(&self.rig.device, occasion);
            }
        }
        let mut total = self.total.counts.lock();
        for (row, mine) in total.iter_mut().zip(mine) {
            let [own, shared] = mine;
            *row.get_mut(thread).ok_or(EINVAL)? += own;
            *row.get_mut(SHARED).ok_or(EINVAL)? += shared;
        }
        Ok(())
    }

    /// Compares list, device and counts, with no thread at work.
    fn check(&self) -> Result {
        self.rig.expect_no_violation()?;
        let counts = *self.total.counts.lock();
        for (k, row) in counts.iter().enumerate() {
            let view = View::of(&self.rig.list, &group(k));
            for (qp, count) in row.iter().enumerate() {
                let uses = view.as_ref().map_or(0, |view| view.uses(number(qp)));
                self.rig
                    .expect(uses == *count, "a count of uses is wrong")?;
            }
            if let Some(what) = view.and_then(|view| view.disagreement(&self.rig.device)) {
                return self.rig.expect(false, what);
            }
        }
        Ok(())
    }
}

/// Runs the threads, and checks before and after all is taken apart.
fn run(objects: u32, temper: Temper, seed: u64) -> Result {
    let rig = Rig::new("threads", objects, temper, THREADS + 1, seed)?;
    let rig = Arc::new(rig, GFP_KERNEL)?;
    let total = Arc::pin_init(
        pin_init!(Total {
            counts <- new_mutex!([[0; THREADS + 1]; KEYS]),
        }),
        GFP_KERNEL,
    )?;
    let mut qps = KVec::new();
    for qp in 0..=THREADS {
        qps.push(rig.hold(qp)?.ok_or(EINVAL)?, GFP_KERNEL)?;
    }
    let table = Arc::new(
        Table {
            rig: rig.clone(),
            qps,
            total,
            seed,
        },
        GFP_KERNEL,
    )?;

    let shared = table.clone();
    let task = move |thread: usize| shared.work(thread);
    parallel::run(THREADS, KBox::new(task, GFP_KERNEL)?)?;
    table.check()?;

    rig.obey();
    let counts = *table.total.counts.lock();
    for (k, row) in counts.iter().enumerate() {
        for (qp, count) in row.iter().enumerate() {
            for _ in 0..*count {
                rig.list.detach(&rig.device, group(k), number(qp))?;
            }
        }
    }
    *table.total.counts.lock() = [[0; THREADS + 1]; KEYS];
    table.check()?;
    // The last reference: the task, which had one too, is gone.
    drop(table);
    rig.expect_empty()
}

#[kernel::macros::kunit_tests(irdma_rs_mcast_parallel)]
mod suite {
    use super::*;

    const SLOW: Temper = Temper {
        slow: true,
        ..Temper::OBEDIENT
    };

    #[test]
    fn threads_agree_on_a_device_that_obeys() -> Result {
        for seed in 0..2 {
            run(64, SLOW, seed)?;
        }
        Ok(())
    }

    #[test]
    fn threads_agree_when_groups_run_out() -> Result {
        for seed in 10..12 {
            run(4, SLOW, seed)?;
        }
        Ok(())
    }

    #[test]
    fn threads_agree_when_commands_are_refused() -> Result {
        let temper = Temper {
            refuse: 200,
            no_share: 50,
            ..SLOW
        };

        for seed in 20..22 {
            run(64, temper, seed)?;
            run(4, temper, seed)?;
        }
        Ok(())
    }
}
