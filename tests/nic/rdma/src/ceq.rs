// SPDX-License-Identifier: GPL-2.0
//! Completion event queues.
//!
//! An entry names a completion queue that has an event. There is no consumer index: since a queue
//! has at most one unacknowledged event, a queue as long as there are completion queues never
//! overtakes its reader.

use crate::bits::{bit, bits, Field};
use crate::model::Model;
use crate::ring::{Cursor, RingMemory};

/// The entry.
const CONTEXT: Field = bits(62, 0);
const VALID: Field = bit(63);

/// A live completion event queue.
pub(crate) struct Ceq {
    ring: RingMemory,
    next: Cursor,
    pub(crate) written: u64,
}

impl Ceq {
    pub(crate) fn new(ring: RingMemory, entries: u32) -> Self {
        Self {
            ring,
            next: Cursor::new(entries),
            written: 0,
        }
    }

    pub(crate) fn entries(&self) -> u32 {
        self.next.size
    }
}

impl Model {
    /// Writes an entry and raises the queue's interrupt.
    pub(crate) fn ceq_write(&mut self, id: u32, context: u64) {
        let dma = self.host.dma.clone();
        let Some(ceq) = self.ceqs.get_mut(&id) else {
            self.log(format_args!("event for CEQ {id}, which does not exist"));
            return;
        };
        let entry = CONTEXT.put(context) | VALID.flag(ceq.next.polarity);
        let stored = ceq
            .ring
            .addr(&self.hmc, &*dma, u64::from(ceq.next.index) * 8)
            .and_then(|addr| Ok(dma.write_u64(addr, entry)?));
        ceq.next.advance(1);
        ceq.written += 1;
        if let Err(e) = stored {
            self.violate(format_args!("CEQ {id}: {e}"));
            return;
        }
        self.ceq_interrupt(id);
    }
}
