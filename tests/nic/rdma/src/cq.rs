// SPDX-License-Identifier: GPL-2.0
//! Completion queues: writing entries, overflow, arming and resizing.
//!
//! The driver owns the shadow area: its consumer index and its arm requests. The device reads it
//! and never writes it. An armed queue raises one event per arm: at once if entries lie beyond the
//! consumer index, else with the next entry that qualifies. With masking on, an event after an
//! unacknowledged one waits for the acknowledgement.

use crate::aeq::{code, Event, Source};
use crate::bits::{bit, bits, bytes, len64, low32, Field};
use crate::cqe;
use crate::cqp::error::CqpError;
use crate::cqp::CCQ;
use crate::host::MemError;
use crate::model::Model;
use crate::ring::{Cursor, RingMemory};
use nic_bus::Dma;

/// Bytes of an entry.
const ENTRY: u64 = 32;
/// Offset of the valid word in an entry.
const VALID_WORD: u64 = 24;

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

/// An entry to be written: three body words and the flags, without the valid bit.
pub(crate) struct CqEntry {
    pub(crate) body: [u64; 4],
    pub(crate) extension: Option<[u64; 4]>,
    /// Counts for an arm that wants solicited entries or errors only.
    pub(crate) solicited: bool,
}

/// An arm in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arm {
    Next,
    Solicited,
}

/// The ring in use and how far the driver has read it.
struct Ring {
    memory: RingMemory,
    next: Cursor,
    produced: u64,
    consumed: u64,
    /// Consumer index last seen.
    seen: u32,
    /// Value of `produced` after the last entry that counts as solicited.
    solicited: u64,
}

impl Ring {
    fn new(memory: RingMemory, entries: u32) -> Self {
        Self {
            memory,
            next: Cursor::new(entries),
            produced: 0,
            consumed: 0,
            seen: 0,
            solicited: 0,
        }
    }

    /// Takes the consumer index into account. `false` if it lies beyond what was written.
    fn consume(&mut self, index: u32) -> bool {
        let size = self.next.size.max(1);
        let index = index % size;
        let delta = (index + size - self.seen) % size;
        self.seen = index;
        self.consumed += u64::from(delta);
        if self.consumed > self.produced {
            self.consumed = self.produced;
            return false;
        }
        true
    }

    fn unread(&self, arm: Arm) -> bool {
        match arm {
            Arm::Next => self.produced > self.consumed,
            Arm::Solicited => self.solicited > self.consumed,
        }
    }
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
        }
    }

    pub(crate) fn ceq(&self) -> Option<u32> {
        self.setup.ceq
    }

    pub(crate) fn entries(&self) -> u32 {
        self.ring.next.size
    }

    pub(crate) fn produced(&self) -> u64 {
        self.ring.produced
    }

    /// Entries the driver has not taken note of having read.
    pub(crate) fn unread(&self) -> u64 {
        self.ring.produced.saturating_sub(self.ring.consumed)
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
        self.ring.unread(arm) || self.old.as_ref().is_some_and(|old| old.unread(arm))
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

impl Model {
    /// Writes an entry and, if the queue is armed for it, raises an event.
    pub(crate) fn cq_write(&mut self, id: u32, entry: CqEntry) {
        let dma = self.host.dma.clone();
        let Some(cq) = self.cqs.get_mut(&id) else {
            self.violate(format_args!("completion for CQ {id}, which does not exist"));
            return;
        };
        if cq.overflowed {
            return;
        }
        let need = if entry.extension.is_some() { 2 } else { 1 };
        let room = |cq: &Cq| {
            let used = cq.ring.produced.saturating_sub(cq.ring.consumed);
            used + need < u64::from(cq.ring.next.size)
        };
        if cq.setup.check_overflow && !room(cq) {
            match cq.read_consumer(&*dma) {
                Ok(true) => {}
                Ok(false) => {
                    self.violate(format_args!(
                        "CQ {id}: consumer index beyond the last entry"
                    ));
                }
                Err(e) => {
                    self.violate(format_args!("CQ {id}: shadow area: {e}"));
                    self.cq_failed(id);
                    return;
                }
            }
        }
        let Some(cq) = self.cqs.get_mut(&id) else {
            return;
        };
        if cq.setup.check_overflow && !room(cq) {
            self.log(format_args!("CQ {id} overflows"));
            self.cq_failed(id);
            return;
        }
        if let Err(e) = cq_store(cq, &self.hmc, &*dma, &entry) {
            self.violate(format_args!("CQ {id}: ring: {e}"));
            self.cq_failed(id);
            return;
        }
        cq.ring.produced += need;
        if entry.solicited {
            cq.ring.solicited = cq.ring.produced;
        }
        match cq.arm {
            Some(Arm::Next) => self.cq_event(id),
            Some(Arm::Solicited) if entry.solicited => self.cq_event(id),
            _ => {}
        }
    }

    /// The queue can take no more entries: its owner is told once.
    fn cq_failed(&mut self, id: u32) {
        let Some(cq) = self.cqs.get_mut(&id) else {
            return;
        };
        cq.overflowed = true;
        let context = cq.setup.context;
        self.counts.cq_failures += 1;
        self.raise(Event {
            code: code::CQ_OPERATION_ERROR,
            source: Source::Cq,
            id,
            context,
            wqe_index: 0,
            state: 0,
        });
    }

    /// The arm is used up by an event, or by one held until the acknowledgement.
    fn cq_event(&mut self, id: u32) {
        let Some(cq) = self.cqs.get_mut(&id) else {
            return;
        };
        cq.arm = None;
        if cq.setup.mask_events && cq.unacknowledged {
            cq.held = true;
            return;
        }
        cq.unacknowledged = true;
        cq.events += 1;
        let (ceq, context) = (cq.setup.ceq, cq.setup.context);
        if let Some(ceq) = ceq {
            self.ceq_write(ceq, context);
        }
    }

    /// The driver armed a queue.
    pub(crate) fn cq_arm(&mut self, id: u32) {
        self.counts.doorbells.cq_arm += 1;
        let dma = self.host.dma.clone();
        let Some(cq) = self.cqs.get_mut(&id) else {
            self.violate(format_args!("arm of CQ {id}, which does not exist"));
            return;
        };
        match cq.apply_arm(&*dma) {
            Ok(consistent) => {
                let fire = cq.arm.is_some_and(|arm| cq.wants_event(arm));
                if !consistent {
                    self.violate(format_args!(
                        "CQ {id}: consumer index beyond the last entry"
                    ));
                }
                if fire {
                    self.cq_event(id);
                }
            }
            Err(e) => {
                self.violate(format_args!("CQ {id}: shadow area: {e}"));
                self.cq_failed(id);
            }
        }
    }

    /// The driver acknowledged an event of a queue.
    pub(crate) fn cq_ack(&mut self, id: u32) {
        self.counts.doorbells.cq_ack += 1;
        let Some(cq) = self.cqs.get_mut(&id) else {
            // An event may be read after its queue was destroyed.
            if id != CCQ {
                self.log(format_args!(
                    "acknowledgement for CQ {id}, which does not exist"
                ));
            }
            return;
        };
        cq.unacknowledged = false;
        if std::mem::take(&mut cq.held) {
            self.cq_event(id);
        }
    }
}

/// Stores an entry, its extension first: the driver looks at both once the first is valid.
fn cq_store(
    cq: &mut Cq,
    hmc: &crate::hmc::Hmc,
    dma: &dyn Dma,
    entry: &CqEntry,
) -> Result<(), MemError> {
    let first = cq.ring.next;
    if let Some(extension) = entry.extension {
        let second = first.advanced(1);
        store(cq.ring.memory, hmc, dma, second, extension)?;
    }
    let mut body = entry.body;
    body[3] |= cqe::EXTENDED.flag(entry.extension.is_some());
    store(cq.ring.memory, hmc, dma, first, body)?;
    cq.ring
        .next
        .advance(if entry.extension.is_some() { 2 } else { 1 });
    Ok(())
}

fn store(
    memory: RingMemory,
    hmc: &crate::hmc::Hmc,
    dma: &dyn Dma,
    at: Cursor,
    words: [u64; 4],
) -> Result<(), MemError> {
    let addr = memory.addr(hmc, dma, u64::from(at.index) * ENTRY)?;
    let [a, b, c, flags] = words;
    let body = bytes(&[a, b, c]);
    debug_assert_eq!(len64(body.len()), VALID_WORD);
    dma.write(addr, &body)?;
    let valid = addr.checked_add(VALID_WORD).ok_or(MemError::Wrap)?;
    let flags = flags & !cqe::VALID.flag(true);
    dma.write_u64(valid, flags | cqe::VALID.flag(at.polarity))?;
    Ok(())
}

/// The id in a doorbell value.
pub(crate) fn doorbell_id(value: u32) -> u32 {
    low32(u64::from(value) & 0x7_FFFF)
}
