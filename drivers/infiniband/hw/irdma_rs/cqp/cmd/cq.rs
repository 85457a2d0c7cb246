// SPDX-License-Identifier: GPL-2.0

//! Completion queue operations.

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
    struct CqHeader(u64) {
        49:49 ceqidvalid;
        48:48 enceqemask;
        47:47 virtmap;
        46:46 chkoverflow;
        45:44 lpblsize;
        31:22 ceqid;
        18:0 cqid;
    }
}

bitfield! {
    struct CqSize(u64) {
        20:0 cqsize;
    }
}

bitfield! {
    struct CqContext(u64) {
        62:0 cqctx;
    }
}

bitfield! {
    struct CqThreshold(u64) {
        17:0 shadow_read_threshold;
    }
}

bitfield! {
    struct CqPbl(u64) {
        27:0 firstpmpblidx;
    }
}

bitfield! {
    struct CqVsi(u64) {
        23:8 vsiidx;
    }
}

/// Where a completion queue's ring lies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CqRing {
    /// One contiguous block.
    Contiguous(DmaAddress),
    /// 4 KiB pages listed in PBLEs from this index on.
    Paged(u32),
}

/// Creates a completion queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreateCq {
    /// Completion queue number.
    pub(crate) id: u32,
    /// The event queue that announces its completions.
    pub(crate) ceq: u32,
    /// Entries of 32 bytes.
    pub(crate) entries: u32,
    /// The ring.
    pub(crate) ring: CqRing,
    /// Shadow area, 64 bytes.
    pub(crate) shadow: DmaAddress,
    /// Completions the device may write before it reads the shadow area again.
    pub(crate) shadow_read_threshold: u32,
    /// Suppress further events until the last one was acknowledged.
    pub(crate) mask_events: bool,
    /// VSI of the function.
    pub(crate) vsi: u16,
}

impl Command for CreateCq {
    const OP: Op = Op::CreateCq;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        let header = CqHeader::from(0)
            .try_with_cqid(self.id)?
            .try_with_ceqid(self.ceq)?
            .with_ceqidvalid(true)
            .with_chkoverflow(true)
            .with_enceqemask(self.mask_events);
        let wqe = Wqe::new()
            .with::<0>(CqSize::from(0).try_with_cqsize(self.entries)?)
            .with::<1>(CqContext::from(0).with_cqctx(self.id))
            .with::<2>(
                CqThreshold::from(0).try_with_shadow_read_threshold(self.shadow_read_threshold)?,
            )
            .with::<5>(self.shadow)
            .with::<7>(CqVsi::from(0).with_vsiidx(self.vsi));
        Ok(match self.ring {
            CqRing::Contiguous(address) => wqe.with::<3>(header).with::<4>(address),
            CqRing::Paged(index) => wqe
                .with::<3>(header.with_virtmap(true).with_const_lpblsize::<1>())
                .with::<6>(CqPbl::from(0).try_with_firstpmpblidx(index)?),
        })
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}

/// Destroys a completion queue. Once it has succeeded, the device touches none of its memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DestroyCq {
    /// Completion queue number.
    pub(crate) id: u32,
    /// The event queue it was created on.
    pub(crate) ceq: u32,
    /// Entries, as at creation.
    pub(crate) entries: u32,
    /// The ring, as at creation.
    pub(crate) ring: CqRing,
    /// Shadow area, as at creation.
    pub(crate) shadow: DmaAddress,
    /// As at creation.
    pub(crate) mask_events: bool,
}

impl Command for DestroyCq {
    const OP: Op = Op::DestroyCq;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        let header = CqHeader::from(0)
            .try_with_cqid(self.id)?
            .try_with_ceqid(self.ceq)?
            .with_ceqidvalid(true)
            .with_enceqemask(self.mask_events);
        let wqe = Wqe::new()
            .with::<0>(CqSize::from(0).try_with_cqsize(self.entries)?)
            .with::<1>(CqContext::from(0).with_cqctx(self.id))
            .with::<5>(self.shadow);
        Ok(match self.ring {
            CqRing::Contiguous(_) => wqe.with::<3>(header),
            CqRing::Paged(index) => wqe
                .with::<3>(header.with_virtmap(true).with_const_lpblsize::<1>())
                .with::<6>(CqPbl::from(0).try_with_firstpmpblidx(index)?),
        })
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}
