// SPDX-License-Identifier: GPL-2.0

//! Work queue entries: the words of send and receive WQEs.
//!
//! A send WQE is one to eight *quanta* of 32 bytes, a receive WQE has the fixed size its queue was
//! created with. Word 3 of the first quantum is the header and carries the valid bit; bit 63 of word 3
//! of every further quantum equals it, because a fragment or its filler lies there.
//!
//! Src: names in backquotes are those of the hardware contract.

use kernel::{
    bitfield,
    num::Bounded,
    prelude::*, //
};

/// Bytes in a quantum.
pub(crate) const QUANTUM: usize = 32;

/// Words in a quantum.
pub(crate) const QUANTUM_WORDS: u32 = 4;

/// The word of a WQE that holds the header.
pub(crate) const HEADER: u32 = 3;

/// Quanta a WQE can have; also the alignment across which no WQE extends.
pub(crate) const MAX_QUANTA: u32 = 8;

/// Operations of the send queue (`IRDMAQP_OP_..`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SqOpcode {
    RdmaWrite,
    RdmaRead,
    Send,
    SendInv,
    SendSolicited,
    SendSolicitedInv,
    BindMw,
    FastRegister,
    LocalInvalidate,
    RdmaReadLocalInv,
    Nop,
    RdmaWriteSolicited,
}

impl From<SqOpcode> for Bounded<u64, 6> {
    fn from(opcode: SqOpcode) -> Self {
        match opcode {
            SqOpcode::RdmaWrite => Bounded::<u64, _>::new::<0x00>(),
            SqOpcode::RdmaRead => Bounded::<u64, _>::new::<0x01>(),
            SqOpcode::Send => Bounded::<u64, _>::new::<0x03>(),
            SqOpcode::SendInv => Bounded::<u64, _>::new::<0x04>(),
            SqOpcode::SendSolicited => Bounded::<u64, _>::new::<0x05>(),
            SqOpcode::SendSolicitedInv => Bounded::<u64, _>::new::<0x06>(),
            SqOpcode::BindMw => Bounded::<u64, _>::new::<0x08>(),
            SqOpcode::FastRegister => Bounded::<u64, _>::new::<0x09>(),
            SqOpcode::LocalInvalidate => Bounded::<u64, _>::new::<0x0a>(),
            SqOpcode::RdmaReadLocalInv => Bounded::<u64, _>::new::<0x0b>(),
            SqOpcode::Nop => Bounded::<u64, _>::new::<0x0c>(),
            SqOpcode::RdmaWriteSolicited => Bounded::<u64, _>::new::<0x0d>(),
        }
    }
}

impl TryFrom<Bounded<u64, 6>> for SqOpcode {
    type Error = Error;

    /// # Errors
    ///
    /// `EIO` for a code that no operation has.
    fn try_from(code: Bounded<u64, 6>) -> Result<Self> {
        Ok(match code.get() {
            0x00 => SqOpcode::RdmaWrite,
            0x01 => SqOpcode::RdmaRead,
            0x03 => SqOpcode::Send,
            0x04 => SqOpcode::SendInv,
            0x05 => SqOpcode::SendSolicited,
            0x06 => SqOpcode::SendSolicitedInv,
            0x08 => SqOpcode::BindMw,
            0x09 => SqOpcode::FastRegister,
            0x0a => SqOpcode::LocalInvalidate,
            0x0b => SqOpcode::RdmaReadLocalInv,
            0x0c => SqOpcode::Nop,
            0x0d => SqOpcode::RdmaWriteSolicited,
            _ => return Err(EIO),
        })
    }
}

bitfield! {
    /// Header of a send WQE, word 3.
    pub(crate) struct SqHeader(u64) {
        /// `VALID`: equals the polarity of the pass.
        63:63 valid;
        /// `SIGCOMPL`: write a completion on success.
        62:62 signaled;
        /// `LOCALFENCE`: wait for the earlier WQEs of this queue.
        61:61 local_fence;
        /// `READFENCE`: wait for earlier reads.
        60:60 read_fence;
        /// `INLINEDATAFLAG`: the payload is in the WQE.
        57:57 inline_flag;
        /// `INLINEDATALEN`: bytes of payload in the WQE.
        55:48 inline_len;
        /// `IMMDATAFLAG`: word 0 is the immediate.
        47:47 imm_flag;
        /// `ADDFRAGCNT`: fragments behind the first place, filler included.
        41:38 add_frag_cnt;
        /// `OPCODE`
        37:32 opcode ?=> SqOpcode;
        /// `REMSTAG`: remote STag.
        31:0 rem_stag;
        /// `AHID`: address handle of a datagram, in place of the remote STag.
        24:0 ah_id;
    }
}

bitfield! {
    /// Where a datagram goes, word 2 of a UD send WQE.
    pub(crate) struct UdDest(u64) {
        /// `DESTQPN`
        55:32 dest_qpn;
        /// `DESTQKEY`
        31:0 dest_qkey;
    }
}

bitfield! {
    /// Second word of a fragment.
    pub(crate) struct FragMeta(u64) {
        /// `FRAG_VALID`: equals the polarity of the pass.
        63:63 valid;
        /// `FRAG_LEN`
        62:32 len;
        /// `FRAG_STAG`
        31:0 stag;
    }
}

bitfield! {
    /// Header of a receive WQE, word 3.
    pub(crate) struct RqHeader(u64) {
        /// `VALID`: equals the polarity of the pass.
        63:63 valid;
        /// `ADDFRAGCNT`: fragments behind the first place, filler included.
        41:38 add_frag_cnt;
    }
}

/// A piece of memory in a work request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) addr: u64,
    pub(crate) len: u32,
    pub(crate) lkey: u32,
}

impl Fragment {
    /// Returns the two words of the fragment.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the length does not fit its 31 bits.
    pub(crate) fn words(self, polarity: bool) -> Result<(u64, u64)> {
        let meta = FragMeta::zeroed()
            .with_stag(self.lkey)
            .try_with_len(u64::from(self.len))
            .map_err(|_| EINVAL)?
            .with_valid(polarity);
        Ok((self.addr, meta.into_raw()))
    }
}

/// Returns how many fragments follow the first place when `places` are taken, the filler included
/// that makes the number even.
pub(crate) const fn additional_fragments(places: u32) -> u32 {
    let following = places.saturating_sub(1);
    following + following % 2
}

/// Returns how many quanta a WQE with `places` fragments has; an immediate takes a place.
pub(crate) const fn quanta_for_fragments(places: u32) -> u32 {
    1 + additional_fragments(places) / 2
}

/// Returns the word of a WQE at which fragment place `place` begins.
pub(crate) const fn fragment_word(place: u32) -> u32 {
    if place == 0 {
        0
    } else {
        QUANTUM_WORDS + (place - 1) * 2
    }
}

#[kernel::macros::kunit_tests(irdma_rs_wqe)]
mod tests {
    use super::*;

    const FRAGMENT: Fragment = Fragment {
        addr: 0x7f00_0000_1000,
        len: 64,
        lkey: 0x00ab_cd12,
    };

    #[test]
    fn encodes_the_worked_examples() -> Result {
        let header = SqHeader::zeroed()
            .with_opcode(SqOpcode::Send)
            .with_const_ah_id::<5>()
            .with_signaled(true)
            .with_valid(true);
        assert_eq!(header.into_raw(), 0xc000_0003_0000_0005);
        assert_eq!(
            header
                .with_imm_flag(true)
                .with_const_add_frag_cnt::<2>()
                .into_raw(),
            0xc000_8083_0000_0005
        );
        assert_eq!(
            header
                .with_inline_flag(true)
                .with_const_inline_len::<20>()
                .into_raw(),
            0xc214_0003_0000_0005
        );
        assert_eq!(
            FRAGMENT.words(true)?,
            (0x7f00_0000_1000, 0x8000_0040_00ab_cd12)
        );
        let dest = UdDest::zeroed()
            .with_const_dest_qpn::<0x123>()
            .with_const_dest_qkey::<0x1111_1111>();
        assert_eq!(dest.into_raw(), 0x0000_0123_1111_1111);
        Ok(())
    }

    #[test]
    fn counts_fragments_and_quanta() {
        // Places, fragments behind the first, quanta.
        for (places, additional, quanta) in [
            (0, 0, 1),
            (1, 0, 1),
            (2, 2, 2),
            (3, 2, 2),
            (4, 4, 3),
            (13, 12, 7),
            (14, 14, 8),
            (15, 14, 8),
        ] {
            assert_eq!(additional_fragments(places), additional);
            assert_eq!(quanta_for_fragments(places), quanta);
        }
    }

    #[test]
    fn places_fragments_around_the_header() {
        for (place, word) in [(0, 0), (1, 4), (2, 6), (3, 8), (14, 30)] {
            assert_eq!(fragment_word(place), word);
        }
    }

    #[test]
    fn refuses_a_length_of_32_bits() {
        let fragment = Fragment {
            len: 0x8000_0000,
            ..FRAGMENT
        };
        assert_eq!(fragment.words(true), Err(EINVAL));
    }
}
