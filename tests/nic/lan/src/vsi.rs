// SPDX-License-Identifier: GPL-2.0
//! Virtual station interfaces (section 6.3 of the hardware contract): the context as the driver
//! writes it, and what its bits mean to the data path.

use crate::le::{Load, Short};
use crate::rss::TableId;

/// Bytes of a context.
pub const CONTEXT: usize = 128;

/// Sections of a context: bit in `valid_sections`, first byte, first byte after.
const SECTIONS: [(u16, usize, usize); 11] = [
    (0, 2, 6),      // switch
    (1, 6, 8),      // security
    (2, 8, 16),     // VLAN
    (4, 16, 20),    // ingress priorities
    (5, 20, 24),    // egress priorities
    (3, 24, 28),    // outer tags
    (6, 28, 78),    // queue map
    (7, 78, 84),    // queue options
    (8, 84, 88),    // outer priorities
    (11, 90, 100),  // Flow Director
    (12, 100, 104), // PASID
];

/// How the VLAN tag of a received frame reaches the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VlanStrip {
    /// Tag and priority move to the descriptor.
    TagAndPriority,
    /// The tag moves without its priority.
    Tag,
    /// The frame stays as it is.
    Nothing,
}

/// One VSI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vsi {
    context: [u8; CONTEXT],
}

impl Vsi {
    /// A VSI as `request` describes it. All of a new VSI's sections count: the driver declares only
    /// some of those it fills.
    pub fn new(request: &[u8]) -> Result<Self, Short> {
        let context = request.array_at(0)?;
        Ok(Self { context })
    }

    /// Takes the valid sections of `request`.
    pub fn update(&mut self, request: &[u8]) -> Result<(), Short> {
        let valid = request.u16_at(0)?;
        request.bytes_at(0, CONTEXT)?;
        for (bit, start, end) in SECTIONS {
            if valid >> bit & 1 != 0 {
                let section = request.bytes_at(start, end - start)?;
                let target = self.context.get_mut(start..end).ok_or(Short)?;
                target.copy_from_slice(section);
            }
        }
        Ok(())
    }

    fn byte(&self, at: usize) -> u8 {
        self.context.u8_at(at).unwrap_or(0)
    }

    fn word(&self, at: usize) -> u16 {
        self.context.u16_at(at).unwrap_or(0)
    }

    /// Whether only frames of listed VLANs come in.
    pub fn prunes_vlans(&self) -> bool {
        self.byte(4) & 1 != 0
    }

    /// What happens to a received tag.
    pub fn vlan_strip(&self) -> VlanStrip {
        match self.byte(12) >> 3 & 3 {
            0 => VlanStrip::TagAndPriority,
            3 => VlanStrip::Nothing,
            _ => VlanStrip::Tag,
        }
    }

    /// Whether RoCEv2 frames of this VSI go to the protocol engine.
    pub fn pe_filter(&self) -> bool {
        self.byte(80) & 1 != 0
    }

    /// Whether the hash treats both directions alike.
    pub fn symmetric_hash(&self) -> bool {
        self.byte(78) >> 6 == 1
    }

    /// The RSS table in use. `number` is the VSI's own.
    pub fn rss_table(&self, number: u16) -> TableId {
        let options = self.byte(78);
        match options & 3 {
            2 => TableId::Function,
            3 => TableId::Global(options >> 2 & 0xf),
            _ => TableId::Vsi(number),
        }
    }

    /// The function's queue for entry `entry` of traffic class 0, which wraps at the class's size.
    pub fn queue(&self, entry: u16) -> u16 {
        const NOT_CONTIGUOUS: u16 = 1 << 0;
        const QUEUE: u16 = 0x7ff;
        let class = self.word(62);
        let offset = class & QUEUE;
        let count = 1u16 << (class >> 11 & 0xf);
        let relative = (offset + entry % count) & QUEUE;
        if self.word(28) & NOT_CONTIGUOUS != 0 {
            self.word(30 + 2 * usize::from(relative % 16)) & QUEUE
        } else {
            (self.word(30) + relative) & QUEUE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(valid: u16, bytes: &[(usize, u8)]) -> Vec<u8> {
        let mut request = vec![0; CONTEXT];
        request[..2].copy_from_slice(&valid.to_le_bytes());
        for (at, value) in bytes {
            request[*at] = *value;
        }
        request
    }

    #[test]
    fn update_keeps_sections_not_declared() {
        let mut vsi = Vsi::new(&request(0, &[(4, 1)])).unwrap();
        assert!(vsi.prunes_vlans() && !vsi.pe_filter());
        vsi.update(&request(0x80, &[(80, 1)])).unwrap();
        assert!(vsi.prunes_vlans() && vsi.pe_filter());
        vsi.update(&request(1, &[])).unwrap();
        assert!(!vsi.prunes_vlans() && vsi.pe_filter());
    }

    #[test]
    fn short_requests_change_nothing() {
        let mut vsi = Vsi::new(&request(1, &[(4, 1)])).unwrap();
        let before = vsi.clone();
        assert_eq!(vsi.update(&request(1, &[])[..100]), Err(Short));
        assert_eq!(vsi, before);
        assert!(Vsi::new(&[]).is_err());
    }

    #[test]
    fn queues_follow_the_map() {
        // First queue 4, class 0 with offset 0 and four queues.
        let vsi = Vsi::new(&request(0x40, &[(30, 4), (63, 2 << 3)])).unwrap();
        assert_eq!([0, 1, 3, 4].map(|entry| vsi.queue(entry)), [4, 5, 7, 4]);
        let scattered = request(0x40, &[(28, 1), (30, 9), (32, 2), (63, 1 << 3)]);
        let vsi = Vsi::new(&scattered).unwrap();
        assert_eq!([0, 1].map(|entry| vsi.queue(entry)), [9, 2]);
    }
}
