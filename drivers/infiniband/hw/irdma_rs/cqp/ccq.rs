// SPDX-License-Identifier: GPL-2.0

//! The control completion queue (CCQ): completion queue 0, read by the driver only.

#[cfg(CONFIG_KUNIT = "y")]
mod words_test;

use super::{
    watch::Watch,
    Code,
    Completed,
    Failure,
    Outcome, //
};
use crate::{
    lan::Port,
    mem::DmaWords, //
};
use kernel::{
    bitfield,
    dma::DmaAddress,
    prelude::*,
    sync::barrier::{
        dma_mb,
        Full,
        Read,
        Write, //
    },
};

/// The queue's number.
pub(super) const ID: u32 = 0;

/// 64-bit words in an entry.
const WORDS: usize = 4;

/// Words in the shadow area.
const SHADOW_WORDS: usize = 8;

/// Word of the shadow area with the arm request.
const SHADOW_ARM: usize = 4;

bitfield! {
    /// Word 2 of an entry.
    struct CcqResult(u64) {
        31:0 opretval;
    }
}

bitfield! {
    /// Word 3 of an entry.
    struct CcqHeader(u64) {
        63:63 valid;
        55:55 error;
        46:32 wqeidx;
        31:16 majerr;
        15:0 minerr;
    }
}

bitfield! {
    /// Word 0 of the shadow area.
    struct ShadowHead(u64) {
        19:0 cqeidx;
    }
}

bitfield! {
    /// Word 4 of the shadow area.
    struct ShadowArm(u64) {
        17:16 arm_seq_num;
        15:15 arm_next_se;
        14:14 arm_next;
        13:0 sw_cq_select;
    }
}

/// A completion of the control queue pair.
pub(super) struct Cqe {
    /// Slot of the completed entry, as the device gave it.
    pub(super) index: u16,
    /// How it ended.
    pub(super) outcome: Outcome,
}

/// The driver's side of the queue.
pub(super) struct Ccq {
    ring: DmaWords,
    shadow: DmaWords,
    head: u32,
    /// Valid bit of the current pass.
    polarity: bool,
    arm_seq: u8,
    /// Who notices the next entry.
    pub(super) watch: Watch,
}

impl Ccq {
    /// Entries: as many as operations can be outstanding, and a little more.
    pub(super) const ENTRIES: u32 = 2050;

    /// Completions the device may write before it looks how far the driver has read.
    pub(super) const SHADOW_READ_THRESHOLD: u32 = 16;

    pub(super) fn new(port: &Port) -> Result<Self> {
        Ok(Self {
            // CAST: a small constant.
            ring: port.alloc(Self::ENTRIES as usize * WORDS)?,
            shadow: port.alloc(SHADOW_WORDS)?,
            head: 0,
            polarity: true,
            arm_seq: 0,
            watch: Watch::new(),
        })
    }

    pub(super) fn ring_address(&self) -> DmaAddress {
        self.ring.address()
    }

    pub(super) fn shadow_address(&self) -> DmaAddress {
        self.shadow.address()
    }

    /// Takes the next completion.
    pub(super) fn next(&mut self) -> Option<Cqe> {
        // CAST: the head is below `ENTRIES`.
        let base = self.head as usize * WORDS;
        let header = CcqHeader::from(self.ring.read(base + 3).ok()?);
        if header.valid().into_bool() != self.polarity {
            return None;
        }
        // The rest of the entry is read after its valid bit.
        dma_mb(Read);
        let result = CcqResult::from(self.ring.read(base + 2).ok()?);
        // Both are read before the device may write the entry again.
        dma_mb(Full);

        self.head += 1;
        if self.head == Self::ENTRIES {
            self.head = 0;
            self.polarity = !self.polarity;
        }
        let head = ShadowHead::from(0).try_with_cqeidx(self.head).ok()?;
        self.shadow.write(0, head.into()).ok()?;

        let minor = header.minerr().cast::<u16>().get();
        let outcome = if header.error().into_bool() {
            Err(Failure::Refused(Code {
                major: header.majerr().cast::<u16>().get(),
                minor,
            }))
        } else {
            Ok(Completed {
                return_value: result.opretval().cast::<u32>().get(),
                minor,
            })
        };
        Some(Cqe {
            index: header.wqeidx().cast::<u16>().get(),
            outcome,
        })
    }

    /// Writes an arm request into the shadow area; the doorbell is the caller's.
    pub(super) fn arm(&mut self) {
        self.arm_seq = self.arm_seq.wrapping_add(1) & 3;
        if let Ok(request) = ShadowArm::from(0)
            .with_const_arm_next::<1>()
            .try_with_arm_seq_num(self.arm_seq)
        {
            // The block is longer than a shadow area.
            let _ = self.shadow.write(SHADOW_ARM, request.into());
        }
        self.watch.arm();
        // The request is in memory before the doorbell tells the device to read it.
        dma_mb(Write);
    }
}
