// SPDX-License-Identifier: GPL-2.0
//! Messages of group management: IGMPv1 to v3 (RFC 1112, 2236, 9776) and MLDv1 and v2 (RFC 2710,
//! 9777), as far as a switch that listens needs to understand them.

use etherparse::igmp::ReportGroupRecordType as Record;
use etherparse::{Icmpv6Slice, IgmpSlice, Ipv4Slice, Ipv6Slice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// IP protocol numbers.
const IGMP: u8 = 2;
const ICMPV6: u8 = 58;
const PIM: u8 = 103;

/// ICMPv6 types.
const MLD_QUERY: u8 = 130;
const MLD1_REPORT: u8 = 131;
const MLD1_DONE: u8 = 132;
const MLD2_REPORT: u8 = 143;

/// Bytes of a query without sources, MLDv1's; MLDv2's is longer.
const MLD1_LEN: usize = 24;
/// Bytes of an MLDv2 group record before its sources.
const MLD2_RECORD: usize = 20;

/// What a host says about one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It wants the group, from some source or all.
    Join,
    /// It wants nothing of the group any more.
    Leave,
}

/// A message that the switch acts on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A router asks who wants what.
    Query {
        /// Its address.
        source: IpAddr,
        /// The group it asks about; all if `None`.
        group: Option<IpAddr>,
        /// Time that hosts have to answer.
        response: Duration,
        /// Switches on the way keep their timers ("S flag").
        keep_timers: bool,
    },
    /// A host answers, or tells of a change.
    Report(Vec<(IpAddr, Change)>),
    /// A multicast router says that it is there.
    Router,
    /// Of the protocol, but of a type that is not known: for all.
    Unknown,
    /// Of the protocol, with a wrong checksum or cut short: for nobody.
    Damaged,
}

/// The message in an IPv4 packet, if it is one of group management.
pub(crate) fn igmp(ip: &Ipv4Slice<'_>) -> Option<Message> {
    let payload = ip.payload();
    if payload.fragmented {
        return None;
    }
    let (protocol, header) = (payload.ip_number.0, ip.header());
    if protocol != PIM && protocol != IGMP {
        return None;
    }
    if header.header_checksum() != header.to_header().calc_header_checksum() {
        return Some(Message::Damaged);
    }
    if protocol == PIM {
        return Some(Message::Router);
    }
    let message = match IgmpSlice::from_slice(payload.payload) {
        Ok(message) if message.is_checksum_valid() => message,
        _ => return Some(Message::Damaged),
    };
    let source = IpAddr::V4(header.source_addr());
    let one = |octets: [u8; 4], change| {
        Some(Message::Report(vec![(
            Ipv4Addr::from(octets).into(),
            change,
        )]))
    };
    let query = |octets: [u8; 4], tenths: u16, keep_timers| {
        let group = Ipv4Addr::from(octets);
        Some(Message::Query {
            source,
            group: (!group.is_unspecified()).then_some(group.into()),
            response: Duration::from_millis(u64::from(tenths) * 100),
            keep_timers,
        })
    };
    match &message {
        IgmpSlice::MembershipQuery(q) => {
            // Version 1 has no time in it and means ten seconds.
            let tenths = match q.max_response_time() {
                0 => 100,
                tenths => u16::from(tenths),
            };
            query(q.group_address().octets, tenths, false)
        }
        IgmpSlice::MembershipQueryWithSources(q) => query(
            q.group_address().octets,
            q.max_response_code().as_10th_secs(),
            q.s_flag(),
        ),
        IgmpSlice::MembershipReportV1(r) => one(r.group_address().octets, Change::Join),
        IgmpSlice::MembershipReportV2(r) => one(r.group_address().octets, Change::Join),
        IgmpSlice::LeaveGroup(l) => one(l.group_address().octets, Change::Leave),
        IgmpSlice::MembershipReportV3(r) => {
            let records = r.group_records().map_while(Result::ok);
            Some(Message::Report(
                records
                    .filter_map(|record| {
                        let group = Ipv4Addr::from(record.multicast_address());
                        change(record.record_type(), record.num_of_sources())
                            .map(|change| (group.into(), change))
                    })
                    .collect(),
            ))
        }
        IgmpSlice::Unknown(_) => Some(Message::Unknown),
    }
}

/// What a group record means to a switch that does not tell sources apart.
fn change(kind: Record, sources: u16) -> Option<Change> {
    match (kind, sources) {
        (Record::MODE_IS_INCLUDE | Record::CHANGE_TO_INCLUDE_MODE, 0) => Some(Change::Leave),
        (Record::BLOCK_OLD_SOURCES, _) | (Record::ALLOW_NEW_SOURCES, 0) => None,
        (
            Record::MODE_IS_INCLUDE
            | Record::MODE_IS_EXCLUDE
            | Record::CHANGE_TO_INCLUDE_MODE
            | Record::CHANGE_TO_EXCLUDE_MODE
            | Record::ALLOW_NEW_SOURCES,
            _,
        ) => Some(Change::Join),
        _ => None,
    }
}

/// The message in an IPv6 packet, if it is one of group management.
pub(crate) fn mld(ip: &Ipv6Slice<'_>) -> Option<Message> {
    let payload = ip.payload();
    if payload.fragmented {
        return None;
    }
    if payload.ip_number.0 == PIM {
        return Some(Message::Router);
    }
    // Listener messages never leave the link.
    if payload.ip_number.0 != ICMPV6 || ip.header().hop_limit() != 1 {
        return None;
    }
    let bytes = payload.payload;
    let kind = *bytes.first()?;
    if !(MLD_QUERY..=MLD1_DONE).contains(&kind) && kind != MLD2_REPORT {
        return None;
    }
    let (from, to) = (ip.header().source(), ip.header().destination());
    let message = Icmpv6Slice::from_slice(bytes).ok();
    let sound = message.is_some_and(|message| message.is_checksum_valid(from, to));
    let one = |change| Some(Message::Report(vec![(address(bytes, 8)?, change)]));
    let message = match kind {
        _ if !sound => None,
        MLD_QUERY => mld_query(IpAddr::V6(from.into()), bytes),
        MLD1_REPORT => one(Change::Join),
        MLD1_DONE => one(Change::Leave),
        _ => mld2_report(bytes),
    };
    message.or(Some(Message::Damaged))
}

fn address(bytes: &[u8], at: usize) -> Option<IpAddr> {
    let (octets, _) = bytes.get(at..)?.split_first_chunk::<16>()?;
    Some(Ipv6Addr::from(*octets).into())
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    let (octets, _) = bytes.get(at..)?.split_first_chunk::<2>()?;
    Some(u16::from_be_bytes(*octets))
}

fn mld_query(source: IpAddr, bytes: &[u8]) -> Option<Message> {
    let group = address(bytes, 8)?;
    let code = number(bytes, 4)?;
    let version2 = bytes.len() > MLD1_LEN;
    let milliseconds = match code {
        // A floating point form above.
        0x8000.. if version2 => u64::from(code & 0xfff | 0x1000) << (u32::from(code >> 12 & 7) + 3),
        code => u64::from(code),
    };
    Some(Message::Query {
        source,
        group: (!group.is_unspecified()).then_some(group),
        response: Duration::from_millis(milliseconds),
        keep_timers: version2 && bytes.get(MLD1_LEN)? & 8 != 0,
    })
}

fn mld2_report(bytes: &[u8]) -> Option<Message> {
    let count = number(bytes, 6)?;
    let mut rest = bytes.get(8..)?;
    let mut list = Vec::new();
    for _ in 0..count {
        let sources = number(rest, 2)?;
        let group = address(rest, 4)?;
        let kind = Record(*rest.first()?);
        list.extend(change(kind, sources).map(|change| (group, change)));
        let extra = usize::from(*rest.get(1)?) * 4;
        rest = rest.get(MLD2_RECORD + usize::from(sources) * 16 + extra..)?;
    }
    Some(Message::Report(list))
}

#[cfg(test)]
pub(crate) mod tests;
