// SPDX-License-Identifier: GPL-2.0
//! Receive queues. There is no doorbell: a WQE is looked for when a packet arrives.

use crate::host::MemError;
use crate::model::Model;
use crate::qp::Qp;
use crate::wqe::{is_valid, Quantum, QUANTUM};

impl Model {
    /// Whether a WQE was posted at the queue's position.
    fn rq_posted(&self, qp: &Qp) -> Result<bool, MemError> {
        let offset = rq_offset(qp) + 24;
        let addr = qp.context.rq.addr(&self.hmc, &*self.host.dma, offset)?;
        let word = self.host.dma.read_u64(addr)?;
        Ok(is_valid(word, qp.rq.polarity))
    }

    /// The WQE at the queue's position, if one was posted.
    pub(crate) fn rq_peek(&self, qp: &Qp) -> Result<Option<Vec<Quantum>>, MemError> {
        if !self.rq_posted(qp)? {
            return Ok(None);
        }
        let start = rq_offset(qp);
        (0..1u64 << qp.context.rq_shift)
            .map(|n| {
                qp.context
                    .rq
                    .read::<4>(&self.hmc, &*self.host.dma, start + n * QUANTUM)
            })
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// Moves behind everything posted. Returns the index of the first WQE that was pending.
    pub(crate) fn rq_discard(&mut self, id: u32) -> Option<u32> {
        let mut first = None;
        for _ in 0..self.qps.get(&id)?.rq.size {
            let qp = self.qps.get(&id)?;
            if !matches!(self.rq_posted(qp), Ok(true)) {
                break;
            }
            first = first.or(Some(rq_index(qp)));
            self.qps.get_mut(&id)?.rq.advance(1);
        }
        first
    }
}

/// Byte offset of the WQE at the queue's position.
fn rq_offset(qp: &Qp) -> u64 {
    u64::from(rq_index(qp)) * QUANTUM
}

/// Index of that WQE in quanta, as completions name it.
pub(crate) fn rq_index(qp: &Qp) -> u32 {
    qp.rq.index << qp.context.rq_shift
}
