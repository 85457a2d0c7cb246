// SPDX-License-Identifier: GPL-2.0

//! Operations that ask what the device is and tell it what will be used.

use super::super::{
    Command,
    Completed,
    Op,
    Wqe, //
};
use kernel::{
    bitfield,
    dma::DmaAddress,
    prelude::*, //
};

bitfield! {
    struct BufferSize(u64) {
        31:0 bufsize;
    }
}

/// Asks for firmware version and features.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueryRdmaFeatures {
    /// Buffer the answer is written to.
    pub(crate) buffer: DmaAddress,
    /// Its size in bytes.
    pub(crate) size: u32,
}

impl Command for QueryRdmaFeatures {
    const OP: Op = Op::QueryRdmaFeatures;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        // Size and operation code share word 3: the size is 32 bits wide, the code lies above.
        Ok(Wqe::new()
            .with::<3>(BufferSize::from(0).with_bufsize(self.size))
            .with::<4>(self.buffer))
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}

/// Asks for the limits and sizes of the objects in host memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueryFpmVal {
    /// Function id.
    pub(crate) function: u8,
    /// Buffer of 200 bytes.
    pub(crate) buffer: DmaAddress,
}

impl Command for QueryFpmVal {
    const OP: Op = Op::QueryFpmVal;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        Ok(Wqe::new().with::<2>(self.function).with::<4>(self.buffer))
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}

/// Commits object counts; the device answers with their places, in the same buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitFpmVal {
    /// Function id.
    pub(crate) function: u8,
    /// Buffer with the counts.
    pub(crate) buffer: DmaAddress,
    /// Its size in bytes.
    pub(crate) size: u32,
}

impl Command for CommitFpmVal {
    const OP: Op = Op::CommitFpmVal;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        Ok(Wqe::new()
            .with::<2>(self.function)
            .with::<3>(BufferSize::from(0).with_bufsize(self.size))
            .with::<4>(self.buffer))
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}
