// SPDX-License-Identifier: GPL-2.0
//! CREATE_CQ, MODIFY_CQ (resize) and DESTROY_CQ.

use super::{ring_memory, Done, OpResult, Wqe, CCQ};
use crate::bits::{bit, bits, Field};
use crate::config::Kind;
use crate::cq::{Cq, CqSetup};
use crate::cqp::error::CqpError;
use crate::model::Model;
use crate::ring::RingMemory;

/// Word 0: entries.
const SIZE: Field = bits(20, 0);
/// Word 1: echoed in the CEQE.
const CONTEXT: Field = bits(62, 0);
/// Word 3.
const ID: Field = bits(18, 0);
const CEQ_ID: Field = bits(31, 22);
const RESIZE: Field = bit(43);
const LPBL_SIZE: Field = bits(45, 44);
const CHECK_OVERFLOW: Field = bit(46);
const VIRTMAP: Field = bit(47);
const CEQE_MASK: Field = bit(48);
const CEQ_VALID: Field = bit(49);
const WIDE_STRIDE: Field = bit(61);

fn memory(wqe: &Wqe) -> Result<RingMemory, CqpError> {
    ring_memory(wqe, VIRTMAP.is_set(wqe[3]), LPBL_SIZE.get(wqe[3]))
}

fn entries(wqe: &Wqe) -> Result<u32, CqpError> {
    match SIZE.get32(wqe[0]) {
        n if n < 2 => Err(CqpError::parameter(format_args!("{n} entries"))),
        n => Ok(n),
    }
}

impl Model {
    pub(super) fn op_create_cq(&mut self, wqe: &Wqe) -> OpResult {
        let id = ID.get32(wqe[3]);
        self.in_range(Kind::Cq, "CQ", id)?;
        if self.cqs.contains_key(&id) {
            return Err(CqpError::in_use("CQ", id));
        }
        if WIDE_STRIDE.is_set(wqe[3]) {
            return Err(CqpError::parameter("64-byte entries"));
        }
        let ceq = CEQ_VALID.is_set(wqe[3]).then(|| CEQ_ID.get32(wqe[3]));
        // The first event queue is made after the queue of control completions that names it.
        if let Some(ceq) = ceq.filter(|c| id != CCQ && !self.ceqs.contains_key(c)) {
            return Err(CqpError::unused("CEQ", ceq));
        }
        let shadow = wqe[5];
        if shadow == 0 || shadow % 64 != 0 {
            return Err(CqpError::parameter(format_args!("shadow area {shadow:#x}")));
        }
        let setup = CqSetup {
            context: CONTEXT.get(wqe[1]),
            ring: memory(wqe)?,
            entries: entries(wqe)?,
            shadow,
            ceq,
            mask_events: CEQE_MASK.is_set(wqe[3]),
            check_overflow: CHECK_OVERFLOW.is_set(wqe[3]),
        };
        self.cqs_gone.remove(&id);
        self.cqs.insert(id, Cq::new(setup));
        Ok(Done::default())
    }

    pub(super) fn op_modify_cq(&mut self, wqe: &Wqe) -> OpResult {
        let id = ID.get32(wqe[3]);
        let ring = memory(wqe)?;
        let entries = entries(wqe)?;
        let dma = self.host.dma.clone();
        let Some(cq) = self.cqs.get_mut(&id) else {
            return Err(CqpError::unused("CQ", id));
        };
        if RESIZE.is_set(wqe[3]) {
            cq.resize(&*dma, ring, entries)?;
        }
        Ok(Done::default())
    }

    pub(super) fn op_destroy_cq(&mut self, wqe: &Wqe) -> OpResult {
        let id = ID.get32(wqe[3]);
        let Some(cq) = self.cqs.remove(&id) else {
            return Err(CqpError::unused("CQ", id));
        };
        self.cqs_gone.insert(id, cq.end());
        let users: Vec<u32> = self
            .qps
            .iter()
            .filter(|(_, q)| q.context.send_cq == id || q.context.recv_cq == id)
            .map(|(&qp, _)| qp)
            .collect();
        for qp in users {
            self.violate(format_args!("CQ {id} destroyed while QP {qp} uses it"));
        }
        Ok(Done::default())
    }
}
