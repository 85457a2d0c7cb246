// SPDX-License-Identifier: GPL-2.0
//! What a received frame is: packet type, flow, and whether its checksums are right. The model
//! classifies by fixed rules; a card does by the tables of the DDP package.

use crate::checksum::{self, Addresses, Transport};
use crate::frame::Header;
use crate::rss::Flow;
use etherparse::{ip_number, IpNumber, Ipv4Slice, Ipv6Slice};

/// EtherTypes with a packet type of their own.
const ETHER_TYPE_IPV4: u16 = 0x0800;
const ETHER_TYPE_IPV6: u16 = 0x86dd;

/// Packet types of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ptype {
    /// Anything else.
    L2 = 1,
    /// IPv4 fragment.
    Ipv4Fragment = 22,
    /// IPv4 with another protocol.
    Ipv4 = 23,
    /// UDP over IPv4.
    Ipv4Udp = 24,
    /// TCP over IPv4.
    Ipv4Tcp = 26,
    /// SCTP over IPv4.
    Ipv4Sctp = 27,
    /// ICMP.
    Ipv4Icmp = 28,
    /// IPv6 fragment.
    Ipv6Fragment = 88,
    /// IPv6 with another protocol.
    Ipv6 = 89,
    /// UDP over IPv6.
    Ipv6Udp = 90,
    /// TCP over IPv6.
    Ipv6Tcp = 92,
    /// SCTP over IPv6.
    Ipv6Sctp = 93,
    /// ICMPv6.
    Ipv6Icmp = 94,
}

/// What the device can say about checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integrity {
    /// Nothing: not IP, or malformed.
    Unchecked,
    /// All checksums it knows are right.
    Good,
    /// The IPv4 header checksum is wrong.
    BadIp,
    /// The transport checksum is wrong.
    BadTransport,
}

/// A classified frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Type.
    pub ptype: Ptype,
    /// What the hash covers.
    pub flow: Option<Flow>,
    /// Checksums.
    pub integrity: Integrity,
}

/// A frame of which nothing is said.
const PLAIN: Packet = Packet {
    ptype: Ptype::L2,
    flow: None,
    integrity: Integrity::Unchecked,
};

impl Packet {
    /// Classifies `frame`, whose Ethernet header is `header`. Malformed IP is [`Ptype::L2`]: the
    /// driver then decides for itself.
    pub fn classify(header: &Header, frame: &[u8]) -> Self {
        let payload = frame.get(header.len..).unwrap_or_default();
        match header.ether_type {
            ETHER_TYPE_IPV4 => Self::ipv4(payload),
            ETHER_TYPE_IPV6 => Self::ipv6(payload),
            _ => None,
        }
        .unwrap_or(PLAIN)
    }

    fn ipv4(payload: &[u8]) -> Option<Self> {
        let ip = Ipv4Slice::from_slice(payload).ok()?;
        let header = ip.header();
        let (source, destination) = (header.source(), header.destination());
        let mut packet = Self::transport(
            Addresses::V4(source, destination),
            (&source, &destination),
            ip.payload_ip_number(),
            ip.payload().payload,
            ip.is_payload_fragmented(),
        );
        packet.ptype = match (ip.is_payload_fragmented(), ip.payload_ip_number()) {
            (true, _) => Ptype::Ipv4Fragment,
            (_, ip_number::UDP) => Ptype::Ipv4Udp,
            (_, ip_number::TCP) => Ptype::Ipv4Tcp,
            (_, ip_number::SCTP) => Ptype::Ipv4Sctp,
            (_, ip_number::ICMP) => Ptype::Ipv4Icmp,
            _ => Ptype::Ipv4,
        };
        if !checksum::verify_ipv4(header.slice()) {
            packet.integrity = Integrity::BadIp;
        }
        Some(packet)
    }

    fn ipv6(payload: &[u8]) -> Option<Self> {
        let ip = Ipv6Slice::from_slice(payload).ok()?;
        let header = ip.header();
        let (source, destination) = (header.source(), header.destination());
        let number = ip.payload().ip_number;
        let mut packet = Self::transport(
            Addresses::V6(source, destination),
            (&source, &destination),
            number,
            ip.payload().payload,
            ip.is_payload_fragmented(),
        );
        packet.ptype = match (ip.is_payload_fragmented(), number) {
            (true, _) => Ptype::Ipv6Fragment,
            (_, ip_number::UDP) => Ptype::Ipv6Udp,
            (_, ip_number::TCP) => Ptype::Ipv6Tcp,
            (_, ip_number::SCTP) => Ptype::Ipv6Sctp,
            (_, ip_number::IPV6_ICMP) => Ptype::Ipv6Icmp,
            _ => Ptype::Ipv6,
        };
        Some(packet)
    }

    /// Flow and checksum of an IP payload. SCTP's ports are not hashed, as by the driver's default
    /// profiles.
    fn transport(
        addresses: Addresses,
        (source, destination): (&[u8], &[u8]),
        number: IpNumber,
        payload: &[u8],
        fragment: bool,
    ) -> Self {
        let transport = Transport::decode(number.0).filter(|_| !fragment);
        let ports = match payload {
            [a, b, c, d, ..] if matches!(transport, Some(Transport::Tcp | Transport::Udp)) => {
                Some((u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])))
            }
            _ => None,
        };
        let good = transport.is_none_or(|transport| transport.verify(addresses, payload));
        Self {
            ptype: Ptype::L2,
            flow: Some(Flow::new(source, destination, ports)),
            integrity: if good {
                Integrity::Good
            } else {
                Integrity::BadTransport
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    fn classify(frame: &[u8]) -> Packet {
        Packet::classify(&Header::parse(frame).unwrap(), frame)
    }

    fn ipv4() -> etherparse::PacketBuilderStep<etherparse::IpHeaders> {
        PacketBuilder::ethernet2([2; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
    }

    fn ipv6() -> etherparse::PacketBuilderStep<etherparse::IpHeaders> {
        PacketBuilder::ethernet2([2; 6], [2; 6]).ipv6([1; 16], [2; 16], 64)
    }

    fn frames() -> Vec<(Vec<u8>, Ptype)> {
        let payload = [7; 31];
        let mut out: Vec<(Vec<u8>, Ptype)> = Vec::new();
        let mut add = |ptype, build: &dyn Fn(&mut Vec<u8>)| {
            let mut frame = Vec::new();
            build(&mut frame);
            out.push((frame, ptype));
        };
        add(Ptype::Ipv4Udp, &|f| {
            ipv4().udp(1, 2).write(f, &payload).unwrap()
        });
        add(Ptype::Ipv4Tcp, &|f| {
            ipv4().tcp(1, 2, 3, 4).write(f, &payload).unwrap()
        });
        add(Ptype::Ipv6Udp, &|f| {
            ipv6().udp(1, 2).write(f, &payload).unwrap()
        });
        add(Ptype::Ipv6Tcp, &|f| {
            ipv6().tcp(1, 2, 3, 4).write(f, &payload).unwrap()
        });
        add(Ptype::Ipv4Icmp, &|f| {
            ipv4().icmpv4_echo_request(1, 2).write(f, &payload).unwrap()
        });
        add(Ptype::Ipv6Icmp, &|f| {
            ipv6().icmpv6_echo_request(1, 2).write(f, &payload).unwrap()
        });
        add(Ptype::Ipv4, &|f| {
            ipv4().write(f, ip_number::GRE, &payload).unwrap()
        });
        out
    }

    #[test]
    fn types_and_checksums_of_good_packets() {
        for (mut frame, ptype) in frames() {
            frame.resize(frame.len().max(60), 0); // padding is not payload
            let packet = classify(&frame);
            assert_eq!((packet.ptype, packet.integrity), (ptype, Integrity::Good));
            assert!(packet.flow.is_some());
        }
    }

    #[test]
    fn wrong_checksums_are_told_apart() {
        for (mut frame, ptype) in frames() {
            let last = frame.len() - 1;
            frame[last] ^= 0x10;
            let checked = !matches!(ptype, Ptype::Ipv4 | Ptype::Ipv4Icmp | Ptype::Ipv6Icmp);
            let expected = if checked {
                Integrity::BadTransport
            } else {
                Integrity::Good
            };
            assert_eq!(classify(&frame).integrity, expected, "{ptype:?}");
        }
        let (mut frame, _) = frames().swap_remove(0);
        frame[14 + 8] ^= 1; // time to live
        assert_eq!(classify(&frame).integrity, Integrity::BadIp);
    }

    #[test]
    fn tagged_and_plain_packets_are_one_flow() {
        let (plain, _) = frames().swap_remove(1);
        let mut tagged = plain.clone();
        crate::frame::insert_tag(&mut tagged, 5);
        assert_eq!(classify(&tagged), classify(&plain));
    }

    #[test]
    fn truncated_ip_is_plain() {
        let (frame, _) = frames().swap_remove(0);
        assert_eq!(classify(&frame[..40]), PLAIN);
    }

    proptest! {
        #[test]
        fn any_bytes_are_classified(bytes: Vec<u8>, kind in 0..3) {
            let mut frame = vec![0; 12];
            frame.extend([&[8, 0][..], &[0x86, 0xdd], &[0x81, 0]][kind as usize]);
            frame.extend(bytes);
            if let Some(header) = Header::parse(&frame) {
                Packet::classify(&header, &frame);
            }
        }

        #[test]
        fn damaged_packets_are_classified(which in 0usize..7, at: prop::sample::Index, bit in 0..8) {
            let (mut frame, _) = frames().swap_remove(which);
            let at = at.index(frame.len());
            frame[at] ^= 1u8 << bit;
            if let Some(header) = Header::parse(&frame) {
                Packet::classify(&header, &frame);
            }
        }
    }
}
