// SPDX-License-Identifier: GPL-2.0
//! FLUSH_WQES: one error completion stands for everything pending in a queue.
//!
//! The driver makes the other completions from its own ring. The device's position moves behind
//! what was pending, so that a later flush speaks of later WQEs only.

use super::{Done, OpResult, Wqe};
use crate::bits::{bit, bits, Field};
use crate::cq::CqEntry;
use crate::cqe;
use crate::cqp::error::CqpError;
use crate::model::Model;
use crate::qp::State;

/// Word 2.
const RQ_MINOR: Field = bits(15, 0);
const RQ_MAJOR: Field = bits(31, 16);
const SQ_MINOR: Field = bits(47, 32);
const SQ_MAJOR: Field = bits(63, 48);
/// Word 3.
const QP: Field = bits(23, 0);
const GENERATE_AE: Field = bit(59);
const USER_CODE: Field = bit(60);
const FLUSH_SQ: Field = bit(61);
const FLUSH_RQ: Field = bit(62);

/// Codes without [`USER_CODE`]: flushed, general.
const GENERAL: (u16, u16) = (1, 1);

/// Minor code of the answer: which queues had something to flush.
fn outcome(sq: bool, rq: bool) -> u16 {
    match (sq, rq) {
        (false, false) => 0,
        (false, true) => 2,
        (true, false) => 3,
        (true, true) => 1,
    }
}

impl Model {
    pub(super) fn op_flush(&mut self, wqe: &Wqe) -> OpResult {
        let id = QP.get32(wqe[3]);
        let qp = self
            .qps
            .get(&id)
            .ok_or_else(|| CqpError::unused("QP", id))?;
        if qp.state != State::Error {
            self.log(format_args!("flush of QP {id} in state {:?}", qp.state));
        }
        if GENERATE_AE.is_set(wqe[3]) {
            return Err(CqpError::parameter("flush with an event"));
        }
        let user = USER_CODE.is_set(wqe[3]);
        let code = |major: Field, minor: Field| {
            if user {
                (major.get16(wqe[2]), minor.get16(wqe[2]))
            } else {
                GENERAL
            }
        };
        let mut sq = false;
        let mut rq = false;
        if FLUSH_SQ.is_set(wqe[3]) {
            if let Some(first) = self.sq_discard(id) {
                sq = true;
                self.flush_entry(id, first, true, code(SQ_MAJOR, SQ_MINOR));
            }
        }
        if FLUSH_RQ.is_set(wqe[3]) {
            if let Some(first) = self.rq_discard(id) {
                rq = true;
                self.flush_entry(id, first, false, code(RQ_MAJOR, RQ_MINOR));
            }
        }
        Ok(Done {
            value: 0,
            minor: outcome(sq, rq),
        })
    }

    fn flush_entry(&mut self, id: u32, wqe_index: u32, sq: bool, (major, minor): (u16, u16)) {
        let Some(qp) = self.qps.get(&id) else { return };
        let cq = if sq {
            qp.context.send_cq
        } else {
            qp.context.recv_cq
        };
        let flags = cqe::MINOR.put(minor.into())
            | cqe::MAJOR.put(major.into())
            | cqe::WQE_INDEX.put(wqe_index.into())
            | cqe::ERROR.flag(true)
            | cqe::SQ.flag(sq);
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
                solicited: true,
            },
        );
    }
}
