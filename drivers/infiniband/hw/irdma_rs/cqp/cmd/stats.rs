// SPDX-License-Identifier: GPL-2.0

//! Reading the function's counters.

use super::super::{
    Command,
    Completed,
    Op,
    Wqe, //
};
use kernel::{
    dma::DmaAddress,
    prelude::*, //
};

/// Has the function's counters written to memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatherStats {
    /// Buffer of 1024 bytes.
    pub(crate) buffer: DmaAddress,
}

impl Command for GatherStats {
    const OP: Op = Op::GatherStats;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        Ok(Wqe::new().with::<4>(self.buffer))
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}
