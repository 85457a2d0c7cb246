// SPDX-License-Identifier: GPL-2.0
//! Layout of a completion of a queue pair (32 bytes) and of its extension.

use crate::bits::{bit, bits, Field};

/// Word 0: bytes received, the 40 header bytes included.
pub(crate) const PAYLOAD_LEN: Field = bits(31, 0);
/// Word 2: source of a datagram and own id.
pub(crate) const SOURCE_QP: Field = bits(31, 0);
pub(crate) const QP: Field = bits(55, 32);
/// Word 3.
pub(crate) const MINOR: Field = bits(15, 0);
pub(crate) const MAJOR: Field = bits(31, 16);
pub(crate) const WQE_INDEX: Field = bits(46, 32);
pub(crate) const EXTENDED: Field = bit(50);
pub(crate) const IPV4: Field = bit(53);
pub(crate) const SOLICITED: Field = bit(54);
pub(crate) const ERROR: Field = bit(55);
pub(crate) const OPCODE: Field = bits(61, 56);
pub(crate) const SQ: Field = bit(62);
pub(crate) const VALID: Field = bit(63);

/// Extension, word 0: immediate data.
pub(crate) const IMMEDIATE: Field = bits(31, 0);
/// Extension, word 2.
pub(crate) const SOURCE_MAC: Field = bits(47, 0);
pub(crate) const VLAN_TAG: Field = bits(63, 48);
/// Extension, word 3.
pub(crate) const VLAN_VALID: Field = bit(60);
pub(crate) const MAC_VALID: Field = bit(61);
pub(crate) const IMMEDIATE_VALID: Field = bit(62);

/// Opcode of a plain receive.
pub(crate) const OP_RECEIVE: u64 = 0x3E;
