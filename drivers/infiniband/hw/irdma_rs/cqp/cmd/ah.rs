// SPDX-License-Identifier: GPL-2.0

//! Address handle operations.

use super::super::{
    Command,
    Completed,
    Op,
    Wqe, //
};
use super::mac_word;
use core::net::{
    IpAddr,
    Ipv4Addr,
    Ipv6Addr, //
};
use kernel::{
    bitfield,
    prelude::*, //
};

bitfield! {
    struct AhMac(u64) {
        63:16 macaddr;
    }
}

bitfield! {
    struct AhVlan(u64) {
        63:48 pdindexlo;
        39:32 tc;
        15:0 vlantag;
    }
}

bitfield! {
    struct AhPath(u64) {
        63:48 arpindex;
        39:32 hoplimit;
        27:20 pdindexhi;
        19:0 flowlabel;
    }
}

bitfield! {
    struct AhHeader(u64) {
        62:62 doloopback;
        60:60 insertvlantag;
        59:59 ipv4valid;
        23:0 avidx;
    }
}

bitfield! {
    /// Two of the four 32-bit words of an address: the more significant one above.
    struct AddrHalf(u64) {
        63:32 high;
        31:0 low;
    }
}

/// The two words of an IP address, words 3 and 2 first, as AH and multicast operations want them.
///
/// An IPv4 address stands alone in the place of word 3.
pub(super) fn ip_words(ip: IpAddr) -> (u64, u64) {
    match ip {
        IpAddr::V4(ip) => (u64::from(u32::from(ip)), 0),
        IpAddr::V6(ip) => {
            let bits = u128::from(ip);
            let part = |shift: u32| {
                // CAST: a 32-bit word is cut out on purpose.
                ((bits >> shift) & u128::from(u32::MAX)) as u32
            };
            (
                AddrHalf::from(0)
                    .with_low(part(0))
                    .with_high(part(32))
                    .into(),
                AddrHalf::from(0)
                    .with_low(part(64))
                    .with_high(part(96))
                    .into(),
            )
        }
    }
}

/// Source and destination of a path, of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IpPair {
    /// IPv4.
    V4 {
        /// Source address.
        source: Ipv4Addr,
        /// Destination address.
        destination: Ipv4Addr,
    },
    /// IPv6.
    V6 {
        /// Source address.
        source: Ipv6Addr,
        /// Destination address.
        destination: Ipv6Addr,
    },
}

impl IpPair {
    /// Both ends, source first.
    fn ends(&self) -> (IpAddr, IpAddr) {
        match *self {
            Self::V4 {
                source,
                destination,
            } => (source.into(), destination.into()),
            Self::V6 {
                source,
                destination,
            } => (source.into(), destination.into()),
        }
    }
}

/// Everything the device puts into the headers of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressVector {
    /// Index of the address handle.
    pub(crate) index: u32,
    /// Protection domain.
    pub(crate) pd: u32,
    /// Source MAC address.
    pub(crate) source_mac: [u8; 6],
    /// Index of the destination MAC address in the ARP table.
    pub(crate) arp_index: u16,
    /// Addresses.
    pub(crate) ip: IpPair,
    /// Traffic class, or type of service.
    pub(crate) traffic_class: u8,
    /// Hop limit, or time to live.
    pub(crate) hop_limit: u8,
    /// Flow label, 20 bits.
    pub(crate) flow_label: u32,
    /// VLAN tag to insert.
    pub(crate) vlan: Option<u16>,
    /// Deliver to queue pairs of this function.
    pub(crate) loopback: bool,
}

impl AddressVector {
    fn wqe(&self) -> Result<Wqe> {
        let (source, destination) = self.ip.ends();
        let (d32, d10) = ip_words(destination);
        let (s32, s10) = ip_words(source);
        let header = AhHeader::from(0)
            .try_with_avidx(self.index)?
            .with_ipv4valid(destination.is_ipv4())
            .with_insertvlantag(self.vlan.is_some())
            .with_doloopback(self.loopback);
        Ok(Wqe::new()
            .with::<0>(AhMac::from(0).with_macaddr(mac_word(self.source_mac)))
            .with::<1>(
                AhVlan::from(0)
                    .with_vlantag(self.vlan.unwrap_or(0))
                    .with_tc(self.traffic_class)
                    .try_with_pdindexlo(self.pd & 0xffff)?,
            )
            .with::<2>(
                AhPath::from(0)
                    .try_with_flowlabel(self.flow_label)?
                    .try_with_pdindexhi(self.pd >> 16)?
                    .with_hoplimit(self.hop_limit)
                    .with_arpindex(self.arp_index),
            )
            .with::<3>(header)
            .with::<4>(d32)
            .with::<5>(d10)
            .with::<6>(s32)
            .with::<7>(s10))
    }
}

/// Creates an address handle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreateAh {
    /// The address handle.
    pub(crate) av: AddressVector,
}

impl Command for CreateAh {
    const OP: Op = Op::CreateAddrHandle;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        self.av.wqe()
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}

/// Destroys an address handle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DestroyAh {
    /// The address handle, as at creation.
    pub(crate) av: AddressVector,
}

impl Command for DestroyAh {
    const OP: Op = Op::DestroyAddrHandle;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        self.av.wqe()
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}
