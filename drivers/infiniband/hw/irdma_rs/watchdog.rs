// SPDX-License-Identifier: GPL-2.0

//! Looks after control operations that nobody waits for.
//!
//! Who waits for an operation notices when the device has stalled, or an event was lost. Some operations
//! are posted and left to a closure, such as the destruction of an address handle: if the device loses
//! one of these, or the event that tells of it, only a look from time to time finds out. Likewise for
//! asynchronous events whose interrupt was lost, for a change of the traffic classes that never ends,
//! and for what the device refused and would not refuse now.

use crate::{
    dev::Dev,
    verbs::ah::LeftOver, //
};
use kernel::{
    impl_has_delayed_work, new_delayed_work,
    prelude::*,
    sync::Arc,
    time::{
        msecs_to_jiffies,
        Msecs, //
    },
    workqueue::{
        DelayedWork,
        WorkItem, //
    },
};
use rdma::sys::workqueue::cancel_delayed_work_sync;

/// How often to look.
const PERIOD: Msecs = 4000;

#[pin_data]
struct Look {
    dev: Arc<Dev>,
    #[pin]
    work: DelayedWork<Look>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for Look { self.work }
}

impl WorkItem for Look {
    type Pointer = Arc<Look>;

    fn run(this: Arc<Look>) {
        this.dev.cqp.catch_up();
        this.dev.aeq.kick();
        this.dev.tc.look(&this.dev);
        LeftOver::retry(&this.dev);
        this.dev.arp.retry();
        this.dev.scheduler.retry();
        // A dead queue needs no more looking after.
        if this.dev.cqp.is_alive() {
            Look::later(&this);
        }
    }
}

impl Look {
    fn later(this: &Arc<Self>) {
        // Refused while it is being cancelled.
        let _ = this
            .dev
            .work
            .queue()
            .enqueue_delayed(this.clone(), msecs_to_jiffies(PERIOD));
    }
}

/// The watch over one function's control queue. Dropping it ends the watch. May sleep.
pub(crate) struct Watchdog(Arc<Look>);

impl Watchdog {
    /// Starts watching. Process context.
    pub(crate) fn start(dev: Arc<Dev>) -> Result<Self> {
        let look = Arc::pin_init(
            pin_init!(Look {
                dev,
                work <- new_delayed_work!("Look::work"),
            }),
            GFP_KERNEL,
        )?;
        Look::later(&look);
        Ok(Self(look))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // Waits for a look in progress, and keeps it from looking again.
        cancel_delayed_work_sync(&self.0);
    }
}
