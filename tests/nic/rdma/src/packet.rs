// SPDX-License-Identifier: GPL-2.0
//! RoCEv2 packets: from bytes to fields and back.
//!
//! An [`Envelope`] is any IPv4 or IPv6 packet to UDP port 4791; a [`Datagram`] is one whose transport
//! header says unreliable datagram. Fragments, IP options and extension headers are never
//! RoCEv2 and stay with the LAN half.

use crate::icrc;
use crate::ip::Ip;
use std::net::{Ipv4Addr, Ipv6Addr};

/// UDP port of RoCEv2.
pub(crate) const PORT: u16 = 4791;
/// Destination queue pair of a multicast packet.
pub(crate) const MULTICAST_QP: u32 = 0xFF_FFFF;

/// Transport operations of datagrams.
pub(crate) const UD_SEND: u8 = 0x64;
pub(crate) const UD_SEND_IMMEDIATE: u8 = 0x65;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86DD;
const ETHERTYPE_VLAN: u16 = 0x8100;
const PROTOCOL_UDP: u8 = 17;
/// More fragments, or an offset.
const IPV4_FRAGMENT: u16 = 0x3FFF;
const IPV4_DONT_FRAGMENT: u16 = 0x4000;

/// The VLAN id in a tag.
pub(crate) const VLAN_ID: u16 = 0x0FFF;

/// An IP header as it was on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IpHeader {
    V4([u8; 20]),
    V6([u8; 40]),
}

impl IpHeader {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::V4(h) => h,
            Self::V6(h) => h,
        }
    }
}

/// Takes the first `N` bytes off a slice.
fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(head)
}

/// The ones' complement sum of 16-bit words; 0 over a header with a right checksum.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum: u64 = 0;
    for part in parts {
        for pair in part.chunks(2) {
            let low = pair.get(1).copied().unwrap_or(0);
            let high = pair.first().copied().unwrap_or(0);
            sum += u64::from(u16::from_be_bytes([high, low]));
        }
    }
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !crate::bits::low16(sum)
}

/// A packet to the RoCEv2 port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope<'a> {
    pub(crate) destination_mac: [u8; 6],
    pub(crate) source_mac: [u8; 6],
    /// Tag control information, if tagged.
    pub(crate) tag: Option<u16>,
    pub(crate) header: IpHeader,
    pub(crate) destination: Ip,
    /// Bytes of the IP packet.
    pub(crate) octets: u64,
    /// From the UDP header to the end of the packet.
    pub(crate) transport: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// The packet in a frame, if it is one to the RoCEv2 port.
    pub(crate) fn parse(frame: &'a [u8]) -> Option<Self> {
        let mut rest = frame;
        let destination_mac = *take::<6>(&mut rest)?;
        let source_mac = *take::<6>(&mut rest)?;
        let mut ethertype = u16::from_be_bytes(*take(&mut rest)?);
        let mut tag = None;
        if ethertype == ETHERTYPE_VLAN {
            tag = Some(u16::from_be_bytes(*take(&mut rest)?));
            ethertype = u16::from_be_bytes(*take(&mut rest)?);
        }
        let (header, destination, transport) = match ethertype {
            ETHERTYPE_IPV4 => parse_ipv4(rest)?,
            ETHERTYPE_IPV6 => parse_ipv6(rest)?,
            _ => return None,
        };
        let mut udp = transport;
        take::<2>(&mut udp)?;
        if u16::from_be_bytes(*take(&mut udp)?) != PORT {
            return None;
        }
        let length = usize::from(u16::from_be_bytes(*take(&mut udp)?));
        let transport = transport.get(..length)?;
        Some(Self {
            destination_mac,
            source_mac,
            tag,
            header,
            destination,
            octets: crate::bits::len64(header.bytes().len().saturating_add(length)),
            transport,
        })
    }

    /// The VLAN the packet belongs to; priority tags belong to none.
    pub(crate) fn vlan(&self) -> Option<u16> {
        self.tag.map(|t| t & VLAN_ID).filter(|&v| v != 0)
    }
}

type IpPacket<'a> = (IpHeader, Ip, &'a [u8]);

fn parse_ipv4(packet: &[u8]) -> Option<IpPacket<'_>> {
    let mut rest = packet;
    let h = *take::<20>(&mut rest)?;
    let length = usize::from(u16::from_be_bytes([h[2], h[3]]));
    let fragment = u16::from_be_bytes([h[6], h[7]]) & IPV4_FRAGMENT;
    if h[0] != 0x45 || h[9] != PROTOCOL_UDP || fragment != 0 || checksum(&[&h]) != 0 {
        return None;
    }
    let payload = rest.get(..length.checked_sub(h.len())?)?;
    let destination = Ipv4Addr::new(h[16], h[17], h[18], h[19]);
    Some((IpHeader::V4(h), Ip::V4(destination), payload))
}

fn parse_ipv6(packet: &[u8]) -> Option<IpPacket<'_>> {
    let mut rest = packet;
    let h = *take::<40>(&mut rest)?;
    let length = usize::from(u16::from_be_bytes([h[4], h[5]]));
    if h[0] >> 4 != 6 || h[6] != PROTOCOL_UDP {
        return None;
    }
    let mut octets = &h[24..];
    let destination = Ipv6Addr::from(*take::<16>(&mut octets)?);
    Some((IpHeader::V6(h), Ip::V6(destination), rest.get(..length)?))
}

/// The transport part of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram<'a> {
    pub(crate) solicited: bool,
    pub(crate) pkey: u16,
    pub(crate) destination_qp: u32,
    pub(crate) psn: u32,
    pub(crate) qkey: u32,
    pub(crate) source_qp: u32,
    pub(crate) immediate: Option<u32>,
    pub(crate) payload: &'a [u8],
}

/// Why a packet is no datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoDatagram {
    /// Cut short or inconsistent.
    Malformed,
    /// Another transport operation.
    Opcode(u8),
}

/// A 24-bit number.
fn number24([a, b, c]: [u8; 3]) -> u32 {
    u32::from_be_bytes([0, a, b, c])
}

impl<'a> Datagram<'a> {
    /// Reads the transport headers behind the UDP header.
    pub(crate) fn parse(envelope: &Envelope<'a>) -> Result<Self, NoDatagram> {
        Self::read(envelope.transport)
    }

    fn read(transport: &'a [u8]) -> Result<Self, NoDatagram> {
        let short = NoDatagram::Malformed;
        let mut rest = transport;
        take::<8>(&mut rest).ok_or(short)?;
        let [opcode, flags, pkey @ .., _, qp0, qp1, qp2, _, psn0, psn1, psn2] =
            *take::<12>(&mut rest).ok_or(short)?;
        if opcode != UD_SEND && opcode != UD_SEND_IMMEDIATE {
            return Err(NoDatagram::Opcode(opcode));
        }
        if flags & 0x0F != 0 {
            // Transport version.
            return Err(short);
        }
        let qkey = u32::from_be_bytes(*take(&mut rest).ok_or(short)?);
        let [_, source @ ..] = *take::<4>(&mut rest).ok_or(short)?;
        let immediate = if opcode == UD_SEND_IMMEDIATE {
            Some(u32::from_be_bytes(*take(&mut rest).ok_or(short)?))
        } else {
            None
        };
        let pad = usize::from(flags >> 4 & 3);
        let end = rest
            .len()
            .checked_sub(icrc::LEN)
            .filter(|padded| padded % 4 == 0)
            .and_then(|padded| padded.checked_sub(pad))
            .ok_or(short)?;
        Ok(Self {
            solicited: flags & 0x80 != 0,
            pkey: u16::from_be_bytes(pkey),
            destination_qp: number24([qp0, qp1, qp2]),
            psn: number24([psn0, psn1, psn2]),
            qkey,
            source_qp: number24(source),
            immediate,
            payload: rest.get(..end).ok_or(short)?,
        })
    }

    /// Headers, payload and padding behind the UDP header, without the CRC.
    fn write(&self, out: &mut Vec<u8>) {
        let pad = self.payload.len().wrapping_neg() % 4;
        let [pad_count, ..] = pad.to_le_bytes();
        let opcode = match self.immediate {
            Some(_) => UD_SEND_IMMEDIATE,
            None => UD_SEND,
        };
        let solicited = if self.solicited { 0x80 } else { 0 };
        // The migration state of a queue pair without path migration is "migrated".
        out.extend([opcode, solicited | 0x40 | pad_count << 4]);
        out.extend(self.pkey.to_be_bytes());
        out.extend((self.destination_qp & 0xFF_FFFF).to_be_bytes());
        out.extend((self.psn & 0xFF_FFFF).to_be_bytes());
        out.extend(self.qkey.to_be_bytes());
        out.extend((self.source_qp & 0xFF_FFFF).to_be_bytes());
        if let Some(immediate) = self.immediate {
            out.extend(immediate.to_be_bytes());
        }
        out.extend(self.payload);
        out.extend(std::iter::repeat_n(0, pad));
    }
}

/// Whether the CRC at the end of the packet is right.
pub(crate) fn icrc_valid(envelope: &Envelope<'_>) -> bool {
    envelope
        .transport
        .split_last_chunk::<{ icrc::LEN }>()
        .is_some_and(|(body, crc)| icrc::compute(&envelope.header, body) == *crc)
}

/// How a datagram travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) destination_mac: [u8; 6],
    pub(crate) source_mac: [u8; 6],
    pub(crate) tag: Option<u16>,
    pub(crate) source: Ip,
    pub(crate) destination: Ip,
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: u8,
    pub(crate) flow_label: u32,
    pub(crate) source_port: u16,
}

/// Builds the frame, without FCS. `None` if the addresses are of different families or the payload
/// does not fit a packet.
pub(crate) fn build(path: &Path, datagram: &Datagram<'_>) -> Option<Vec<u8>> {
    let mut body = Vec::with_capacity(64 + datagram.payload.len());
    datagram.write(&mut body);
    let udp_length = u16::try_from(8 + body.len() + icrc::LEN).ok()?;
    let mut transport = Vec::with_capacity(usize::from(udp_length));
    transport.extend(path.source_port.to_be_bytes());
    transport.extend(PORT.to_be_bytes());
    transport.extend(udp_length.to_be_bytes());
    transport.extend([0, 0]);
    transport.extend(body);
    let (ethertype, header) = ip_header(path, udp_length)?;
    transport.extend(icrc::compute(&header, &transport));
    if let IpHeader::V6(h) = &header {
        let sum = udp6_checksum(h, udp_length, &transport);
        if let Some(field) = transport.get_mut(6..8) {
            field.copy_from_slice(&sum.to_be_bytes());
        }
    }
    let mut frame = Vec::with_capacity(64 + transport.len());
    frame.extend(path.destination_mac);
    frame.extend(path.source_mac);
    if let Some(tag) = path.tag {
        frame.extend(ETHERTYPE_VLAN.to_be_bytes());
        frame.extend(tag.to_be_bytes());
    }
    frame.extend(ethertype.to_be_bytes());
    frame.extend(header.bytes());
    frame.extend(transport);
    Some(frame)
}

fn ip_header(path: &Path, udp_length: u16) -> Option<(u16, IpHeader)> {
    match (path.source, path.destination) {
        (Ip::V4(source), Ip::V4(destination)) => {
            let total = udp_length.checked_add(20)?.to_be_bytes();
            let flags = IPV4_DONT_FRAGMENT.to_be_bytes();
            let mut h = [0; 20];
            h[0] = 0x45;
            h[1] = path.traffic_class;
            h[2..4].copy_from_slice(&total);
            h[6..8].copy_from_slice(&flags);
            h[8] = path.hop_limit;
            h[9] = PROTOCOL_UDP;
            h[12..16].copy_from_slice(&source.octets());
            h[16..20].copy_from_slice(&destination.octets());
            let sum = checksum(&[&h]).to_be_bytes();
            h[10..12].copy_from_slice(&sum);
            Some((ETHERTYPE_IPV4, IpHeader::V4(h)))
        }
        (Ip::V6(source), Ip::V6(destination)) => {
            let first = 6 << 28 | u32::from(path.traffic_class) << 20 | path.flow_label & 0xF_FFFF;
            let mut h = [0; 40];
            h[0..4].copy_from_slice(&first.to_be_bytes());
            h[4..6].copy_from_slice(&udp_length.to_be_bytes());
            h[6] = PROTOCOL_UDP;
            h[7] = path.hop_limit;
            h[8..24].copy_from_slice(&source.octets());
            h[24..40].copy_from_slice(&destination.octets());
            Some((ETHERTYPE_IPV6, IpHeader::V6(h)))
        }
        _ => None,
    }
}

/// The UDP checksum over IPv6, where it may not be left out.
fn udp6_checksum(header: &[u8; 40], udp_length: u16, transport: &[u8]) -> u16 {
    let addresses = header.get(8..).unwrap_or(&[]);
    let length = u32::from(udp_length).to_be_bytes();
    let protocol = [0, 0, 0, PROTOCOL_UDP];
    match checksum(&[addresses, &length, &protocol, transport]) {
        0 => 0xFFFF,
        sum => sum,
    }
}
