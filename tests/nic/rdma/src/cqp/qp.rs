// SPDX-License-Identifier: GPL-2.0
//! CREATE_QP, MODIFY_QP, DESTROY_QP, SUSPEND_QP and RESUME_QP.

use super::{Done, OpResult, Wqe};
use crate::aeq::{code, Event, Source};
use crate::bits::{bit, bits, Field};
use crate::config::Kind;
use crate::cqp::error::CqpError;
use crate::model::Model;
use crate::qp::{Qp, QpContext, QpType, State, CONTEXT_SIZE};

/// Word 3.
const ID: Field = bits(23, 0);
const VQ: Field = bit(45);
const TYPE: Field = bits(50, 48);
const NEXT_STATE: Field = bits(62, 60);
/// Word 2 of RESUME_QP.
const QUEUE_SET: Field = bits(9, 0);

impl Model {
    fn read_context(&self, wqe: &Wqe) -> Result<QpContext, CqpError> {
        let mut buf = [0; CONTEXT_SIZE];
        self.host.dma.read(wqe[2], &mut buf)?;
        let context = QpContext::parse(&buf, VQ.is_set(wqe[3]))?;
        for cq in [context.send_cq, context.recv_cq] {
            if !self.cqs.contains_key(&cq) {
                return Err(CqpError::unused("CQ", cq));
            }
        }
        Ok(context)
    }

    pub(super) fn op_create_qp(&mut self, wqe: &Wqe) -> OpResult {
        let id = ID.get32(wqe[3]);
        self.in_range(Kind::Qp, "QP", id)?;
        if self.qps.contains_key(&id) {
            return Err(CqpError::in_use("QP", id));
        }
        let kind = QpType::from_code(TYPE.get(wqe[3]))
            .ok_or_else(|| CqpError::parameter(format_args!("type {}", TYPE.get(wqe[3]))))?;
        match State::from_code(NEXT_STATE.get(wqe[3])) {
            Some(State::Idle) => {}
            other => return Err(CqpError::state(format_args!("created in state {other:?}"))),
        }
        let context = self.read_context(wqe)?;
        self.qps.insert(id, Qp::new(kind, context));
        for group in self.groups.of_member(id) {
            self.violate(format_args!(
                "group {group} lists QP {id} from before its creation"
            ));
        }
        Ok(Done::default())
    }

    pub(super) fn op_modify_qp(&mut self, wqe: &Wqe) -> OpResult {
        let id = ID.get32(wqe[3]);
        let kind = QpType::from_code(TYPE.get(wqe[3]));
        let next = State::from_code(NEXT_STATE.get(wqe[3]))
            .ok_or_else(|| CqpError::parameter("state 0 or 7"))?;
        let old = self
            .qps
            .get(&id)
            .ok_or_else(|| CqpError::unused("QP", id))?;
        let old_state = old.state;
        if kind != Some(old.kind) {
            return Err(CqpError::parameter(format_args!(
                "QP {id} is {:?}",
                old.kind
            )));
        }
        if !old_state.may_become(next) {
            return Err(CqpError::state(format_args!(
                "QP {id}: {old_state:?} to {next:?}"
            )));
        }
        let context = self.read_context(wqe)?;
        if next == State::Rts && !self.sched.get(&context.queue_set).is_some_and(|n| n.leaf) {
            self.violate(format_args!(
                "QP {id} may send on queue set {}, which does not exist",
                context.queue_set
            ));
        }
        if let Some(qp) = self.qps.get_mut(&id) {
            if qp.context.rings_differ(&context) {
                let text = format!("QP {id} changes its rings");
                qp.context = context;
                self.violate(format_args!("{text}"));
            } else {
                qp.context = context;
            }
        }
        if let Some(qp) = self.qps.get_mut(&id) {
            qp.state = next;
        }
        match next {
            State::Rts => self.kick(id),
            State::Sqd if old_state != State::Sqd => {
                self.qp_event(id, code::QP_SUSPEND_COMPLETE, Source::Sq, 0);
            }
            _ => {}
        }
        Ok(Done::default())
    }

    pub(super) fn op_destroy_qp(&mut self, wqe: &Wqe) -> OpResult {
        let id = ID.get32(wqe[3]);
        if self.qps.remove(&id).is_none() {
            return Err(CqpError::unused("QP", id));
        }
        for group in self.groups.of_member(id) {
            self.violate(format_args!(
                "QP {id} destroyed while a member of group {group}"
            ));
        }
        Ok(Done::default())
    }

    pub(super) fn op_suspend_qp(&mut self, wqe: &Wqe) -> OpResult {
        let id = ID.get32(wqe[3]);
        let qp = self
            .qps
            .get_mut(&id)
            .ok_or_else(|| CqpError::unused("QP", id))?;
        qp.suspended = true;
        self.qp_event(id, code::QP_SUSPEND_COMPLETE, Source::Sq, 0);
        Ok(Done::default())
    }

    pub(super) fn op_resume_qp(&mut self, wqe: &Wqe) -> OpResult {
        let id = ID.get32(wqe[3]);
        let qp = self
            .qps
            .get_mut(&id)
            .ok_or_else(|| CqpError::unused("QP", id))?;
        qp.suspended = false;
        qp.context.queue_set = QUEUE_SET.get16(wqe[2]);
        self.kick(id);
        Ok(Done::default())
    }

    /// Raises an event about a queue pair without a change of its state.
    pub(crate) fn qp_event(&mut self, id: u32, code: u16, source: Source, wqe_index: u32) {
        let Some(qp) = self.qps.get(&id) else { return };
        let event = Event {
            code,
            source,
            id,
            context: qp.context.completion_context,
            wqe_index,
            state: qp.state.reported(),
        };
        self.raise(event);
    }

    /// A fault of the queue pair: it goes to the error state and the driver is told.
    pub(crate) fn qp_error(&mut self, id: u32, code: u16, source: Source, wqe_index: u32) {
        if let Some(qp) = self.qps.get_mut(&id) {
            qp.state = State::Error;
        }
        self.log(format_args!(
            "QP {id}: error event {code:#06x} ({source:?}, WQE {wqe_index})"
        ));
        self.qp_event(id, code, source, wqe_index);
    }
}
