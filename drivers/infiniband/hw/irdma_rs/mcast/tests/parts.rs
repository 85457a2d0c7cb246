// SPDX-License-Identifier: GPL-2.0

//! Addresses, indexes and contexts, the pure parts below the list.

use core::net::{
    IpAddr,
    Ipv4Addr,
    Ipv6Addr, //
};

use kernel::prelude::*;
use rdma::{
    gid::{
        Gid,
        MulticastGid, //
    },
    testing::{
        random::Random,
        words, //
    }, //
};

use crate::mcast::{
    context::{
        encode,
        MAX_MEMBERS, //
    },
    index::IndexPool,
    mac::group_mac, //
};

/// Tries each value of each octet of `ip`, the others at random, and compares.
fn every_octet<const N: usize>(seed: u64, expected: impl Fn([u8; N]) -> bool) -> bool {
    let mut random = Random::new(seed);

    (0..N).all(|place| {
        (0..=255u8).all(|value| {
            let mut octets = random.octets::<N>();
            if let Some(octet) = octets.get_mut(place) {
                *octet = value;
            }
            expected(octets)
        })
    })
}

#[kernel::macros::kunit_tests(irdma_rs_mcast_parts)]
mod suite {
    use super::*;

    /// RFC 1112, section 6.4, written as arithmetic on the whole address, and the network stack.
    #[test]
    fn every_octet_of_an_ipv4_group_maps_to_its_low_23_bits() {
        assert!(every_octet(1, |octets: [u8; 4]| {
            let low = u64::from(u32::from_be_bytes(octets)) & 0x7f_ffff;
            let [_, _, mac @ ..] = (0x0100_5e00_0000u64 | low).to_be_bytes();
            let ip = IpAddr::V4(Ipv4Addr::from(octets));
            group_mac(ip) == mac && words::group_mac(ip) == mac
        }));
    }

    /// RFC 2464, section 7, written as arithmetic on the whole address, and the network stack.
    #[test]
    fn every_octet_of_an_ipv6_group_maps_to_its_last_four() {
        assert!(every_octet(2, |octets: [u8; 16]| {
            // CAST: The last 32 bits are cut out on purpose.
            let low = u64::from(u128::from_be_bytes(octets) as u32);
            let [_, _, mac @ ..] = (0x3333_0000_0000u64 | low).to_be_bytes();
            let ip = IpAddr::V6(Ipv6Addr::from(octets));
            group_mac(ip) == mac && words::group_mac(ip) == mac
        }));
    }

    /// A v4-mapped MGID is the IPv4 group; the same octets in another form of address are another
    /// group, with another Ethernet address.
    #[test]
    fn mapped_and_native_groups_are_different() {
        for last in 0..=255u8 {
            let mut mapped = [0; 16];
            let mut native = [0; 16];
            for (place, value) in [(10, 0xff), (11, 0xff), (12, 239), (15, last)] {
                if let Some(octet) = mapped.get_mut(place) {
                    *octet = value;
                }
            }
            for (place, value) in [(0, 0xff), (1, 0x0e), (12, 239), (15, last)] {
                if let Some(octet) = native.get_mut(place) {
                    *octet = value;
                }
            }
            let ip = |octets| MulticastGid::new(Gid::new(octets)).map(|gid| gid.ip());

            assert_eq!(ip(mapped), Some(IpAddr::V4(Ipv4Addr::new(239, 0, 0, last))));
            assert_eq!(ip(native), Some(IpAddr::V6(Ipv6Addr::from(native))));
            assert!(ip(mapped).map(group_mac) != ip(native).map(group_mac));
        }
    }

    /// Random takes and releases next to a table of which indexes are out.
    #[test]
    fn indexes_are_unique_and_none_is_lost() -> Result {
        for (seed, objects) in [
            (1, 2),
            (2, 3),
            (3, 9),
            (4, 64),
            (5, 65),
            (6, 4096),
            (7, 5000),
        ] {
            let limit = IndexPool::limit_for(objects);
            let capacity = IndexPool::capacity(limit);
            let mut pool = IndexPool::new(limit)?;
            let mut random = Random::new(seed);
            let mut out = KVec::new();

            assert_eq!(capacity, objects.min(4096) - 1);
            for step in 0..3000u32 {
                // Alternately more takes and more releases, so that both ends are met.
                let rising = (step / 700) % 2 == 0;
                if random.chance(if rising { 8 } else { 2 }, 10) {
                    match pool.take() {
                        Some(index) => {
                            assert!(index.get() > 0 && index.get() < limit);
                            assert!(!out.contains(&index));
                            out.push(index, GFP_KERNEL)?;
                        }
                        None => assert_eq!(out.len(), capacity as usize),
                    }
                } else if !out.is_empty() {
                    let at = random.index(out.len());
                    let index = out.remove(at).map_err(|_| EINVAL)?;
                    pool.release(index);
                }
            }
            while pool.take().is_some_and(|index| {
                let fresh = !out.contains(&index);
                fresh && out.push(index, GFP_KERNEL).is_ok()
            }) {}
            assert_eq!(out.len(), capacity as usize);
        }
        Ok(())
    }

    /// The member words against those that C computes.
    #[test]
    fn contexts_are_those_of_the_kernel() -> Result {
        let mut random = Random::new(3);

        assert_eq!(
            words::number(words::name::MAX_MCAST_MEMBERS),
            u32::try_from(MAX_MEMBERS)?
        );
        for round in 0..500 {
            let count = round % (MAX_MEMBERS + 1);
            let qps: [u32; MAX_MEMBERS] = core::array::from_fn(|_| random.bits32(18));
            let context = encode(qps.get(..count).ok_or(EINVAL)?)?;

            for (place, word) in context.iter().enumerate() {
                let expected = match qps.get(place) {
                    Some(qp) if place < count => words::member(*qp),
                    _ => 0,
                };
                assert_eq!(*word, expected);
            }
        }
        Ok(())
    }
}
