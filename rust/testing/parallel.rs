// SPDX-License-Identifier: GPL-2.0

//! Threads that do something at the same time.

use kernel::{
    impl_has_work,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use crate::sys::workqueue::OwnedQueue;

/// What one thread does; it is told its number.
pub type Task = dyn Fn(usize) -> Result + Send + Sync;

/// What the threads of one run share.
struct Shared {
    task: KBox<Task>,
    returned: Atomic<usize>,
    /// The error of a task, as an errno, or 0.
    failed: Atomic<i32>,
}

#[pin_data]
struct Job {
    shared: Arc<Shared>,
    number: usize,
    #[pin]
    work: Work<Job>,
}

impl_has_work! {
    impl HasWork<Self> for Job { self.work }
}

impl WorkItem for Job {
    type Pointer = Arc<Job>;

    fn run(this: Arc<Job>) {
        let shared = &this.shared;

        if let Err(error) = (shared.task)(this.number) {
            shared.failed.store(error.to_errno(), Relaxed);
        }
        shared.returned.fetch_add(1, Relaxed);
    }
}

/// Runs `task` in `threads` kernel threads at once, and returns when all of them have returned.
///
/// The threads are workers of a queue without bound: each item has a worker of its own, so that
/// one that waits keeps no other from running. Process context.
///
/// # Errors
///
/// That of a task, if one failed; `ENOMEM`.
pub fn run(threads: usize, task: KBox<Task>) -> Result {
    let shared = Arc::new(
        Shared {
            task,
            returned: Atomic::new(0),
            failed: Atomic::new(0),
        },
        GFP_KERNEL,
    )?;
    let queue = OwnedQueue::unbound(c"rdma_rs_testing")?;
    let mut jobs = KVec::with_capacity(threads, GFP_KERNEL)?;

    for number in 0..threads {
        let shared = shared.clone();
        let job = Arc::pin_init(
            pin_init!(Job {
                shared,
                number,
                work <- new_work!("rdma::testing::Job"),
            }),
            GFP_KERNEL,
        )?;
        jobs.push(job, GFP_KERNEL)?;
    }
    for job in jobs {
        // Never queued before.
        let _ = queue.queue().enqueue(job);
    }
    // Waits for all.
    drop(queue);

    if shared.returned.load(Relaxed) != threads {
        return Err(EIO);
    }
    match shared.failed.load(Relaxed) {
        0 => Ok(()),
        errno => Err(Error::from_errno(errno)),
    }
}

#[kernel::prelude::kunit_tests(rdma_testing_parallel)]
mod tests {
    use super::*;
    use kernel::sync::Completion;

    /// Each thread waits for the next one: they could not return one after the other.
    #[test]
    fn threads_run_at_the_same_time() -> Result {
        const THREADS: usize = 8;

        let mut steps = KVec::new();
        for _ in 0..=THREADS {
            steps.push(Arc::pin_init(Completion::new(), GFP_KERNEL)?, GFP_KERNEL)?;
        }
        if let Some(last) = steps.last() {
            last.complete_all();
        }
        let task = move |number: usize| {
            steps.get(number + 1).ok_or(EINVAL)?.wait_for_completion();
            steps.get(number).ok_or(EINVAL)?.complete_all();
            Ok(())
        };
        run(THREADS, KBox::new(task, GFP_KERNEL)?)
    }

    #[test]
    fn an_error_of_one_thread_is_told() -> Result {
        let task = |number: usize| if number == 2 { Err(EXDEV) } else { Ok(()) };

        assert_eq!(run(4, KBox::new(task, GFP_KERNEL)?), Err(EXDEV));
        Ok(())
    }
}
