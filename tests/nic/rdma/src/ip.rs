// SPDX-License-Identifier: GPL-2.0
//! IP addresses as the device keeps them.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// An address with its family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ip {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
}

impl Ip {
    /// From four host-order words, the most significant first; an IPv4 address is in the last.
    pub(crate) fn from_words(words: [u32; 4], ipv4: bool) -> Self {
        let [a, b, c, d] = words;
        if ipv4 {
            return Self::V4(Ipv4Addr::from(d));
        }
        let high = u64::from(a) << 32 | u64::from(b);
        let low = u64::from(c) << 32 | u64::from(d);
        Self::V6(Ipv6Addr::from(u128::from(high) << 64 | u128::from(low)))
    }

    pub(crate) fn is_multicast(&self) -> bool {
        match self {
            Self::V4(a) => a.is_multicast(),
            Self::V6(a) => a.is_multicast(),
        }
    }
}

impl fmt::Display for Ip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(a) => a.fmt(f),
            Self::V6(a) => a.fmt(f),
        }
    }
}
