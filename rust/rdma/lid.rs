// SPDX-License-Identifier: GPL-2.0

//! Local identifiers.
//!
//! The kernel passes LIDs as bare `u16`, some in host and some in wire byte order. [`Lid`] is
//! always in host order and is made from the wire only by [`Lid::from_wire`], so that a swapped
//! LID does not type-check.

/// A 16-bit value in wire (big-endian) byte order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Be16(u16);

impl Be16 {
    /// The value whose bytes in memory order are `bytes`.
    pub const fn from_bytes(bytes: [u8; 2]) -> Self {
        Self(u16::from_ne_bytes(bytes))
    }
}

/// A LID in host byte order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lid(u16);

impl Lid {
    /// The first multicast LID.
    pub const MULTICAST_BASE: Self = Self(0xc000);

    /// The permissive LID, which is not a multicast LID.
    pub const PERMISSIVE: Self = Self(0xffff);

    /// A LID that is in host byte order already.
    pub const fn from_host(value: u16) -> Self {
        Self(value)
    }

    /// A LID as it stands in a packet or a MAD.
    pub const fn from_wire(value: Be16) -> Self {
        Self(u16::from_be(value.0))
    }

    /// The number, in host byte order.
    pub const fn to_host(self) -> u16 {
        self.0
    }

    /// Whether the LID names a multicast group: from the base up to, not including, the
    /// permissive LID.
    pub const fn is_multicast(self) -> bool {
        self.0 >= Self::MULTICAST_BASE.0 && self.0 != Self::PERMISSIVE.0
    }
}

#[kernel::prelude::kunit_tests(rdma_lid)]
mod tests {
    use super::*;

    #[test]
    fn multicast_range_has_exact_ends() {
        for (lid, multicast) in [
            (0x0000, false),
            (0x0001, false),
            (0xbfff, false),
            (0xc000, true),
            (0xfffe, true),
            (0xffff, false),
        ] {
            assert_eq!(Lid::from_host(lid).is_multicast(), multicast);
        }
    }

    #[test]
    fn wire_order_is_big_endian() {
        let lid = Lid::from_wire(Be16::from_bytes([0xc0, 0x01]));

        assert_eq!(lid.to_host(), 0xc001);
        assert_eq!(lid, Lid::from_host(0xc001));
    }
}
