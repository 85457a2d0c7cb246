// SPDX-License-Identifier: GPL-2.0

//! Steering tag operations: registration of memory.

use super::super::{
    Command,
    Completed,
    Op,
    Wqe, //
};
use kernel::{
    bitfield,
    dma::DmaAddress,
    num::Bounded,
    prelude::*, //
};

/// Size of the pages that a registration's list names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostPageSize {
    /// 4 KiB.
    Size4K,
    /// 2 MiB.
    Size2M,
    /// 1 GiB.
    Size1G,
}

impl From<HostPageSize> for Bounded<u64, 2> {
    fn from(size: HostPageSize) -> Self {
        match size {
            HostPageSize::Size4K => Self::new::<0>(),
            HostPageSize::Size2M => Self::new::<1>(),
            HostPageSize::Size1G => Self::new::<2>(),
        }
    }
}

impl TryFrom<Bounded<u64, 2>> for HostPageSize {
    type Error = Error;

    fn try_from(code: Bounded<u64, 2>) -> Result<Self> {
        match code.get() {
            0 => Ok(Self::Size4K),
            1 => Ok(Self::Size2M),
            2 => Ok(Self::Size1G),
            _ => Err(EINVAL),
        }
    }
}

bitfield! {
    /// Rights of a registration, in the device's encoding (`IRDMA_ACCESS_FLAGS_*`).
    pub(crate) struct Access(u8) {
        3:3 remote_write;
        2:2 remote_read;
        1:1 local_write;
        0:0 local_read;
    }
}

impl Access {
    /// Whether the peer gets any right.
    fn is_remote(self) -> bool {
        self.remote_read().into_bool() || self.remote_write().into_bool()
    }
}

bitfield! {
    struct StagHeader(u64) {
        59:59 vabasedto;
        53:53 remaccenabled;
        52:48 arights;
        47:46 hpagesize ?=> HostPageSize;
        45:44 lpblsize;
        43:43 mr;
    }
}

bitfield! {
    struct StagLength(u64) {
        63:46 pdid;
        45:0 staglen;
    }
}

bitfield! {
    struct StagKey(u64) {
        31:8 idx;
        7:0 key;
    }
}

bitfield! {
    struct StagPbl(u64) {
        27:0 firstpmpblidx;
    }
}

/// The pages behind a registration.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MrPages {
    /// Contiguous memory that starts at this page-aligned address.
    Contiguous(DmaAddress),
    /// A list of page addresses in PBLEs from this index on.
    Level1(u32),
    /// A list of PBL indices of lists of 512 page addresses each.
    Level2(u32),
}

/// Registers memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegMr {
    /// The upper 24 bits of the steering tag, driver key included.
    pub(crate) stag_index: u32,
    /// The consumer key: the lower 8 bits of the steering tag.
    pub(crate) key: u8,
    /// Protection domain.
    pub(crate) pd: u32,
    /// Rights.
    pub(crate) access: Access,
    /// Address of the first byte when `va_based`, otherwise its offset in the first page.
    pub(crate) va_or_offset: u64,
    /// Work requests give virtual addresses rather than offsets.
    pub(crate) va_based: bool,
    /// Length in bytes.
    pub(crate) length: u64,
    /// Size of the pages below.
    pub(crate) page_size: HostPageSize,
    /// The pages.
    pub(crate) pages: MrPages,
}

impl Command for RegMr {
    const OP: Op = Op::RegMr;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        let header = StagHeader::from(0)
            .with_const_mr::<1>()
            .with_hpagesize(self.page_size)
            .try_with_arights(self.access.into_raw())?
            .with_remaccenabled(self.access.is_remote())
            .with_vabasedto(self.va_based);
        let wqe = Wqe::new()
            .with::<0>(self.va_or_offset)
            .with::<1>(
                StagLength::from(0)
                    .try_with_staglen(self.length)?
                    .try_with_pdid(self.pd)?,
            )
            .with::<2>(
                StagKey::from(0)
                    .with_key(self.key)
                    .try_with_idx(self.stag_index)?,
            );
        Ok(match self.pages {
            MrPages::Contiguous(address) => wqe.with::<3>(header).with::<4>(address),
            MrPages::Level1(index) => wqe
                .with::<3>(header.with_const_lpblsize::<1>())
                .with::<6>(StagPbl::from(0).try_with_firstpmpblidx(index)?),
            MrPages::Level2(index) => wqe
                .with::<3>(header.with_const_lpblsize::<3>())
                .with::<6>(StagPbl::from(0).try_with_firstpmpblidx(index)?),
        })
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}

/// Gives a steering tag back. Once it has succeeded, no access through it is in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeallocStag {
    /// The upper 24 bits of the steering tag.
    pub(crate) stag_index: u32,
    /// Protection domain.
    pub(crate) pd: u32,
}

impl Command for DeallocStag {
    const OP: Op = Op::DeallocStag;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        Ok(Wqe::new()
            .with::<1>(StagLength::from(0).try_with_pdid(self.pd)?)
            .with::<2>(StagKey::from(0).try_with_idx(self.stag_index)?)
            .with::<3>(StagHeader::from(0).with_const_mr::<1>()))
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}
