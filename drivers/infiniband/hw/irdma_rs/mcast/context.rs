// SPDX-License-Identifier: GPL-2.0

//! The member list of a group as the device reads it.
//!
//! A group context is 64 bytes of coherent memory, eight words, one member a word. Members are packed
//! from word 0 upward and the words behind them are zero. The device reads the context while it
//! executes a command on the group, and keeps no pointer to it afterwards.
//!
//! [`Contexts`] holds the contexts of all groups in pages of 64 and hands out the context *of a group
//! index*: context and index live and die together, so one that is quarantined takes the other along.
//! Pages are allocated when first needed and stay until the device lets go of everything, which makes
//! it harmless that a command which timed out may still be reading one.

use kernel::{
    bitfield,
    dma::DmaAddress,
    new_mutex,
    prelude::*,
    sync::{
        Mutex,
        SetOnce, //
    }, //
};

use super::index::GroupIndex;
use crate::{
    lan::Port,
    mem::DmaWords, //
};

/// Members the hardware context has room for.
pub(crate) const MAX_MEMBERS: usize = 8;

/// Contexts in one page of coherent memory.
const PER_PAGE: usize = 64;

bitfield! {
    /// One member of a group, a word of the group context.
    pub(crate) struct McgMember(u64) {
        /// Destination port, zero on this path.
        47:32 dest_port;
        /// The entry names a member.
        31:31 valid;
        /// Match without looking at the destination port.
        30:30 ignore_dest_port;
        /// The member belongs to a virtual function.
        29:29 vf_flag;
        /// Virtual function of the member.
        28:22 vf_id;
        /// Physical function of the member; the field is left zero as the device takes the function
        /// of the command.
        21:18 pf_id;
        /// Queue pair number of the member.
        17:0 qp_id;
    }
}

/// Builds the eight words of the context that lists `members` in their order.
///
/// # Errors
///
/// `EINVAL` if there are more members than words, or a number does not fit its field.
pub(crate) fn encode(members: &[u32]) -> Result<[u64; MAX_MEMBERS]> {
    let mut words = [0; MAX_MEMBERS];

    if members.len() > words.len() {
        return Err(EINVAL);
    }
    for (word, &qp) in words.iter_mut().zip(members) {
        *word = McgMember::zeroed()
            .try_with_qp_id(u64::from(qp))
            .map_err(|_| EINVAL)?
            .with_valid(true)
            .into_raw();
    }
    Ok(words)
}

/// The contexts of all groups, by group index.
#[pin_data]
pub(crate) struct Contexts {
    /// Page `i` holds the contexts of the indexes from `64 * i` on. Who finds it there needs no lock.
    pages: KVec<SetOnce<DmaWords>>,
    /// Held to allocate a page.
    #[pin]
    growing: Mutex<()>,
}

impl Contexts {
    /// Prepares contexts for the indexes below `limit`; no memory for the device is taken yet.
    pub(crate) fn new(limit: u16) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            pages: Self::slots(limit)?,
            growing <- new_mutex!((), "irdma_rs::mcast::Contexts"),
        })
    }

    fn slots(limit: u16) -> Result<KVec<SetOnce<DmaWords>>> {
        let mut slots = KVec::new();

        for _ in 0..usize::from(limit).div_ceil(PER_PAGE) {
            slots.push(SetOnce::new(), GFP_KERNEL)?;
        }
        Ok(slots)
    }

    /// Returns the page of `index`, allocating it first if it is not there.
    fn page(&self, port: &Port, index: usize) -> Result<&DmaWords> {
        let slot = self.pages.get(index / PER_PAGE).ok_or(EINVAL)?;

        if let Some(page) = slot.as_ref() {
            return Ok(page);
        }
        let _growing = self.growing.lock();
        if slot.as_ref().is_none() {
            slot.populate(port.alloc(PER_PAGE * MAX_MEMBERS)?);
        }
        slot.as_ref().ok_or(EINVAL)
    }

    /// Writes `words` into the context of `index` and returns where the device finds it.
    ///
    /// The caller serialises writes to one context with the commands that make the device read it.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if a page was needed and could not be had, `EINVAL` for an index out of range.
    pub(crate) fn write(
        &self,
        port: &Port,
        index: GroupIndex,
        words: &[u64; MAX_MEMBERS],
    ) -> Result<DmaAddress> {
        let index = usize::from(index.get());
        let first = (index % PER_PAGE) * MAX_MEMBERS;
        let page = self.page(port, index)?;

        for (i, &word) in words.iter().enumerate() {
            page.write(first + i, word)?;
        }
        page.address_of(first)
    }
}

#[kernel::macros::kunit_tests(irdma_rs_mcast_context)]
mod tests {
    use super::*;

    #[test]
    fn packs_members_and_zeroes_the_rest() -> Result {
        assert_eq!(encode(&[])?, [0; MAX_MEMBERS]);
        assert_eq!(
            encode(&[0x45, 0x3ffff])?,
            [0x8000_0045, 0x8003_ffff, 0, 0, 0, 0, 0, 0]
        );
        let full = encode(&[1, 2, 3, 4, 5, 6, 7, 8])?;
        assert!(full
            .iter()
            .all(|w| McgMember::from_raw(*w).valid().into_bool()));
        Ok(())
    }

    #[test]
    fn refuses_a_ninth_member_and_a_wide_number() {
        assert!(encode(&[1, 2, 3, 4, 5, 6, 7, 8, 9]).is_err());
        assert!(encode(&[0x4_0000]).is_err());
    }
}
