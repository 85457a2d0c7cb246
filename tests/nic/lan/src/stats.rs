// SPDX-License-Identifier: GPL-2.0
//! Statistics registers of the port and of the VSIs (section 11 of the hardware contract). Counters
//! only grow: the driver takes a smaller value for a wrap.

use crate::command::FUNCTION_VSIS;
use crate::frame::Header;
use crate::switch::Class;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the wire to the guest.
    Receive,
    /// From the guest to the wire.
    Transmit,
}

/// Bytes of the frame check sequence, which the port counts.
const FCS: usize = 4;
/// Longest frames of the size classes but the last, with FCS.
const SIZES: [usize; 6] = [64, 127, 255, 511, 1023, 1522];
/// Registers are 40 bits wide.
const WIDTH: u64 = (1 << 40) - 1;

/// Counts one.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Counters of one direction.
#[derive(Default)]
struct Traffic {
    bytes: AtomicU64,
    unicast: AtomicU64,
    multicast: AtomicU64,
    broadcast: AtomicU64,
}

impl Traffic {
    fn count(&self, header: &Header, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(0);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        match Class::of(header.destination) {
            Class::Unicast => &self.unicast,
            Class::Multicast => &self.multicast,
            Class::Broadcast => &self.broadcast,
        }
        .fetch_add(1, Ordering::Relaxed);
    }
}

/// Counters of the port.
#[derive(Default)]
struct Port {
    receive: Traffic,
    receive_sizes: [AtomicU64; 7],
    transmit: Traffic,
    transmit_sizes: [AtomicU64; 7],
    transmit_dropped_link_down: AtomicU64,
}

/// Counters of a VSI.
#[derive(Default)]
struct Vsi {
    receive: Traffic,
    receive_discarded: AtomicU64,
    transmit: Traffic,
    transmit_errors: AtomicU64,
}

/// Chooses a counter.
type Pick = fn(&Vsi) -> &AtomicU64;

/// What the device did with frames beyond moving them; no register shows it.
#[derive(Default)]
pub struct Offloads {
    /// Frames that were cut into segments.
    pub segmented: AtomicU64,
    /// Frames whose checksums were inserted.
    pub checksums: AtomicU64,
    /// Received frames with a wrong checksum.
    pub bad_checksums: AtomicU64,
    /// Frames into which a VLAN tag was inserted.
    pub tags_inserted: AtomicU64,
    /// Received frames out of which a VLAN tag was taken.
    pub tags_stripped: AtomicU64,
}

/// All counters.
pub struct Stats {
    /// Work of the offloads.
    pub offloads: Offloads,
    port: Port,
    vsis: Vec<Vsi>,
}

impl Stats {
    /// Counters at zero.
    pub fn new() -> Self {
        Self {
            offloads: Offloads::default(),
            port: Port::default(),
            vsis: (0..FUNCTION_VSIS).map(|_| Vsi::default()).collect(),
        }
    }

    /// Counts a frame of `len` bytes at the port.
    pub fn port(&self, direction: Direction, header: &Header, len: usize) {
        let (traffic, sizes) = match direction {
            Direction::Receive => (&self.port.receive, &self.port.receive_sizes),
            Direction::Transmit => (&self.port.transmit, &self.port.transmit_sizes),
        };
        let len = len + FCS;
        traffic.count(header, len);
        let class = SIZES.iter().take_while(|size| len > **size).count();
        if let Some(size) = sizes.get(class) {
            size.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a frame of a VSI.
    pub fn vsi(&self, number: u16, direction: Direction, header: &Header, len: usize) {
        if let Some(vsi) = self.vsis.get(usize::from(number)) {
            match direction {
                Direction::Receive => &vsi.receive,
                Direction::Transmit => &vsi.transmit,
            }
            .count(header, len);
        }
    }

    /// Counts a frame for which a VSI had no buffer.
    pub fn receive_discarded(&self, number: u16) {
        if let Some(vsi) = self.vsis.get(usize::from(number)) {
            vsi.receive_discarded.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a frame that a VSI should not have sent.
    pub fn transmit_error(&self, number: u16) {
        if let Some(vsi) = self.vsis.get(usize::from(number)) {
            vsi.transmit_errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a frame dropped because the link is down.
    pub fn link_down(&self) {
        self.port
            .transmit_dropped_link_down
            .fetch_add(1, Ordering::Relaxed);
    }

    /// Value of the statistics register at `offset`, the low half's of 40-bit ones. Those the model
    /// does not count read 0.
    pub fn read(&self, offset: u32) -> u64 {
        self.port_register(offset)
            .or_else(|| self.vsi_register(offset))
            .map_or(0, |counter| counter.load(Ordering::Relaxed) & WIDTH)
    }

    /// Value of the 32-bit register at `offset`, which may be the high half of a 40-bit one.
    pub fn read32(&self, offset: u32) -> u32 {
        const PAIRED: [std::ops::Range<u32>; 3] = [
            0x38_0000..0x38_13c0,
            0x30_0000..0x31_2000,
            0x3b_0000..0x3c_0000,
        ];
        let high = offset % 8 == 4 && PAIRED.iter().any(|range| range.contains(&offset));
        let value = if high {
            self.read(offset - 4) >> 32
        } else {
            self.read(offset)
        };
        // Both halves fit by construction.
        u32::try_from(value & u64::from(u32::MAX)).unwrap_or(0)
    }

    fn port_register(&self, offset: u32) -> Option<&AtomicU64> {
        let port = &self.port;
        Some(match offset {
            0x38_0000 => &port.receive.bytes,
            0x38_1300 => &port.receive.unicast,
            0x38_1340 => &port.receive.multicast,
            0x38_1380 => &port.receive.broadcast,
            0x38_0b40 => &port.transmit.bytes,
            0x38_11c0 => &port.transmit.unicast,
            0x38_1200 => &port.transmit.multicast,
            0x38_1240 => &port.transmit.broadcast,
            0x38_1280 => &port.transmit_dropped_link_down,
            0x38_0900..=0x38_0a80 => size_register(&port.receive_sizes, offset - 0x38_0900)?,
            0x38_0b80..=0x38_0d00 => size_register(&port.transmit_sizes, offset - 0x38_0b80)?,
            _ => return None,
        })
    }

    fn vsi_register(&self, offset: u32) -> Option<&AtomicU64> {
        let at = |base: u32, step: u32| {
            let distance = offset.checked_sub(base)?;
            let index = usize::try_from(distance / step).ok()?;
            self.vsis.get(index).filter(|_| distance % step == 0)
        };
        let registers: [(u32, Pick); 8] = [
            (0x3b_0000, |vsi| &vsi.receive.bytes),
            (0x3b_2000, |vsi| &vsi.receive.unicast),
            (0x3b_4000, |vsi| &vsi.receive.multicast),
            (0x3b_6000, |vsi| &vsi.receive.broadcast),
            (0x30_0000, |vsi| &vsi.transmit.bytes),
            (0x30_a000, |vsi| &vsi.transmit.unicast),
            (0x30_c000, |vsi| &vsi.transmit.multicast),
            (0x30_e000, |vsi| &vsi.transmit.broadcast),
        ];
        registers
            .into_iter()
            .find_map(|(base, counter)| at(base, 8).map(counter))
            .or_else(|| at(0x29_4c04, 4).map(|vsi| &vsi.receive_discarded))
            .or_else(|| at(0x31_2000, 4).map(|vsi| &vsi.transmit_errors))
    }
}

/// The counter of a size class; the registers of a class are 64 bytes apart.
fn size_register(sizes: &[AtomicU64; 7], distance: u32) -> Option<&AtomicU64> {
    sizes
        .get(usize::try_from(distance / 64).ok()?)
        .filter(|_| distance % 64 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(destination: [u8; 6]) -> Header {
        Header {
            destination,
            vlan: None,
            ether_type: 0x800,
            len: 14,
        }
    }

    #[test]
    fn frames_are_counted_where_the_driver_looks() {
        let stats = Stats::new();
        for (len, class) in [
            (60, 0x00),
            (61, 0x40),
            (1518, 0x140),
            (1519, 0x180),
            (9000, 0x180),
        ] {
            let before = stats.read(0x38_0900 + class);
            stats.port(Direction::Receive, &header([2; 6]), len);
            assert_eq!(stats.read(0x38_0900 + class), before + 1, "{len}");
        }
        stats.port(Direction::Transmit, &header([0xff; 6]), 60);
        assert_eq!((stats.read(0x38_0b40), stats.read(0x38_1240)), (64, 1));
        assert_eq!(stats.read(0x38_1300), 5);
    }

    #[test]
    fn vsis_are_counted_apart() {
        let stats = Stats::new();
        stats.vsi(2, Direction::Receive, &header([1; 6]), 100);
        stats.receive_discarded(1);
        assert_eq!(stats.read(0x3b_0000 + 16), 100);
        assert_eq!((stats.read(0x3b_4000 + 16), stats.read(0x3b_4000)), (1, 0));
        assert_eq!((stats.read(0x29_4c08), stats.read(0x29_4c04)), (1, 0));
    }

    #[test]
    fn unknown_offsets_read_zero() {
        let stats = Stats::new();
        for offset in [0, 0x38_0044, 0x38_0904, 0x3b_0004, u32::MAX] {
            assert_eq!(stats.read(offset), 0);
        }
    }
}
