// SPDX-License-Identifier: GPL-2.0
//! How many switches there are, what is at which, and how they begin.

use nic_fabric::{snoop, Fabric};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Switches at most.
const MOST: usize = 16;

/// The ports at each switch, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout(Vec<Vec<String>>);

impl Layout {
    /// Reads `nic0,port0/nic1`: switches with slashes between, ports with commas. Nothing means one
    /// switch.
    ///
    /// # Errors
    ///
    /// When there are too many, or a port is at two.
    pub fn parse(text: &str) -> Result<Self, String> {
        let split = |part: &str| {
            let names = part.split(',').filter(|name| !name.is_empty());
            names.map(str::to_owned).collect::<Vec<_>>()
        };
        let switches: Vec<Vec<String>> = text.split('/').map(split).collect();
        if switches.len() > MOST {
            return Err(format!("{} switches: at most {MOST}", switches.len()));
        }
        let mut names: Vec<&String> = switches.iter().flatten().collect();
        names.sort_unstable();
        for (name, next) in names.iter().zip(names.iter().skip(1)) {
            if name == next {
                return Err(format!("{name}: at two switches"));
            }
        }
        Ok(Self(switches))
    }

    /// Number of the switch that a port is at.
    fn of(&self, name: &str) -> usize {
        let at = self
            .0
            .iter()
            .position(|ports| ports.iter().any(|port| port == name));
        at.unwrap_or(0)
    }

    fn count(&self) -> usize {
        self.0.len().max(1)
    }
}

/// The switches of a rack.
#[derive(Clone, Debug, Default)]
pub struct Switches {
    /// What is where.
    pub layout: Layout,
    /// Whether they learn stations from the start.
    pub learn: bool,
    /// How they snoop from the start, which includes learning.
    pub snoop: Option<snoop::Config>,
}

impl Switches {
    /// Makes the switches and links each with the next.
    ///
    /// # Errors
    ///
    /// When a capture file or a thread cannot be made.
    pub fn make(&self, pcap: Option<&Path>) -> io::Result<Vec<Arc<Fabric>>> {
        let mut fabrics: Vec<Arc<Fabric>> = Vec::new();
        for id in 0..self.layout.count() {
            let id = u8::try_from(id).map_err(io::Error::other)?;
            let fabric = Fabric::numbered(id, pcap.map(Path::to_owned))?;
            fabric.forwarding(|forwarding, now| {
                forwarding.learn(self.learn || self.snoop.is_some());
                forwarding.snoop(self.snoop, id, now);
            });
            if let Some(last) = fabrics.last() {
                Fabric::link(last, &fabric)?;
            }
            fabrics.push(fabric);
        }
        Ok(fabrics)
    }

    /// The switch that a port is at.
    ///
    /// # Errors
    ///
    /// When `fabrics` are not those that [`make`](Self::make) made.
    pub fn of<'a>(&self, name: &str, fabrics: &'a [Arc<Fabric>]) -> io::Result<&'a Arc<Fabric>> {
        fabrics
            .get(self.layout.of(name))
            .ok_or_else(|| io::Error::other(format!("{name}: no such switch")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts() {
        let layout = Layout::parse("nic0,port0//nic1").unwrap();
        assert_eq!(layout.count(), 3);
        let at = ["nic0", "port0", "nic1", "nic7"].map(|name| layout.of(name));
        assert_eq!(at, [0, 0, 2, 0]);
        assert_eq!(Layout::parse("").unwrap().count(), 1);
        assert_eq!(Layout::default().count(), 1);
        assert_eq!(Layout::parse("a/b,a"), Err("a: at two switches".to_owned()));
        assert!(Layout::parse(&"/".repeat(MOST)).is_err());
    }

    #[test]
    fn neighbours_are_linked() {
        let switches = Switches {
            layout: Layout::parse("a/b/c").unwrap(),
            ..Switches::default()
        };
        let fabrics = switches.make(None).unwrap();
        let ports: Vec<usize> = fabrics.iter().map(|f| f.ports().len()).collect();
        assert_eq!(ports, [1, 2, 1]);
        assert_eq!(switches.of("c", &fabrics).unwrap().id(), 2);
    }
}
