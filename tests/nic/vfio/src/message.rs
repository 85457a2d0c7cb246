// SPDX-License-Identifier: GPL-2.0
//! The messages of vfio-user as types.
//!
//! A message is a 16-byte header and a payload, in the byte order of the machine (both ends are on
//! it). [`Request::decode`] checks every length before it looks; [`Reply`] builds an answer.

use thiserror::Error;

/// Bytes of a header.
pub const HEADER: usize = 16;
/// The largest transfer a client may ask for in one message.
pub const MAX_TRANSFER: usize = 1 << 20;
/// The largest message taken: a transfer, its header and the fields before the data.
pub const MAX_MESSAGE: usize = MAX_TRANSFER + 256;
/// File descriptors that may come with one message; QEMU sends no more.
pub const MAX_FDS: usize = 16;

const TYPE_MASK: u32 = 0xf;
const TYPE_COMMAND: u32 = 0;
const TYPE_REPLY: u32 = 1;
const NO_REPLY: u32 = 1 << 4;
const ERROR: u32 = 1 << 5;

/// Number of PCI regions: six BARs, ROM, configuration space, VGA.
pub const REGIONS: u32 = 9;
/// The configuration space among the regions.
pub const REGION_CONFIG: u32 = 7;
/// Number of interrupt kinds: INTx, MSI, MSI-X, error, request.
pub const INTERRUPTS: u32 = 5;
/// MSI-X among the interrupt kinds.
pub const INTERRUPT_MSIX: u32 = 2;

/// A message that cannot be understood.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    /// Shorter than its fields.
    #[error("command {command}: {have} payload bytes, {need} needed")]
    Short {
        /// The command's number.
        command: u16,
        /// Payload bytes that came.
        have: usize,
        /// Payload bytes needed.
        need: usize,
    },
    /// A transfer larger than announced at version exchange.
    #[error("command {command}: transfer of {size} bytes is too large")]
    TooLarge {
        /// The command's number.
        command: u16,
        /// Bytes asked for.
        size: usize,
    },
    /// A command this server does not have.
    #[error("command {0} is unknown")]
    Unknown(u16),
}

/// The fixed start of each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Chosen by the sender, returned in the reply.
    pub id: u16,
    /// The command's number.
    pub command: u16,
    /// Bytes of the whole message.
    pub size: u32,
    /// Kind of message and its options.
    pub flags: u32,
}

impl Header {
    /// Reads a header; total, since every bit pattern is one.
    pub fn decode(bytes: &[u8; HEADER]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = *bytes;
        Self {
            id: u16::from_ne_bytes([a, b]),
            command: u16::from_ne_bytes([c, d]),
            size: u32::from_ne_bytes([e, f, g, h]),
            flags: u32::from_ne_bytes([i, j, k, l]),
        }
    }

    /// Bytes that follow the header, or `None` if the size is impossible.
    pub fn payload_len(&self) -> Option<usize> {
        let size = usize::try_from(self.size).ok()?;
        (size <= MAX_MESSAGE).then(|| size.checked_sub(HEADER))?
    }

    /// Whether this is a command (and not a reply to one).
    pub fn is_command(&self) -> bool {
        self.flags & TYPE_MASK == TYPE_COMMAND
    }

    /// Whether the sender waits for a reply.
    pub fn wants_reply(&self) -> bool {
        self.flags & NO_REPLY == 0
    }
}

/// Takes the fields of a payload one after the other.
struct Fields<'a> {
    command: u16,
    payload: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    fn bytes(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        let end = self.at.saturating_add(n);
        let bytes = self.payload.get(self.at..end).ok_or(DecodeError::Short {
            command: self.command,
            have: self.payload.len(),
            need: end,
        })?;
        self.at = end;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_ne_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_ne_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_ne_bytes(self.array()?))
    }

    /// A count of data bytes, checked against the agreed maximum.
    fn count(&mut self) -> Result<usize, DecodeError> {
        let count = self.u32()?;
        match usize::try_from(count) {
            Ok(size) if size <= MAX_TRANSFER => Ok(size),
            _ => Err(DecodeError::TooLarge {
                command: self.command,
                size: count.try_into().unwrap_or(usize::MAX),
            }),
        }
    }

    fn rest(&mut self) -> &'a [u8] {
        let rest = self.payload.get(self.at..).unwrap_or_default();
        self.at = self.payload.len();
        rest
    }
}

/// Where a region access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Byte offset in the region.
    pub offset: u64,
    /// The region's index.
    pub region: u32,
}

/// A client's command.
#[derive(Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Version exchange; capabilities are JSON text.
    Version {
        /// Major version proposed.
        major: u16,
        /// Minor version proposed.
        minor: u16,
        /// JSON text, NUL-terminated on the wire.
        capabilities: &'a [u8],
    },
    /// Guest memory appears. A file descriptor comes along, or none if the device may not touch it.
    DmaMap {
        /// Bit 0 readable, bit 1 writable.
        flags: u32,
        /// Offset in the file.
        offset: u64,
        /// Bus address.
        address: u64,
        /// Bytes.
        size: u64,
    },
    /// Guest memory goes away.
    DmaUnmap {
        /// Bit 1: everything.
        flags: u32,
        /// Bus address.
        address: u64,
        /// Bytes.
        size: u64,
    },
    /// What the device is.
    DeviceInfo,
    /// What a region is.
    RegionInfo {
        /// The region's index.
        index: u32,
    },
    /// What an interrupt kind is.
    IrqInfo {
        /// The kind's index.
        index: u32,
    },
    /// Connects or disconnects interrupt vectors.
    SetIrqs {
        /// Kind of data and action.
        flags: u32,
        /// Interrupt kind.
        index: u32,
        /// First vector.
        start: u32,
        /// Number of vectors.
        count: u32,
    },
    /// Reads a region.
    RegionRead {
        /// Where.
        place: Place,
        /// Bytes asked for.
        count: usize,
    },
    /// Writes a region.
    RegionWrite {
        /// Where.
        place: Place,
        /// The bytes.
        data: &'a [u8],
    },
    /// Resets the device.
    Reset,
}

impl<'a> Request<'a> {
    /// Decodes the payload of the command that `header` announces.
    pub fn decode(header: &Header, payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut f = Fields {
            command: header.command,
            payload,
            at: 0,
        };
        Ok(match header.command {
            1 => Self::Version {
                major: f.u16()?,
                minor: f.u16()?,
                capabilities: f.rest(),
            },
            2 => {
                let _argsz = f.u32()?;
                let (flags, offset) = (f.u32()?, f.u64()?);
                Self::DmaMap {
                    flags,
                    offset,
                    address: f.u64()?,
                    size: f.u64()?,
                }
            }
            3 => {
                let _argsz = f.u32()?;
                Self::DmaUnmap {
                    flags: f.u32()?,
                    address: f.u64()?,
                    size: f.u64()?,
                }
            }
            4 => Self::DeviceInfo,
            5 => {
                let (_argsz, _flags) = (f.u32()?, f.u32()?);
                Self::RegionInfo { index: f.u32()? }
            }
            7 => {
                let (_argsz, _flags) = (f.u32()?, f.u32()?);
                Self::IrqInfo { index: f.u32()? }
            }
            8 => {
                let _argsz = f.u32()?;
                let (flags, index) = (f.u32()?, f.u32()?);
                Self::SetIrqs {
                    flags,
                    index,
                    start: f.u32()?,
                    count: f.u32()?,
                }
            }
            9 => {
                let place = Place {
                    offset: f.u64()?,
                    region: f.u32()?,
                };
                Self::RegionRead {
                    place,
                    count: f.count()?,
                }
            }
            10 => {
                let place = Place {
                    offset: f.u64()?,
                    region: f.u32()?,
                };
                let count = f.count()?;
                Self::RegionWrite {
                    place,
                    data: f.bytes(count)?,
                }
            }
            13 => Self::Reset,
            other => return Err(DecodeError::Unknown(other)),
        })
    }
}

/// An answer under construction.
pub struct Reply(Vec<u8>);

impl Reply {
    /// An answer to `header` without a payload yet.
    pub fn to(header: &Header) -> Self {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend_from_slice(&header.id.to_ne_bytes());
        bytes.extend_from_slice(&header.command.to_ne_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&TYPE_REPLY.to_ne_bytes());
        bytes.extend_from_slice(&[0; 4]);
        Self(bytes)
    }

    /// An answer that says the command failed with `errno`.
    pub fn error(header: &Header, errno: i32) -> Self {
        let mut reply = Self::to(header);
        reply.put(8, &(TYPE_REPLY | ERROR).to_ne_bytes());
        reply.put(12, &errno.to_ne_bytes());
        reply
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        for (to, from) in self.0.iter_mut().skip(at).zip(bytes) {
            *to = *from;
        }
    }

    /// Appends a field.
    pub fn u16(mut self, value: u16) -> Self {
        self.0.extend_from_slice(&value.to_ne_bytes());
        self
    }

    /// Appends a field.
    pub fn u32(mut self, value: u32) -> Self {
        self.0.extend_from_slice(&value.to_ne_bytes());
        self
    }

    /// Appends a field.
    pub fn u64(mut self, value: u64) -> Self {
        self.0.extend_from_slice(&value.to_ne_bytes());
        self
    }

    /// Appends bytes.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Appends `count` zero bytes and lets `fill` write them.
    pub fn filled(mut self, count: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        let at = self.0.len();
        self.0.resize(at.saturating_add(count), 0);
        if let Some(data) = self.0.get_mut(at..) {
            fill(data);
        }
        self
    }

    /// The finished message.
    pub fn finish(mut self) -> Vec<u8> {
        let size = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.put(4, &size.to_ne_bytes());
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(command: u16) -> Header {
        Header {
            id: 7,
            command,
            size: 0,
            flags: 0,
        }
    }

    #[test]
    fn lengths_at_the_boundary() {
        // Payload bytes each command needs; one fewer is refused.
        let table: [(u16, usize); 8] = [
            (1, 4),
            (2, 32),
            (3, 24),
            (5, 12),
            (7, 12),
            (8, 20),
            (9, 16),
            (10, 16),
        ];
        for (command, need) in table {
            let payload = vec![0; need];
            assert!(
                Request::decode(&header(command), &payload).is_ok(),
                "command {command}"
            );
            let short = Request::decode(&header(command), &payload[1..]);
            assert!(
                matches!(short, Err(DecodeError::Short { .. })),
                "command {command}"
            );
        }
        assert_eq!(Request::decode(&header(4), &[]), Ok(Request::DeviceInfo));
        assert_eq!(Request::decode(&header(13), &[]), Ok(Request::Reset));
        assert_eq!(
            Request::decode(&header(99), &[]),
            Err(DecodeError::Unknown(99))
        );
    }

    #[test]
    fn write_carries_its_data() {
        let mut payload = 0x500800u64.to_ne_bytes().to_vec();
        payload.extend_from_slice(&0u32.to_ne_bytes());
        payload.extend_from_slice(&4u32.to_ne_bytes());
        payload.extend_from_slice(&[1, 2, 3, 4]);
        let place = Place {
            offset: 0x500800,
            region: 0,
        };
        assert_eq!(
            Request::decode(&header(10), &payload),
            Ok(Request::RegionWrite {
                place,
                data: &[1, 2, 3, 4]
            })
        );
        assert!(Request::decode(&header(10), &payload[..19]).is_err());
    }

    #[test]
    fn oversized_transfer_is_refused() {
        let mut payload = vec![0; 12];
        payload.extend_from_slice(&(MAX_TRANSFER as u32 + 1).to_ne_bytes());
        let err = Request::decode(&header(9), &payload);
        assert_eq!(
            err,
            Err(DecodeError::TooLarge {
                command: 9,
                size: MAX_TRANSFER + 1
            })
        );
    }

    #[test]
    fn sizes_of_messages() {
        let sized = |size| {
            Header {
                id: 0,
                command: 4,
                size,
                flags: 0,
            }
            .payload_len()
        };
        assert_eq!(sized(15), None);
        assert_eq!(sized(16), Some(0));
        assert_eq!(sized(MAX_MESSAGE as u32), Some(MAX_MESSAGE - HEADER));
        assert_eq!(sized(MAX_MESSAGE as u32 + 1), None);
    }

    #[test]
    fn replies_name_their_command() {
        let reply = Reply::to(&header(4)).u32(5).u16(6).bytes(&[9]).finish();
        let mut start = [0; HEADER];
        start.copy_from_slice(&reply[..HEADER]);
        let decoded = Header::decode(&start);
        assert_eq!((decoded.id, decoded.command, decoded.size), (7, 4, 23));
        assert!(!decoded.is_command());
        let error = Reply::error(&header(4), 22).finish();
        assert_eq!((error.len(), error[8], error[12]), (16, 0x21, 22));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_without_panic(head in any::<[u8; HEADER]>(), payload in prop::collection::vec(any::<u8>(), 0..96)) {
            let mut header = Header::decode(&head);
            let _ = header.payload_len();
            for command in 0..20 {
                header.command = command;
                if let Ok(Request::RegionWrite { data, .. }) = Request::decode(&header, &payload) {
                    prop_assert!(data.len() + 16 <= payload.len());
                }
            }
        }
    }
}
