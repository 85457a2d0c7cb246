// SPDX-License-Identifier: GPL-2.0
//! Transmit offloads: checksums, segmentation of TCP and UDP, VLAN insertion, tunnels.
//!
//! The device works on the header lengths that the descriptors state, as the card does; it reads
//! the headers themselves only to change them. What does not fit together is an error and the
//! frame is lost.

use super::assembly::Job;
use super::descriptor::{Network, Segmentation, Tunnel};
use crate::checksum::{self, Addresses, Transport};
use crate::frame;

/// Smallest payload of a segment that the card accepts.
const MIN_MSS: usize = 64;

/// Flags of TCP.
const FIN: u8 = 1 << 0;
const PSH: u8 = 1 << 3;
const CWR: u8 = 1 << 7;

/// Why a frame is lost.
pub type Reason = &'static str;

/// Where the headers lie and what they are.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Start of the outer network header; of the only one without a tunnel.
    outer: usize,
    /// Outer headers.
    tunnel: Option<Tunnel>,
    /// Start of the network header.
    network_at: usize,
    /// Network header.
    network: Network,
    /// Start of the transport header.
    transport_at: usize,
    /// Transport, if its checksum is to be inserted.
    transport: Option<Transport>,
}

/// Carries out a job's offloads: the frames to send, in order.
pub fn finish(job: Job) -> Result<Vec<Vec<u8>>, Reason> {
    let first = job.first;
    let tunnel = job.context.tunnel;
    let inner = tunnel.map_or(0, |tunnel| tunnel.network_len + tunnel.gap);
    let layout = Layout {
        outer: first.mac_len,
        tunnel,
        network_at: first.mac_len + inner,
        network: first.network,
        transport_at: first.mac_len + inner + first.network_len,
        transport: first.transport,
    };
    let mut frames = match job.context.segmentation {
        None => vec![layout.complete(job.frame)?],
        Some(segmentation) => {
            let header = layout.transport_at + first.transport_len;
            layout.segment(job.frame, header, segmentation)?
        }
    };
    if let Some(tag) = first.tag.or(job.context.tag) {
        for frame in &mut frames {
            frame::insert_tag(frame, tag);
        }
    }
    Ok(frames)
}

/// Big-endian 16-bit word at `at`.
fn word(frame: &[u8], at: usize) -> Result<u16, Reason> {
    match frame.get(at..).unwrap_or_default() {
        [high, low, ..] => Ok(u16::from_be_bytes([*high, *low])),
        _ => Err("header is cut off"),
    }
}

/// Stores big-endian bytes at `at`.
fn put(frame: &mut [u8], at: usize, bytes: &[u8]) -> Result<(), Reason> {
    frame
        .get_mut(at..at + bytes.len())
        .ok_or("header is cut off")?
        .copy_from_slice(bytes);
    Ok(())
}

/// A length that has to fit a 16-bit field.
fn length(len: usize) -> Result<[u8; 2], Reason> {
    u16::try_from(len)
        .map(u16::to_be_bytes)
        .map_err(|_| "datagram is longer than its length field can say")
}

/// Header length and end of the IP datagram at `at`, as the header states them.
fn datagram(frame: &[u8], at: usize, network: Network) -> Result<(usize, usize), Reason> {
    let version = frame.get(at).ok_or("header is cut off")? >> 4;
    let (header, end) = match (network, version) {
        (Network::V4 | Network::V4Checksum, 4) => {
            let words = frame.get(at).map_or(0, |byte| byte & 0xf);
            let header = 4 * usize::from(words);
            (header.max(20), at + usize::from(word(frame, at + 2)?))
        }
        (Network::V6, 6) => (40, at + 40 + usize::from(word(frame, at + 4)?)),
        _ => return Err("network header is not of the stated version"),
    };
    if end > frame.len() || end < at + header {
        return Err("datagram does not fit the frame");
    }
    Ok((header, end))
}

/// Addresses of the IP header at `at`.
fn addresses(frame: &[u8], at: usize, network: Network) -> Result<Addresses, Reason> {
    let cut_off = "header is cut off";
    let bytes = frame.get(at..).ok_or(cut_off)?;
    if network == Network::V6 {
        let source = bytes.get(8..24).and_then(|bytes| bytes.try_into().ok());
        let destination = bytes.get(24..40).and_then(|bytes| bytes.try_into().ok());
        source
            .zip(destination)
            .map(|(source, destination)| Addresses::V6(source, destination))
            .ok_or(cut_off)
    } else {
        let source = bytes.get(12..16).and_then(|bytes| bytes.try_into().ok());
        let destination = bytes.get(16..20).and_then(|bytes| bytes.try_into().ok());
        source
            .zip(destination)
            .map(|(source, destination)| Addresses::V4(source, destination))
            .ok_or(cut_off)
    }
}

/// Sets the length of the IP datagram at `at` that ends with the frame, and moves an IPv4
/// identification on by `index`.
fn set_length(frame: &mut [u8], at: usize, network: Network, index: u16) -> Result<(), Reason> {
    let len = frame.len().checked_sub(at).ok_or("header is cut off")?;
    match network {
        Network::V6 => put(frame, at + 4, &length(len.saturating_sub(40))?),
        Network::V4 | Network::V4Checksum => {
            put(frame, at + 2, &length(len)?)?;
            let id = word(frame, at + 4)?.wrapping_add(index);
            put(frame, at + 4, &id.to_be_bytes())
        }
        Network::None => Ok(()),
    }
}

/// Inserts the header checksum of the IPv4 datagram at `at`.
fn insert_ipv4(frame: &mut [u8], at: usize, network: Network) -> Result<(), Reason> {
    let (header, _) = datagram(frame, at, network)?;
    frame
        .get_mut(at..at + header)
        .and_then(checksum::insert_ipv4)
        .ok_or("header is cut off")
}

impl Layout {
    /// Inserts the checksums the descriptors ask for, the inner ones first: the outer UDP checksum
    /// covers them.
    fn complete(&self, mut frame: Vec<u8>) -> Result<Vec<u8>, Reason> {
        if self.network == Network::V4Checksum {
            insert_ipv4(&mut frame, self.network_at, self.network)?;
        }
        if let Some(transport) = self.transport {
            self.insert(&mut frame, transport)?;
        }
        if let Some(tunnel) = self.tunnel {
            if tunnel.network == Network::V4Checksum {
                insert_ipv4(&mut frame, self.outer, tunnel.network)?;
            }
            if tunnel.udp && tunnel.udp_checksum {
                let outer = Layout {
                    network_at: self.outer,
                    network: tunnel.network,
                    transport_at: self.outer + tunnel.network_len,
                    ..*self
                };
                outer.insert(&mut frame, Transport::Udp)?;
            }
        }
        Ok(frame)
    }

    /// Inserts the checksum of the transport header in this layout.
    fn insert(&self, frame: &mut [u8], transport: Transport) -> Result<(), Reason> {
        let (_, end) = datagram(frame, self.network_at, self.network)?;
        let addresses = addresses(frame, self.network_at, self.network)?;
        frame
            .get_mut(self.transport_at..end)
            .and_then(|segment| transport.insert(addresses, segment))
            .ok_or("transport header is cut off")
    }

    /// Splits a frame with `header` bytes of headers into segments.
    fn segment(
        &self,
        mut frame: Vec<u8>,
        header: usize,
        Segmentation { mss, payload }: Segmentation,
    ) -> Result<Vec<Vec<u8>>, Reason> {
        let transport = match self.transport {
            Some(transport @ (Transport::Tcp | Transport::Udp)) => transport,
            _ => return Err("segmentation is for TCP and UDP"),
        };
        if self.network == Network::None {
            return Err("segmentation without a network header");
        }
        if mss < MIN_MSS {
            return Err("segments are shorter than 64 bytes");
        }
        if frame.len() != header + payload || payload == 0 {
            return Err("payload is not as long as stated");
        }
        let payload = frame.split_off(header);
        let count = payload.len().div_ceil(mss);
        let mut frames = Vec::with_capacity(count);
        let mut sequence: u32 = 0;
        for (index, piece) in (0u16..).zip(payload.chunks(mss)) {
            let mut segment = Vec::with_capacity(header + piece.len() + 4);
            segment.extend_from_slice(&frame);
            segment.extend_from_slice(piece);
            let last = usize::from(index) + 1 == count;
            self.renumber(&mut segment, transport, index, last, sequence)?;
            frames.push(self.complete_segment(segment)?);
            // A payload is shorter than 2^18 bytes.
            sequence = sequence.wrapping_add(u32::try_from(piece.len()).unwrap_or(0));
        }
        Ok(frames)
    }

    /// Adjusts the headers of segment `index`, whose payload starts `sequence` bytes into the whole.
    fn renumber(
        &self,
        segment: &mut [u8],
        transport: Transport,
        index: u16,
        last: bool,
        sequence: u32,
    ) -> Result<(), Reason> {
        if let Some(tunnel) = self.tunnel {
            set_length(segment, self.outer, tunnel.network, index)?;
            if tunnel.udp {
                let at = self.outer + tunnel.network_len;
                let len = segment.len().saturating_sub(at);
                put(segment, at + 4, &length(len)?)?;
            }
        }
        set_length(segment, self.network_at, self.network, index)?;
        let at = self.transport_at;
        match transport {
            Transport::Tcp => {
                let high = u32::from(word(segment, at + 4)?);
                let low = u32::from(word(segment, at + 6)?);
                let number = (high << 16 | low).wrapping_add(sequence);
                put(segment, at + 4, &number.to_be_bytes())?;
                let flags = segment.get_mut(at + 13).ok_or("header is cut off")?;
                if !last {
                    *flags &= !(FIN | PSH);
                }
                if index > 0 {
                    *flags &= !CWR;
                }
                Ok(())
            }
            Transport::Udp | Transport::Sctp => {
                let len = segment.len().saturating_sub(at);
                put(segment, at + 4, &length(len)?)
            }
        }
    }

    /// Completes a segment. Its IPv4 length has changed, so its checksum has, too.
    fn complete_segment(&self, segment: Vec<u8>) -> Result<Vec<u8>, Reason> {
        let renewed = |network| match network {
            Network::V4 => Network::V4Checksum,
            other => other,
        };
        Layout {
            network: renewed(self.network),
            tunnel: self.tunnel.map(|tunnel| Tunnel {
                network: renewed(tunnel.network),
                ..tunnel
            }),
            ..*self
        }
        .complete(segment)
    }
}

#[cfg(test)]
mod tests;
