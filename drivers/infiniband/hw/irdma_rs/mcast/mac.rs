// SPDX-License-Identifier: GPL-2.0

//! The Ethernet address of a multicast group.
//!
//! An IPv4 group maps to `01:00:5e` and the low 23 bits of its address (RFC 1112), an IPv6 group to
//! `33:33` and its **last** four octets (RFC 2464). The same function serves the group entry of the
//! receiver and the address handle of the sender, so the two cannot disagree.

use core::net::IpAddr;

/// An Ethernet address, first octet first.
pub(crate) type Mac = [u8; 6];

/// Returns the Ethernet address to which frames for the group `ip` are sent.
///
/// `ip` is a multicast address; a v4-mapped one has been turned into [`IpAddr::V4`] before.
pub(crate) const fn group_mac(ip: IpAddr) -> Mac {
    match ip {
        IpAddr::V4(ip) => {
            let [_, b, c, d] = ip.octets();
            [0x01, 0x00, 0x5e, b & 0x7f, c, d]
        }
        IpAddr::V6(ip) => {
            let [.., a, b, c, d] = ip.octets();
            [0x33, 0x33, a, b, c, d]
        }
    }
}

#[kernel::macros::kunit_tests(irdma_rs_mcast_mac)]
mod tests {
    use super::*;
    use core::net::{
        Ipv4Addr,
        Ipv6Addr, //
    };

    #[test]
    fn maps_ipv4_by_its_low_23_bits() {
        for (ip, mac) in [
            ([224, 0, 0, 1], [0x01, 0x00, 0x5e, 0, 0, 1]),
            ([239, 129, 2, 3], [0x01, 0x00, 0x5e, 0x01, 2, 3]),
            ([239, 255, 255, 255], [0x01, 0x00, 0x5e, 0x7f, 255, 255]),
        ] {
            assert_eq!(group_mac(IpAddr::V4(Ipv4Addr::from(ip))), mac);
        }
    }

    #[test]
    fn maps_ipv6_by_its_last_four_octets() {
        let ip = Ipv6Addr::new(0xff0e, 0x1122, 0x3344, 0, 0, 0, 0xabcd, 0x1234);
        assert_eq!(
            group_mac(IpAddr::V6(ip)),
            [0x33, 0x33, 0xab, 0xcd, 0x12, 0x34]
        );
    }
}
