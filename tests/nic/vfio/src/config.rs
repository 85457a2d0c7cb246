// SPDX-License-Identifier: GPL-2.0
//! The PCI Express configuration space of the function: an E810 endpoint with power management,
//! MSI-X, function level reset and a serial number, without SR-IOV.
//!
//! Each byte has a mask of writable bits; two bits have an effect beyond being stored, and those
//! are reported as an [`Effect`]. The client sizes BARs from the region descriptions, so BAR
//! registers only carry their type bits.

/// Bytes of extended configuration space.
pub const SIZE: usize = 4096;

const COMMAND: usize = 0x04;
const COMMAND_BUS_MASTER: u8 = 1 << 2;
const CAP_POWER: usize = 0x40;
const CAP_MSIX: usize = 0x70;
const CAP_EXPRESS: usize = 0xa0;
const DEVCTL: usize = CAP_EXPRESS + 8;
/// The byte of DEVCTL that holds the reset bit.
const DEVCTL_HIGH: usize = DEVCTL + 1;
const DEVCTL_HIGH_FLR: u8 = 1 << 7;
const EXT_SERIAL: usize = 0x100;

/// BAR 3 holds the MSI-X table at 0 and the pending bits here.
const MSIX_PENDING: u32 = 0x8000;

/// What tells one function from another.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// Device serial number (an EUI-64).
    pub serial: u64,
    /// MSI-X vectors, 1 to 2048.
    pub vectors: u16,
}

/// What a write asks for besides being stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Function level reset.
    FunctionReset,
    /// Bus mastering was switched.
    BusMaster(bool),
}

/// The configuration space.
pub struct Config {
    identity: Identity,
    bytes: Box<[u8; SIZE]>,
    writable: Box<[u8; SIZE]>,
}

impl Config {
    /// Configuration space after power-on.
    pub fn new(identity: Identity) -> Self {
        let mut config = Self {
            identity,
            bytes: Box::new([0; SIZE]),
            writable: Box::new([0; SIZE]),
        };
        config.header();
        config.power_management();
        config.msix();
        config.express();
        // Device serial number: extended capability 3, version 1, last in the list.
        config.set(EXT_SERIAL, &0x0001_0003u32.to_le_bytes());
        config.set(EXT_SERIAL + 4, &identity.serial.to_le_bytes());
        config
    }

    fn header(&mut self) {
        self.set(0x00, &[0x86, 0x80, 0x92, 0x15]);
        // Memory, bus master, parity, SERR and interrupt disable.
        self.allow(COMMAND, &[0x46, 0x05]);
        self.set(0x06, &[0x10, 0x00]);
        // Revision 2, class 0200: Ethernet controller.
        self.set(0x08, &[0x02, 0x00, 0x00, 0x02]);
        self.allow(0x0c, &[0xff]);
        // BAR 0 and BAR 3: 64-bit prefetchable memory.
        self.set(0x10, &[0x0c]);
        self.set(0x1c, &[0x0c]);
        // Subsystem: Intel, E810-C-Q2.
        self.set(0x2c, &[0x86, 0x80, 0x02, 0x00]);
        self.set(0x34, &[CAP_POWER as u8]);
    }

    fn power_management(&mut self) {
        self.set(CAP_POWER, &[0x01, CAP_MSIX as u8, 0x03, 0x00]);
        // No soft reset on return from D3.
        self.set(CAP_POWER + 4, &[0x08]);
        self.allow(CAP_POWER + 4, &[0x03]);
    }

    fn msix(&mut self) {
        let last = self.identity.vectors.saturating_sub(1) & 0x7ff;
        self.set(CAP_MSIX, &[0x11, CAP_EXPRESS as u8]);
        self.set(CAP_MSIX + 2, &last.to_le_bytes());
        self.allow(CAP_MSIX + 2, &[0x00, 0xc0]);
        self.set(CAP_MSIX + 4, &3u32.to_le_bytes());
        self.set(CAP_MSIX + 8, &(MSIX_PENDING | 3).to_le_bytes());
    }

    fn express(&mut self) {
        // Version 2 endpoint.
        self.set(CAP_EXPRESS, &[0x10, 0x00, 0x02, 0x00]);
        // DEVCAP: 512-byte payload, role-based errors, function level reset.
        self.set(CAP_EXPRESS + 4, &0x1000_8002u32.to_le_bytes());
        // DEVCTL: relaxed ordering, no snoop, 512-byte read requests.
        self.set(DEVCTL, &[0x10, 0x28]);
        self.allow(DEVCTL, &[0xff, 0x7f]);
        // LNKCAP and LNKSTA: 16 GT/s, sixteen lanes.
        self.set(CAP_EXPRESS + 12, &0x0000_0104u32.to_le_bytes());
        self.allow(CAP_EXPRESS + 16, &[0xc3, 0x01]);
        self.set(CAP_EXPRESS + 18, &[0x04, 0x01]);
        // DEVCAP2: completion timeout ranges A and B, and disable. DEVCTL2 is storage.
        self.set(CAP_EXPRESS + 36, &[0x13]);
        self.allow(CAP_EXPRESS + 40, &[0xff, 0xff]);
        // LNKCAP2: 2.5 to 16 GT/s.
        self.set(CAP_EXPRESS + 44, &[0x1e]);
    }

    fn set(&mut self, at: usize, bytes: &[u8]) {
        for (to, from) in self.bytes.iter_mut().skip(at).zip(bytes) {
            *to = *from;
        }
    }

    fn allow(&mut self, at: usize, masks: &[u8]) {
        for (to, from) in self.writable.iter_mut().skip(at).zip(masks) {
            *to = *from;
        }
    }

    /// Back to the state after power-on.
    pub fn reset(&mut self) {
        *self = Self::new(self.identity);
    }

    /// Whether the function may access memory.
    pub fn bus_master(&self) -> bool {
        self.bytes[COMMAND] & COMMAND_BUS_MASTER != 0
    }

    /// The bytes at `offset`, or `None` outside.
    pub fn read(&self, offset: u64, count: usize) -> Option<&[u8]> {
        let start = usize::try_from(offset).ok()?;
        self.bytes.get(start..start.checked_add(count)?)
    }

    /// Stores the writable bits of `data`; `None` outside.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Option<Option<Effect>> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(data.len())?;
        let (bytes, masks) = (
            self.bytes.get_mut(start..end)?,
            self.writable.get(start..end)?,
        );
        let mut flr = false;
        for (at, ((byte, mask), new)) in (start..).zip(bytes.iter_mut().zip(masks).zip(data)) {
            flr |= at == DEVCTL_HIGH && new & DEVCTL_HIGH_FLR != 0;
            *byte = (*byte & !mask) | (new & mask);
        }
        let command = (start..end).contains(&COMMAND);
        Some(if flr {
            Some(Effect::FunctionReset)
        } else {
            command.then(|| Effect::BusMaster(self.bus_master()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn config() -> Config {
        Config::new(Identity {
            serial: 0x02e8_10ff_fe00_0001,
            vectors: 32,
        })
    }

    fn word(config: &Config, at: u64) -> u16 {
        let b = config.read(at, 2).unwrap();
        u16::from_le_bytes([b[0], b[1]])
    }

    /// (id, offset) of each capability.
    fn capabilities(config: &Config) -> Vec<(u8, u8)> {
        let mut list = Vec::new();
        let mut at = config.read(0x34, 1).unwrap()[0];
        while at != 0 && list.len() < 16 {
            let cap = config.read(at.into(), 2).unwrap();
            list.push((cap[0], at));
            at = cap[1];
        }
        list
    }

    #[test]
    fn identity_and_capabilities() {
        let config = config();
        assert_eq!(
            (word(&config, 0), word(&config, 2), word(&config, 10)),
            (0x8086, 0x1592, 0x200)
        );
        assert_eq!(
            capabilities(&config),
            [(0x01, 0x40), (0x11, 0x70), (0x10, 0xa0)]
        );
        assert_eq!(word(&config, 0x72), 31);
        assert_eq!(config.read(0x100, 12).unwrap()[..5], [3, 0, 1, 0, 1]);
        assert_eq!(
            config.read(0x104, 8).unwrap(),
            0x02e8_10ff_fe00_0001u64.to_le_bytes()
        );
    }

    #[test]
    fn only_writable_bits_change() {
        let mut config = config();
        assert_eq!(config.write(0, &[0xff; 4]), Some(None));
        assert_eq!(word(&config, 0), 0x8086);
        assert_eq!(config.write(0x72, &[0xff, 0xff]), Some(None));
        assert_eq!(word(&config, 0x72), 0xc01f);
    }

    #[test]
    fn effects() {
        let mut config = config();
        assert_eq!(
            config.write(4, &[6, 0]),
            Some(Some(Effect::BusMaster(true)))
        );
        assert!(config.bus_master());
        assert_eq!(
            config.write(4, &[2, 0]),
            Some(Some(Effect::BusMaster(false)))
        );
        assert_eq!(
            config.write(0xa8, &[0, 0x80]),
            Some(Some(Effect::FunctionReset))
        );
        assert_eq!(config.write(0xa8, &[0, 0x7f]), Some(None));
        assert_eq!(word(&config, 0xa8) & 0x8000, 0);
        config.reset();
        assert_eq!(word(&config, 0xa8), 0x2810);
    }

    proptest! {
        #[test]
        fn any_access_is_answered(offset in prop_oneof![any::<u64>(), 0u64..4200], data in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut config = config();
            let inside = offset.checked_add(data.len() as u64).is_some_and(|end| end <= SIZE as u64);
            prop_assert_eq!(config.write(offset, &data).is_some(), inside);
            prop_assert_eq!(config.read(offset, data.len()).is_some(), inside);
            prop_assert_eq!(capabilities(&config).len(), 3);
        }
    }
}
