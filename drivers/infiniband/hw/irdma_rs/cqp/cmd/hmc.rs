// SPDX-License-Identifier: GPL-2.0

//! Operations that announce backing memory to the device.

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
    struct SdCommand(u64) {
        /// Of the second and third entry only.
        63:63 entry_valid;
        31:31 pmsdwr;
        15:15 one;
        14:0 pmsdidx;
    }
}

bitfield! {
    struct SdData(u64) {
        63:12 pmsddata;
        11:2 pmsdbpcount;
        1:1 pmsdtype;
        0:0 pmsdvalid;
    }
}

bitfield! {
    struct SdHeader(u64) {
        3:0 entry_count;
    }
}

bitfield! {
    struct FunctionId(u64) {
        5:0 hmcfnid;
    }
}

/// Change of one segment descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SdEntry {
    /// The segment is one block of 2 MiB.
    Direct {
        /// Index of the segment.
        index: u32,
        /// The block, page aligned.
        address: DmaAddress,
    },
    /// The segment is made of pages, listed in a page of descriptors.
    Paged {
        /// Index of the segment.
        index: u32,
        /// The page of descriptors.
        address: DmaAddress,
    },
    /// The segment has no memory any more.
    Clear {
        /// Index of the segment.
        index: u32,
        /// Whether it was a direct one.
        direct: bool,
    },
}

impl SdEntry {
    /// Pages in a segment.
    const PAGES: u64 = 512;

    /// Index of the segment.
    pub(crate) fn index(&self) -> u32 {
        match *self {
            Self::Direct { index, .. } | Self::Paged { index, .. } | Self::Clear { index, .. } => {
                index
            }
        }
    }

    /// The command and data words.
    fn words(&self) -> Result<(SdCommand, SdData)> {
        let (index, address, direct, valid) = match *self {
            Self::Direct { index, address } => (index, address, true, true),
            Self::Paged { index, address } => (index, address, false, true),
            Self::Clear { index, direct } => (index, 0, direct, false),
        };
        if address % 4096 != 0 {
            return Err(EINVAL);
        }
        Ok((
            SdCommand::from(0)
                .try_with_pmsdidx(index)?
                .with_const_one::<1>()
                .with_const_pmsdwr::<1>(),
            // The page-aligned address occupies its bits in place.
            SdData::from(address)
                .with_const_pmsdbpcount::<{ Self::PAGES }>()
                .with_pmsdtype(direct)
                .with_pmsdvalid(valid),
        ))
    }
}

/// Changes up to three segment descriptors.
///
/// The operation could take eight more from an overflow buffer in memory; three at a time need no
/// such buffer, and segments are announced rarely.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpdatePeSds<'a> {
    /// Function id.
    pub(crate) function: u8,
    /// The changes, at most [`Self::MAX`].
    pub(crate) entries: &'a [SdEntry],
}

impl UpdatePeSds<'_> {
    /// Changes that fit the entry itself.
    pub(crate) const MAX: usize = 3;
}

impl Command for UpdatePeSds<'_> {
    const OP: Op = Op::UpdatePeSds;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        let wqe = Wqe::new()
            .with::<2>(FunctionId::from(0).try_with_hmcfnid(self.function)?)
            .with::<3>(SdHeader::from(0));
        match self.entries {
            [a] => {
                let (cmd, data) = a.words()?;
                Ok(wqe.with::<0>(cmd).with::<1>(data))
            }
            [a, b] => {
                let (cmd_a, data_a) = a.words()?;
                let (cmd_b, data_b) = b.words()?;
                Ok(wqe
                    .with::<0>(cmd_a)
                    .with::<1>(data_a)
                    .with::<4>(cmd_b.with_const_entry_valid::<1>())
                    .with::<5>(data_b))
            }
            [a, b, c] => {
                let (cmd_a, data_a) = a.words()?;
                let (cmd_b, data_b) = b.words()?;
                let (cmd_c, data_c) = c.words()?;
                Ok(wqe
                    .with::<0>(cmd_a)
                    .with::<1>(data_a)
                    .with::<4>(cmd_b.with_const_entry_valid::<1>())
                    .with::<5>(data_b)
                    .with::<6>(cmd_c.with_const_entry_valid::<1>())
                    .with::<7>(data_c))
            }
            _ => Err(EINVAL),
        }
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}

/// Says that all memory of the objects committed before is in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShmcPagesAllocated {
    /// Function id.
    pub(crate) function: u8,
}

impl Command for ShmcPagesAllocated {
    const OP: Op = Op::ShmcPagesAllocated;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        Ok(Wqe::new().with::<2>(FunctionId::from(0).try_with_hmcfnid(self.function)?))
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}
