// SPDX-License-Identifier: GPL-2.0
//! Where a frame goes, and in which form. Pure: time comes from outside, and what is to be sent is
//! returned.
//!
//! A switch floods unless it was told to learn stations; it treats all multicast as broadcast unless
//! it was told to snoop.

use crate::fdb::Stations;
use crate::frame::Frame;
use crate::snoop::{self, Own, Snooping, Way};
use crate::view::{self, Destination, View};
use crate::vlan::Vlans;
use std::time::Duration;

/// Identifies a port of one switch.
pub type PortId = usize;

/// A frame on its way to a port.
pub type Out = (PortId, Frame);

/// Frames by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// For one station whose port is known.
    pub known: u64,
    /// For one station that was not heard yet.
    pub unknown: u64,
    /// For all.
    pub flooded: u64,
    /// For a group or of its management, where the switch knows who wants it.
    pub grouped: u64,
    /// For a station behind the port that the frame came from.
    pub returned: u64,
    /// Of a VLAN that the port does not carry.
    pub filtered: u64,
}

/// The forwarding state of a switch.
#[derive(Default)]
pub struct Forwarding {
    ports: Vec<Vlans>,
    stations: Option<Stations>,
    snooping: Option<Snooping>,
    /// What was counted.
    pub counts: Counts,
}

impl Forwarding {
    /// Adds a port.
    pub fn add_port(&mut self) -> PortId {
        self.ports.push(Vlans::default());
        self.ports.len() - 1
    }

    /// The VLANs of a port; `None` if there is no such port.
    pub fn vlans(&self, port: PortId) -> Option<&Vlans> {
        self.ports.get(port)
    }

    /// Gives a port other VLANs. What was learned behind it is forgotten.
    pub fn set_vlans(&mut self, port: PortId, vlans: Vlans) {
        if let Some(slot) = self.ports.get_mut(port) {
            *slot = vlans;
            self.forget_port(port);
        }
    }

    /// Starts or ends learning of stations.
    pub fn learn(&mut self, on: bool) {
        match on {
            true => {
                self.stations.get_or_insert_default();
            }
            false => self.stations = None,
        }
    }

    /// The stations, if they are learned.
    pub fn stations(&self) -> Option<&Stations> {
        self.stations.as_ref()
    }

    /// The stations, to be changed.
    pub fn stations_mut(&mut self) -> Option<&mut Stations> {
        self.stations.as_mut()
    }

    /// Starts snooping with these settings, changes them, or ends it.
    pub fn snoop(&mut self, config: Option<snoop::Config>, id: u8, now: Duration) {
        match (config, &mut self.snooping) {
            (None, _) => self.snooping = None,
            (Some(config), Some(snooping)) => snooping.set_config(config, now),
            (Some(config), None) => self.snooping = Some(Snooping::new(config, id, now)),
        }
    }

    /// What was heard of groups, if the switch listens.
    pub fn snooping(&self) -> Option<&Snooping> {
        self.snooping.as_ref()
    }

    /// As after a restart of the switch: settings stay; what was learned, heard and counted is gone.
    pub fn restart(&mut self, now: Duration) {
        if let Some(stations) = &mut self.stations {
            stations.restart();
        }
        if let Some(snooping) = &mut self.snooping {
            snooping.restart(now);
        }
        self.counts = Counts::default();
    }

    /// A port's link went up or down.
    pub fn link_changed(&mut self, now: Duration, port: PortId, up: bool) {
        if !up {
            self.forget_port(port);
        } else if let Some(snooping) = &mut self.snooping {
            snooping.ask_soon(now);
        }
    }

    fn forget_port(&mut self, port: PortId) {
        if let Some(stations) = &mut self.stations {
            stations.forget_port(port);
        }
        if let Some(snooping) = &mut self.snooping {
            snooping.forget_port(port);
        }
    }

    /// The ports that a frame from `ingress` goes to, with the form it has there.
    pub fn forward(&mut self, now: Duration, ingress: PortId, frame: &Frame) -> Vec<Out> {
        let view = match self.snooping {
            Some(_) => View::of(frame),
            None => View::outer(frame),
        };
        let Some(view) = view else {
            return Vec::new();
        };
        let Some(vlan) = self.ports.get(ingress).and_then(|p| p.of_tag(view.tag)) else {
            self.counts.filtered += 1;
            return Vec::new();
        };
        if let Some(stations) = &mut self.stations {
            if !view::is_group(&view.source) {
                stations.heard(now, vlan, view.source, ingress);
            }
        }
        let way = self.way(now, vlan, ingress, &view.destination);
        self.outs(vlan, view.tag, &way, Some(ingress), frame)
    }

    fn way(&mut self, now: Duration, vlan: u16, ingress: PortId, to: &Destination) -> Way {
        let port = match to {
            Destination::Station(mac) => self
                .stations
                .as_ref()
                .and_then(|stations| stations.port_of(now, vlan, *mac)),
            _ => None,
        };
        match (to, port, &mut self.snooping) {
            (Destination::Station(_), Some(port), _) if port == ingress => {
                self.counts.returned += 1;
                Way::Ports([].into())
            }
            (Destination::Station(_), Some(port), _) => {
                self.counts.known += 1;
                Way::Ports([port].into())
            }
            (Destination::Station(_), None, _) => {
                self.counts.unknown += 1;
                Way::All
            }
            (Destination::Group(group), _, Some(snooping)) => {
                snooping.know_vlan(vlan, now);
                self.counts.grouped += 1;
                snooping.group(vlan, *group)
            }
            (Destination::Management(message), _, Some(snooping)) => {
                snooping.know_vlan(vlan, now);
                self.counts.grouped += 1;
                snooping.message(now, vlan, ingress, message)
            }
            _ => {
                self.counts.flooded += 1;
                Way::All
            }
        }
    }

    /// The frame in the form of each port it goes to.
    fn outs(
        &self,
        vlan: u16,
        tag: Option<u16>,
        way: &Way,
        ingress: Option<PortId>,
        frame: &Frame,
    ) -> Vec<Out> {
        let wanted = |id: &PortId| match way {
            Way::All => true,
            Way::Ports(ports) => ports.contains(id),
        };
        self.ports
            .iter()
            .enumerate()
            .filter(|(id, vlans)| Some(*id) != ingress && wanted(id) && vlans.carries(vlan))
            .map(|(id, vlans)| (id, vlans.shape(vlan, tag, frame)))
            .collect()
    }

    /// The next time at which [`tick`](Self::tick) has something to do.
    pub fn next_tick(&self) -> Option<Duration> {
        self.snooping.as_ref().and_then(Snooping::next_tick)
    }

    /// Does what is due, and returns what the switch itself sends.
    pub fn tick(&mut self, now: Duration) -> Vec<Out> {
        let own = match &mut self.snooping {
            Some(snooping) => snooping.tick(now),
            None => Vec::new(),
        };
        own.into_iter()
            .filter_map(|Own { vlan, way, frame }| {
                let frame = crate::frame::from_device(frame)?;
                Some(self.outs(vlan, None, &way, None, &frame))
            })
            .flatten()
            .collect()
    }
}

#[cfg(test)]
mod tests;
