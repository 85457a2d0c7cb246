// SPDX-License-Identifier: GPL-2.0
//! The 16-byte transmit descriptor.

use crate::checksum::Transport;

/// What the device sets in the second word of a descriptor that asked for a report.
pub const DONE: u64 = 0xf;

/// Network header as the driver describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Not described.
    None,
    /// IPv6.
    V6,
    /// IPv4 whose checksum is complete.
    V4,
    /// IPv4 whose checksum the device inserts.
    V4Checksum,
}

/// A data descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Address of the buffer.
    pub address: u64,
    /// Its length.
    pub len: usize,
    /// Last of its frame.
    pub end: bool,
    /// The driver wants to know when it is done.
    pub report: bool,
    /// A packet that only programs a filter.
    pub dummy: bool,
    /// VLAN tag to insert.
    pub tag: Option<u16>,
    /// Network header.
    pub network: Network,
    /// Transport whose checksum the device inserts.
    pub transport: Option<Transport>,
    /// Bytes of the Ethernet header, of the outer one in a tunnel.
    pub mac_len: usize,
    /// Bytes of the network header.
    pub network_len: usize,
    /// Bytes of the transport header.
    pub transport_len: usize,
}

/// Segmentation, from a context descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segmentation {
    /// Payload bytes of a segment.
    pub mss: usize,
    /// Payload bytes in all.
    pub payload: usize,
}

/// Tunnel headers before the inner network header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// Outer network header.
    pub network: Network,
    /// Its length.
    pub network_len: usize,
    /// The outer transport is UDP.
    pub udp: bool,
    /// From the end of the outer network header to the inner one.
    pub gap: usize,
    /// The device inserts the outer UDP checksum.
    pub udp_checksum: bool,
}

/// A context descriptor: what its frame's data descriptors have no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Segmentation.
    pub segmentation: Option<Segmentation>,
    /// VLAN tag to insert.
    pub tag: Option<u16>,
    /// Tunnel.
    pub tunnel: Option<Tunnel>,
}

/// A descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptor {
    /// A piece of a frame.
    Data(Data),
    /// Precedes a frame.
    Context(Context),
    /// Programs a Flow Director filter with the frame that follows.
    Filter,
    /// A type the device does not know.
    Unknown(u8),
}

/// `width` bits of `word` from `lsb`; at most 16 wide.
fn bits(word: u64, lsb: u32, width: u32) -> u16 {
    u16::try_from(word >> lsb & ((1 << width) - 1)).unwrap_or(0)
}

/// The same as a length in units of `unit` bytes.
fn length(word: u64, lsb: u32, width: u32, unit: usize) -> usize {
    usize::from(bits(word, lsb, width)) * unit
}

impl Network {
    /// The two bits that data and context descriptors have for it.
    fn decode(bits: u16) -> Self {
        match bits {
            1 => Network::V6,
            2 => Network::V4,
            3 => Network::V4Checksum,
            _ => Network::None,
        }
    }
}

impl Descriptor {
    /// Decodes a descriptor; every bit pattern is one.
    pub fn decode(word0: u64, word1: u64) -> Self {
        match bits(word1, 0, 4) {
            0 => Descriptor::Data(Data::decode(word0, word1)),
            1 => Descriptor::Context(Context::decode(word0, word1)),
            8 => Descriptor::Filter,
            other => Descriptor::Unknown(other.to_le_bytes()[0]),
        }
    }
}

impl Data {
    fn decode(word0: u64, word1: u64) -> Self {
        let command = |bit: u32| word1 >> (4 + bit) & 1 != 0;
        Self {
            address: word0,
            len: length(word1, 34, 14, 1),
            end: command(0),
            report: command(1),
            dummy: command(4),
            tag: command(3).then(|| bits(word1, 48, 16)),
            network: Network::decode(bits(word1, 9, 2)),
            transport: match bits(word1, 12, 2) {
                1 => Some(Transport::Tcp),
                2 => Some(Transport::Sctp),
                3 => Some(Transport::Udp),
                _ => None,
            },
            mac_len: length(word1, 16, 7, 2),
            network_len: length(word1, 23, 7, 4),
            transport_len: length(word1, 30, 4, 4),
        }
    }
}

impl Context {
    fn decode(word0: u64, word1: u64) -> Self {
        let command = |bit: u32| word1 >> (4 + bit) & 1 != 0;
        let network = Network::decode(bits(word0, 0, 2));
        let payload = u32::from(bits(word1, 30, 16)) | u32::from(bits(word1, 46, 2)) << 16;
        Self {
            segmentation: command(0).then(|| Segmentation {
                mss: length(word1, 50, 14, 1),
                payload: usize::try_from(payload).unwrap_or(0),
            }),
            tag: command(2).then(|| bits(word0, 32, 16)),
            tunnel: (network != Network::None).then(|| Tunnel {
                network,
                network_len: length(word0, 2, 7, 4),
                udp: bits(word0, 9, 2) == 1,
                gap: length(word0, 12, 7, 2),
                udp_checksum: word0 >> 23 & 1 != 0,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn data_fields_lie_where_the_contract_says() {
        // EOP, RS, tag, IPv4 with checksum, TCP; 14, 20 and 32 bytes of headers; 1000 bytes.
        let command = 0x1 | 0x2 | 0x8 | 0x60 | 0x100u64;
        let word1 = command << 4 | 7 << 16 | 5 << 23 | 8 << 30 | 1000 << 34 | 0x1234 << 48;
        let expected = Data {
            address: 0xabcd,
            len: 1000,
            end: true,
            report: true,
            dummy: false,
            tag: Some(0x1234),
            network: Network::V4Checksum,
            transport: Some(Transport::Tcp),
            mac_len: 14,
            network_len: 20,
            transport_len: 32,
        };
        assert_eq!(
            Descriptor::decode(0xabcd, word1),
            Descriptor::Data(expected)
        );
    }

    #[test]
    fn context_fields_lie_where_the_contract_says() {
        let word0 = 3 | 5 << 2 | 1 << 9 | 15 << 12 | 1 << 23 | 0x0007u64 << 32;
        let word1 = 1 | (1 | 4) << 4 | 0x2_0001 << 30 | 1448 << 50;
        let expected = Context {
            segmentation: Some(Segmentation {
                mss: 1448,
                payload: 0x2_0001,
            }),
            tag: Some(7),
            tunnel: Some(Tunnel {
                network: Network::V4Checksum,
                network_len: 20,
                udp: true,
                gap: 30,
                udp_checksum: true,
            }),
        };
        assert_eq!(
            Descriptor::decode(word0, word1),
            Descriptor::Context(expected)
        );
        assert_eq!(
            Descriptor::decode(0, 1),
            Descriptor::Context(Context::default())
        );
    }

    #[test]
    fn other_types_are_told_apart() {
        assert_eq!(Descriptor::decode(0, 8), Descriptor::Filter);
        assert_eq!(Descriptor::decode(0, 15), Descriptor::Unknown(15));
    }

    proptest! {
        #[test]
        fn any_bits_decode(word0: u64, word1: u64) {
            if let Descriptor::Data(data) = Descriptor::decode(word0, word1) {
                prop_assert!(data.len < 1 << 14);
            }
        }
    }
}
