// SPDX-License-Identifier: GPL-2.0
//! One card: the two halves, the gates of their interrupts and the port they share.
//!
//! A register belongs to the gates, to the RDMA half, or else to the LAN half; a frame that the RDMA
//! half does not want is the LAN half's. On a reset the RDMA half goes first, since it uses what
//! the LAN half gave it, then the gates, then the LAN half. Nothing here holds a lock while it
//! calls a half, except that resets exclude one another.

use crate::gates::{self, Gates};
use crate::registers::{self, Registers};
use nic_bus::{Dma, Host, Interrupts, LanFunction, Log, RdmaFunction, Reset, Wire};
use nic_fabric::{Port, Receiver};
use nic_vfio::msix::Msix;
use nic_vfio::{Backend, ResetCause};
use std::fmt::Arguments;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// `PFINT_OICR` cause: a software interrupt on vector 0.
const OICR_SWINT: u32 = 1 << 31;

/// The slots that a card is plugged into.
pub struct Slots {
    /// Guest memory.
    pub memory: Arc<dyn Dma>,
    /// Interrupt vectors.
    pub msix: Arc<Msix>,
    /// The port of the fabric.
    pub port: Arc<Port>,
    /// Station address.
    pub mac: [u8; 6],
    /// The card's log.
    pub log: Arc<dyn Log>,
}

/// Makes the two halves of a card.
pub type MakeHalves<'a> =
    &'a dyn Fn(Host, Weak<dyn nic_bus::Card>) -> (Arc<dyn LanFunction>, Arc<dyn RdmaFunction>);

/// One card.
pub struct Card {
    lan: Arc<dyn LanFunction>,
    rdma: Arc<dyn RdmaFunction>,
    gates: Arc<Gates<Arc<Msix>>>,
    msix: Arc<Msix>,
    port: Arc<Port>,
    log: Arc<dyn Log>,
    resetting: Mutex<()>,
}

impl Card {
    /// A card in its slots.
    pub fn new(slots: Slots, make_halves: MakeHalves<'_>) -> Arc<Self> {
        let Slots {
            memory,
            msix,
            port,
            mac,
            log,
        } = slots;
        let count = u16::try_from(msix.count()).unwrap_or(u16::MAX);
        let gates = Arc::new(Gates::new(count, msix.clone()));
        Arc::new_cyclic(|card: &Weak<Self>| {
            let host = Host {
                dma: memory,
                interrupts: Arc::new(Vectors {
                    gates: gates.clone(),
                    card: card.clone(),
                }),
                wire: Arc::new(Line {
                    port: port.clone(),
                    mac,
                    card: card.clone(),
                }),
                log: log.clone(),
                pf_id: 0,
            };
            let (lan, rdma) = make_halves(host, card.clone());
            Self {
                lan,
                rdma,
                gates,
                msix,
                port,
                log,
                resetting: Mutex::default(),
            }
        })
    }

    /// The LAN half.
    pub fn lan(&self) -> &dyn LanFunction {
        &*self.lan
    }

    /// The RDMA half.
    pub fn rdma(&self) -> &dyn RdmaFunction {
        &*self.rdma
    }

    /// The gates of the interrupt vectors.
    pub fn gates(&self) -> &Gates<Arc<Msix>> {
        &self.gates
    }

    /// The interrupt vectors.
    pub fn msix(&self) -> &Msix {
        &self.msix
    }

    /// The port.
    pub fn port(&self) -> &Arc<Port> {
        &self.port
    }
}

impl nic_bus::Card for Card {
    fn reset(&self, kind: Reset) {
        let _alone = self
            .resetting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.rdma.reset(kind);
        self.gates.reset(kind == Reset::Core);
        self.msix.forget_pending();
        self.lan.reset(kind);
    }

    fn set_pe_filter(&self, vsi: u16, enabled: bool) {
        self.rdma.set_filter(vsi, enabled);
    }

    fn queue_set(&self, handle: u16, teid: u32, present: bool) {
        self.rdma.queue_set(handle, teid, present);
    }
}

impl Registers for Card {
    fn read32(&self, offset: u32) -> u32 {
        match gates::vector_of(offset) {
            Some(vector) => self.gates.read(vector),
            None => self
                .rdma
                .read32(offset)
                .unwrap_or_else(|| self.lan.read32(offset)),
        }
    }

    fn read64(&self, offset: u32) -> u64 {
        let high = offset.wrapping_add(4);
        if gates::vector_of(offset).is_none() && gates::vector_of(high).is_none() {
            match self.rdma.read32(offset) {
                Some(low) => return u64::from(low) | u64::from(self.read32(high)) << 32,
                None => return self.lan.read64(offset),
            }
        }
        u64::from(self.read32(offset)) | u64::from(self.read32(high)) << 32
    }

    fn write32(&self, offset: u32, value: u32) {
        if let Some(vector) = gates::vector_of(offset) {
            let triggered = self.gates.write(vector, value);
            if triggered && vector == 0 {
                self.lan.other_cause(OICR_SWINT);
            }
        } else if !self.rdma.write32(offset, value) {
            self.lan.write32(offset, value);
        }
    }
}

impl Backend for Card {
    fn bar_read(&self, offset: u64, data: &mut [u8]) {
        registers::read(self, offset, data);
    }

    fn bar_write(&self, offset: u64, data: &[u8]) {
        if !registers::write(self, offset, data) {
            let len = data.len();
            self.log.line(format_args!(
                "BAR 0: write of {len} bytes at {offset:#x} ignored"
            ));
        }
    }

    fn reset(&self, cause: ResetCause) {
        let kind = match cause {
            ResetCause::FunctionLevel => Reset::Function,
            ResetCause::Machine | ResetCause::Disconnect => Reset::Disconnect,
        };
        nic_bus::Card::reset(self, kind);
    }

    fn log(&self, text: Arguments<'_>) {
        self.log.line(text);
    }
}

impl Receiver for Card {
    fn receive(&self, frame: &[u8]) {
        if self.rdma.wants(frame) {
            self.rdma.receive(frame);
        } else {
            self.lan.receive(frame);
        }
    }

    fn link_changed(&self, up: bool) {
        self.lan.link_changed(up);
    }
}

/// The interrupt vectors as the halves see them.
struct Vectors {
    gates: Arc<Gates<Arc<Msix>>>,
    card: Weak<Card>,
}

impl Interrupts for Vectors {
    fn event(&self, vector: u16) {
        self.gates.event(vector);
    }

    fn other_cause(&self, bits: u32) {
        if let Some(card) = self.card.upgrade() {
            card.lan.other_cause(bits);
        }
    }
}

/// The port as the halves see it.
struct Line {
    port: Arc<Port>,
    mac: [u8; 6],
    card: Weak<Card>,
}

impl Wire for Line {
    fn send(&self, frame: Vec<u8>) {
        self.port.send(frame);
    }

    fn mac(&self) -> [u8; 6] {
        self.mac
    }

    fn is_own(&self, mac: [u8; 6]) -> bool {
        let card = self.card.upgrade();
        card.is_some_and(|card| card.lan.has_address(mac))
    }

    fn link_up(&self) -> bool {
        self.port.link_up()
    }
}
