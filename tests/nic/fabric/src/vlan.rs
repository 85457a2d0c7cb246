// SPDX-License-Identifier: GPL-2.0
//! Which VLANs a port carries, and in what form.
//!
//! A transparent port takes and gives frames as they are: untagged ones belong to VLAN 0, tagged ones
//! to that of their tag. Any other port has, like one of a managed switch, at most one VLAN whose
//! frames are untagged on its link, and a list of those whose frames are tagged.

use crate::frame::Frame;
use crate::view::VLAN_ID;
use std::collections::BTreeSet;

/// Bytes of a tag.
const TAG: usize = 4;
/// Where it goes.
const AT: usize = 12;

/// The VLANs of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Vlans {
    /// All, as they are.
    #[default]
    Transparent,
    /// These only.
    Only {
        /// The one whose frames are untagged.
        untagged: Option<u16>,
        /// Those whose frames are tagged.
        tagged: BTreeSet<u16>,
    },
}

impl Vlans {
    /// The VLAN that a frame with this tag belongs to; `None` if the port does not take it.
    pub fn of_tag(&self, tag: Option<u16>) -> Option<u16> {
        let vlan = tag.map_or(0, |tag| tag & VLAN_ID);
        match self {
            Self::Transparent => Some(vlan),
            Self::Only { untagged, tagged } => match vlan {
                // Untagged, or tagged with a priority only.
                0 => *untagged,
                vlan => (*untagged == Some(vlan) || tagged.contains(&vlan)).then_some(vlan),
            },
        }
    }

    /// Whether the port carries a VLAN.
    pub fn carries(&self, vlan: u16) -> bool {
        match self {
            Self::Transparent => true,
            Self::Only { untagged, tagged } => *untagged == Some(vlan) || tagged.contains(&vlan),
        }
    }

    /// A frame of `vlan` in the form it has on this port's link.
    pub fn shape(&self, vlan: u16, tag: Option<u16>, frame: &Frame) -> Frame {
        let wants_tag = match self {
            Self::Transparent if vlan == 0 => return frame.clone(),
            Self::Transparent => true,
            Self::Only { untagged, .. } => *untagged != Some(vlan),
        };
        match (wants_tag, tag) {
            (true, Some(tag)) if tag & VLAN_ID == vlan => frame.clone(),
            (false, None) => frame.clone(),
            (true, Some(tag)) => with_tag(&without_tag(frame), tag & !VLAN_ID | vlan),
            (true, None) => with_tag(frame, vlan),
            (false, Some(_)) => without_tag(frame).into(),
        }
    }
}

fn without_tag(frame: &[u8]) -> Vec<u8> {
    let mut bytes = frame.to_vec();
    if bytes.len() >= AT + TAG {
        bytes.drain(AT..AT + TAG);
    }
    // What is shorter than a frame may be is padded again.
    bytes.resize(bytes.len().max(crate::frame::SHORTEST), 0);
    bytes
}

fn with_tag(frame: &[u8], tag: u16) -> Frame {
    let [high, low] = tag.to_be_bytes();
    let mut bytes = frame.to_vec();
    if bytes.len() >= AT {
        bytes.splice(AT..AT, [0x81, 0, high, low]);
    }
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(untagged: Option<u16>, tagged: &[u16]) -> Vlans {
        Vlans::Only {
            untagged,
            tagged: tagged.iter().copied().collect(),
        }
    }

    fn frame(tag: Option<u16>) -> Frame {
        let mut bytes: Vec<u8> = (0..60).collect();
        if let Some(tag) = tag {
            let [high, low] = tag.to_be_bytes();
            bytes.splice(12..12, [0x81, 0, high, low]);
        }
        bytes.into()
    }

    #[test]
    fn ports_take_what_they_carry() {
        let port = only(Some(5), &[7]);
        for (tag, vlan) in [
            (None, Some(5)),
            (Some(0xe000), Some(5)),
            (Some(5), Some(5)),
            (Some(0x6007), Some(7)),
            (Some(8), None),
        ] {
            assert_eq!(port.of_tag(tag), vlan, "{tag:?}");
        }
        assert_eq!(only(None, &[7]).of_tag(None), None);
        assert_eq!(Vlans::Transparent.of_tag(Some(0x6007)), Some(7));
        assert!(port.carries(7) && !port.carries(0) && Vlans::Transparent.carries(9));
    }

    #[test]
    fn frames_change_form_between_ports() {
        let port = only(Some(5), &[7]);
        let cases = [
            (5, None, frame(None)),
            (5, Some(0x6005), frame(None)),
            (7, Some(0x6007), frame(Some(0x6007))),
            (7, None, frame(Some(7))),
        ];
        for (vlan, tag, expected) in cases {
            assert_eq!(
                port.shape(vlan, tag, &frame(tag)),
                expected,
                "{vlan} {tag:?}"
            );
        }
        let all = Vlans::Transparent;
        assert_eq!(all.shape(5, None, &frame(None)), frame(Some(5)));
        assert_eq!(
            all.shape(5, Some(0xe000), &frame(Some(0xe000))),
            frame(Some(0xe005))
        );
        assert_eq!(
            all.shape(0, Some(0xe000), &frame(Some(0xe000))),
            frame(Some(0xe000))
        );
    }
}
