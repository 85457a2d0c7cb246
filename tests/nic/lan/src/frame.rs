// SPDX-License-Identifier: GPL-2.0
//! Ethernet framing: addresses, one VLAN tag, EtherType.

/// Bytes before the EtherType: both addresses.
pub const ADDRESSES: usize = 12;
/// Shortest frame on the wire, without FCS.
pub const MIN_FRAME: usize = 60;
/// Longest frame on the wire, without FCS.
pub const MAX_FRAME: usize = 9728 - 4;

/// IEEE 802.1Q tag.
const ETHER_TYPE_VLAN: u16 = 0x8100;

/// What the switch looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Destination address.
    pub destination: [u8; 6],
    /// Tag control information, if the frame is tagged.
    pub vlan: Option<u16>,
    /// EtherType after the tag.
    pub ether_type: u16,
    /// Where the payload starts.
    pub len: usize,
}

impl Header {
    /// Parses a frame, or `None` if it is too short to have a header.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
        let destination = frame.get(..6)?.try_into().ok()?;
        let outer = word(ADDRESSES)?;
        let (vlan, ether_type, len) = if outer == ETHER_TYPE_VLAN {
            let tag = word(ADDRESSES + 2)?;
            (Some(tag), word(ADDRESSES + 4)?, ADDRESSES + 6)
        } else {
            (None, outer, ADDRESSES + 2)
        };
        Some(Self {
            destination,
            vlan,
            ether_type,
            len,
        })
    }

    /// VLAN id, 0 for untagged frames.
    pub fn vlan_id(&self) -> u16 {
        self.vlan.unwrap_or(0) & 0xfff
    }
}

/// Inserts a tag after the addresses. Frames too short to have any stay as they are.
pub fn insert_tag(frame: &mut Vec<u8>, tag: u16) {
    if frame.len() >= ADDRESSES {
        let [a, b] = ETHER_TYPE_VLAN.to_be_bytes();
        let [c, d] = tag.to_be_bytes();
        frame.splice(ADDRESSES..ADDRESSES, [a, b, c, d]);
    }
}

/// Removes the tag, if there is one.
pub fn remove_tag(frame: &mut Vec<u8>, header: &Header) {
    if header.vlan.is_some() && frame.len() >= ADDRESSES + 4 {
        frame.drain(ADDRESSES..ADDRESSES + 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(rest: &[u8]) -> Vec<u8> {
        [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2], rest].concat()
    }

    #[test]
    fn tag_comes_and_goes() {
        let untagged = frame(&[8, 0, 1, 2]);
        let mut tagged = untagged.clone();
        insert_tag(&mut tagged, 0x6005);
        let header = Header::parse(&tagged).unwrap();
        assert_eq!(header.vlan, Some(0x6005));
        assert_eq!(
            (header.vlan_id(), header.ether_type, header.len),
            (5, 0x800, 18)
        );
        remove_tag(&mut tagged, &header);
        assert_eq!(tagged, untagged);
    }

    #[test]
    fn short_frames_have_no_header() {
        assert_eq!(Header::parse(&frame(&[8])), None);
        assert_eq!(Header::parse(&frame(&[0x81, 0, 0, 5, 8])), None);
        assert_eq!(Header::parse(&[]), None);
        assert!(Header::parse(&frame(&[8, 0])).is_some());
    }
}
