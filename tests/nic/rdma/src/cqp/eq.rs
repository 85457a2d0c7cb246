// SPDX-License-Identifier: GPL-2.0
//! Creation and destruction of event queues: CEQ and AEQ.

use super::{ring_memory, Done, OpResult, Wqe};
use crate::aeq::Aeq;
use crate::bits::{bit, bits, Field};
use crate::ceq::Ceq;
use crate::cqp::error::CqpError;
use crate::model::Model;
use crate::ring::RingMemory;

/// Word 2: entries.
const CEQ_SIZE: Field = bits(21, 0);
const AEQ_SIZE: Field = bits(18, 0);
/// Word 3.
const CEQ_ID: Field = bits(9, 0);
const CEQ_ID_HIGH: Field = bits(15, 10);
const LPBL_SIZE: Field = bits(45, 44);
const VMAP: Field = bit(47);

fn memory(wqe: &Wqe) -> Result<RingMemory, CqpError> {
    ring_memory(wqe, VMAP.is_set(wqe[3]), LPBL_SIZE.get(wqe[3]))
}

fn ceq_id(wqe: &Wqe) -> u32 {
    CEQ_ID_HIGH.get32(wqe[3]) << 10 | CEQ_ID.get32(wqe[3])
}

impl Model {
    pub(super) fn op_create_ceq(&mut self, wqe: &Wqe) -> OpResult {
        let id = ceq_id(wqe);
        if id >= self.config.max_ceqs {
            return Err(CqpError::range("CEQ", id, self.config.max_ceqs));
        }
        if self.ceqs.contains_key(&id) {
            return Err(CqpError::in_use("CEQ", id));
        }
        let entries = CEQ_SIZE.get32(wqe[2]);
        if entries == 0 {
            return Err(CqpError::parameter("no entries"));
        }
        let ring = memory(wqe)?;
        self.ceqs.insert(id, Ceq::new(ring, entries));
        Ok(Done::default())
    }

    pub(super) fn op_destroy_ceq(&mut self, wqe: &Wqe) -> OpResult {
        let id = ceq_id(wqe);
        if self.ceqs.remove(&id).is_none() {
            return Err(CqpError::unused("CEQ", id));
        }
        // The queue of control completions outlives its event queue by design of the teardown.
        let users: Vec<u32> = self
            .cqs
            .iter()
            .filter(|(&cq, c)| cq != super::CCQ && c.ceq() == Some(id))
            .map(|(&cq, _)| cq)
            .collect();
        for cq in users {
            self.violate(format_args!("CEQ {id} destroyed while CQ {cq} uses it"));
        }
        Ok(Done::default())
    }

    pub(super) fn op_create_aeq(&mut self, wqe: &Wqe) -> OpResult {
        if self.aeq.is_some() {
            return Err(CqpError::in_use("AEQ", 0));
        }
        let entries = AEQ_SIZE.get32(wqe[2]);
        if entries < 2 {
            return Err(CqpError::parameter(format_args!("{entries} entries")));
        }
        self.aeq = Some(Aeq::new(memory(wqe)?, entries));
        Ok(Done::default())
    }

    pub(super) fn op_destroy_aeq(&mut self) -> OpResult {
        match self.aeq.take() {
            Some(_) => Ok(Done::default()),
            None => Err(CqpError::unused("AEQ", 0)),
        }
    }
}
