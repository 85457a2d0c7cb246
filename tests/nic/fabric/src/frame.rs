// SPDX-License-Identifier: GPL-2.0
//! Ethernet frames as the fabric carries them, and the little it looks at inside.

use etherparse::{LaxSlicedPacket, TransportSlice};
use std::sync::Arc;

/// A frame without FCS, shared by all ports it goes to.
pub type Frame = Arc<[u8]>;

/// Bytes of the Ethernet header.
pub const HEADER: usize = 14;
/// The shortest frame on the wire without FCS; shorter ones are padded by the sender's MAC.
pub const SHORTEST: usize = 60;
/// The longest frame taken: the largest packet QEMU's network layer passes on.
pub const LONGEST: usize = 4096 + 65536;

/// UDP port of RoCEv2.
const PORT_ROCE: u16 = 4791;

/// Makes a frame of what a device sends; `None` if it is none. Short frames are padded.
pub fn from_device(mut bytes: Vec<u8>) -> Option<Frame> {
    if !(HEADER..=LONGEST).contains(&bytes.len()) {
        return None;
    }
    if bytes.len() < SHORTEST {
        bytes.resize(SHORTEST, 0);
    }
    Some(bytes.into())
}

/// Whether `frame` carries RoCEv2: UDP to port 4791 over IPv4 or IPv6, with a VLAN tag or without.
pub fn is_roce(frame: &[u8]) -> bool {
    let packet = LaxSlicedPacket::from_ethernet(frame).ok();
    let Some(Some(TransportSlice::Udp(udp))) = packet.map(|packet| packet.transport) else {
        return false;
    };
    udp.destination_port() == PORT_ROCE
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    fn udp(four: bool, port: u16, tag: bool) -> Vec<u8> {
        let mut frame = Vec::new();
        let ethernet = PacketBuilder::ethernet2([2; 6], [4; 6]);
        match four {
            true => ethernet.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64),
            false => ethernet.ipv6([1; 16], [2; 16], 64),
        }
        .udp(7, port)
        .write(&mut frame, &[0; 20])
        .unwrap();
        if tag {
            frame.splice(12..12, [0x81, 0, 0, 5]);
        }
        frame
    }

    #[test]
    fn roce_is_udp_4791() {
        for (four, tag) in [(true, false), (true, true), (false, false), (false, true)] {
            let mut frame = udp(four, 4791, tag);
            assert!(is_roce(&frame));
            assert!(!is_roce(&udp(four, 4790, tag)));
            // Cut short on its way it is still RoCE.
            frame.pop();
            assert!(is_roce(&frame));
            let header = if tag { 18 } else { 14 };
            frame[header + if four { 9 } else { 6 }] = 6;
            assert!(!is_roce(&frame));
        }
        assert!(!is_roce(&[0; 60]));
    }

    #[test]
    fn lengths() {
        assert!(from_device(vec![0; 13]).is_none());
        assert_eq!(from_device(vec![1; 14]).unwrap().len(), 60);
        assert_eq!(from_device(vec![1; 61]).unwrap().len(), 61);
        assert!(from_device(vec![0; LONGEST + 1]).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_classified(frame in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = is_roce(&frame);
        }
    }
}
