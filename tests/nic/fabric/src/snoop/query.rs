// SPDX-License-Identifier: GPL-2.0
//! The queries that a switch sends in want of a router: IGMPv3 and MLDv2, which hosts of older
//! versions understand as well.

use crate::view::Mac;
use etherparse::igmp::{MaxResponseCode, MembershipQueryWithSourcesHeader, Qrv};
use etherparse::{
    EtherType, Ethernet2Header, IgmpHeader, IgmpType, IpNumber, Ipv4Header, Ipv6FlowLabel,
    Ipv6Header,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// IPv4 option "router alert".
const ROUTER_ALERT4: [u8; 4] = [148, 4, 0, 0];
/// Hop-by-hop header: ICMPv6 follows, option "router alert" for MLD, padding.
const ROUTER_ALERT6: [u8; 8] = [58, 0, 5, 2, 0, 0, 1, 0];
/// Bytes of an MLDv2 query without sources.
const MLD_QUERY_LEN: u8 = 28;

/// What a query says besides its group.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Source address of the frame.
    pub mac: Mac,
    /// Times that hosts may miss a message.
    pub robustness: u8,
    /// Time between general queries.
    pub interval: Duration,
    /// Time to answer.
    pub response: Duration,
}

/// A number of tenths or of whole units, cut to what fits without the floating point form.
fn small(value: u128) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX).min(0x7f)
}

/// The frame of an IGMP query about `group`, or about all.
pub fn igmp(form: &Form, source: Ipv4Addr, group: Option<Ipv4Addr>) -> Vec<u8> {
    let mut query = MembershipQueryWithSourcesHeader {
        max_response_code: MaxResponseCode(small(form.response.as_millis() / 100)),
        group_address: etherparse::igmp::GroupAddress::new(
            group.unwrap_or(Ipv4Addr::UNSPECIFIED).octets(),
        ),
        raw_byte_8: 0,
        qqic: small(form.interval.as_secs().into()),
        num_of_sources: 0,
    };
    query.set_qrv(Qrv::try_new(form.robustness & 7).unwrap_or(Qrv::ZERO));
    let message = IgmpHeader::with_checksum(IgmpType::MembershipQueryWithSources(query), &[]);
    let message = message.to_bytes();
    let to = group.unwrap_or(ALL_HOSTS);
    let length = u16::try_from(message.len()).unwrap_or(0);
    let mut frame = ethernet(form.mac, to.into(), EtherType::IPV4);
    if let Ok(mut ip) = Ipv4Header::new(length, 1, IpNumber::IGMP, source.octets(), to.octets()) {
        ip.dont_fragment = true;
        ip.options = ROUTER_ALERT4.into();
        ip.total_len = ip
            .total_len
            .saturating_add(u16::try_from(ROUTER_ALERT4.len()).unwrap_or(0));
        ip.header_checksum = ip.calc_header_checksum();
        frame.extend(ip.to_bytes());
    }
    frame.extend(message);
    frame
}

/// The frame of an MLD query about `group`, or about all.
pub fn mld(form: &Form, source: Ipv6Addr, group: Option<Ipv6Addr>) -> Vec<u8> {
    let to = group.unwrap_or(ALL_NODES);
    let response = u16::try_from(form.response.as_millis())
        .unwrap_or(u16::MAX)
        .min(0x7fff);
    let mut message = vec![130, 0, 0, 0];
    message.extend(response.to_be_bytes());
    message.extend([0, 0]);
    message.extend(group.unwrap_or(Ipv6Addr::UNSPECIFIED).octets());
    message.extend([
        form.robustness & 7,
        small(form.interval.as_secs().into()),
        0,
        0,
    ]);
    let sum = etherparse::checksum::Sum16BitWords::new()
        .add_16bytes(source.octets())
        .add_16bytes(to.octets())
        .add_4bytes([0, 0, 0, MLD_QUERY_LEN])
        .add_4bytes([0, 0, 0, 58])
        .add_slice(&message)
        .ones_complement();
    // The sum is over words in memory order already.
    if let Some(field) = message.get_mut(2..4) {
        field.copy_from_slice(&sum.to_ne_bytes());
    }
    let mut frame = ethernet(form.mac, to.into(), EtherType::IPV6);
    let ip = Ipv6Header {
        traffic_class: 0,
        flow_label: Ipv6FlowLabel::ZERO,
        payload_length: u16::try_from(ROUTER_ALERT6.len() + message.len()).unwrap_or(0),
        next_header: IpNumber::IPV6_HEADER_HOP_BY_HOP,
        hop_limit: 1,
        source: source.octets(),
        destination: to.octets(),
    };
    frame.extend(ip.to_bytes());
    frame.extend(ROUTER_ALERT6);
    frame.extend(message);
    frame
}

fn ethernet(source: Mac, to: IpAddr, ether_type: EtherType) -> Vec<u8> {
    let destination = match to {
        IpAddr::V4(a) => {
            let [_, b, c, d] = a.octets();
            [0x01, 0x00, 0x5e, b & 0x7f, c, d]
        }
        IpAddr::V6(a) => {
            let [.., w, x, y, z] = a.octets();
            [0x33, 0x33, w, x, y, z]
        }
    };
    let header = Ethernet2Header {
        source,
        destination,
        ether_type,
    };
    header.to_bytes().to_vec()
}
