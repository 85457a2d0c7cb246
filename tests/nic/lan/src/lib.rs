// SPDX-License-Identifier: GPL-2.0
//! The LAN half of the virtual E810: registers, admin queue, firmware and data path, as far as the
//! stock `ice` driver uses them in full mode (`hardware/10-lan.md` is the contract).
//!
//! A glossary of the field's abbreviations: AQ, the admin queue, carries commands to the firmware;
//! VSI, virtual station interface, is a set of queues with filters; DDP, the package that programs
//! the classifier; OICR, the "other interrupt cause" register; PFR and CORER, the resets of one
//! function and of the device; TEID, the id of an element of the transmit scheduler; RSS spreads
//! received flows over queues; PE is the protocol engine, that is the RDMA half.
//!
//! Everything happens in the caller's thread: a command within the write of the queue's tail, a
//! transmission within the write of its doorbell, a reception within [`LanFunction::receive`].
//!
//! # Lock order
//!
//! `firmware`, then `tx`, then `switch`, then `rx`, then `registers`. The card is called with none
//! of them held, except that the firmware lock is held while it learns of PE filters and queue sets.

mod aq;
mod checksum;
mod command;
mod control;
mod faults;
mod firmware;
mod frame;
mod le;
mod nvm;
mod phy;
mod regs;
mod resources;
mod rss;
mod rx;
mod scheduler;
mod stats;
mod store;
mod switch;
mod tx;
mod vsi;

#[cfg(test)]
mod test;
#[cfg(test)]
mod tests;

use aq::receive::Event;
use firmware::Firmware;
use nic_bus::{Card, Host, LanFunction, Reset};
use parking_lot::{Mutex, RwLock};
use phy::Phy;
use regs::{Register, Ring, RingRegister};
use rx::queue::RxQueue;
use rx::RxQueues;
use serde_json::Value;
use stats::Stats;
use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use store::Registers;
use switch::Switch;
use tx::TxQueues;

/// Unknown registers reported at most, so that a guest cannot fill the log by reading all of BAR0.
const MAX_UNKNOWN: usize = 256;

/// What differs between cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// MSI-X vectors of the function: the size of its table.
    pub vectors: u16,
    /// Log refused commands and queue contexts, not only what is unknown.
    pub verbose: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            vectors: 64,
            verbose: false,
        }
    }
}

/// The LAN half of one function.
pub struct Lan {
    host: Host,
    card: Weak<dyn Card>,
    config: Config,
    firmware: Mutex<Firmware>,
    tx: Mutex<TxQueues>,
    switch: RwLock<Switch>,
    rx: Mutex<RxQueues>,
    registers: Mutex<Registers>,
    stats: Stats,
    /// Whether the port is configured to have a link.
    phy_enabled: AtomicBool,
    /// Whether the port hands frames back instead of sending them.
    loopback: AtomicBool,
    /// Type of the core reset under way, for `GLGEN_RSTAT`; 0 if none was ordered through a register.
    core_reset: AtomicU32,
    /// A core reset was announced and waits for the driver to be ready.
    announced: AtomicBool,
    /// The driver knows of the core reset under way.
    told: AtomicBool,
    /// Unknown registers reported so far.
    unknown: Mutex<HashSet<u32>>,
}

impl Lan {
    /// A LAN half as after power-on.
    pub fn new(host: Host, card: Weak<dyn Card>, config: Config) -> Arc<Self> {
        Arc::new(Self {
            host,
            card,
            config,
            firmware: Mutex::new(Firmware::new()),
            tx: Mutex::default(),
            switch: RwLock::default(),
            rx: Mutex::default(),
            registers: Mutex::default(),
            stats: Stats::new(),
            phy_enabled: AtomicBool::new(true),
            loopback: AtomicBool::new(false),
            core_reset: AtomicU32::new(0),
            announced: AtomicBool::new(false),
            told: AtomicBool::new(false),
            unknown: Mutex::default(),
        })
    }

    /// Logs what should not happen.
    fn log(&self, text: fmt::Arguments<'_>) {
        self.host.log.line(format_args!("lan: {text}"));
    }

    /// Logs what helps to find a fault.
    fn debug(&self, text: fmt::Arguments<'_>) {
        if self.config.verbose {
            self.log(text);
        }
    }

    /// Reports an unknown register, once.
    fn unknown(&self, access: &str, offset: u32) {
        let mut seen = self.unknown.lock();
        if seen.len() < MAX_UNKNOWN && seen.insert(offset) {
            drop(seen);
            self.log(format_args!("{access} of unknown register {offset:#08x}"));
        }
    }

    /// Whether the port has a link.
    fn link_up(&self) -> bool {
        self.phy_enabled.load(Ordering::Relaxed) && self.host.wire.link_up()
    }

    /// The port configuration has changed: the link follows it, and the driver learns of it.
    fn apply_phy(&self, firmware: &mut Firmware) {
        let before = self.link_up();
        self.phy_enabled
            .store(firmware.phy.enabled(), Ordering::Relaxed);
        if self.link_up() != before {
            self.link_event(firmware);
        }
    }

    /// Sends a link event, if the driver wants them.
    fn link_event(&self, firmware: &mut Firmware) {
        const LINK_STATUS: u16 = 0x0607;
        const EVENTS_ON: u8 = 3;
        if firmware.phy.events {
            let event = Event {
                opcode: LINK_STATUS,
                params: [0, 0, EVENTS_ON, 0, 0, 0, 0, 0],
                data: Phy::status(self.link_up()),
            };
            aq::receive::post(self, firmware, event);
        }
    }

    /// Raises the vector in a cause control register, if that is enabled.
    fn cause(&self, control: u32) {
        if control & regs::CAUSE_ENA != 0 {
            // Eleven bits.
            let vector = u16::try_from(control & regs::CAUSE_VECTOR).unwrap_or(0);
            self.host.interrupts.event(vector);
        }
    }

    /// Raises the vector of the firmware's events.
    fn firmware_cause(&self) {
        let control = self.registers.lock().get(regs::PFINT_FW_CTL, 0);
        self.cause(control);
    }

    /// Raises the vector of a queue.
    fn queue_cause(&self, register: Register) {
        if let Some(offset) = register.offset() {
            let control = self.registers.lock().get(offset, 0);
            self.cause(control);
        }
    }

    /// Tells the card about a VSI's PE filter.
    fn set_pe_filter(&self, vsi: u16, enabled: bool) {
        if let Some(card) = self.card.upgrade() {
            card.set_pe_filter(vsi, enabled);
        }
    }

    /// Tells the card about an RDMA queue set.
    fn queue_set(&self, handle: u16, teid: u32, present: bool) {
        if let Some(card) = self.card.upgrade() {
            card.queue_set(handle, teid, present);
        }
    }

    /// Has the card carry out a reset that the driver ordered.
    fn order_reset(&self, kind: Reset) {
        match self.card.upgrade() {
            Some(card) => card.reset(kind),
            None => self.reset(kind),
        }
    }

    /// A core reset that the driver did not order. The device warns of it, and the driver takes
    /// down what it has before it asks for the delay: then the reset happens. It happens at once
    /// if nobody listens.
    fn announce_core_reset(&self) {
        let listens = {
            let mut registers = self.registers.lock();
            let listens = registers.other_cause_enable & regs::OICR_GRST != 0;
            if listens {
                registers.reset_state = regs::RESET_TYPE_CORER << regs::GLGEN_RSTAT_TYPE_SHIFT
                    | regs::GLGEN_RSTAT_REQUESTED;
            }
            listens
        };
        if listens {
            self.announced.store(true, Ordering::Relaxed);
            self.other_cause(regs::OICR_GRST);
        } else {
            self.order_reset(Reset::Core);
        }
    }

    /// The driver asks how long a reset may take, which is no longer than usual. It does so when it
    /// is ready for an announced one.
    fn read_reset_control(&self) -> u32 {
        if self.announced.swap(false, Ordering::Relaxed) {
            self.told.store(true, Ordering::Relaxed);
            self.order_reset(Reset::Core);
        }
        0
    }

    fn write_reset_trigger(&self, value: u32) {
        let kind = if value & regs::GLGEN_RTRIG_CORER != 0 {
            regs::RESET_TYPE_CORER
        } else if value & regs::GLGEN_RTRIG_GLOBR != 0 {
            regs::RESET_TYPE_GLOBR
        } else {
            return;
        };
        self.core_reset.store(kind, Ordering::Relaxed);
        self.order_reset(Reset::Core);
    }

    /// The control queue behind a register.
    fn ring(firmware: &mut Firmware, ring: Ring) -> &mut aq::ring::Ring {
        match ring {
            Ring::AdminSend => &mut firmware.send,
            Ring::AdminReceive => &mut firmware.receive,
            Ring::MailboxSend => &mut firmware.mailbox_send,
            Ring::MailboxReceive => &mut firmware.mailbox_receive,
        }
    }

    fn write_ring(&self, ring: Ring, register: RingRegister, value: u32) {
        let mut firmware = self.firmware.lock();
        Self::ring(&mut firmware, ring).write(register, value);
        match (ring, register) {
            (Ring::AdminSend, RingRegister::Tail) => aq::send::process(self, &mut firmware),
            (Ring::AdminReceive, RingRegister::Tail) => aq::receive::process(self, &mut firmware),
            (Ring::MailboxSend, RingRegister::Tail) => {
                // There are no virtual functions: messages to them vanish.
                firmware.mailbox_send.skip();
            }
            _ => {}
        }
    }

    /// Enables or disables a receive queue. Both take effect at once, and the status bit shows it.
    fn write_rx_control(&self, queue: u16, offset: u32, value: u32) {
        let mut rx = self.rx.lock();
        let mut registers = self.registers.lock();
        let mut stored = value & !regs::QRX_CTRL_STATUS;
        if value & regs::QRX_CTRL_REQUEST == 0 {
            rx.disable(queue);
        } else if registers.get(offset, 0) & regs::QRX_CTRL_STATUS != 0 {
            stored |= regs::QRX_CTRL_STATUS;
        } else {
            let mut context = [0; regs::QRX_CONTEXT_WORDS];
            for (index, word) in context.iter_mut().enumerate() {
                if let Some(at) = Register::RxContext(index, queue).offset() {
                    *word = registers.get(at, 0);
                }
            }
            match RxQueue::new(&context) {
                Ok(enabled) => {
                    self.debug(format_args!("receive queue {queue}: {enabled:?}"));
                    rx.enable(queue, enabled);
                    let tail = Register::RxTail(queue).offset();
                    rx.set_tail(queue, tail.map_or(0, |at| registers.get(at, 0)));
                    stored |= regs::QRX_CTRL_STATUS;
                }
                Err(reason) => {
                    self.log(format_args!(
                        "receive queue {queue}: no support for {reason}"
                    ));
                }
            }
        }
        registers.set(offset, stored);
    }
}

impl LanFunction for Lan {
    fn read32(&self, offset: u32) -> u32 {
        let Some(register) = Register::decode(offset) else {
            self.unknown("read", offset);
            return 0;
        };
        match register {
            Register::Ring(ring, register) => {
                Self::ring(&mut self.firmware.lock(), ring).read(register)
            }
            Register::PfReset | Register::ResetTrigger | Register::WakeUpStatus => 0,
            Register::ResetControl => self.read_reset_control(),
            Register::ResetState => self.registers.lock().reset_state,
            Register::FunctionId => self.host.pf_id.into(),
            Register::OtherCause => std::mem::take(&mut self.registers.lock().other_cause),
            Register::OtherCauseEnable => self.registers.lock().other_cause_enable,
            Register::OtherCauseControl => self.registers.lock().other_cause_control,
            Register::Statistic => self.stats.read32(offset),
            Register::TxHead(queue) => self.tx.lock().head(queue),
            Register::Constant(value) => value,
            Register::Storage(initial) => self.registers.lock().get(offset, initial),
            Register::FirmwareCauseControl
            | Register::RxContext(..)
            | Register::RxControl(_)
            | Register::RxTail(_)
            | Register::RxCause(_)
            | Register::TxCause(_)
            | Register::TxDoorbell(_) => self.registers.lock().get(offset, 0),
        }
    }

    fn read64(&self, offset: u32) -> u64 {
        match Register::decode(offset) {
            Some(Register::Statistic) => self.stats.read(offset),
            _ => {
                let high = self.read32(offset.wrapping_add(4));
                u64::from(self.read32(offset)) | u64::from(high) << 32
            }
        }
    }

    fn write32(&self, offset: u32, value: u32) {
        let Some(register) = Register::decode(offset) else {
            self.unknown("write", offset);
            return;
        };
        match register {
            Register::Ring(ring, register) => self.write_ring(ring, register, value),
            Register::PfReset => {
                if value & regs::PFGEN_CTRL_PFSWR != 0 {
                    self.order_reset(Reset::Function);
                }
            }
            Register::ResetTrigger => self.write_reset_trigger(value),
            Register::OtherCauseEnable => self.registers.lock().other_cause_enable = value,
            Register::OtherCauseControl => self.registers.lock().other_cause_control = value,
            Register::RxControl(queue) => self.write_rx_control(queue, offset, value),
            Register::RxTail(queue) => {
                let mut rx = self.rx.lock();
                rx.set_tail(queue, value);
                self.registers.lock().set(offset, value);
            }
            Register::TxDoorbell(queue) => tx::doorbell(self, queue, value),
            Register::FirmwareCauseControl
            | Register::RxContext(..)
            | Register::RxCause(_)
            | Register::TxCause(_)
            | Register::Storage(_) => self.registers.lock().set(offset, value),
            Register::ResetControl
            | Register::ResetState
            | Register::FunctionId
            | Register::OtherCause
            | Register::WakeUpStatus
            | Register::TxHead(_)
            | Register::Statistic
            | Register::Constant(_) => {}
        }
    }

    fn receive(&self, frame: &[u8]) {
        if self.link_up() && !self.loopback.load(Ordering::Relaxed) {
            rx::receive(self, frame);
        }
    }

    fn has_address(&self, mac: [u8; 6]) -> bool {
        self.switch.read().has_address(mac)
    }

    fn link_changed(&self, up: bool) {
        self.debug(format_args!("link up: {up}"));
        let mut firmware = self.firmware.lock();
        if firmware.phy.enabled() {
            self.link_event(&mut firmware);
        }
    }

    fn other_cause(&self, bits: u32) {
        let control = {
            let mut registers = self.registers.lock();
            registers.other_cause |= bits;
            if registers.other_cause_enable & bits == 0 {
                return;
            }
            registers.other_cause_control
        };
        self.cause(control);
    }

    fn reset(&self, kind: Reset) {
        let ordered = self.core_reset.swap(0, Ordering::Relaxed);
        let told = self.told.swap(false, Ordering::Relaxed);
        self.announced.store(false, Ordering::Relaxed);
        {
            let mut firmware = self.firmware.lock();
            let mut tx = self.tx.lock();
            let mut switch = self.switch.write();
            let mut rx = self.rx.lock();
            let mut registers = self.registers.lock();
            firmware.reset(kind);
            *tx = TxQueues::default();
            *switch = Switch::default();
            *rx = RxQueues::default();
            registers.reset(kind, ordered.max(regs::RESET_TYPE_CORER));
            self.phy_enabled.store(true, Ordering::Relaxed);
            self.loopback.store(false, Ordering::Relaxed);
        }
        if kind == Reset::Disconnect {
            self.unknown.lock().clear();
        }
        // Of its own reset, too, the driver waits to be told.
        if kind == Reset::Core && !told {
            self.other_cause(regs::OICR_GRST);
        }
    }

    fn control(&self, command: &str, args: &Value) -> Option<Result<Value, String>> {
        control::execute(self, command, args)
    }
}
