// SPDX-License-Identifier: GPL-2.0

//! Groups whose last command the device refused, and when it is asked again.

use kernel::{
    sync::{
        atomic::Relaxed,
        Arc, //
    },
    time::{
        Delta,
        Instant, //
    },
};

use super::{
    Inner,
    List, //
};
use crate::mcast::{
    group::{
        Group,
        Number,
        Phase,
        State, //
    },
    hardware::Hardware,
};

/// Refusals after which a group is quarantined.
pub(crate) const PATIENCE: u32 = 8;

/// Refusals after which [`List::retry`] gives up for this time.
pub(super) const REFUSALS_PER_RETRY: u32 = 2;

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

impl<N, S> Inner<N, S> {
    /// Takes a group from among the stale ones, if it is there. The caller drops it without the lock.
    pub(super) fn not_stale(&mut self, group: &Group<N, S>) -> Option<Arc<Group<N, S>>> {
        let place = self
            .stale
            .iter()
            .position(|other| core::ptr::eq(&**other, group))?;

        self.stale.remove(place).ok()
    }
}

impl<N: Number + Unpin, S: Unpin> List<N, S> {
    /// Enters the group among the stale ones or takes it from there, as it is now.
    pub(super) fn note(&self, group: &Arc<Group<N, S>>, state: &mut State<N, S>) {
        let stale = state.is_stale();

        if stale == state.queued.is_some() {
            state.queued = stale.then(Instant::now);
            return;
        }
        let mut guard = self.inner.lock();
        let inner = &mut *guard;
        let removed = if stale {
            // There is room for every group in the list.
            let queued = inner.stale.push_within_capacity(group.clone()).is_ok();
            state.queued = queued.then(Instant::now);
            None
        } else {
            state.queued = None;
            inner.not_stale(group)
        };
        self.count_stale(inner);
        drop(guard);
        drop(removed);
    }

    /// Notes how many groups are stale.
    pub(super) fn count_stale(&self, inner: &Inner<N, S>) {
        // CAST: At most as many as there are indexes.
        self.stale.store(inner.stale.len() as u32, Relaxed);
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
}
