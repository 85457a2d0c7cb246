// SPDX-License-Identifier: GPL-2.0

//! What every random test is made of: a list, its device, and numbers of queue pairs.

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

use super::device::{
    Device,
    Held,
    Share,
    Temper, //
};
use crate::mcast::list::{
    List,
    Occasion, //
};

/// The number of the `n`-th queue pair of a test; at the upper end of what members can name.
pub(super) fn number(n: usize) -> u32 {
    // CAST: A few.
    0x3ffff - n as u32
}

/// A list and its device.
pub(super) struct Rig {
    name: &'static str,
    seed: u64,
    /// How far the test is, for the line that says what went wrong.
    pub(super) step: u32,
    pub(super) list: Arc<List<Arc<Held>, Share>>,
    pub(super) device: Arc<Device>,
    /// By queue pair: nobody holds its number.
    free: KVec<Arc<Atomic<bool>>>,
}

impl Rig {
    /// The rig of the test `name`: a device that granted `objects` groups, and `qps` queue pairs, none
    /// of which exists.
    pub(super) fn new(
        name: &'static str,
        objects: u32,
        temper: Temper,
        qps: usize,
        seed: u64,
    ) -> Result<Self> {
        let list = Arc::pin_init(List::new(objects), GFP_KERNEL)?;
        let mut free = KVec::with_capacity(qps, GFP_KERNEL)?;

        for _ in 0..qps {
            free.push(Arc::new(Atomic::new(true), GFP_KERNEL)?, GFP_KERNEL)?;
        }
        Ok(Self {
            name,
            seed,
            step: 0,
            device: Device::new(list.limit(), seed ^ 0x5eed, temper)?,
            list,
            free,
        })
    }

    /// Takes the number of a queue pair, if nobody holds it.
    pub(super) fn hold(&self, qp: usize) -> Result<Option<Arc<Held>>> {
        let free = self.free.get(qp).ok_or(EINVAL)?;

        if !free.load(Relaxed) {
            return Ok(None);
        }
        Held::new(number(qp), free, &self.device).map(Some)
    }

    /// Ends the run with a line that says where it can be looked at, unless `good`.
    pub(super) fn expect(&self, good: bool, what: &str) -> Result {
        if good {
            return Ok(());
        }
        pr_err!(
            "irdma_rs: mcast: {}, seed {}, step {}: {what}\n",
            self.name,
            self.seed,
            self.step
        );
        Err(EINVAL)
    }

    /// Complains about what the device took offence at.
    pub(super) fn expect_no_violation(&self) -> Result {
        match self.device.violation() {
            Some(what) => self.expect(false, what),
            None => Ok(()),
        }
    }

    /// Has the device obey from now on, and do what it refused.
    pub(super) fn obey(&self) {
        self.device.set_temper(Temper::OBEDIENT);
        self.list.retry(&self.device, Occasion::Last);
    }

    /// Complains about what is left when everybody is detached and all queue pairs are gone.
    pub(super) fn expect_empty(&self) -> Result {
        self.expect(self.device.groups() == 0, "a group is left in the device")?;
        self.expect(self.device.shares() == 0, "a share is left")?;
        for free in &self.free {
            self.expect(free.load(Relaxed), "a number is held back for no reason")?;
        }
        self.expect_no_violation()
    }
}
