// SPDX-License-Identifier: GPL-2.0

//! Changes of the traffic classes.
//!
//! The LAN driver rebuilds its scheduler when the classes change (DCB) and says so before and after.
//! In between there are no queue sets, so
//!
//! - before: nobody may join a queue set, all queue pairs are suspended, the work scheduler's tree is
//!   taken down;
//! - after: the classes are read anew, queue pairs go on in new queue sets, and multicast groups, which
//!   name one too, are changed.
//!
//! If the LAN driver gives up halfway it does not say so. Then the classes are what they were, and
//! [`Change::look`] brings everything back after [`PATIENCE`].
//!
//! # Locking
//!
//! [`Change::state`] is held over all of it, outside all other locks of the driver. The LAN driver holds
//! RTNL while it says "after": nothing here may wait for that.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    time::{
        Delta,
        Instant,
        Monotonic,
        Msecs, //
    },
};

use crate::dev::Dev;

/// How long all queue pairs together may take to stand still.
const SUSPEND_TIMEOUT: Msecs = 5000;

/// How long the LAN driver may take from "before" to "after".
const PATIENCE: Delta = Delta::from_secs(10);

/// Others that use queue sets.
pub(crate) trait QueueSetUser: Send + Sync {
    /// Takes queue sets of the new traffic classes. Process context.
    fn queue_sets_changed(&self);

    /// Called from time to time, while no change is under way: does what was left undone. Process
    /// context.
    fn look(&self);
}

struct State {
    /// Since when a change is under way.
    since: Option<Instant<Monotonic>>,
    groups: Option<Arc<dyn QueueSetUser>>,
}

/// The change that is under way, if any.
#[pin_data]
pub(crate) struct Change {
    #[pin]
    state: Mutex<State>,
}

impl Change {
    /// No change is under way.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state <- new_mutex!(
                State {
                    since: None,
                    groups: None,
                },
                "tc::Change"
            ),
        })
    }

    /// Names the multicast groups, or takes them away. Waits for a change in progress.
    pub(crate) fn set_groups(&self, groups: Option<Arc<dyn QueueSetUser>>) {
        let old = core::mem::replace(&mut self.state.lock().groups, groups);
        drop(old);
    }

    /// Runs `f` while no queue pair is being stopped or resumed. Process context.
    pub(crate) fn steady<R>(&self, f: impl FnOnce() -> R) -> R {
        let _state = self.state.lock();

        f()
    }

    /// The traffic classes are about to change. Process context.
    pub(crate) fn before(&self, dev: &Dev) {
        let mut state = self.state.lock();

        if state.since.is_none() {
            Self::stop(dev);
            state.since = Some(Instant::now());
        }
    }

    /// The traffic classes have changed. Process context.
    pub(crate) fn after(&self, dev: &Dev) {
        let mut state = self.state.lock();

        if state.since.take().is_none() {
            // What was to be done before was undone for want of patience.
            Self::stop(dev);
        }
        Self::go_on(dev, &state);
    }

    /// Looks whether the end of a change is overdue, and acts as if it had been announced. Without a
    /// change, has others look after what they left undone.
    pub(crate) fn look(&self, dev: &Dev) {
        // Who holds the lock is busy with the change.
        let Some(mut state) = self.state.try_lock() else {
            return;
        };
        let Some(since) = state.since else {
            if let Some(groups) = &state.groups {
                groups.look();
            }
            return;
        };
        if since.elapsed() > PATIENCE {
            state.since = None;
            dev_warn!(
                dev.port.log(),
                "change of traffic classes: the LAN driver has not ended it, going on\n"
            );
            Self::go_on(dev, &state);
        }
    }

    fn stop(dev: &Dev) {
        dev.scheduler.freeze();
        let start = Instant::<Monotonic>::now();
        for qp in dev.qps.iter() {
            qp.suspend();
        }
        for qp in dev.qps.iter() {
            let spent = Msecs::try_from(start.elapsed().as_millis()).unwrap_or(SUSPEND_TIMEOUT);
            qp.wait_suspended(SUSPEND_TIMEOUT.saturating_sub(spent));
        }
        dev.scheduler.uproot();
    }

    fn go_on(dev: &Dev, state: &State) {
        match dev.port.qos() {
            Ok(qos) => dev.scheduler.thaw(qos),
            // The function has been taken back, and nobody will join anything.
            Err(_) => return,
        }
        for qp in dev.qps.iter() {
            qp.resume();
        }
        if let Some(groups) = &state.groups {
            groups.queue_sets_changed();
        }
    }
}
