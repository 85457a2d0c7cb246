// SPDX-License-Identifier: GPL-2.0
//! Generates the Dynamic Device Personalization (DDP) package of the virtual E810.
//!
//! `ice` leaves safe mode, and offers RDMA, only after it has found a package file and downloaded
//! it. The virtual E810 classifies packets by fixed rules and needs no table from such a file, so
//! the package is hardly more than the driver insists on: one segment with one buffer. In it are
//! the metadata, and places for the UDP ports of tunnels with the labels by which the driver finds
//! them: without any, it offers the kernel an empty port table, which the kernel warns of. The
//! package carries our own name and no content of Intel's.
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
/// Section type of the receive parser's boost TCAM, which holds the ports of tunnels.
const SECTION_BOOST_TCAM: u32 = 56;
/// Section type of that TCAM's labels. No buffer may start with it: the download would end there.
const SECTION_BOOST_LABELS: u32 = 0x8000_0018;
/// Bytes of an entry of the boost TCAM. The driver fills in a port and nothing else is read.
const BOOST_ENTRY_LEN: usize = 88;
/// Bytes of a label's text.
const LABEL_LEN: usize = 64;
/// Labels of the entries, by kind of tunnel and function. There are two ports for each kind.
const LABELS: [&str; 4] = [
    "TNL_VXLAN_PF0",
    "TNL_VXLAN_PF0",
    "TNL_GENEVE_PF0",
    "TNL_GENEVE_PF0",
];
/// Names in segment headers are this long.
const SEGMENT_NAME_LEN: usize = 32;
/// Names in metadata sections are this long.
const PACKAGE_NAME_LEN: usize = 28;
/// The driver downloads buffers of this size.
const BUFFER_LEN: usize = 4096;
/// Bytes of a buffer before its section entries: their number and the end of the data.
const BUFFER_HEADER_LEN: usize = 4;
/// Bytes of a section entry: type, offset, size.
const SECTION_ENTRY_LEN: usize = 8;
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

/// The boost TCAM: entries with their addresses and without a port.
fn boost_tcam() -> Vec<u8> {
    let mut section = Fields::default().u16(LABELS.len() as u16).u16(0);
    for address in 0..LABELS.len() as u16 {
        section = section
            .u16(address)
            .bytes(&[0; BOOST_ENTRY_LEN - size_of::<u16>()]);
    }
    section.0
}

/// The labels: which entry is for what.
fn boost_labels() -> Vec<u8> {
    let mut section = Fields::default().u16(LABELS.len() as u16);
    for (address, label) in (0..).zip(LABELS) {
        section = section.u16(address).name(label, LABEL_LEN);
    }
    section.0
}

/// The only buffer: section entries, then the sections. All sizes fit 16 bits by construction.
fn buffer() -> Vec<u8> {
    let sections = [
        (SECTION_METADATA, metadata()),
        (SECTION_BOOST_TCAM, boost_tcam()),
        (SECTION_BOOST_LABELS, boost_labels()),
    ];
    let mut offset = BUFFER_HEADER_LEN + SECTION_ENTRY_LEN * sections.len();
    let mut entries = Fields::default();
    let mut data = Fields::default();
    for (kind, section) in &sections {
        entries = entries
            .u32(*kind)
            .u16(offset as u16)
            .u16(section.len() as u16);
        data = data.bytes(section);
        offset += section.len();
    }
    let mut buffer = Fields::default()
        .u16(sections.len() as u16)
        .u16(offset as u16)
        .bytes(&entries.0)
        .bytes(&data.0)
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
    }

    /// Each section lies behind the other and inside the buffer; the first is the metadata.
    #[test]
    fn sections_fill_the_buffer() {
        let buffer = &package()[68..];
        assert_eq!(buffer.len(), 4096);
        let mut end = 4 + 8 * 3;
        for (index, kind) in [1, 56, 0x8000_0018].into_iter().enumerate() {
            let entry = 4 + 8 * index;
            assert_eq!(u32_at(buffer, entry), kind);
            assert_eq!(usize::from(u16_at(buffer, entry + 4)), end);
            end += usize::from(u16_at(buffer, entry + 6));
        }
        assert_eq!(
            (u16_at(buffer, 0), usize::from(u16_at(buffer, 2))),
            (3, end)
        );
        assert!(buffer[end..].iter().all(|byte| *byte == 0));
        let metadata = &buffer[usize::from(u16_at(buffer, 8))..];
        assert_eq!(metadata[..4], VERSION);
        assert!(metadata[4..].starts_with(NAME.as_bytes()));
    }

    /// Every label names the address of an entry.
    #[test]
    fn labels_name_entries() {
        let (tcam, labels) = (boost_tcam(), boost_labels());
        assert_eq!((u16_at(&tcam, 0), u16_at(&labels, 0)), (4, 4));
        assert_eq!((tcam.len(), labels.len()), (4 + 4 * 88, 2 + 4 * 66));
        for index in 0..4 {
            let label = 2 + 66 * index;
            assert_eq!(u16_at(&labels, label), u16_at(&tcam, 4 + 88 * index));
            assert!(labels[label + 2..].starts_with(b"TNL_"));
        }
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
