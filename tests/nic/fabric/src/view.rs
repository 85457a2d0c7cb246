// SPDX-License-Identifier: GPL-2.0
//! What the switch sees in a frame: addresses, tag, and for multicast what group or what message of
//! group management it is.

use etherparse::{
    EtherType, Ethernet2Header, Ethernet2HeaderSlice, LinkExtSlice, NetSlice,
    SingleVlanHeaderSlice, SlicedPacket,
};
use std::net::IpAddr;

use crate::snoop::message::{self, Message};

/// A station address.
pub type Mac = [u8; 6];
/// The VLAN id in a tag.
pub const VLAN_ID: u16 = 0x0fff;

/// Where a frame is meant to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// One station.
    Station(Mac),
    /// A group of IP receivers that can be joined.
    Group(IpAddr),
    /// Group management.
    Management(Message),
    /// Everybody: broadcast, groups outside IP, groups that nobody joins.
    All,
}

/// The parts of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Source address.
    pub source: Mac,
    /// Tag control information.
    pub tag: Option<u16>,
    /// Destination.
    pub destination: Destination,
}

impl View {
    /// Looks at a frame; `None` if it is shorter than a header.
    pub fn of(frame: &[u8]) -> Option<Self> {
        Self::look(frame, group)
    }

    /// The same without looking behind the Ethernet header: every group is for all.
    pub fn outer(frame: &[u8]) -> Option<Self> {
        Self::look(frame, |_| Destination::All)
    }

    fn look(frame: &[u8], group: impl Fn(&[u8]) -> Destination) -> Option<Self> {
        let header = Ethernet2HeaderSlice::from_slice(frame).ok()?;
        let to = header.destination();
        Some(Self {
            source: header.source(),
            tag: tag(frame),
            destination: if is_group(&to) {
                group(frame)
            } else {
                Destination::Station(to)
            },
        })
    }

    /// The VLAN id of the tag; 0 without one, and for a tag that has a priority only.
    pub fn vlan(&self) -> u16 {
        self.tag.map_or(0, |tag| tag & VLAN_ID)
    }
}

/// Whether an address is for more than one station.
pub fn is_group(mac: &Mac) -> bool {
    mac[0] & 1 == 1
}

/// The tag of a frame.
pub fn tag(frame: &[u8]) -> Option<u16> {
    let (header, rest) = Ethernet2Header::from_slice(frame).ok()?;
    let tag = match header.ether_type {
        EtherType::VLAN_TAGGED_FRAME => SingleVlanHeaderSlice::from_slice(rest).ok()?,
        _ => return None,
    };
    let priority = u16::from(tag.priority_code_point().value()) << 13;
    let eligible = u16::from(tag.drop_eligible_indicator()) << 12;
    Some(priority | eligible | tag.vlan_identifier().value())
}

fn group(frame: &[u8]) -> Destination {
    let Ok(packet) = SlicedPacket::from_ethernet(frame) else {
        return Destination::All;
    };
    // Tags within tags and encrypted frames are nothing this switch looks into.
    if packet.link_exts.len() > 1
        || packet
            .link_exts
            .iter()
            .any(|e| !matches!(e, LinkExtSlice::Vlan(_)))
    {
        return Destination::All;
    }
    match &packet.net {
        Some(NetSlice::Ipv4(ip)) => {
            let to = ip.header().destination_addr();
            match message::igmp(ip) {
                Some(message) => Destination::Management(message),
                // 224.0.0.0/24 is for all on the link, joined or not; so is what is no group.
                None if !to.is_multicast() || to.octets().starts_with(&[224, 0, 0]) => {
                    Destination::All
                }
                None => Destination::Group(to.into()),
            }
        }
        Some(NetSlice::Ipv6(ip)) => {
            let to = ip.header().destination_addr();
            match message::mld(ip) {
                Some(message) => Destination::Management(message),
                None if joinable(&to.octets()) => Destination::Group(to.into()),
                None => Destination::All,
            }
        }
        _ => Destination::All,
    }
}

/// Whether listeners report an IPv6 group: not the one of all nodes, nor those of scope 0 and 1.
fn joinable(octets: &[u8; 16]) -> bool {
    const ALL_NODES: [u8; 16] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    octets[0] == 0xff && octets[1] & 0xf > 1 && *octets != ALL_NODES
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    fn udp4(to: [u8; 4], tag: Option<u16>) -> Vec<u8> {
        let mut frame = Vec::new();
        let [_, b, c, d] = to;
        PacketBuilder::ethernet2([2; 6], [1, 0, 0x5e, b & 0x7f, c, d])
            .ipv4([10, 0, 0, 1], to, 64)
            .udp(1, 2)
            .write(&mut frame, &[0; 20])
            .unwrap();
        if let Some(tag) = tag {
            let [high, low] = tag.to_be_bytes();
            frame.splice(12..12, [0x81, 0, high, low]);
        }
        frame
    }

    fn destination(frame: &[u8]) -> Destination {
        View::of(frame).unwrap().destination
    }

    #[test]
    fn groups_are_known_by_address_and_tag() {
        let view = View::of(&udp4([239, 1, 2, 3], Some(0xe005))).unwrap();
        assert_eq!((view.vlan(), view.tag), (5, Some(0xe005)));
        let group = "239.1.2.3".parse().unwrap();
        assert_eq!(view.destination, Destination::Group(group));
        assert_eq!(View::of(&udp4([239, 1, 2, 3], None)).unwrap().vlan(), 0);
    }

    #[test]
    fn what_nobody_joins_is_for_all() {
        assert_eq!(destination(&udp4([224, 0, 0, 251], None)), Destination::All);
        assert_eq!(destination(&[0xff; 60]), Destination::All);
        let mut lldp = vec![1, 0x80, 0xc2, 0, 0, 0xe, 2, 0, 0, 0, 0, 1, 0x88, 0xcc];
        lldp.resize(60, 0);
        assert_eq!(destination(&lldp), Destination::All);
        for (text, joined) in [
            ("ff02::1", false),
            ("ff01::5", false),
            ("ff02::1:ff00:1", true),
            ("ff0e::1", true),
        ] {
            let to: std::net::Ipv6Addr = text.parse().unwrap();
            assert_eq!(joinable(&to.octets()), joined, "{text}");
        }
    }

    #[test]
    fn stations_are_found_without_looking_inside() {
        let mut frame = udp4([239, 1, 2, 3], None);
        frame[0] = 2;
        let to = [2, 0, 0x5e, 1, 2, 3];
        assert_eq!(destination(&frame), Destination::Station(to));
        assert_eq!(View::of(&[0; 11]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_looked_at(frame in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = View::of(&frame);
        }
    }
}
