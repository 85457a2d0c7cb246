// SPDX-License-Identifier: GPL-2.0
//! Offloads against packets built by an independent library.

use super::super::descriptor::{Context, Data};
use super::*;
use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
use proptest::prelude::*;

const DATA: Data = Data {
    address: 0,
    len: 0,
    end: true,
    report: true,
    dummy: false,
    tag: None,
    network: Network::V4Checksum,
    transport: Some(Transport::Tcp),
    mac_len: 14,
    network_len: 20,
    transport_len: 20,
};

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7) as u8).collect()
}

/// A TCP frame with every flag that segmentation has to look at.
fn tcp(network: Network, len: usize) -> Vec<u8> {
    let ethernet = PacketBuilder::ethernet2([2; 6], [4; 6]);
    let ip = match network {
        Network::V6 => ethernet.ipv6([1; 16], [2; 16], 64),
        _ => ethernet.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64),
    };
    let mut frame = Vec::new();
    ip.tcp(1000, 2000, u32::MAX - 100, 500)
        .fin()
        .psh()
        .ack(7)
        .write(&mut frame, &payload(len))
        .unwrap();
    frame
}

fn udp(network: Network, len: usize) -> Vec<u8> {
    let ethernet = PacketBuilder::ethernet2([2; 6], [4; 6]);
    let ip = match network {
        Network::V6 => ethernet.ipv6([1; 16], [2; 16], 64),
        _ => ethernet.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64),
    };
    let mut frame = Vec::new();
    ip.udp(1000, 2000).write(&mut frame, &payload(len)).unwrap();
    frame
}

fn network_len(network: Network) -> usize {
    if network == Network::V6 {
        40
    } else {
        20
    }
}

fn job(frame: Vec<u8>, network: Network, transport: Transport) -> Job {
    let transport_len = if transport == Transport::Udp { 8 } else { 20 };
    Job {
        frame,
        first: Data {
            network,
            network_len: network_len(network),
            transport: Some(transport),
            transport_len,
            ..DATA
        },
        context: Context::default(),
    }
}

#[test]
fn checksums_are_the_librarys() {
    for network in [Network::V4Checksum, Network::V6] {
        let cases = [
            (tcp(network, 333), Transport::Tcp, 16),
            (udp(network, 333), Transport::Udp, 6),
        ];
        for (expected, transport, at) in cases {
            let mut frame = expected.clone();
            let at = 14 + network_len(network) + at;
            frame[at..at + 2].copy_from_slice(&[0xde, 0xad]);
            if network == Network::V4Checksum {
                frame[24..26].copy_from_slice(&[0xde, 0xad]);
            }
            let frames = finish(job(frame, network, transport)).unwrap();
            assert_eq!(frames, [expected], "{network:?} {transport:?}");
        }
    }
}

#[test]
fn untouched_without_offloads() {
    let mut job = job(tcp(Network::V4, 10), Network::V4, Transport::Tcp);
    job.frame[24] ^= 0xff; // a wrong checksum stays wrong
    job.first.transport = None;
    assert_eq!(finish(job.clone()).unwrap(), [job.frame]);
}

#[test]
fn tcp_segments_are_whole_packets() {
    for network in [Network::V4Checksum, Network::V6] {
        let mut job = job(tcp(network, 2500), network, Transport::Tcp);
        let cwr = 14 + network_len(network) + 13;
        job.frame[cwr] |= CWR;
        job.context.segmentation = Some(Segmentation {
            mss: 1000,
            payload: 2500,
        });
        let frames = finish(job).unwrap();
        let mut rejoined = Vec::new();
        for (index, frame) in frames.iter().enumerate() {
            assert_checksums(frame);
            let packet = SlicedPacket::from_ethernet(frame).unwrap();
            let Some(TransportSlice::Tcp(tcp)) = packet.transport else {
                panic!("not TCP");
            };
            let sequence = (u32::MAX - 100).wrapping_add(1000 * index as u32);
            assert_eq!(tcp.sequence_number(), sequence);
            assert_eq!((tcp.fin(), tcp.psh()), (index == 2, index == 2));
            assert_eq!((tcp.cwr(), tcp.ack()), (index == 0, true));
            if network == Network::V4Checksum {
                assert_eq!(word(frame, 18), Ok(index as u16));
            }
            rejoined.extend_from_slice(tcp.payload());
        }
        assert_eq!(frames.len(), 3);
        assert_eq!(rejoined, payload(2500));
    }
}

#[test]
fn udp_segments_are_whole_datagrams() {
    for network in [Network::V4Checksum, Network::V6] {
        let mut job = job(udp(network, 2000), network, Transport::Udp);
        job.context.segmentation = Some(Segmentation {
            mss: 1000,
            payload: 2000,
        });
        let frames = finish(job).unwrap();
        let mut rejoined = Vec::new();
        for frame in &frames {
            assert_checksums(frame);
            let packet = SlicedPacket::from_ethernet(frame).unwrap();
            let Some(TransportSlice::Udp(udp)) = packet.transport else {
                panic!("not UDP");
            };
            assert_eq!(usize::from(udp.length()), 8 + udp.payload().len());
            rejoined.extend_from_slice(udp.payload());
        }
        assert_eq!(frames.len(), 2);
        assert_eq!(rejoined, payload(2000));
    }
}

/// All checksums of a frame are those the classifier accepts, and the library computes the same.
fn assert_checksums(frame: &[u8]) {
    use crate::rx::classify::{Integrity, Packet};
    let header = crate::frame::Header::parse(frame).unwrap();
    assert_eq!(Packet::classify(&header, frame).integrity, Integrity::Good);
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    let ip = packet.net.unwrap();
    if let Some(ipv4) = ip.ipv4_ref() {
        let header = ipv4.header().to_header();
        assert_eq!(header.calc_header_checksum(), header.header_checksum);
    }
}

#[test]
fn vlan_tag_goes_into_every_segment() {
    let mut job = job(tcp(Network::V4, 2000), Network::V4Checksum, Transport::Tcp);
    job.first.tag = Some(0x2005);
    job.context.segmentation = Some(Segmentation {
        mss: 1000,
        payload: 2000,
    });
    for frame in finish(job).unwrap() {
        assert_eq!(frame[12..16], [0x81, 0, 0x20, 5]);
        assert_checksums(&frame);
    }
}

/// VXLAN: outer Ethernet, IPv4, UDP and VXLAN headers before an inner frame.
#[test]
fn tunnels_get_outer_lengths_and_checksums() {
    let inner = tcp(Network::V4, 1500);
    let mut tunneled = Vec::new();
    let vxlan = [&[8, 0, 0, 0, 0, 0, 1, 0][..], &inner].concat();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
        .udp(5555, 4789)
        .write(&mut tunneled, &vxlan)
        .unwrap();
    let mut job = job(tunneled, Network::V4Checksum, Transport::Tcp);
    job.context.tunnel = Some(Tunnel {
        network: Network::V4Checksum,
        network_len: 20,
        udp: true,
        gap: 8 + 8 + 14,
        udp_checksum: true,
    });
    job.context.segmentation = Some(Segmentation {
        mss: 1000,
        payload: 1500,
    });
    let frames = finish(job).unwrap();
    assert_eq!(frames.len(), 2);
    for frame in frames {
        assert_checksums(&frame);
        assert_checksums(&frame[14 + 20 + 8 + 8..]);
    }
}

#[test]
fn contradictions_are_refused() {
    let good = {
        let mut job = job(tcp(Network::V4, 500), Network::V4Checksum, Transport::Tcp);
        job.context.segmentation = Some(Segmentation {
            mss: 100,
            payload: 500,
        });
        job
    };
    assert_eq!(finish(good.clone()).unwrap().len(), 5);
    let segmentation = |mss, payload| Some(Segmentation { mss, payload });
    let mut cases = vec![good.clone(); 5];
    cases[0].context.segmentation = segmentation(63, 500);
    cases[1].context.segmentation = segmentation(100, 501);
    cases[2].first.network = Network::V6;
    cases[3].first.transport = Some(Transport::Sctp);
    cases[4].frame.truncate(30);
    for (index, job) in cases.into_iter().enumerate() {
        assert!(finish(job).is_err(), "case {index}");
    }
}

proptest! {
    #[test]
    fn any_lengths_are_survived(
        len in 0usize..3000,
        mac_len in 0usize..300,
        network_len in 0usize..300,
        transport_len in 0usize..64,
        network in 0usize..4,
        transport in 0usize..4,
        segmentation in proptest::option::of((0usize..3000, 0usize..3000)),
        tunnel in proptest::option::of((0usize..4, 0usize..200, any::<bool>(), 0usize..200)),
        fill: u8,
    ) {
        let networks = [Network::None, Network::V4, Network::V4Checksum, Network::V6];
        let transports = [None, Some(Transport::Tcp), Some(Transport::Udp), Some(Transport::Sctp)];
        let mut frame = tcp(networks[network], len);
        frame.iter_mut().skip(mac_len).step_by(3).for_each(|byte| *byte ^= fill);
        let job = Job {
            frame,
            first: Data {
                network: networks[network],
                transport: transports[transport],
                mac_len,
                network_len,
                transport_len,
                tag: Some(1),
                ..DATA
            },
            context: Context {
                segmentation: segmentation.map(|(mss, payload)| Segmentation { mss, payload }),
                tag: None,
                tunnel: tunnel.map(|(network, network_len, udp_checksum, gap)| Tunnel {
                    network: networks[network],
                    network_len,
                    udp: true,
                    gap,
                    udp_checksum,
                }),
            },
        };
        let _ = finish(job);
    }
}
