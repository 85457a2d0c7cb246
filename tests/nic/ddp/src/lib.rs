// SPDX-License-Identifier: GPL-2.0
//! Generates the Dynamic Device Personalization (DDP) package of the virtual E810.
//!
//! `ice` leaves safe mode, and offers RDMA, only after it has found a package file and downloaded
//! it. The virtual E810 classifies packets by fixed rules and needs no table from such a file, so
//! the package is the smallest one the driver accepts: one segment with one buffer with one
//! metadata section. It carries our own name and no content of Intel's.
//!
//! The layout, all words little-endian:
//!
//! ```text
//! package header | segment header | segment name | tables (empty) | buffer count | buffer (4 KiB)
//! ```

/// Version of the package. The driver of Linux 7.3 insists on 1.3; the other two numbers are free.
pub const VERSION: [u8; 4] = [1, 3, 0, 1];

/// Name of the package, as `devlink dev info` shows it.
pub const NAME: &str = "virtual E810 package";

/// Version of the package and segment formats, as the driver demands it.
const FORMAT: [u8; 4] = [1, 0, 0, 0];
/// Segment type of the E810 family.
const SEGMENT_TYPE_E810: u32 = 0x10;
/// Section type of the metadata.
const SECTION_METADATA: u32 = 1;
/// Names in segment headers are this long.
const SEGMENT_NAME_LEN: usize = 32;
/// Names in metadata sections are this long.
const PACKAGE_NAME_LEN: usize = 28;
/// The driver downloads buffers of this size.
const BUFFER_LEN: usize = 4096;
/// Bytes of a buffer before the first section: header and one section entry.
const BUFFER_HEADER_LEN: usize = 16;
/// Bytes of the package header with its one segment offset.
const PACKAGE_HEADER_LEN: usize = 12;
/// "E810" in ASCII: an identification no released package carries.
const TRACK_ID: u32 = u32::from_be_bytes(*b"E810");

/// A byte string that grows by fields.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Text padded with zeros to `len`; longer text is cut.
    fn name(self, text: &str, len: usize) -> Self {
        let end = self.0.len() + len;
        let mut next = self.bytes(text.as_bytes());
        next.0.resize(end, 0);
        next
    }
}

/// The metadata section: version, name and track id of the package.
fn metadata() -> Vec<u8> {
    Fields::default()
        .bytes(&VERSION)
        .name(NAME, PACKAGE_NAME_LEN)
        .u32(TRACK_ID)
        .0
}

/// The only buffer. Its sizes fit 16 bits by construction.
fn buffer() -> Vec<u8> {
    let metadata = metadata();
    let len = metadata.len() as u16;
    let offset = BUFFER_HEADER_LEN as u16;
    let mut buffer = Fields::default()
        .u16(1)
        .u16(offset + len)
        .u32(SECTION_METADATA)
        .u16(offset)
        .u16(len)
        .u32(0)
        .bytes(&metadata)
        .0;
    buffer.resize(BUFFER_LEN, 0);
    buffer
}

/// The only segment.
fn segment() -> Vec<u8> {
    let body = Fields::default()
        .u32(0) // devices the segment is limited to
        .u32(0) // NVM versions it is limited to
        .u32(1) // buffers
        .bytes(&buffer())
        .0;
    let header_len = 12 + SEGMENT_NAME_LEN;
    Fields::default()
        .u32(SEGMENT_TYPE_E810)
        .bytes(&FORMAT)
        .u32((header_len + body.len()) as u32)
        .name("virtual E810", SEGMENT_NAME_LEN)
        .bytes(&body)
        .0
}

/// The package file as the guest needs it under `/lib/firmware/intel/ice/ddp/`.
pub fn package() -> Vec<u8> {
    Fields::default()
        .bytes(&FORMAT)
        .u32(1)
        .u32(PACKAGE_HEADER_LEN as u32)
        .bytes(&segment())
        .0
}

/// File name under which `ice` looks first: it holds the card's serial number, so that the file
/// never stands in for a real card's. `serial` is the Device Serial Number capability's value.
pub fn file_name(serial: u64) -> String {
    format!("ice-{serial:016x}.pkg")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn u32_at(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    fn u16_at(bytes: &[u8], at: usize) -> u16 {
        u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
    }

    /// Offsets from section 7.2 of the hardware contract.
    #[test]
    fn layout_is_the_contracts() {
        let file = package();
        assert_eq!(file.len(), 4164);
        assert_eq!(file[0..4], [1, 0, 0, 0]);
        assert_eq!((u32_at(&file, 4), u32_at(&file, 8)), (1, 12));
        assert_eq!(u32_at(&file, 12), 0x10);
        assert_eq!(file[16..20], [1, 0, 0, 0]);
        assert_eq!(u32_at(&file, 20), 4152);
        assert_eq!(
            (u32_at(&file, 56), u32_at(&file, 60), u32_at(&file, 64)),
            (0, 0, 1)
        );
        assert_eq!((u16_at(&file, 68), u16_at(&file, 70)), (1, 52));
        assert_eq!(u32_at(&file, 72), 1);
        assert_eq!((u16_at(&file, 76), u16_at(&file, 78)), (16, 36));
        assert_eq!(file[84..88], VERSION);
        assert!(file[88..].starts_with(NAME.as_bytes()));
        assert!(file[120..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn names_are_cut_and_padded() {
        assert_eq!(Fields::default().name("abc", 2).0, b"ab");
        assert_eq!(Fields::default().name("a", 3).0, b"a\0\0");
    }

    #[test]
    fn file_name_is_the_drivers() {
        assert_eq!(file_name(0x0203_04ff_fe05_0607), "ice-020304fffe050607.pkg");
    }
}
