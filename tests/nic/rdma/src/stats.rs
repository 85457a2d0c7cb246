// SPDX-License-Identifier: GPL-2.0
//! The counters that GATHER_STATS hands to the driver.

use crate::bits::{bits, bytes, Field};
use crate::ip::Ip;

/// Bytes of the image.
const IMAGE_WORDS: usize = 128;

/// Packets and bytes of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) packets: u64,
    pub(crate) octets: u64,
}

impl Flow {
    fn add(&mut self, octets: u64) {
        self.packets = self.packets.wrapping_add(1);
        self.octets = self.octets.wrapping_add(octets);
    }
}

/// One family and direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IpStats {
    pub(crate) all: Flow,
    pub(crate) multicast: Flow,
    /// Received and thrown away.
    pub(crate) discards: u64,
    /// Sent without a destination MAC.
    pub(crate) no_route: u64,
}

impl IpStats {
    fn add(&mut self, octets: u64, multicast: bool) {
        self.all.add(octets);
        if multicast {
            self.multicast.add(octets);
        }
    }
}

/// All counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stats {
    pub(crate) rx4: IpStats,
    pub(crate) rx6: IpStats,
    pub(crate) tx4: IpStats,
    pub(crate) tx6: IpStats,
    pub(crate) udp_rx: u64,
    pub(crate) udp_tx: u64,
    pub(crate) sends_rx: u64,
    pub(crate) sends_tx: u64,
}

impl Stats {
    fn rx(&mut self, ip: Ip) -> &mut IpStats {
        match ip {
            Ip::V4(_) => &mut self.rx4,
            Ip::V6(_) => &mut self.rx6,
        }
    }

    fn tx(&mut self, ip: Ip) -> &mut IpStats {
        match ip {
            Ip::V4(_) => &mut self.tx4,
            Ip::V6(_) => &mut self.tx6,
        }
    }

    /// A packet to `destination` with `octets` bytes of IP came in.
    pub(crate) fn received(&mut self, destination: Ip, octets: u64) {
        self.rx(destination).add(octets, destination.is_multicast());
        self.udp_rx = self.udp_rx.wrapping_add(1);
    }

    /// A packet was thrown away.
    pub(crate) fn discarded(&mut self, destination: Ip) {
        let s = self.rx(destination);
        s.discards = s.discards.wrapping_add(1);
    }

    /// A packet was sent.
    pub(crate) fn sent(&mut self, destination: Ip, octets: u64) {
        self.tx(destination).add(octets, destination.is_multicast());
        self.udp_tx = self.udp_tx.wrapping_add(1);
        self.sends_tx = self.sends_tx.wrapping_add(1);
    }

    /// A packet had no destination MAC.
    pub(crate) fn unroutable(&mut self, destination: Ip) {
        let s = self.tx(destination);
        s.no_route = s.no_route.wrapping_add(1);
    }

    /// The memory image. Counters are cut to their width there.
    pub(crate) fn image(&self) -> Vec<u8> {
        let mut image = [0; IMAGE_WORDS];
        let mut put = |offset: usize, field: Field, value: u64| {
            if let Some(word) = image.get_mut(offset / 8) {
                *word |= field.put(value);
            }
        };
        let wide = bits(47, 0);
        for (offset, flow) in [
            (8, self.rx4.all),
            (40, self.rx4.multicast),
            (56, self.rx6.all),
            (88, self.rx6.multicast),
            (104, self.tx4.all),
            (128, self.tx4.multicast),
            (144, self.tx6.all),
            (168, self.tx6.multicast),
        ] {
            put(offset, wide, flow.octets);
            put(offset + 8, wide, flow.packets);
        }
        put(24, bits(63, 32), self.rx4.discards);
        put(72, bits(63, 32), self.rx6.discards);
        put(184, bits(55, 32), self.tx4.no_route);
        put(184, bits(23, 0), self.tx6.no_route);
        put(224, wide, self.udp_rx);
        put(232, wide, self.udp_tx);
        put(256, wide, self.sends_rx);
        put(280, wide, self.sends_tx);
        bytes(&image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_lie_where_the_driver_looks() {
        let mut s = Stats::default();
        let group = Ip::from_words([0, 0, 0, 0xEF01_0203], true);
        s.received(group, 100);
        s.discarded(group);
        s.sent(Ip::from_words([0xFE80_0000, 0, 0, 1], false), 60);
        let image = s.image();
        assert_eq!(image.len(), 1024);
        for (at, value) in [
            (8, 100),
            (16, 1),
            (28, 1),
            (40, 100),
            (48, 1),
            (144, 60),
            (152, 1),
        ] {
            assert_eq!(image[at], value, "offset {at}");
        }
        assert_eq!((image[224], image[232], image[280]), (1, 1, 1));
    }
}
