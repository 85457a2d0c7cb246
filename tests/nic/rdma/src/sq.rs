// SPDX-License-Identifier: GPL-2.0
//! Send queues: finding posted WQEs and completing them.

use crate::aeq::{code, Source};
use crate::cq::CqEntry;
use crate::cqe;
use crate::host::MemError;
use crate::model::Model;
use crate::qp::{Qp, QpType};
use crate::wqe::{is_valid, opcode, Header, Quantum, Send, MAX_QUANTA, QUANTUM};

/// Why a WQE could not be taken.
enum FetchError {
    Memory(MemError),
    /// Event code.
    Wqe(u16),
}

impl From<MemError> for FetchError {
    fn from(e: MemError) -> Self {
        Self::Memory(e)
    }
}

impl Model {
    /// One turn of the queue pair at the head of the work list.
    pub(crate) fn sq_turn(&mut self, wqes: usize) {
        let Some(id) = self.work.pop_front() else {
            return;
        };
        if let Some(qp) = self.qps.get_mut(&id) {
            qp.queued = false;
        }
        let more = (0..wqes).all(|_| self.sq_step(id));
        if more {
            self.kick(id);
        }
    }

    /// Does what doorbells were rung for. A ring at most of each queue pair, as whoever posts all
    /// the time would never let go.
    pub(crate) fn sq_catch_up(&mut self) {
        let rung: Vec<u32> = self.work.iter().copied().collect();
        for id in rung {
            let size = self.qps.get(&id).map_or(0, |qp| qp.sq.size);
            for _ in 0..size {
                if !self.sq_step(id) {
                    break;
                }
            }
        }
    }

    /// The header at the queue's position, if a WQE was posted there.
    fn sq_header(&self, qp: &Qp) -> Result<Option<Header>, MemError> {
        let offset = u64::from(qp.sq.index) * QUANTUM + 24;
        let addr = qp.context.sq.addr(&self.hmc, &*self.host.dma, offset)?;
        let word = self.host.dma.read_u64(addr)?;
        Ok(is_valid(word, qp.sq.polarity).then(|| Header::new(word)))
    }

    /// The quanta of the WQE at the queue's position.
    fn sq_quanta(&self, qp: &Qp, count: u32) -> Result<Vec<Quantum>, MemError> {
        (0..count)
            .map(|n| {
                let at = qp.sq.advanced(n);
                let offset = u64::from(at.index) * QUANTUM;
                qp.context.sq.read::<4>(&self.hmc, &*self.host.dma, offset)
            })
            .collect()
    }

    /// Takes one WQE. `false` if there is nothing more to do for now.
    fn sq_step(&mut self, id: u32) -> bool {
        let Some(qp) = self.qps.get_mut(&id) else {
            return false;
        };
        if qp.kind == QpType::Rc {
            if !std::mem::replace(&mut qp.warned, true) {
                self.log(format_args!(
                    "QP {id}: RC transport is not modelled, WQEs stay"
                ));
            }
            return false;
        }
        if !qp.may_send() {
            return false;
        }
        let index = qp.sq.index;
        match self.sq_take(id) {
            Ok(more) => more,
            Err(FetchError::Wqe(code)) => {
                self.qp_error(id, code, Source::Sq, index);
                false
            }
            Err(FetchError::Memory(e)) => {
                self.violate(format_args!("QP {id}: send queue: {e}"));
                self.qp_error(id, code::LOCAL_QP_CATASTROPHIC, Source::Sq, index);
                false
            }
        }
    }

    fn sq_take(&mut self, id: u32) -> Result<bool, FetchError> {
        let Some(qp) = self.qps.get(&id) else {
            return Ok(false);
        };
        let Some(header) = self.sq_header(qp)? else {
            return Ok(false);
        };
        let at = qp.sq;
        let count = header.quanta().map_err(FetchError::Wqe)?;
        if count > at.size {
            return Err(FetchError::Wqe(code::WQE_INVALID_PARAMETER));
        }
        if header.opcode() != opcode::NOP {
            let quanta = self.sq_quanta(qp, count)?;
            if at.index % MAX_QUANTA + count > MAX_QUANTA {
                self.violate(format_args!(
                    "QP {id}: WQE of {count} quanta at {} crosses a boundary",
                    at.index
                ));
            }
            let send = Send::decode(&quanta, at.polarity).map_err(FetchError::Wqe)?;
            self.send(id, &send).map_err(FetchError::Wqe)?;
        }
        // Delivery to this very queue pair may have failed it meanwhile.
        let Some(qp) = self.qps.get_mut(&id) else {
            return Ok(false);
        };
        qp.sq.advance(count);
        if header.signaled() {
            self.sq_complete(id, at.index, header.opcode());
        }
        Ok(true)
    }

    fn sq_complete(&mut self, id: u32, index: u32, opcode: u8) {
        let Some(qp) = self.qps.get(&id) else { return };
        let cq = qp.context.send_cq;
        let flags =
            cqe::WQE_INDEX.put(index.into()) | cqe::OPCODE.put(opcode.into()) | cqe::SQ.flag(true);
        let body = [
            0,
            qp.context.completion_context,
            cqe::QP.put(id.into()),
            flags,
        ];
        self.cq_write(
            cq,
            CqEntry {
                body,
                extension: None,
                solicited: false,
            },
        );
    }

    /// Moves behind everything posted. Returns the index of the first WQE that was pending.
    pub(crate) fn sq_discard(&mut self, id: u32) -> Option<u32> {
        let mut first = None;
        let mut left = self.qps.get(&id)?.sq.size;
        while left > 0 {
            let qp = self.qps.get(&id)?;
            let index = qp.sq.index;
            let Ok(Some(header)) = self.sq_header(qp) else {
                break;
            };
            let count = header.quanta().unwrap_or(1).min(left);
            first = first.or(Some(index));
            left -= count;
            self.qps.get_mut(&id)?.sq.advance(count);
        }
        first
    }
}
