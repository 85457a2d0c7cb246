// SPDX-License-Identifier: GPL-2.0
//! Checksums of transport protocols, for insertion and for verification.

use crc::{Crc, CRC_32_ISCSI};
use etherparse::checksum::Sum16BitWords;

/// The CRC of SCTP.
const CRC32C: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// Addresses of the IP header under a transport header.
#[derive(Clone, Copy, Debug)]
pub enum Addresses {
    /// Source and destination.
    V4([u8; 4], [u8; 4]),
    /// Source and destination.
    V6([u8; 16], [u8; 16]),
}

/// A transport protocol with a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Transport {
    /// The protocol with an IP protocol number.
    pub fn decode(number: u8) -> Option<Self> {
        Some(match number {
            6 => Transport::Tcp,
            17 => Transport::Udp,
            132 => Transport::Sctp,
            _ => return None,
        })
    }

    /// IP protocol number.
    fn number(self) -> u8 {
        match self {
            Transport::Tcp => 6,
            Transport::Udp => 17,
            Transport::Sctp => 132,
        }
    }

    /// Where the checksum lies in the transport header.
    fn offset(self) -> usize {
        match self {
            Transport::Tcp => 16,
            Transport::Udp => 6,
            Transport::Sctp => 8,
        }
    }

    /// Sum over pseudo header and `segment`.
    fn sum(self, addresses: Addresses, segment: &[u8]) -> Sum16BitWords {
        let mut sum = Sum16BitWords::new();
        match addresses {
            Addresses::V4(source, destination) => {
                sum = sum.add_4bytes(source).add_4bytes(destination);
            }
            Addresses::V6(source, destination) => {
                sum = sum.add_16bytes(source).add_16bytes(destination);
            }
        }
        // No IP datagram is longer than 32 bits can say.
        let len = u32::try_from(segment.len()).unwrap_or(u32::MAX);
        sum.add_4bytes(len.to_be_bytes())
            .add_2bytes([0, self.number()])
            .add_slice(segment)
    }

    /// Sets the checksum of `segment`, a transport header with its payload. `None` if it is too
    /// short to have one.
    pub fn insert(self, addresses: Addresses, segment: &mut [u8]) -> Option<()> {
        let at = self.offset();
        match self {
            Transport::Tcp | Transport::Udp => {
                segment.get_mut(at..at + 2)?.fill(0);
                let sum = self.sum(addresses, segment);
                let value = if self == Transport::Udp {
                    sum.to_ones_complement_with_no_zero()
                } else {
                    sum.ones_complement()
                };
                let field = segment.get_mut(at..at + 2)?;
                field.copy_from_slice(&value.to_ne_bytes());
            }
            Transport::Sctp => {
                segment.get_mut(at..at + 4)?.fill(0);
                let crc = CRC32C.checksum(segment);
                let field = segment.get_mut(at..at + 4)?;
                field.copy_from_slice(&crc.to_le_bytes());
            }
        }
        Some(())
    }

    /// Whether the checksum of `segment` is right. A UDP datagram over IPv4 may have none.
    pub fn verify(self, addresses: Addresses, segment: &[u8]) -> bool {
        let at = self.offset();
        match self {
            Transport::Udp if segment.get(at..at + 2) == Some(&[0, 0]) => {
                matches!(addresses, Addresses::V4(..))
            }
            Transport::Tcp | Transport::Udp => {
                segment.len() >= at + 2 && self.sum(addresses, segment).ones_complement() == 0
            }
            Transport::Sctp => {
                let Some((head, rest)) = segment.split_at_checked(at) else {
                    return false;
                };
                let Some((crc, chunks)) = rest.split_at_checked(4) else {
                    return false;
                };
                let mut digest = CRC32C.digest();
                digest.update(head);
                digest.update(&[0; 4]);
                digest.update(chunks);
                digest.finalize().to_le_bytes() == crc
            }
        }
    }
}

/// Sets the checksum of an IPv4 header. `None` if it is too short to have one.
pub fn insert_ipv4(header: &mut [u8]) -> Option<()> {
    header.get_mut(10..12)?.fill(0);
    let value = Sum16BitWords::new().add_slice(header).ones_complement();
    header
        .get_mut(10..12)?
        .copy_from_slice(&value.to_ne_bytes());
    Some(())
}

/// Whether the checksum of an IPv4 header is right.
pub fn verify_ipv4(header: &[u8]) -> bool {
    Sum16BitWords::new().add_slice(header).ones_complement() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESSES: Addresses = Addresses::V4([10, 0, 0, 1], [10, 0, 0, 2]);

    #[test]
    fn inserted_checksums_verify_and_break_on_change() {
        for transport in [Transport::Tcp, Transport::Udp, Transport::Sctp] {
            for len in [20, 21, 1480] {
                let mut segment: Vec<u8> = (0..len).map(|i| i as u8).collect();
                transport.insert(ADDRESSES, &mut segment).unwrap();
                assert!(transport.verify(ADDRESSES, &segment), "{transport:?} {len}");
                *segment.last_mut().unwrap() ^= 1;
                assert!(
                    !transport.verify(ADDRESSES, &segment),
                    "{transport:?} {len}"
                );
            }
        }
    }

    /// The check value of CRC-32C, in the byte order of SCTP.
    #[test]
    fn sctp_crc_is_castagnoli() {
        assert_eq!(CRC32C.checksum(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn udp_without_checksum_is_for_ipv4_only() {
        let datagram = [0, 1, 0, 2, 0, 8, 0, 0];
        assert!(Transport::Udp.verify(ADDRESSES, &datagram));
        let v6 = Addresses::V6([1; 16], [2; 16]);
        assert!(!Transport::Udp.verify(v6, &datagram));
    }

    #[test]
    fn short_segments_have_none() {
        for transport in [Transport::Tcp, Transport::Udp, Transport::Sctp] {
            let mut segment = [1; 7];
            assert_eq!(transport.insert(ADDRESSES, &mut segment), None);
            assert!(!transport.verify(ADDRESSES, &segment));
        }
    }

    /// The example header of RFC 1071's companion texts: its checksum is 0xb861.
    #[test]
    fn ipv4_header_checksum_is_known() {
        let mut header = [
            0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0,
            0xc7,
        ];
        insert_ipv4(&mut header).unwrap();
        assert_eq!(header[10..12], [0xb8, 0x61]);
        assert!(verify_ipv4(&header));
    }
}
