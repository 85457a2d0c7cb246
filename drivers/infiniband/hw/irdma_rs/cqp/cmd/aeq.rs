// SPDX-License-Identifier: GPL-2.0

//! Asynchronous event queue operations.

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
    struct AeqHeader(u64) {
        47:47 vmap;
        45:44 lpblsize;
    }
}

bitfield! {
    struct AeqCount(u64) {
        18:0 aeqecnt;
    }
}

/// Creates the asynchronous event queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreateAeq {
    /// Entries of 16 bytes.
    pub(crate) entries: u32,
    /// The ring, 256-byte aligned and zeroed.
    pub(crate) ring: DmaAddress,
}

impl Command for CreateAeq {
    const OP: Op = Op::CreateAeq;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        Ok(Wqe::new()
            .with::<2>(AeqCount::from(0).try_with_aeqecnt(self.entries)?)
            .with::<3>(AeqHeader::from(0))
            .with::<4>(self.ring))
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}

/// Destroys the asynchronous event queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DestroyAeq {
    /// Entries, as at creation.
    pub(crate) entries: u32,
}

impl Command for DestroyAeq {
    const OP: Op = Op::DestroyAeq;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        Ok(Wqe::new().with::<2>(AeqCount::from(0).try_with_aeqecnt(self.entries)?))
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}
