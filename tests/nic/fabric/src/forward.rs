// SPDX-License-Identifier: GPL-2.0
//! Where a frame goes. This switch floods: every frame goes to every port but the one it came from.

/// Identifies a port of one switch.
pub type PortId = usize;

/// The forwarding state of a switch.
#[derive(Default)]
pub struct Forwarding {
    ports: PortId,
}

impl Forwarding {
    /// Adds a port.
    pub fn add_port(&mut self) -> PortId {
        let id = self.ports;
        self.ports += 1;
        id
    }

    /// The ports that a frame from `ingress` goes to.
    pub fn destinations(&mut self, ingress: PortId, _frame: &[u8]) -> Vec<PortId> {
        (0..self.ports).filter(|port| *port != ingress).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everywhere_but_back() {
        let mut forwarding = Forwarding::default();
        assert_eq!(
            (0..3).map(|_| forwarding.add_port()).collect::<Vec<_>>(),
            [0, 1, 2]
        );
        assert_eq!(forwarding.destinations(1, &[]), [0, 2]);
    }
}
