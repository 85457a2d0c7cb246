// SPDX-License-Identifier: GPL-2.0

//! Completion event queue operations.

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
    struct CeqHeader(u64) {
        9:0 ceqid;
    }
}

bitfield! {
    struct CeqSize(u64) {
        21:0 ceqsize;
    }
}

bitfield! {
    struct CeqVsi(u64) {
        23:8 vsiidx;
    }
}

/// Creates a completion event queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreateCeq {
    /// Event queue number.
    pub(crate) id: u32,
    /// Entries of 8 bytes.
    pub(crate) entries: u32,
    /// The ring, 256-byte aligned and zeroed.
    pub(crate) ring: DmaAddress,
    /// VSI of the function.
    pub(crate) vsi: u16,
}

impl Command for CreateCeq {
    const OP: Op = Op::CreateCeq;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        Ok(Wqe::new()
            .with::<2>(CeqSize::from(0).try_with_ceqsize(self.entries)?)
            .with::<3>(CeqHeader::from(0).try_with_ceqid(self.id)?)
            .with::<4>(self.ring)
            .with::<7>(CeqVsi::from(0).with_vsiidx(self.vsi)))
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}

/// Destroys a completion event queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DestroyCeq {
    /// Event queue number.
    pub(crate) id: u32,
    /// Entries, as at creation.
    pub(crate) entries: u32,
}

impl Command for DestroyCeq {
    const OP: Op = Op::DestroyCeq;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        Ok(Wqe::new()
            .with::<2>(CeqSize::from(0).try_with_ceqsize(self.entries)?)
            .with::<3>(CeqHeader::from(0).try_with_ceqid(self.id)?))
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}
