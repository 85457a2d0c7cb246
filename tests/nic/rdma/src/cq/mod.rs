// SPDX-License-Identifier: GPL-2.0
//! Completion queues: their state, the shadow area, arms and resizing.
//!
//! The driver owns the shadow area: its consumer index and its arm requests. The device reads it
//! and never writes it. An armed queue raises one event per arm: at once if entries lie beyond the
//! consumer index, else with the next entry that qualifies. With masking on, an event after an
//! unacknowledged one waits for the acknowledgement.

mod events;
mod ring;

pub(crate) use ring::CqEntry;

use crate::bits::{bit, bits, low32, Field};
use crate::cqp::error::CqpError;
use crate::host::MemError;
use crate::ring::RingMemory;
use nic_bus::Dma;
use ring::Ring;
use std::time::Instant;

/// The shadow area.
mod shadow {
    use super::{bit, bits, Field};
    /// Word at byte 0: consumer index.
    pub(super) const CONSUMER: Field = bits(19, 0);
    /// Byte offset of the arm word.
    pub(super) const ARM: u64 = 32;
    pub(super) const SELECT: Field = bits(13, 0);
    pub(super) const ARM_NEXT: Field = bit(14);
    pub(super) const ARM_SOLICITED: Field = bit(15);
}

/// What CREATE_CQ says.
pub(crate) struct CqSetup {
    pub(crate) context: u64,
    pub(crate) ring: RingMemory,
    pub(crate) entries: u32,
    pub(crate) shadow: u64,
    pub(crate) ceq: Option<u32>,
    pub(crate) mask_events: bool,
    pub(crate) check_overflow: bool,
}

/// An arm in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arm {
    Next,
    Solicited,
}

/// A live completion queue.
pub(crate) struct Cq {
    setup: CqSetup,
    ring: Ring,
    /// The ring before the last resize, as long as the driver may still read it.
    old: Option<Ring>,
    /// Number of resizes.
    resizes: u64,
    arm: Option<Arm>,
    /// An event was sent and not acknowledged.
    unacknowledged: bool,
    /// An event waits for the acknowledgement.
    held: bool,
    overflowed: bool,
    pub(crate) events: u64,
    last_event: Option<Instant>,
    last_arm: Option<Instant>,
}

/// What is remembered of a queue that was destroyed, to tell a late doorbell from a wrong one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gone {
    destroyed: Instant,
    last_event: Option<Instant>,
    last_arm: Option<Instant>,
}

impl Gone {
    /// How long ago the end was, and how long before it the last event and the last arm were.
    fn text(&self) -> String {
        let before = |at: Option<Instant>| match at {
            Some(at) => format!("{} us", self.destroyed.duration_since(at).as_micros()),
            None => "never".to_owned(),
        };
        format!(
            "destroyed {} us ago, last event before that: {}, last arm: {}",
            self.destroyed.elapsed().as_micros(),
            before(self.last_event),
            before(self.last_arm)
        )
    }
}

impl Cq {
    pub(crate) fn new(setup: CqSetup) -> Self {
        Self {
            ring: Ring::new(setup.ring, setup.entries),
            setup,
            old: None,
            resizes: 0,
            arm: None,
            unacknowledged: false,
            held: false,
            overflowed: false,
            events: 0,
            last_event: None,
            last_arm: None,
        }
    }

    /// The queue is destroyed.
    pub(crate) fn end(&self) -> Gone {
        Gone {
            destroyed: Instant::now(),
            last_event: self.last_event,
            last_arm: self.last_arm,
        }
    }

    pub(crate) fn ceq(&self) -> Option<u32> {
        self.setup.ceq
    }

    pub(crate) fn entries(&self) -> u32 {
        self.ring.entries()
    }

    pub(crate) fn produced(&self) -> u64 {
        self.ring.produced()
    }

    /// Entries the driver has not taken note of having read.
    pub(crate) fn unread(&self) -> u64 {
        self.ring.used()
    }

    pub(crate) fn armed(&self) -> Option<&'static str> {
        self.arm.map(|a| match a {
            Arm::Next => "next",
            Arm::Solicited => "solicited",
        })
    }

    pub(crate) fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// From now on entries go to another ring; the shadow area and an arm stay.
    pub(crate) fn resize(
        &mut self,
        dma: &dyn Dma,
        memory: RingMemory,
        entries: u32,
    ) -> Result<(), CqpError> {
        self.read_consumer(dma)?;
        self.old = Some(std::mem::replace(
            &mut self.ring,
            Ring::new(memory, entries),
        ));
        self.resizes += 1;
        Ok(())
    }

    /// Reads the consumer index, which belongs to the ring the driver has reached. `false` if it
    /// points beyond what was written.
    fn read_consumer(&mut self, dma: &dyn Dma) -> Result<bool, MemError> {
        let index = shadow::CONSUMER.get32(dma.read_u64(self.setup.shadow)?);
        if self.resizes > 0 {
            let word = dma.read_u64(self.arm_addr()?)?;
            if shadow::SELECT.get(word) != self.resizes % (1 << 14) {
                return Ok(self.old.as_mut().is_none_or(|old| old.consume(index)));
            }
            self.old = None;
        }
        Ok(self.ring.consume(index))
    }

    fn arm_addr(&self) -> Result<u64, MemError> {
        self.setup
            .shadow
            .checked_add(shadow::ARM)
            .ok_or(MemError::Wrap)
    }

    fn wants_event(&self, arm: Arm) -> bool {
        let solicited = arm == Arm::Solicited;
        self.ring.unread(solicited) || self.old.as_ref().is_some_and(|old| old.unread(solicited))
    }

    /// Applies the arm request in the shadow area: each doorbell is one. The sequence number beside
    /// it cannot tell requests apart, since it comes round after four and the driver may have made
    /// several before the first doorbell got here.
    fn apply_arm(&mut self, dma: &dyn Dma) -> Result<bool, MemError> {
        let consistent = self.read_consumer(dma)?;
        let word = dma.read_u64(self.arm_addr()?)?;
        if shadow::ARM_NEXT.is_set(word) {
            self.arm = Some(Arm::Next);
        } else if shadow::ARM_SOLICITED.is_set(word) {
            self.arm = Some(Arm::Solicited);
        }
        Ok(consistent)
    }
}

/// The id in a doorbell value.
pub(crate) fn doorbell_id(value: u32) -> u32 {
    low32(u64::from(value) & 0x7_FFFF)
}
