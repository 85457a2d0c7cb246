// SPDX-License-Identifier: GPL-2.0
//! Capture files. Each frame is handed to the kernel in one piece, so a file can be read while the
//! fabric runs and after it was stopped in any way.

use crate::frame::LONGEST;
use crate::lock;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, TsResolution};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

/// Gathers the pieces of a record.
#[derive(Clone, Default)]
struct Record(Arc<Mutex<Vec<u8>>>);

impl Write for Record {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        lock(&self.0).extend_from_slice(buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Open {
    file: File,
    record: Record,
    writer: PcapWriter<Record>,
}

impl Open {
    fn create(path: &Path) -> io::Result<Self> {
        let record = Record::default();
        let header = PcapHeader {
            datalink: DataLink::ETHERNET,
            ts_resolution: TsResolution::NanoSecond,
            endianness: Endianness::Little,
            snaplen: u32::try_from(LONGEST).unwrap_or(u32::MAX),
            ..PcapHeader::default()
        };
        let writer = PcapWriter::with_header(record.clone(), header).map_err(io::Error::other)?;
        let mut open = Self {
            file: File::create(path)?,
            record,
            writer,
        };
        open.hand_on()?;
        Ok(open)
    }

    fn frame(&mut self, frame: &[u8]) -> io::Result<()> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        self.writer
            .write_packet(&PcapPacket::new(now, len, frame))
            .map_err(io::Error::other)?;
        self.hand_on()
    }

    fn hand_on(&mut self) -> io::Result<()> {
        let record = std::mem::take(&mut *lock(&self.record.0));
        self.file.write_all(&record)
    }
}

/// One capture file, which may be off.
#[derive(Default)]
pub struct Capture(Mutex<Option<Open>>);

impl Capture {
    /// Starts a new file at `path`, in place of the one under way.
    pub fn start(&self, path: &Path) -> io::Result<()> {
        let open = Open::create(path)?;
        *lock(&self.0) = Some(open);
        Ok(())
    }

    /// Ends the file under way; `false` if there was none.
    pub fn stop(&self) -> bool {
        lock(&self.0).take().is_some()
    }

    /// Captures a frame. A file that cannot be written (full disk) is given up.
    pub fn frame(&self, frame: &[u8]) {
        let mut capture = lock(&self.0);
        if capture
            .as_mut()
            .is_some_and(|open| open.frame(frame).is_err())
        {
            *capture = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::pcap::PcapReader;

    fn read(path: &Path) -> Vec<Vec<u8>> {
        let mut reader = PcapReader::new(File::open(path).unwrap()).unwrap();
        assert_eq!(reader.header().datalink, DataLink::ETHERNET);
        let mut frames = Vec::new();
        while let Some(packet) = reader.next_packet() {
            frames.push(packet.unwrap().data.to_vec());
        }
        frames
    }

    #[test]
    fn readable_at_any_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.pcap");
        let capture = Capture::default();
        capture.frame(&[9; 60]);
        capture.start(&path).unwrap();
        assert!(read(&path).is_empty());
        capture.frame(&[1; 60]);
        capture.frame(&[2; 1514]);
        assert_eq!(read(&path), [vec![1; 60], vec![2; 1514]]);
        assert!(capture.stop());
        assert!(!capture.stop());
        capture.frame(&[3; 60]);
        assert_eq!(read(&path).len(), 2);
    }
}
