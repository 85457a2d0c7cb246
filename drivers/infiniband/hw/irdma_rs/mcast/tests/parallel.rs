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
        atomic::{
            Atomic,
            Relaxed, //
        },
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
        Device,
        Held,
        Share,
        Temper, //
    },
    view::View,
};
use crate::mcast::list::{
    List,
    Occasion, //
};

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
    list: Arc<List<Arc<Held>, Share>>,
    device: Arc<Device>,
    /// Of the threads, and the shared one.
    qps: KVec<Arc<Held>>,
    total: Arc<Total>,
    seed: u64,
}

fn number(qp: usize) -> u32 {
    // CAST: A few.
    100 + qp as u32
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
                match self.list.attach(&self.device, group(k), held) {
                    Ok(()) => *count += 1,
                    // Refused by the device, or no index or no place at this moment.
                    Err(error) if [EIO, EBUSY, ENOMEM, ENOSPC].contains(&error) => {}
                    Err(error) => return Err(error),
                }
            } else if *count > 0 {
                // Whatever others do, this thread's own uses are there.
                self.list.detach(&self.device, group(k), number(qp))?;
                *count -= 1;
            } else if random.chance(1, 10) {
                let occasion = if random.flip() {
                    Occasion::Cleanup
                } else {
                    Occasion::Shortage
                };
                self.list.retry(&self.device, occasion);
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
        let fail = |what: &str| {
            pr_err!("irdma_rs: mcast: threads, seed {}: {what}\n", self.seed);
            Err(EINVAL)
        };
        if let Some(violation) = self.device.violation() {
            return fail(violation);
        }
        let counts = *self.total.counts.lock();
        for (k, row) in counts.iter().enumerate() {
            let view = View::of(&self.list, &group(k));
            for (qp, count) in row.iter().enumerate() {
                let uses = view.as_ref().map_or(0, |view| view.uses(number(qp)));
                if uses != *count {
                    return fail("a count of uses is wrong");
                }
            }
            if let Some(what) = view.and_then(|view| view.disagreement(&self.device)) {
                return fail(what);
            }
        }
        Ok(())
    }
}

/// Runs the threads, and checks before and after all is taken apart.
fn run(objects: u32, temper: Temper, seed: u64) -> Result {
    let list = Arc::pin_init(List::new(objects), GFP_KERNEL)?;
    let device = Device::new(list.limit(), seed, temper)?;
    let total = Arc::pin_init(
        pin_init!(Total {
            counts <- new_mutex!([[0; THREADS + 1]; KEYS]),
        }),
        GFP_KERNEL,
    )?;
    let mut qps = KVec::new();
    let mut free = KVec::new();
    for qp in 0..=THREADS {
        let flag = Arc::new(Atomic::new(true), GFP_KERNEL)?;
        qps.push(Held::new(number(qp), &flag, &device)?, GFP_KERNEL)?;
        free.push(flag, GFP_KERNEL)?;
    }
    let table = Arc::new(
        Table {
            list,
            device,
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

    table.device.set_temper(Temper::default());
    let counts = *table.total.counts.lock();
    for (k, row) in counts.iter().enumerate() {
        for (qp, count) in row.iter().enumerate() {
            for _ in 0..*count {
                table.list.detach(&table.device, group(k), number(qp))?;
            }
        }
    }
    *table.total.counts.lock() = [[0; THREADS + 1]; KEYS];
    table.list.retry(&table.device, Occasion::Last);
    table.check()?;
    if table.device.groups() != 0 || table.device.shares() != 0 {
        pr_err!("irdma_rs: mcast: threads, seed {seed}: something is left in the device\n");
        return Err(EINVAL);
    }
    // The last reference: the task, which had one too, is gone.
    drop(table);
    if free.iter().any(|free| !free.load(Relaxed)) {
        pr_err!("irdma_rs: mcast: threads, seed {seed}: a number is held back\n");
        return Err(EINVAL);
    }
    Ok(())
}

#[kernel::macros::kunit_tests(irdma_rs_mcast_parallel)]
mod suite {
    use super::*;

    const SLOW: Temper = Temper {
        refuse: 0,
        swallow: 0,
        no_share: 0,
        slow: true,
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
