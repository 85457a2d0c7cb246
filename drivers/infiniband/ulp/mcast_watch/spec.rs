// SPDX-License-Identifier: GPL-2.0

//! What the user writes: groups, and patterns of device names.

use core::net::{
    IpAddr,
    Ipv4Addr, //
};
use kernel::{
    fmt,
    prelude::*, //
};
use rdma::{
    gid::{
        Gid,
        MulticastGid, //
    },
    lid::Lid, //
};

/// A group to join.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupSpec {
    /// Its address.
    pub(crate) gid: MulticastGid,
    /// Its LID.
    pub(crate) lid: Lid,
}

/// Why a text is no group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BadGroup {
    /// No address.
    Address,
    /// An address of one host.
    Unicast,
    /// What follows the `@`.
    Lid,
}

impl fmt::Display for BadGroup {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Address => "neither an IPv4 nor an IPv6 address",
            Self::Unicast => "not a multicast address",
            Self::Lid => "the LID is not a number of 16 bits",
        })
    }
}

impl GroupSpec {
    /// Reads `ADDRESS` or `ADDRESS@LID`, the LID in host byte order, decimal or with `0x`; without
    /// one it is `lid`.
    pub(crate) fn parse(text: &str, lid: Lid) -> Result<Self, BadGroup> {
        let (address, lid) = match text.split_once('@') {
            Some((address, number)) => (address, parse_lid(number).ok_or(BadGroup::Lid)?),
            None => (text, lid),
        };

        let address: IpAddr = address.parse().map_err(|_| BadGroup::Address)?;
        let gid = MulticastGid::new(gid_of(address)).ok_or(BadGroup::Unicast)?;

        Ok(Self { gid, lid })
    }
}

fn parse_lid(text: &str) -> Option<Lid> {
    let number = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        // The parser would take a sign.
        Some(hex) if hex.starts_with('+') => None,
        Some(hex) => u16::from_str_radix(hex, 16).ok(),
        None if text.starts_with('+') => None,
        None => text.parse().ok(),
    };

    number.map(Lid::from_host)
}

/// The GID of an address, v4-mapped for IPv4.
fn gid_of(address: IpAddr) -> Gid {
    match address {
        IpAddr::V4(v4) => Gid::new(Ipv4Addr::to_ipv6_mapped(&v4).octets()),
        IpAddr::V6(v6) => Gid::new(v6.octets()),
    }
}

/// The items of a list with commas, without white space around them. An empty list has none.
pub(crate) fn items(text: &str) -> impl Iterator<Item = &str> {
    let text = text.trim();

    // An empty item within a list is a mistake, which parsing it will report.
    text.split(',')
        .map(str::trim)
        .filter(move |_| !text.is_empty())
}

/// Whether `name` matches `pattern`: `*` stands for any octets, `?` for one. An empty pattern
/// matches everything.
pub(crate) fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    if pattern.is_empty() {
        return true;
    }

    let (mut rest, mut name) = (pattern, name);
    // Where to go on when the last star has to take one octet more.
    let mut star: Option<(&[u8], &[u8])> = None;

    loop {
        match (rest, name) {
            ([b'*', after @ ..], _) => {
                star = Some((after, name));
                rest = after;
                continue;
            }
            ([], []) => return true,
            ([p, after @ ..], [n, next @ ..]) if *p == b'?' || p == n => {
                (rest, name) = (after, next);
                continue;
            }
            _ => {}
        }

        let Some((after, [_, next @ ..])) = star else {
            return false;
        };
        star = Some((after, next));
        (rest, name) = (after, next);
    }
}

#[kunit_tests(mcast_watch_spec)]
mod tests {
    use super::*;

    const LID: Lid = Lid::MULTICAST_BASE;

    fn parse(text: &str) -> Result<(IpAddr, u16), BadGroup> {
        GroupSpec::parse(text, LID).map(|spec| (spec.gid.ip(), spec.lid.to_host()))
    }

    #[test]
    fn groups_of_both_families() {
        assert_eq!(
            parse("239.1.2.3"),
            Ok((IpAddr::from([239, 1, 2, 3]), 0xc000))
        );
        assert_eq!(
            parse("ff0e::5"),
            Ok((IpAddr::from([0xff0eu16, 0, 0, 0, 0, 0, 0, 5]), 0xc000))
        );
        assert_eq!(
            parse("::ffff:239.1.2.3"),
            Ok((IpAddr::from([239, 1, 2, 3]), 0xc000))
        );
    }

    #[test]
    fn lids_are_host_order() {
        for (text, lid) in [
            ("239.1.2.3@0xc001", 0xc001),
            ("239.1.2.3@0XC001", 0xc001),
            ("239.1.2.3@49153", 0xc001),
            ("239.1.2.3@0", 0),
            ("239.1.2.3@65535", 0xffff),
        ] {
            assert_eq!(parse(text).map(|(_, lid)| lid), Ok(lid));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, why) in [
            ("", BadGroup::Address),
            ("239.1.2", BadGroup::Address),
            ("239.1.2.3.4", BadGroup::Address),
            ("239.1.2.256", BadGroup::Address),
            ("239.01.2.3", BadGroup::Address),
            ("ff0e::5%eth0", BadGroup::Address),
            ("group", BadGroup::Address),
            ("@0xc000", BadGroup::Address),
            ("192.168.1.1", BadGroup::Unicast),
            ("fe80::1", BadGroup::Unicast),
            ("239.1.2.3@", BadGroup::Lid),
            ("239.1.2.3@0x", BadGroup::Lid),
            ("239.1.2.3@0x10000", BadGroup::Lid),
            ("239.1.2.3@65536", BadGroup::Lid),
            ("239.1.2.3@-1", BadGroup::Lid),
            ("239.1.2.3@+1", BadGroup::Lid),
            ("239.1.2.3@0x+1", BadGroup::Lid),
            ("239.1.2.3@1@2", BadGroup::Lid),
        ] {
            assert_eq!(parse(text), Err(why));
        }
    }

    #[test]
    fn lists() {
        assert!(items("").eq([""; 0]));
        assert!(items(" \n").eq([""; 0]));
        assert!(items("a").eq(["a"]));
        assert!(items("a, b,c\n").eq(["a", "b", "c"]));
        // For the parser to complain about.
        assert!(items("a,,b").eq(["a", "", "b"]));
        assert!(items("a,").eq(["a", ""]));
    }

    #[test]
    fn patterns() {
        for (pattern, name, matches) in [
            ("", "rocep0s2", true),
            ("rocep0s2", "rocep0s2", true),
            ("rocep0s2", "rocep0s20", false),
            ("rocep0s2", "rocep0s", false),
            ("roce*", "rocep0s2", true),
            ("*s2", "rocep0s2s2", true),
            ("*0*2", "rocep0s2", true),
            ("*0*3", "rocep0s2", false),
            ("rxe?", "rxe0", true),
            ("rxe?", "rxe", false),
            ("*", "", true),
            ("?", "", false),
            ("**", "x", true),
        ] {
            assert_eq!(is_match(pattern.as_bytes(), name.as_bytes()), matches);
        }
    }
}
