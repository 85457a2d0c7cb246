// SPDX-License-Identifier: GPL-2.0
//! The control queue pair (CQP): the queue ([`queue`]) and its operations, one submodule for each
//! group of them.

pub(crate) mod error;
pub(crate) mod op;

mod ah;
mod arp;
mod cq;
mod eq;
mod features;
mod flush;
mod fpm;
mod mcast;
mod qp;
mod queue;
mod sched;
mod sds;
mod stag;
mod stats;
mod unanswered;

pub(crate) use queue::Cqp;

use crate::bits::{bits, low32, low8, Field};
use crate::config::Kind;
use crate::model::Model;
use crate::ring::RingMemory;
use error::CqpError;
use op::Op;

/// Id of the queue that control completions go to.
pub(crate) const CCQ: u32 = 0;

/// The words of one control WQE.
pub(crate) type Wqe = [u64; 8];

/// What a successful operation tells the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// Return value.
    pub(crate) value: u32,
    /// Minor code without an error.
    pub(crate) minor: u16,
}

/// The result of an operation.
pub(crate) type OpResult = Result<Done, CqpError>;

impl Model {
    fn cqp_execute(&mut self, op: Op, wqe: &Wqe) -> OpResult {
        self.sq_catch_up();
        match op {
            Op::CreateQp => self.op_create_qp(wqe),
            Op::ModifyQp => self.op_modify_qp(wqe),
            Op::DestroyQp => self.op_destroy_qp(wqe),
            Op::CreateCq => self.op_create_cq(wqe),
            Op::ModifyCq => self.op_modify_cq(wqe),
            Op::DestroyCq => self.op_destroy_cq(wqe),
            Op::AllocStag => self.op_alloc_stag(wqe),
            Op::RegMr => self.op_reg_mr(wqe),
            Op::DeallocStag => self.op_dealloc_stag(wqe),
            Op::ManageArp => self.op_manage_arp(wqe),
            Op::QueryRdmaFeatures => self.op_query_features(wqe),
            Op::CreateCeq => self.op_create_ceq(wqe),
            Op::DestroyCeq => self.op_destroy_ceq(wqe),
            Op::CreateAeq => self.op_create_aeq(wqe),
            Op::DestroyAeq => self.op_destroy_aeq(),
            Op::CreateAh => self.op_create_ah(wqe),
            Op::DestroyAh => self.op_destroy_ah(wqe),
            Op::UpdatePeSds => self.op_update_sds(wqe),
            Op::QueryFpmVal => self.op_query_fpm(wqe),
            Op::CommitFpmVal => self.op_commit_fpm(wqe),
            Op::FlushWqes => self.op_flush(wqe),
            Op::Nop => Ok(Done::default()),
            Op::CreateMcastGrp => self.op_create_group(wqe),
            Op::ModifyMcastGrp => self.op_modify_group(wqe),
            Op::DestroyMcastGrp => self.op_destroy_group(wqe),
            Op::SuspendQp => self.op_suspend_qp(wqe),
            Op::ResumeQp => self.op_resume_qp(wqe),
            Op::ShmcPagesAllocated => self.op_pages_allocated(wqe),
            Op::WorkSchedNode => self.op_sched_node(wqe),
            Op::GatherStats => self.op_gather_stats(wqe),
        }
    }

    /// Refuses an id that the committed layout has no object for.
    pub(crate) fn in_range(&self, kind: Kind, what: &str, id: u32) -> Result<(), CqpError> {
        let count = self.hmc.count(kind);
        if id < count {
            Ok(())
        } else {
            Err(CqpError::range(what, id, count))
        }
    }

    /// Refuses a command for another function.
    fn own_function(&self, word: u64) -> Result<(), CqpError> {
        let id = low8(word & 0x3F);
        if id == self.host.pf_id {
            Ok(())
        } else {
            Err(CqpError::parameter(format_args!("function {id}")))
        }
    }
}

/// The 32-bit words of an IP address as the driver writes them into two 64-bit words.
pub(crate) fn ip_words(low: u64, high: u64) -> [u32; 4] {
    [low32(high >> 32), low32(high), low32(low >> 32), low32(low)]
}

/// Word 6 of operations with a ring: first page address entry.
const FIRST_PBLE: Field = bits(27, 0);

/// The memory of a queue's ring: a block at the address in word 4, or a page list of one level.
fn ring_memory(wqe: &Wqe, paged: bool, level: u64) -> Result<RingMemory, CqpError> {
    match (paged, level, wqe[4]) {
        (false, _, addr) if addr == 0 || addr % 256 != 0 => {
            Err(CqpError::parameter(format_args!("ring address {addr:#x}")))
        }
        (false, _, addr) => Ok(RingMemory::Block(addr)),
        (true, 1, _) => Ok(RingMemory::Pages(FIRST_PBLE.get32(wqe[6]))),
        (true, level, _) => Err(CqpError::parameter(format_args!("page list level {level}"))),
    }
}
