// SPDX-License-Identifier: GPL-2.0
//! The asynchronous event queue.

use crate::bits::{bit, bits, Field};
use crate::model::Model;
use crate::ring::{Cursor, RingMemory};

/// Word 1 of an entry.
mod entry {
    use super::{bit, bits, Field};
    pub(super) const ID_LOW: Field = bits(17, 0);
    pub(super) const WQE_INDEX: Field = bits(32, 18);
    pub(super) const OVERFLOW: Field = bit(33);
    pub(super) const CODE: Field = bits(45, 34);
    pub(super) const ID_HIGH: Field = bit(46);
    pub(super) const SOURCE: Field = bits(53, 50);
    pub(super) const STATE: Field = bits(56, 54);
    pub(super) const VALID: Field = bit(63);
}

/// Event codes the model raises.
pub(crate) mod code {
    pub(crate) const UNALLOCATED_STAG: u16 = 0x0102;
    pub(crate) const INVALID_STAG: u16 = 0x0103;
    pub(crate) const BAD_PD: u16 = 0x0105;
    pub(crate) const BAD_STAG_KEY: u16 = 0x0106;
    pub(crate) const BOUNDS_VIOLATION: u16 = 0x0108;
    pub(crate) const RIGHTS_VIOLATION: u16 = 0x0109;
    pub(crate) const TO_WRAP: u16 = 0x010A;
    pub(crate) const DATAGRAM_TOO_LONG: u16 = 0x0132;
    pub(crate) const DATAGRAM_BAD_PD: u16 = 0x0133;
    pub(crate) const CQ_OPERATION_ERROR: u16 = 0x0203;
    pub(crate) const STAG_ZERO_INVALID: u16 = 0x0206;
    pub(crate) const WQE_UNEXPECTED_OPCODE: u16 = 0x020A;
    pub(crate) const WQE_INVALID_PARAMETER: u16 = 0x020B;
    pub(crate) const WQE_INVALID_FRAG_DATA: u16 = 0x020C;
    pub(crate) const MESSAGE_TOO_LONG_FOR_BUFFER: u16 = 0x0303;
    pub(crate) const INVALID_AH: u16 = 0x0406;
    pub(crate) const LOCAL_QP_CATASTROPHIC: u16 = 0x0704;
    pub(crate) const QP_SUSPEND_COMPLETE: u16 = 0x0900;
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    None,
    Rq,
    Cq,
    Sq,
}

impl Source {
    fn code(self) -> u64 {
        match self {
            Self::None => 0x0,
            Self::Rq => 0x1,
            Self::Cq => 0x2,
            Self::Sq => 0x5,
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::None),
            "rq" => Some(Self::Rq),
            "cq" => Some(Self::Cq),
            "sq" => Some(Self::Sq),
            _ => None,
        }
    }
}

/// An asynchronous event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) code: u16,
    pub(crate) source: Source,
    /// Queue pair or completion queue.
    pub(crate) id: u32,
    pub(crate) context: u64,
    pub(crate) wqe_index: u32,
    /// State field of a queue pair.
    pub(crate) state: u8,
}

impl Event {
    fn words(&self, polarity: bool, overflow: bool) -> [u64; 2] {
        let id = u64::from(self.id);
        [
            self.context,
            entry::ID_LOW.put(id)
                | entry::ID_HIGH.put(id >> 18)
                | entry::WQE_INDEX.put(self.wqe_index.into())
                | entry::OVERFLOW.flag(overflow)
                | entry::CODE.put(self.code.into())
                | entry::SOURCE.put(self.source.code())
                | entry::STATE.put(self.state.into())
                | entry::VALID.flag(polarity),
        ]
    }
}

/// The live asynchronous event queue.
pub(crate) struct Aeq {
    ring: RingMemory,
    next: Cursor,
    /// Entries written and not given back.
    used: u32,
    pub(crate) written: u64,
    pub(crate) lost: u64,
}

impl Aeq {
    pub(crate) fn new(ring: RingMemory, entries: u32) -> Self {
        Self {
            ring,
            next: Cursor::new(entries),
            used: 0,
            written: 0,
            lost: 0,
        }
    }
}

impl Model {
    /// Writes an event. The last free entry is marked as the overflow; later events are lost.
    pub(crate) fn raise(&mut self, event: Event) {
        let dma = self.host.dma.clone();
        let Some(aeq) = &mut self.aeq else {
            self.log(format_args!("no AEQ for event {:#06x}", event.code));
            return;
        };
        if aeq.used >= aeq.next.size {
            aeq.lost += 1;
            return;
        }
        let overflow = aeq.used + 1 == aeq.next.size;
        let [context, flags] = event.words(aeq.next.polarity, overflow);
        let stored = aeq
            .ring
            .addr(&self.hmc, &*dma, u64::from(aeq.next.index) * 16)
            .and_then(|addr| {
                dma.write_u64(addr, context)?;
                Ok(dma.write_u64(addr | 8, flags)?)
            });
        aeq.next.advance(1);
        aeq.used += 1;
        aeq.written += 1;
        if let Err(e) = stored {
            self.violate(format_args!("AEQ: {e}"));
            return;
        }
        self.aeq_interrupt();
    }

    /// The driver gave entries back.
    pub(crate) fn aeq_return(&mut self, count: u32) {
        self.counts.doorbells.aeq_alloc += 1;
        let used = self.aeq.as_ref().map_or(0, |a| a.used);
        if count > used {
            self.violate(format_args!("{count} AEQ entries returned, {used} in use"));
        }
        if let Some(aeq) = &mut self.aeq {
            aeq.used = aeq.used.saturating_sub(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_entry_is_built() {
        let event = Event {
            code: code::DATAGRAM_BAD_PD,
            source: Source::Sq,
            id: 0x45,
            context: 7,
            wqe_index: 9,
            state: 6,
        };
        assert_eq!(event.words(true, false), [7, 0x8194_04CC_0024_0045]);
    }
}
