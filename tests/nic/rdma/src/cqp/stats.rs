// SPDX-License-Identifier: GPL-2.0
//! GATHER_STATS: the function's counters as the driver reads them.

use super::{Done, OpResult, Wqe};
use crate::model::Model;

impl Model {
    pub(super) fn op_gather_stats(&mut self, wqe: &Wqe) -> OpResult {
        self.host.dma.write(wqe[4], &self.stats.image())?;
        Ok(Done::default())
    }
}
