// SPDX-License-Identifier: GPL-2.0
//! State that admin commands change and no data path reads.

use crate::aq::receive::Event;
use crate::aq::ring::Ring;
use crate::faults::Faults;
use crate::nvm::Nvm;
use crate::phy::Phy;
use crate::resources::Resources;
use crate::scheduler::Scheduler;
use nic_bus::Reset;
use std::collections::{BTreeMap, VecDeque};

/// What the driver downloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Major, minor, update, draft.
    pub version: [u8; 4],
    /// Name, padded with zeros.
    pub name: [u8; 28],
    /// Track id.
    pub track_id: [u8; 4],
}

/// The function's firmware.
pub struct Firmware {
    /// Admin commands.
    pub send: Ring,
    /// Events.
    pub receive: Ring,
    /// Messages to virtual functions.
    pub mailbox_send: Ring,
    /// Messages of virtual functions.
    pub mailbox_receive: Ring,
    /// Events that wait for a posted buffer.
    pub events: VecDeque<Event>,
    /// The flash.
    pub nvm: Nvm,
    /// The downloaded package.
    pub package: Option<Package>,
    /// Allocated resource ids.
    pub resources: Resources,
    /// The transmit scheduler's tree.
    pub scheduler: Scheduler,
    /// RDMA queue sets: scheduler element by parent and handle.
    pub queue_sets: BTreeMap<(u32, u16), u32>,
    /// Port configuration.
    pub phy: Phy,
    /// Commands that are to fail.
    pub faults: Faults,
    /// Commands carried out, by opcode.
    counts: BTreeMap<u16, u64>,
}

impl Firmware {
    /// The firmware after power-on.
    pub fn new() -> Self {
        Self {
            send: Ring::default(),
            receive: Ring::default(),
            mailbox_send: Ring::default(),
            mailbox_receive: Ring::default(),
            events: VecDeque::new(),
            nvm: Nvm::new(),
            package: None,
            resources: Resources::default(),
            scheduler: Scheduler::new(),
            queue_sets: BTreeMap::new(),
            phy: Phy::default(),
            faults: Faults::default(),
            counts: BTreeMap::new(),
        }
    }

    /// Forgets what `kind` takes away. The package outlives a function reset; flash and the command
    /// counts outlive every one.
    pub fn reset(&mut self, kind: Reset) {
        self.send = Ring::default();
        self.receive = Ring::default();
        self.mailbox_send = Ring::default();
        self.mailbox_receive = Ring::default();
        self.events.clear();
        self.resources = Resources::default();
        self.scheduler = Scheduler::new();
        self.queue_sets.clear();
        self.phy = Phy::default();
        if kind != Reset::Function {
            self.package = None;
        }
    }

    /// Counts a command.
    pub fn count(&mut self, opcode: u16) {
        // Opcodes are the guest's choice: 16 bits bound the map.
        let count = self.counts.entry(opcode).or_default();
        *count = count.wrapping_add(1);
    }

    /// Commands carried out, by opcode.
    pub fn counts(&self) -> &BTreeMap<u16, u64> {
        &self.counts
    }
}
