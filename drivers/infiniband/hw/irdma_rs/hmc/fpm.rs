// SPDX-License-Identifier: GPL-2.0

//! The function private memory (FPM) buffers: what the device offers, what the driver commits.
//!
//! Offsets are byte offsets of the contract, divided by eight.

use super::objects::{
    Object,
    PerObject, //
};
use crate::mem::DmaWords;
use kernel::{
    bitfield,
    prelude::*,
    sizes::SZ_2M, //
};

/// Words of the query buffer (200 bytes).
pub(super) const QUERY_WORDS: usize = 25;

/// Words of the commit buffer (208 bytes).
pub(super) const COMMIT_WORDS: usize = 26;

/// Bytes of the commit buffer.
pub(super) const COMMIT_BYTES: u32 = 208;

/// Bytes of a PBLE.
const PBLE_SIZE: u64 = 8;

/// Bytes of an entry of a free list.
const FREE_LIST_SIZE: u64 = 4;

/// Bytes of the APBVT.
const APBVT_SIZE: u64 = 8192;

/// Bytes of address space a segment descriptor covers.
// CAST: Widening of a constant.
pub(crate) const SEGMENT: u64 = SZ_2M as u64;

/// Unit of object bases, and alignment of objects.
const BASE_UNIT: u64 = 512;

bitfield! {
    /// First word of the query buffer.
    struct QuerySds(u64) {
        44:32 max_pe_sds;
        13:0 first_pe_sd_index;
    }
}

bitfield! {
    /// Most words of the query buffer.
    struct QueryObject(u64) {
        63:32 log2_or_block;
        31:0 max;
    }
}

bitfield! {
    /// Word 15 of the query buffer.
    struct QueryMisc(u64) {
        47:32 timerbucket;
        19:16 htmultiplier;
        9:0 max_ceqs;
    }
}

bitfield! {
    /// Words of the commit buffer in the device's answer.
    struct CommitObject(u64) {
        63:32 base;
        31:0 count;
        /// The count, of queue pairs.
        20:0 qp_count;
        /// The count, of completion queues.
        19:0 cq_count;
    }
}

/// What the device offers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    /// Greatest count of each object.
    pub(super) max: PerObject<u64>,
    /// Size of each object in bytes.
    pub(super) size: PerObject<u64>,
    /// Segments the function may use.
    pub(super) max_sds: u64,
    /// Completion event queues.
    pub(crate) max_ceqs: u32,
    /// Hash table entries per slot.
    pub(super) ht_multiplier: u64,
    /// Timer entries per 512 queue pairs.
    pub(super) timer_bucket: u64,
    /// Entries per block of the transmit FIFO.
    pub(super) xf_block: u64,
    /// Entries per block of the inbound read queue.
    pub(super) q1_block: u64,
    /// Entries per block of the read request FIFO.
    pub(super) rrf_block: u64,
}

/// Position in the query buffer and meaning of the upper half.
enum Query {
    /// Logarithm of the object's size above the count.
    Sized(usize),
    /// A count only, the size being fixed.
    Fixed(usize, u64),
    /// Not in the buffer.
    Constant(u64, u64),
}

const fn query_position(object: Object) -> Query {
    match object {
        Object::Qp => Query::Sized(1),
        Object::Cq => Query::Sized(2),
        Object::Hte => Query::Sized(4),
        Object::Arp => Query::Sized(5),
        Object::Apbvt => Query::Constant(1, APBVT_SIZE),
        Object::Mr => Query::Sized(6),
        Object::Xf => Query::Sized(7),
        Object::Xffl => Query::Fixed(8, FREE_LIST_SIZE),
        Object::Q1 => Query::Sized(9),
        Object::Q1fl => Query::Fixed(10, FREE_LIST_SIZE),
        Object::Timer => Query::Sized(11),
        Object::Fsimc => Query::Sized(12),
        Object::Fsiav => Query::Sized(13),
        Object::Pble => Query::Fixed(14, PBLE_SIZE),
        Object::Rrf => Query::Sized(16),
        Object::Rrffl => Query::Fixed(17, FREE_LIST_SIZE),
        Object::Hdr => Query::Sized(18),
        Object::Md => Query::Sized(19),
    }
}

/// Position in the commit buffer.
const fn commit_position(object: Object) -> usize {
    match object {
        Object::Qp => 0,
        Object::Cq => 1,
        Object::Hte => 3,
        Object::Arp => 4,
        Object::Apbvt => 5,
        Object::Mr => 6,
        Object::Xf => 7,
        Object::Xffl => 8,
        Object::Q1 => 9,
        Object::Q1fl => 10,
        Object::Timer => 11,
        Object::Fsimc => 12,
        Object::Fsiav => 13,
        Object::Pble => 14,
        Object::Rrf => 16,
        Object::Rrffl => 17,
        Object::Hdr => 18,
        Object::Md => 19,
    }
}

impl Offer {
    /// Reads the device's answer to the query.
    ///
    /// # Errors
    ///
    /// `EIO` when a value makes no sense.
    pub(super) fn parse(buffer: &DmaWords) -> Result<Self> {
        let mut max = PerObject::all(0);
        let mut size = PerObject::all(0);
        for object in Object::ALL {
            let (count, bytes) = match query_position(object) {
                Query::Constant(count, bytes) => (count, bytes),
                Query::Fixed(word, bytes) => {
                    (QueryObject::from(buffer.read(word)?).max().get(), bytes)
                }
                Query::Sized(word) => {
                    let word = QueryObject::from(buffer.read(word)?);
                    let log2 = word.log2_or_block().cast::<u32>().get();
                    (word.max().get(), 1u64.checked_shl(log2).ok_or(EIO)?)
                }
            };
            max.set(object, count);
            size.set(object, bytes);
        }
        let block = |word: usize| -> Result<u64> {
            Ok(QueryObject::from(buffer.read(word)?).log2_or_block().get())
        };
        let misc = QueryMisc::from(buffer.read(15)?);
        let offer = Self {
            max,
            size,
            max_sds: QuerySds::from(buffer.read(0)?).max_pe_sds().get(),
            max_ceqs: misc.max_ceqs().cast::<u32>().get(),
            ht_multiplier: misc.htmultiplier().get(),
            timer_bucket: misc.timerbucket().get(),
            xf_block: block(8)?,
            q1_block: block(10)?,
            rrf_block: block(17)?,
        };
        offer.check()?;
        Ok(offer)
    }

    fn check(&self) -> Result {
        let least = |object: Object, count: u64| self.max.get(object) >= count;
        let sane = self.max_ceqs >= 1
            && self.max_sds >= 1
            && self.ht_multiplier >= 1
            && self.q1_block != 0
            && self.xf_block != 0
            && (self.rrf_block != 0 || self.max.get(Object::Rrffl) == 0)
            && least(Object::Qp, 4)
            && least(Object::Cq, 4)
            && least(Object::Arp, 2)
            && least(Object::Fsiav, 2)
            && least(Object::Mr, 2)
            && least(Object::Pble, 512);
        if sane {
            Ok(())
        } else {
            Err(EIO)
        }
    }
}

/// Writes the counts to commit.
pub(super) fn write_commit(buffer: &DmaWords, counts: &PerObject<u64>) -> Result {
    for object in Object::ALL {
        // The device supplies count and place of the APBVT by itself.
        let count = match object {
            Object::Apbvt => 0,
            _ => counts.get(object),
        };
        buffer.write(commit_position(object), count)?;
    }
    Ok(())
}

/// Where an object's array lies in the function's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// First byte.
    pub(crate) base: u64,
    /// Number of objects.
    pub(crate) count: u64,
    /// Size of one.
    pub(crate) size: u64,
}

impl Extent {
    /// First byte after the array.
    pub(crate) fn end(&self) -> Result<u64> {
        self.count
            .checked_mul(self.size)
            .and_then(|bytes| bytes.checked_add(self.base))
            .ok_or(EIO)
    }

    /// Segments the array lies in.
    pub(super) fn segments(&self) -> Result<core::ops::Range<u64>> {
        if self.count == 0 {
            return Ok(0..0);
        }
        Ok(self.base / SEGMENT..self.end()?.div_ceil(SEGMENT))
    }
}

/// Reads the places the device chose.
///
/// # Errors
///
/// `EIO` when the device gave more than was asked, or an array leaves the segments it offered.
pub(super) fn parse_commit(
    buffer: &DmaWords,
    offer: &Offer,
    asked: &PerObject<u64>,
) -> Result<PerObject<Extent>> {
    let mut extents = PerObject::all(Extent {
        base: 0,
        count: 0,
        size: 1,
    });
    let limit = offer.max_sds.checked_mul(SEGMENT).ok_or(EIO)?;
    for object in Object::ALL {
        let word = CommitObject::from(buffer.read(commit_position(object))?);
        let count = match object {
            Object::Apbvt => 1,
            Object::Qp => word.qp_count().get(),
            Object::Cq => word.cq_count().get(),
            _ => word.count().get(),
        };
        if count > asked.get(object) {
            return Err(EIO);
        }
        let extent = Extent {
            base: word.base().get().checked_mul(BASE_UNIT).ok_or(EIO)?,
            count,
            size: offer.size.get(object),
        };
        if count != 0 && extent.end()? > limit {
            return Err(EIO);
        }
        extents.set(object, extent);
    }
    Ok(extents)
}

/// Bytes of address space that `count` objects take, in the unit of bases.
pub(super) fn space(count: u64, size: u64) -> Result<u64> {
    count
        .checked_mul(size)
        .and_then(|bytes| bytes.checked_next_multiple_of(BASE_UNIT))
        .ok_or(EOVERFLOW)
}
