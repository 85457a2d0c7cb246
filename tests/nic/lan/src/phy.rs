// SPDX-License-Identifier: GPL-2.0
//! The port as the firmware configures it (sections 6.1 and 12 of the hardware contract): one speed,
//! one medium, on or off.

use crate::le::Store;

/// 100GBASE-CR4 among the PHY types.
const PHY_TYPE: u64 = 1 << 51;
/// 100 Gbit/s in link status.
const SPEED_100G: u16 = 0x400;
/// Longest frame with FCS.
const MAX_FRAME: u16 = 9728;
/// Capability and configuration bit: the link is enabled.
const ENABLE_LINK: u8 = 1 << 3;
/// Capability bit: auto-negotiation.
const AUTO_NEGOTIATION: u8 = 1 << 4;
/// Capability bit: automatic choice of error correction.
const AUTO_FEC: u8 = 1 << 7;
/// Configuration bits kept as written: pause, low power, link, automatic error correction.
const CONFIGURABLE: u8 = 0x8f;
/// Bytes of the capabilities report.
const REPORT: usize = 560;
/// Bytes of the link status.
const STATUS: usize = 32;

/// Which capabilities a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportMode {
    /// What port and medium can do, and the default configuration.
    Possible,
    /// The configuration in force.
    Active,
}

/// Configuration of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phy {
    /// Pause, link and error correction as configured.
    capabilities: u8,
    /// Error correction options as configured.
    fec: u8,
    /// Whether the driver wants link events.
    pub events: bool,
}

impl Default for Phy {
    fn default() -> Self {
        Self {
            capabilities: ENABLE_LINK | AUTO_FEC,
            fec: 0,
            events: false,
        }
    }
}

impl Phy {
    /// Whether the port may have a link.
    pub fn enabled(&self) -> bool {
        self.capabilities & ENABLE_LINK != 0
    }

    /// Enables or disables the link.
    pub fn enable(&mut self, enabled: bool) {
        self.capabilities &= !ENABLE_LINK;
        if enabled {
            self.capabilities |= ENABLE_LINK;
        }
    }

    /// Takes a new configuration.
    pub fn configure(&mut self, capabilities: u8, fec: u8) {
        self.capabilities = capabilities & CONFIGURABLE;
        self.fec = fec;
    }

    /// The capabilities report.
    pub fn report(&self, mode: ReportMode) -> Vec<u8> {
        let (capabilities, fec) = match mode {
            ReportMode::Possible => (ENABLE_LINK | AUTO_FEC, 0),
            ReportMode::Active => (self.capabilities, self.fec),
        };
        let mut data = vec![0; REPORT];
        let stored = data
            .put_u64(0, PHY_TYPE)
            .and_then(|()| data.put_u8(16, capabilities | AUTO_NEGOTIATION))
            .and_then(|()| data.put_u8(34, fec));
        debug_assert!(stored.is_ok());
        data
    }

    /// The link status, for the answer and for the event.
    pub fn status(up: bool) -> Vec<u8> {
        const LINK_UP: u8 = 1 << 0;
        const PORT_UP: u8 = 1 << 5;
        const MEDIA: u8 = 1 << 6;
        let mut data = vec![0; STATUS];
        let info = if up { LINK_UP | PORT_UP | MEDIA } else { MEDIA };
        let stored = data
            .put_u8(2, info)
            .and_then(|()| data.put_u8(3, u8::from(up)))
            .and_then(|()| data.put_u16(6, MAX_FRAME))
            .and_then(|()| data.put_u16(10, if up { SPEED_100G } else { 0 }))
            .and_then(|()| data.put_u64(16, if up { PHY_TYPE } else { 0 }));
        debug_assert!(stored.is_ok());
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_report_follows_the_configuration() {
        let mut phy = Phy::default();
        phy.configure(0x03, 0x40);
        assert!(!phy.enabled());
        assert_eq!(phy.report(ReportMode::Active)[16], 0x13);
        assert_eq!(phy.report(ReportMode::Active)[34], 0x40);
        assert_eq!(phy.report(ReportMode::Possible)[16], 0x98);
        phy.enable(true);
        assert!(phy.enabled());
    }

    #[test]
    fn status_is_the_contracts() {
        let up = Phy::status(true);
        assert_eq!((up[2], up[3], up[10], up[11]), (0x61, 1, 0, 4));
        assert_eq!(Phy::status(false)[2], 0x40);
    }
}
