// SPDX-License-Identifier: GPL-2.0
//! Ethernet frames as the fabric carries them, and the little it looks at inside.

use std::sync::Arc;

/// A frame without FCS, shared by all ports it goes to.
pub type Frame = Arc<[u8]>;

/// Bytes of the Ethernet header.
pub const HEADER: usize = 14;
/// The shortest frame on the wire without FCS; shorter ones are padded by the sender's MAC.
pub const SHORTEST: usize = 60;
/// The longest frame taken: the largest packet QEMU's network layer passes on.
pub const LONGEST: usize = 4096 + 65536;

const ETHERTYPE_VLAN: u16 = 0x8100;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const PROTOCOL_UDP: u8 = 17;
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

fn u16_at(frame: &[u8], at: usize) -> Option<u16> {
    let bytes = frame.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes(bytes.try_into().ok()?))
}

/// Whether `frame` carries RoCEv2: UDP to port 4791 over IPv4 or IPv6, with a VLAN tag or without.
pub fn is_roce(frame: &[u8]) -> bool {
    udp_destination(frame) == Some(PORT_ROCE)
}

fn udp_destination(frame: &[u8]) -> Option<u16> {
    let mut at = HEADER;
    let mut ethertype = u16_at(frame, at - 2)?;
    if ethertype == ETHERTYPE_VLAN {
        at += 4;
        ethertype = u16_at(frame, at - 2)?;
    }
    let (protocol, udp) = match ethertype {
        ETHERTYPE_IPV4 => {
            let words = usize::from(frame.get(at)? & 0xf);
            (*frame.get(at + 9)?, at + 4 * words)
        }
        ETHERTYPE_IPV6 => (*frame.get(at + 6)?, at + 40),
        _ => return None,
    };
    if protocol != PROTOCOL_UDP {
        return None;
    }
    u16_at(frame, udp + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn udp4(port: u16, tag: bool) -> Vec<u8> {
        let mut frame = vec![0xff; 12];
        if tag {
            frame.extend_from_slice(&[0x81, 0, 0, 5]);
        }
        frame.extend_from_slice(&[0x08, 0x00, 0x45]);
        frame.extend_from_slice(&[0; 8]);
        frame.extend_from_slice(&[PROTOCOL_UDP]);
        frame.extend_from_slice(&[0; 10 + 2]);
        frame.extend_from_slice(&port.to_be_bytes());
        frame
    }

    #[test]
    fn roce_is_udp_4791() {
        for tag in [false, true] {
            assert!(is_roce(&udp4(4791, tag)));
            assert!(!is_roce(&udp4(4790, tag)));
        }
        let mut six = vec![0; 12];
        six.extend_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, PROTOCOL_UDP]);
        six.resize(14 + 40 + 2, 0);
        six.extend_from_slice(&4791u16.to_be_bytes());
        assert!(is_roce(&six));
        six[20] = 6;
        assert!(!is_roce(&six));
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
