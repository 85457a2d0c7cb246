// SPDX-License-Identifier: GPL-2.0

//! LIDs and GIDs, every value or every octet; KUnit kernels only.

use core::net::{
    IpAddr,
    Ipv4Addr,
    Ipv6Addr, //
};

use crate::{
    gid::{
        Gid,
        MulticastGid, //
    },
    lid::{
        Be16,
        Lid, //
    },
    testing::{
        random::Random,
        words, //
    }, //
};

/// Does not compile if the type has the trait: the call would then fit two implementations.
macro_rules! never {
    ($type:ty: $trait:path) => {
        const _: fn() = || {
            trait Unique<Tag> {
                fn found() {}
            }
            struct Has;
            impl<T: ?Sized> Unique<()> for T {}
            impl<T: ?Sized + $trait> Unique<Has> for T {}
            let _ = <$type as Unique<_>>::found;
        };
    };
}

// A LID becomes a number, or comes from one, only by saying which byte order is meant.
never!(Lid: From<u16>);
never!(Lid: From<Be16>);
never!(Be16: From<u16>);
never!(Be16: From<Lid>);
never!(u16: From<Lid>);
never!(u16: From<Be16>);
never!(u32: From<Lid>);
never!(Lid: core::ops::Deref);
never!(Be16: core::ops::Deref);
// One cannot be compared with the other, nor with a number.
never!(Lid: PartialEq<u16>);
never!(Lid: PartialEq<Be16>);
never!(Be16: PartialEq<u16>);
never!(u16: PartialEq<Lid>);
// The order of wire values means nothing.
never!(Be16: PartialOrd);
// A GID that was not checked is no multicast GID.
never!(MulticastGid: From<Gid>);
never!(MulticastGid: From<[u8; 16]>);
never!(MulticastGid: Default);

fn mapped(ip: Ipv4Addr) -> Gid {
    Gid::new(ip.to_ipv6_mapped().octets())
}

#[kernel::prelude::kunit_tests(rdma_addresses)]
mod suite {
    use super::*;

    #[test]
    fn every_lid_keeps_its_value_in_both_byte_orders() {
        for value in 0..=u16::MAX {
            let [high, low] = [(value >> 8) as u8, (value & 0xff) as u8];
            let host = Lid::from_host(value);

            assert_eq!(host.to_host(), value);
            assert_eq!(Lid::from_wire(Be16::from_bytes([high, low])), host);
            // The mistake that this type is there for.
            let swapped = Lid::from_wire(Be16::from_bytes([low, high]));
            assert_eq!((swapped == host), (high == low));
        }
    }

    #[test]
    fn every_lid_is_multicast_or_not_as_the_architecture_says() {
        let mut count = 0;

        for value in 0..=u16::MAX {
            let multicast = Lid::from_host(value).is_multicast();

            // IBA, 4.1.1: 0xc000 to 0xfffe.
            assert_eq!(multicast, (49152..65535).contains(&u32::from(value)));
            count += u32::from(multicast);
        }
        assert_eq!(count, 16383);
        assert!(!Lid::PERMISSIVE.is_multicast() && Lid::MULTICAST_BASE.is_multicast());
    }

    /// Each value of each octet, from addresses on both sides of every rule; the core is the judge.
    #[test]
    fn multicast_gids_are_those_of_the_core() {
        let mut random = Random::new(1);
        let bases = [
            [0; 16],
            mapped(Ipv4Addr::new(239, 1, 2, 3)).octets(),
            mapped(Ipv4Addr::new(10, 0, 0, 1)).octets(),
            Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, 1).octets(),
            Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1).octets(),
            random.octets(),
        ];
        let (mut yes, mut no) = (0, 0);

        for base in bases {
            for place in 0..16 {
                for value in 0..=255u8 {
                    let mut octets = base;
                    if let Some(octet) = octets.get_mut(place) {
                        *octet = value;
                    }
                    let multicast = MulticastGid::new(Gid::new(octets)).is_some();

                    assert_eq!(multicast, words::is_multicast(octets));
                    if multicast {
                        yes += 1;
                    } else {
                        no += 1;
                    }
                }
            }
        }
        assert!(yes > 1000 && no > 1000);
    }

    #[test]
    fn gids_hold_their_octets_and_their_address() {
        let mut random = Random::new(2);

        for _ in 0..1000 {
            let v4 = Ipv4Addr::from(random.octets::<4>());
            assert_eq!(mapped(v4).ip(), IpAddr::V4(v4));

            let octets = random.octets::<16>();
            let gid = Gid::new(octets);
            assert_eq!(gid.octets(), octets);
            assert_eq!(Gid::from_raw(gid.to_raw()), gid);
            let [a, ..] = octets;
            if a != 0 {
                assert_eq!(gid.ip(), IpAddr::V6(Ipv6Addr::from(octets)));
            }
        }
    }

    /// The three forms in which the octets 239.1.2.3 occur are three different groups.
    #[test]
    fn groups_of_one_ipv4_address_are_told_apart() {
        let mapped = MulticastGid::new(mapped(Ipv4Addr::new(239, 1, 2, 3)));
        let site = MulticastGid::new(Gid::new(
            Ipv6Addr::new(0xff05, 0, 0, 0, 0, 0xffff, 0xef01, 0x0203).octets(),
        ));
        let compatible = MulticastGid::new(Gid::new(
            Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0xef01, 0x0203).octets(),
        ));

        assert!(mapped.is_some() && site.is_some() && compatible.is_none());
        assert!(mapped != site);
        assert!(mapped.map(|g| g.ip()) != site.map(|g| g.ip()));
    }
}
