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

#[cfg(test)]
mod tests {
    use crate::packet::{icrc_valid, Envelope};

    /// A congestion notification as a ConnectX-4 Lx sent it.
    const CAPTURED: &str = "e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a00\
                            1201000012b7002800008100ffff400001180000000000000000000000000000\
                            00000000000082fd002a";

    fn captured() -> Vec<u8> {
        CAPTURED
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    #[test]
    fn the_crc_of_a_real_card_is_right() {
        let frame = captured();
        assert_eq!(frame.len(), 14 + 60);
        assert!(icrc_valid(&Envelope::parse(&frame).unwrap()));
    }

    #[test]
    fn only_what_routers_change_may_change() {
        for at in 14..captured().len() {
            let mut frame = captured();
            frame[at] ^= 0x10;
            // Type of service, time to live and the BTH's reserved byte are not covered; the header
            // checksum is not either, but then the packet is not IPv4.
            let free = [15, 22, 46].contains(&at);
            frame[24..26].copy_from_slice(&[0, 0]);
            let sum: u32 = frame[14..34]
                .chunks(2)
                .map(|p| u32::from(p[0]) << 8 | u32::from(p[1]))
                .sum();
            let sum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
            let valid = Envelope::parse(&frame).map(|e| icrc_valid(&e));
            if free || [24, 25, 40, 41].contains(&at) {
                assert_eq!(valid, Some(true), "byte {at}");
            } else {
                assert_ne!(valid, Some(true), "byte {at}");
            }
        }
    }
}
