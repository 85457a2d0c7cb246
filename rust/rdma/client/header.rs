// SPDX-License-Identifier: GPL-2.0

//! The network header in front of a received datagram.
//!
//! A UD receive buffer starts with 40 octets that hold the GRH (IBA, 11.4.1.2): the whole IPv6
//! header on RoCEv2, the GRH itself on InfiniBand and RoCEv1, which has the same layout, or an
//! IPv4 header in the second half with nothing of meaning before it.

use crate::gid::Gid;

/// Octets before the payload.
pub const HEADER_LEN: usize = 40;

/// Where an IPv4 header starts.
const V4_START: usize = HEADER_LEN - V4_LEN;

/// Octets of an IPv4 header without options, which RoCEv2 does not have.
const V4_LEN: usize = 20;

/// Where a datagram came from and where it was sent to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpHeader {
    /// The sender; v4-mapped for IPv4.
    pub source: Gid,
    /// The destination, a group's address for multicast; v4-mapped for IPv4.
    pub destination: Gid,
}

impl IpHeader {
    /// Reads the first 40 octets of a receive buffer. `None` if they hold neither kind of header.
    pub fn parse(octets: &[u8; HEADER_LEN]) -> Option<Self> {
        if let Some(v4) = octets.get(V4_START..).and_then(|v4| v4.try_into().ok()) {
            // What lies before an IPv4 header may look like the start of an IPv6 one, and an IPv6
            // source address like the start of an IPv4 one: the checksum tells.
            if is_v4(v4) {
                return Some(Self {
                    source: mapped(v4, 12)?,
                    destination: mapped(v4, 16)?,
                });
            }
        }

        if octets[0] >> 4 != 6 {
            return None;
        }
        Some(Self {
            source: whole(octets, 8)?,
            destination: whole(octets, 24)?,
        })
    }
}

/// Whether this is an IPv4 header without options and with a right checksum.
fn is_v4(octets: &[u8; V4_LEN]) -> bool {
    let mut sum = 0u32;
    for pair in octets.chunks_exact(2) {
        if let [high, low] = pair {
            sum = sum.wrapping_add(u32::from(u16::from_be_bytes([*high, *low])));
        }
    }
    // Ten words: two folds take in every carry.
    sum = (sum & 0xffff).wrapping_add(sum >> 16);
    sum = (sum & 0xffff).wrapping_add(sum >> 16);

    octets[0] == 0x45 && sum == 0xffff
}

/// The v4-mapped GID of the address at `start`.
fn mapped(octets: &[u8; V4_LEN], start: usize) -> Option<Gid> {
    let address: &[u8; 4] = octets.get(start..)?.first_chunk()?;
    let [a, b, c, d] = *address;

    Some(Gid::new([
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d,
    ]))
}

/// The GID at `start`.
fn whole(octets: &[u8; HEADER_LEN], start: usize) -> Option<Gid> {
    octets.get(start..)?.first_chunk().copied().map(Gid::new)
}

#[kernel::prelude::kunit_tests(rdma_client_header)]
mod tests {
    use super::*;
    use core::net::{
        IpAddr,
        Ipv6Addr, //
    };

    /// 192.168.7.2 to 239.1.2.3, as a card sends it, with its checksum.
    const V4: [u8; V4_LEN] = [
        0x45, 0x00, 0x01, 0x3c, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x81, 0x02, 192, 168, 7, 2,
        239, 1, 2, 3,
    ];

    fn v4_behind(first: u8) -> [u8; HEADER_LEN] {
        let mut octets = [first; HEADER_LEN];
        octets[V4_START..].copy_from_slice(&V4);
        octets
    }

    fn v6(source: &[u16; 8]) -> [u8; HEADER_LEN] {
        let mut octets = [0u8; HEADER_LEN];
        octets[0] = 0x60;
        octets[8..24].copy_from_slice(&Ipv6Addr::from(*source).octets());
        octets[24..].copy_from_slice(&Ipv6Addr::from([0xff0e, 0, 0, 0, 0, 0, 0, 5]).octets());
        octets
    }

    #[test]
    fn v4_is_found_whatever_lies_before_it() {
        for first in [0, 0x60, 0x6f, 0xff] {
            let header = IpHeader::parse(&v4_behind(first));

            assert_eq!(
                header.map(|h| (h.source.ip(), h.destination.ip())),
                Some((IpAddr::from([192, 168, 7, 2]), IpAddr::from([239, 1, 2, 3])))
            );
        }
    }

    #[test]
    fn v4_with_a_wrong_checksum_is_none() {
        let mut octets = v4_behind(0);
        octets[39] ^= 1;

        assert_eq!(IpHeader::parse(&octets), None);
    }

    #[test]
    fn v6_is_found_even_if_its_source_starts_like_v4() {
        // The seventh word of the source lies where an IPv4 header would start.
        for word in [0, 0x4500, 0x4511] {
            let source = [0xfd00, 0, 0, 0, 0, 0, word, 2];
            let header = IpHeader::parse(&v6(&source));

            assert_eq!(
                header.map(|h| (h.source.ip(), h.destination.ip())),
                Some((
                    IpAddr::from(source),
                    IpAddr::from([0xff0eu16, 0, 0, 0, 0, 0, 0, 5])
                ))
            );
        }
    }

    #[test]
    fn nothing_is_found_in_noise() {
        assert_eq!(IpHeader::parse(&[0; HEADER_LEN]), None);
        assert_eq!(IpHeader::parse(&[0xff; HEADER_LEN]), None);
    }
}
