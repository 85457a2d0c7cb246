// SPDX-License-Identifier: GPL-2.0

//! Completion queue entries and the shadow area of a completion queue.
//!
//! A completion is one entry of four words, or two entries if the first says so: the second then
//! tells about the packet (immediate, source MAC, VLAN). Each entry has its own valid bit, in the same
//! place; that of an extension at the start of the ring already has the polarity of the next pass.

use kernel::bitfield;

use super::wqe::SqOpcode;

/// Words in an entry.
pub(crate) const ENTRY_WORDS: u32 = 4;

/// Bytes in an entry.
pub(crate) const ENTRY_SIZE: u32 = 32;

/// The word of an entry that holds the valid bit.
pub(crate) const STATUS: u32 = 3;

/// Major code of an entry that reports a flushed queue.
pub(crate) const MAJOR_FLUSHED: u64 = 1;

/// Receive opcode of a write with immediate.
pub(crate) const RQ_OP_WRITE_IMM: u64 = 0x09;

/// The other receive opcode of a write with immediate.
pub(crate) const RQ_OP_WRITE_IMM_SOLICITED: u64 = 0x0b;

bitfield! {
    /// Word 0 of an entry.
    pub(crate) struct CqeLength(u64) {
        /// `PAYLDLEN`: bytes received; of a datagram, with the 40 bytes in front of the payload.
        31:0 payload_len;
    }
}

bitfield! {
    /// Word 2 of an entry.
    pub(crate) struct CqeQp(u64) {
        /// `QPID`: the local queue pair.
        55:32 qp_id;
        /// `UDSRCQPN`: the sender of a datagram; of its bits 24 are used.
        23:0 src_qpn;
    }
}

bitfield! {
    /// Word 3 of an entry.
    pub(crate) struct CqeStatus(u64) {
        /// `VALID`
        63:63 valid;
        /// `SQ`: a send completed, else a receive.
        62:62 sq;
        /// `OP` of a send.
        61:56 sq_op ?=> SqOpcode;
        /// `OP` of a receive.
        61:56 rq_op;
        /// `ERROR`
        55:55 error;
        /// `SOEVENT`: the sender asked for an event.
        54:54 solicited;
        /// `IPV4`: a datagram came over IPv4.
        53:53 ipv4;
        /// `EXTCQE`: the next entry belongs to this one.
        50:50 extended;
        /// `WQEIDX`: first quantum of the WQE.
        46:32 wqe_idx;
        /// `MAJERR`
        31:16 major;
        /// `MINERR`
        15:0 minor;
    }
}

bitfield! {
    /// Word 0 of an extension.
    pub(crate) struct ExtImm(u64) {
        /// `IMMDATALOW32`
        31:0 imm;
    }
}

bitfield! {
    /// Word 2 of an extension.
    pub(crate) struct ExtL2(u64) {
        /// `UDVLAN`: the tag, priority and number.
        63:48 vlan;
        /// `UDSMAC`: first octet in the most significant byte.
        47:0 smac;
    }
}

bitfield! {
    /// Word 3 of an extension.
    pub(crate) struct ExtStatus(u64) {
        /// `VALID`
        63:63 valid;
        /// `IMMVALID`
        62:62 imm_valid;
        /// `UDSMACVALID`
        61:61 smac_valid;
        /// `UDVLANVALID`
        60:60 vlan_valid;
    }
}

bitfield! {
    /// Word 4 of the shadow area: what the consumer wants to be told.
    pub(crate) struct ShadowArm(u64) {
        /// `ARM_SEQ_NUM`: incremented with each arm.
        17:16 seq;
        /// `ARM_NEXT_SE`: event on the next solicited completion.
        15:15 next_se;
        /// `ARM_NEXT`: event on the next completion.
        14:14 next;
        /// `SW_CQ_SELECT`: completed resizes.
        13:0 sw_cq_select;
    }
}

/// Word of the shadow area with the consumer index (`CQEIDX`).
pub(crate) const SHADOW_INDEX: u32 = 0;

/// Word of the shadow area with [`ShadowArm`].
pub(crate) const SHADOW_ARM: u32 = 4;

/// Bytes in a shadow area.
pub(crate) const SHADOW_SIZE: u32 = 64;

/// Source MAC and VLAN, and the immediate, of a received packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extension {
    pub(crate) imm: Option<u32>,
    pub(crate) smac: Option<[u8; 6]>,
    pub(crate) vlan: Option<u16>,
}

impl Extension {
    /// Decodes the words of an extension entry.
    pub(crate) fn decode(words: [u64; 4]) -> Self {
        let [imm, _, l2, status] = words;
        let (l2, status) = (ExtL2::from_raw(l2), ExtStatus::from_raw(status));
        let [_, _, smac @ ..] = l2.smac().get().to_be_bytes();

        Self {
            imm: status
                .imm_valid()
                .into_bool()
                .then(|| u32::from(ExtImm::from_raw(imm).imm().cast::<u32>())),
            smac: status.smac_valid().into_bool().then_some(smac),
            vlan: status
                .vlan_valid()
                .into_bool()
                .then(|| u16::from(l2.vlan().cast::<u16>())),
        }
    }
}

/// A completion as the device wrote it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cqe {
    /// `QPCOMPCTX` of the queue pair.
    pub(crate) context: u64,
    pub(crate) length: CqeLength,
    pub(crate) qp: CqeQp,
    pub(crate) status: CqeStatus,
    pub(crate) extension: Option<Extension>,
}

impl Cqe {
    /// Decodes the words of an entry and of the extension that belongs to it.
    pub(crate) fn decode(words: [u64; 4], extension: Option<[u64; 4]>) -> Self {
        let [length, context, qp, status] = words;

        Self {
            context,
            length: length.into(),
            qp: qp.into(),
            status: status.into(),
            extension: extension.map(Extension::decode),
        }
    }
}

#[kernel::macros::kunit_tests(irdma_rs_cqe)]
mod tests {
    use super::*;

    #[test]
    fn decodes_a_send() {
        let cqe = Cqe::decode([0, 7, 0x0000_0045_0000_0000, 0xc300_0009_0000_0000], None);

        assert_eq!(cqe.context, 7);
        assert_eq!(cqe.qp.qp_id(), 0x45u64);
        assert!(cqe.status.sq().into_bool() && !cqe.status.error().into_bool());
        assert_eq!(cqe.status.sq_op(), Ok(SqOpcode::Send));
        assert_eq!(cqe.status.wqe_idx(), 9u64);
    }

    #[test]
    fn decodes_a_datagram_with_its_extension() {
        let cqe = Cqe::decode(
            [0x68, 7, 0x0000_0045_0000_0123, 0xbe24_0007_0000_0000],
            Some([0, 0, 0x0000_0200_0000_0001, 0xa000_0000_0000_0000]),
        );

        assert!(!cqe.status.sq().into_bool() && cqe.status.ipv4().into_bool());
        assert!(cqe.status.extended().into_bool() && !cqe.status.solicited().into_bool());
        assert_eq!(cqe.length.payload_len(), 104u64);
        assert_eq!(cqe.qp.src_qpn(), 0x123u64);
        assert_eq!(cqe.status.wqe_idx(), 7u64);
        assert_eq!(
            cqe.extension,
            Some(Extension {
                imm: None,
                smac: Some([2, 0, 0, 0, 0, 1]),
                vlan: None,
            })
        );
    }

    #[test]
    fn decodes_immediate_and_vlan() {
        let ext = Extension::decode([0xaabb_ccdd, 0, 0x6064_0000_0000_0000, 0xd000_0000_0000_0000]);

        assert_eq!(ext.imm, Some(0xaabb_ccdd));
        assert_eq!(ext.vlan, Some(0x6064));
        assert_eq!(ext.smac, None);
    }

    #[test]
    fn decodes_a_flush() {
        let cqe = Cqe::decode([0, 7, 0x0000_0045_0000_0000, 0xc080_0009_0001_0001], None);

        assert!(cqe.status.error().into_bool());
        assert_eq!(cqe.status.major(), MAJOR_FLUSHED);
        assert_eq!(cqe.status.minor(), 1u64);
    }
}
