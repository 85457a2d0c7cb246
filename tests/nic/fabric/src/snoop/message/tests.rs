// SPDX-License-Identifier: GPL-2.0
//! Messages as hosts and routers send them.

use super::*;
use crate::snoop::query::{self, Form};
use crate::view::{Destination, View};
use etherparse::{IpNumber, Ipv6FlowLabel, Ipv6Header, PacketBuilder};
use proptest::prelude::*;

/// An IGMP packet with these bytes, whose checksum is filled in.
pub(crate) fn igmp_frame(mut message: Vec<u8>) -> Vec<u8> {
    let sum = etherparse::checksum::Sum16BitWords::new()
        .add_slice(&message)
        .ones_complement();
    message[2..4].copy_from_slice(&sum.to_ne_bytes());
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [1, 0, 0x5e, 0, 0, 22])
        .ipv4([10, 0, 0, 1], [224, 0, 0, 22], 1)
        .write(&mut frame, IpNumber::IGMP, &message)
        .unwrap();
    frame
}

/// An MLD packet with these bytes, whose checksum is filled in, behind a hop-by-hop header.
pub(crate) fn mld_frame(mut message: Vec<u8>) -> Vec<u8> {
    let (from, to): (Ipv6Addr, Ipv6Addr) =
        ("fe80::1".parse().unwrap(), "ff02::16".parse().unwrap());
    let sum = etherparse::checksum::Sum16BitWords::new()
        .add_16bytes(from.octets())
        .add_16bytes(to.octets())
        .add_4bytes(u32::try_from(message.len()).unwrap().to_be_bytes())
        .add_4bytes([0, 0, 0, 58])
        .add_slice(&message)
        .ones_complement();
    message[2..4].copy_from_slice(&sum.to_ne_bytes());
    let mut payload = vec![58, 0, 5, 2, 0, 0, 1, 0];
    payload.extend(message);
    let ip = Ipv6Header {
        traffic_class: 0,
        flow_label: Ipv6FlowLabel::ZERO,
        payload_length: u16::try_from(payload.len()).unwrap(),
        next_header: IpNumber::IPV6_HEADER_HOP_BY_HOP,
        hop_limit: 1,
        source: from.octets(),
        destination: to.octets(),
    };
    let mut frame = vec![0x33, 0x33, 0, 0, 0, 22, 2, 0, 0, 0, 0, 1, 0x86, 0xdd];
    frame.extend(ip.to_bytes());
    frame.extend(payload);
    frame
}

fn message(frame: &[u8]) -> Option<Message> {
    match View::of(frame).unwrap().destination {
        Destination::Management(message) => Some(message),
        _ => None,
    }
}

fn group4(d: u8) -> IpAddr {
    Ipv4Addr::new(239, 1, 2, d).into()
}

fn group6(d: u16) -> IpAddr {
    Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, d).into()
}

fn octets6(d: u16) -> [u8; 16] {
    match group6(d) {
        IpAddr::V6(a) => a.octets(),
        IpAddr::V4(_) => unreachable!(),
    }
}

#[test]
fn reports_of_igmp_1_and_2() {
    for (kind, change) in [
        (0x12, Change::Join),
        (0x16, Change::Join),
        (0x17, Change::Leave),
    ] {
        let frame = igmp_frame(vec![kind, 0, 0, 0, 239, 1, 2, 3]);
        let expected = Message::Report(vec![(group4(3), change)]);
        assert_eq!(message(&frame), Some(expected), "{kind:#x}");
    }
}

/// Type of a record, number of sources, and what it means here.
const RECORDS: [(u8, u8, Option<Change>); 9] = [
    (1, 0, Some(Change::Leave)),
    (1, 1, Some(Change::Join)),
    (2, 0, Some(Change::Join)),
    (3, 0, Some(Change::Leave)),
    (4, 2, Some(Change::Join)),
    (5, 1, Some(Change::Join)),
    (5, 0, None),
    (6, 1, None),
    (9, 0, None),
];

#[test]
fn reports_of_igmp_3() {
    let mut bytes = vec![0x22, 0, 0, 0, 0, 0, 0, RECORDS.len() as u8];
    let mut expected = Vec::new();
    for (n, (kind, sources, change)) in (0..).zip(RECORDS) {
        bytes.extend([kind, 0, 0, sources, 239, 1, 2, n]);
        bytes.extend(vec![9; usize::from(sources) * 4]);
        expected.extend(change.map(|change| (group4(n), change)));
    }
    assert_eq!(message(&igmp_frame(bytes)), Some(Message::Report(expected)));
}

#[test]
fn reports_of_mld_1_and_2() {
    for (kind, change) in [(131, Change::Join), (132, Change::Leave)] {
        let mut bytes = vec![kind, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend(octets6(3));
        let expected = Message::Report(vec![(group6(3), change)]);
        assert_eq!(message(&mld_frame(bytes)), Some(expected), "{kind}");
    }
    let mut bytes = vec![143, 0, 0, 0, 0, 0, 0, RECORDS.len() as u8];
    let mut expected = Vec::new();
    for (n, (kind, sources, change)) in (0..).zip(RECORDS) {
        // With a word of auxiliary data.
        bytes.extend([kind, 1, 0, sources]);
        bytes.extend(octets6(n));
        bytes.extend(vec![9; usize::from(sources) * 16 + 4]);
        expected.extend(change.map(|change| (group6(n), change)));
    }
    assert_eq!(message(&mld_frame(bytes)), Some(Message::Report(expected)));
}

#[test]
fn queries_of_older_versions() {
    let query = |bytes: Vec<u8>| match message(&igmp_frame(bytes)) {
        Some(Message::Query {
            group, response, ..
        }) => (group, response.as_millis()),
        other => panic!("{other:?}"),
    };
    assert_eq!(query(vec![0x11, 0, 0, 0, 0, 0, 0, 0]), (None, 10_000));
    assert_eq!(
        query(vec![0x11, 5, 0, 0, 239, 1, 2, 3]),
        (Some(group4(3)), 500)
    );
    let mut bytes = vec![130, 0, 0, 0, 3, 0xe8, 0, 0];
    bytes.extend(octets6(3));
    let Some(Message::Query {
        group, response, ..
    }) = message(&mld_frame(bytes))
    else {
        panic!()
    };
    assert_eq!((group, response.as_millis()), (Some(group6(3)), 1000));
}

/// What the switch sends is what it understands.
#[test]
fn own_queries_are_understood() {
    let form = Form {
        mac: [2, 0xe8, 0x10, 0, 1, 0],
        robustness: 2,
        interval: Duration::from_secs(5),
        response: Duration::from_millis(1500),
    };
    let (from4, from6) = (Ipv4Addr::new(192, 0, 2, 1), "fe80::5".parse().unwrap());
    for group in [None, Some(7)] {
        let four = group.map(|d| Ipv4Addr::new(239, 1, 2, d));
        let six = group.map(|d| Ipv6Addr::from(octets6(d.into())));
        let frames = [
            (
                query::igmp(&form, from4, four),
                IpAddr::from(from4),
                four.map(IpAddr::from),
            ),
            (
                query::mld(&form, from6, six),
                IpAddr::from(from6),
                six.map(IpAddr::from),
            ),
        ];
        for (frame, source, group) in frames {
            let expected = Message::Query {
                source,
                group,
                response: form.response,
                keep_timers: false,
            };
            assert_eq!(message(&frame), Some(expected), "{source}");
        }
    }
}

#[test]
fn broken_messages_are_known_as_such() {
    let good = igmp_frame(vec![0x16, 0, 0, 0, 239, 1, 2, 3]);
    for at in [14 + 1, 14 + 12, 14 + 20 + 7] {
        let mut frame = good.clone();
        frame[at] ^= 1;
        assert_eq!(message(&frame), Some(Message::Damaged), "byte {at}");
    }
    let mut bytes = vec![131, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend(octets6(3));
    let mut frame = mld_frame(bytes.clone());
    frame[14 + 7] = 2;
    assert_eq!(message(&frame), None, "it came from afar");
    let mut frame = mld_frame(bytes.clone());
    *frame.last_mut().unwrap() ^= 1;
    assert_eq!(message(&frame), Some(Message::Damaged), "checksum");
    bytes.truncate(20);
    assert_eq!(message(&mld_frame(bytes)), Some(Message::Damaged), "short");
    let unknown = igmp_frame(vec![0x30, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(message(&unknown), Some(Message::Unknown));
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 8..80), kind in 0usize..9) {
        let mut bytes = bytes;
        let igmp = [0x11, 0x12, 0x16, 0x17, 0x22];
        match igmp.get(kind) {
            Some(kind) => {
                bytes[0] = *kind;
                let _ = message(&igmp_frame(bytes));
            }
            None => {
                bytes[0] = [130, 131, 132, 143][kind - igmp.len()];
                let _ = message(&mld_frame(bytes));
            }
        }
    }
}
