// SPDX-License-Identifier: GPL-2.0
//! The forwarding database: behind which port a station was heard last.

use crate::forward::PortId;
use crate::view::Mac;
use std::collections::HashMap;
use std::time::Duration;

/// Stations remembered; more are not learned, and their frames go everywhere.
pub const CAPACITY: usize = 8192;
/// Time after which a station that was not heard is forgotten, as IEEE 802.1Q has it.
pub const AGING: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, Debug)]
struct Entry {
    port: PortId,
    heard: Duration,
}

/// Stations by VLAN and address. Times are those of the switch's clock.
pub struct Stations {
    entries: HashMap<(u16, Mac), Entry>,
    /// Time to forget.
    pub aging: Duration,
    /// Stations that turned up behind another port.
    pub moved: u64,
    /// Frames of stations for which there was no room.
    pub full: u64,
}

impl Default for Stations {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            aging: AGING,
            moved: 0,
            full: 0,
        }
    }
}

impl Stations {
    /// A frame of this station came in.
    pub fn heard(&mut self, now: Duration, vlan: u16, mac: Mac, port: PortId) {
        let entry = Entry { port, heard: now };
        if let Some(known) = self.entries.get_mut(&(vlan, mac)) {
            self.moved += u64::from(known.port != port);
            *known = entry;
            return;
        }
        if self.entries.len() >= CAPACITY {
            self.forget_old(now);
        }
        if self.entries.len() >= CAPACITY {
            self.full += 1;
        } else {
            self.entries.insert((vlan, mac), entry);
        }
    }

    /// The port that a station is behind.
    pub fn port_of(&self, now: Duration, vlan: u16, mac: Mac) -> Option<PortId> {
        self.entries
            .get(&(vlan, mac))
            .filter(|entry| self.is_young(now, entry))
            .map(|entry| entry.port)
    }

    fn is_young(&self, now: Duration, entry: &Entry) -> bool {
        now.saturating_sub(entry.heard) < self.aging
    }

    fn forget_old(&mut self, now: Duration) {
        let aging = self.aging;
        self.entries
            .retain(|_, entry| now.saturating_sub(entry.heard) < aging);
    }

    /// Forgets and has counted nothing; the time to forget stays.
    pub fn restart(&mut self) {
        *self = Self {
            aging: self.aging,
            ..Self::default()
        };
    }

    /// Forgets the stations behind a port.
    pub fn forget_port(&mut self, port: PortId) {
        self.entries.retain(|_, entry| entry.port != port);
    }

    /// VLAN, address and port of each station, in order.
    pub fn list(&self, now: Duration) -> Vec<(u16, Mac, PortId)> {
        let mut list: Vec<_> = self
            .entries
            .iter()
            .filter(|(_, entry)| self.is_young(now, entry))
            .map(|(&(vlan, mac), entry)| (vlan, mac, entry.port))
            .collect();
        list.sort_unstable();
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Mac = [2, 0, 0, 0, 0, 1];

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_station_is_where_it_was_heard_last() {
        let mut stations = Stations::default();
        stations.heard(at(0), 0, A, 1);
        assert_eq!(stations.port_of(at(299), 0, A), Some(1));
        assert_eq!(stations.port_of(at(0), 5, A), None, "another VLAN");
        stations.heard(at(299), 0, A, 2);
        assert_eq!(
            (stations.port_of(at(300), 0, A), stations.moved),
            (Some(2), 1)
        );
        assert_eq!(stations.port_of(at(599), 0, A), None, "too long ago");
        stations.heard(at(599), 0, A, 2);
        stations.forget_port(2);
        assert_eq!(stations.list(at(599)), []);
    }

    #[test]
    fn a_full_table_makes_room_of_what_is_old() {
        let mut stations = Stations::default();
        let mac = |n: usize| {
            let [.., a, b] = n.to_be_bytes();
            [2, 0, 0, 9, a, b]
        };
        (0..CAPACITY).for_each(|n| stations.heard(at(0), 0, mac(n), 0));
        stations.heard(at(1), 0, A, 3);
        assert_eq!((stations.full, stations.port_of(at(1), 1, A)), (1, None));
        stations.heard(at(300), 1, A, 3);
        assert_eq!(stations.list(at(300)), [(1, A, 3)]);
    }
}
