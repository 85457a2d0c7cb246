// SPDX-License-Identifier: GPL-2.0
//! The invariant CRC of RoCEv2: the Ethernet CRC over everything that no router changes.
//!
//! A dummy link header of ones precedes the IP header; fields that may change on the way count as
//! ones.

use crate::packet::IpHeader;

/// Bytes of the CRC at the end of a packet.
pub(crate) const LEN: usize = 4;

/// Bytes of the UDP header, of which the checksum is masked.
const UDP_LEN: usize = 8;
/// The reserved byte of the BTH, counted from its start.
const BTH_RESERVED: usize = 4;

/// The CRC, in the byte order of the wire, of a packet whose part from the UDP header up to the CRC
/// is `transport`.
pub(crate) fn compute(ip: &IpHeader, transport: &[u8]) -> [u8; LEN] {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&[0xFF; 8]);
    match ip {
        IpHeader::V4(header) => {
            let mut h = *header;
            h[1] = 0xFF; // type of service
            h[8] = 0xFF; // time to live
            h[10] = 0xFF; // checksum
            h[11] = 0xFF;
            crc.update(&h);
        }
        IpHeader::V6(header) => {
            let mut h = *header;
            h[0] |= 0x0F; // traffic class and flow label
            h[1] = 0xFF;
            h[2] = 0xFF;
            h[3] = 0xFF;
            h[7] = 0xFF; // hop limit
            crc.update(&h);
        }
    }
    let mut masked = transport.to_vec();
    for at in [UDP_LEN - 2, UDP_LEN - 1, UDP_LEN + BTH_RESERVED] {
        if let Some(byte) = masked.get_mut(at) {
            *byte = 0xFF;
        }
    }
    crc.update(&masked);
    crc.finalize().to_le_bytes()
}
