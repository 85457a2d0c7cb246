// SPDX-License-Identifier: GPL-2.0
//! What happens at completion queues: entries, arms, acknowledgements.

use super::{Arm, CqEntry};
use crate::aeq::{code, Event, Source};
use crate::cqp::CCQ;
use crate::host::MemError;
use crate::model::Model;
use std::time::Instant;

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
        if cq.setup.check_overflow && !cq.ring.has_room(&entry) {
            match cq.read_consumer(&*dma) {
                Ok(true) => {}
                Ok(false) => self.cq_inconsistent(id),
                Err(e) => return self.cq_unreachable(id, &e),
            }
        }
        let Some(cq) = self.cqs.get_mut(&id) else {
            return;
        };
        if cq.setup.check_overflow && !cq.ring.has_room(&entry) {
            self.log(format_args!("CQ {id} overflows"));
            return self.cq_failed(id);
        }
        if let Err(e) = cq.ring.write(&self.hmc, &*dma, &entry) {
            return self.cq_unreachable(id, &e);
        }
        match cq.arm {
            Some(Arm::Next) => self.cq_fire(id),
            Some(Arm::Solicited) if entry.solicited => self.cq_fire(id),
            _ => {}
        }
    }

    fn cq_inconsistent(&mut self, id: u32) {
        self.violate(format_args!(
            "CQ {id}: consumer index beyond the last entry"
        ));
    }

    fn cq_unreachable(&mut self, id: u32, e: &MemError) {
        self.violate(format_args!("CQ {id}: {e}"));
        self.cq_failed(id);
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

    /// The arm is used up.
    fn cq_fire(&mut self, id: u32) {
        if let Some(cq) = self.cqs.get_mut(&id) {
            cq.arm = None;
            self.cq_event(id);
        }
    }

    /// Raises an event, now or after the acknowledgement of the last.
    fn cq_event(&mut self, id: u32) {
        let Some(cq) = self.cqs.get_mut(&id) else {
            return;
        };
        if cq.setup.mask_events && cq.unacknowledged {
            cq.held = true;
            return;
        }
        cq.unacknowledged = true;
        cq.events += 1;
        cq.last_event = Some(Instant::now());
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
            if let Some(gone) = self.cqs_gone.get(&id) {
                self.log(format_args!("CQ {id}: {}", gone.text()));
            }
            return;
        };
        cq.last_arm = Some(Instant::now());
        match cq.apply_arm(&*dma) {
            Ok(consistent) => {
                let fire = cq.arm.is_some_and(|arm| cq.wants_event(arm));
                if !consistent {
                    self.cq_inconsistent(id);
                }
                if fire {
                    self.cq_fire(id);
                }
            }
            Err(e) => self.cq_unreachable(id, &e),
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
