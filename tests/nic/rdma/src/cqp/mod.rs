// SPDX-License-Identifier: GPL-2.0
//! The control queue pair (CQP): its context, its ring and how its operations complete.
//!
//! A doorbell executes every posted WQE at once, in order; completion is the tail register and, as
//! soon as completion queue 0 exists, an entry there. What each operation does is in the submodules,
//! one per group of operations.

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
mod sched;
mod sds;
mod stag;
mod stats;

use crate::bits::{bit, bits, low32, low8, words, Field};
use crate::config::Kind;
use crate::cq::CqEntry;
use crate::faults::Action;
use crate::model::Model;
use crate::ring::{Cursor, RingMemory};
use error::CqpError;
use op::Op;

/// Bytes of a control WQE.
const WQE_SIZE: u64 = 64;
/// Id of the queue that control completions go to.
pub(crate) const CCQ: u32 = 0;

/// Word 3 of a control WQE: valid bit.
const WQE_VALID: Field = bit(63);

/// The CQP context of 64 bytes.
mod context {
    use super::{bits, Field};
    /// Word 0: size code.
    pub(super) const SQ_SIZE: Field = bits(11, 8);
    /// Largest size code, 4096 entries: what the tail register can count.
    pub(super) const MAX_SQ_SIZE: u32 = 11;
}

/// Word 3 of a control CQE.
mod cqe {
    use super::{bit, bits, Field};
    pub(super) const MINOR: Field = bits(15, 0);
    pub(super) const MAJOR: Field = bits(31, 16);
    pub(super) const WQE_INDEX: Field = bits(46, 32);
    pub(super) const ERROR: Field = bit(55);
}

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

/// A created control queue.
pub(crate) struct Cqp {
    ring: RingMemory,
    next: Cursor,
    /// The driver's head index, from the last doorbell.
    head: u32,
    /// Number of completed WQEs, modulo the ring size.
    tail: u32,
    failed: bool,
    /// Word of the context that every completion repeats.
    context: u64,
    delay: Option<Delay>,
}

/// The operation at the ring position is held back.
struct Delay {
    /// Released when so many later operations were posted, else only by command.
    until_ops: Option<u32>,
    released: bool,
}

impl Cqp {
    fn posted(&self) -> u32 {
        let size = self.next.size.max(1);
        (self.head % size + size - self.next.index % size) % size
    }

    fn held(&self) -> bool {
        match &self.delay {
            Some(d) if !d.released => d
                .until_ops
                .is_none_or(|k| self.posted().saturating_sub(1) < k),
            _ => false,
        }
    }

    /// Number of WQEs posted and not executed.
    pub(crate) fn pending(&self) -> u32 {
        self.posted()
    }

    /// Value of the tail register.
    pub(crate) fn tail(&self) -> u32 {
        self.tail | if self.failed { 1 << 31 } else { 0 }
    }
}

impl Model {
    /// Creates the control queue from its context at `addr`. The outcome is in the status register.
    pub(crate) fn cqp_create(&mut self, addr: u64) {
        match self.cqp_open(addr) {
            Ok(cqp) => {
                self.drop_objects();
                self.cqp = Some(cqp);
                self.regs.cqp_failed = false;
                self.regs.cqp_error = 0;
                self.leftovers = None;
                self.reset_below_cqp = false;
            }
            Err(e) => {
                self.log(format_args!("CQP create at {addr:#x}: {e}"));
                self.regs.cqp_failed = true;
                self.regs.cqp_error = u32::from(e.major) << 16 | u32::from(e.minor);
            }
        }
    }

    fn cqp_open(&mut self, addr: u64) -> Result<Cqp, CqpError> {
        if self.cqp.is_some() {
            self.violate(format_args!("CQP created while it exists"));
        }
        let mut buf = [0; 64];
        self.host.dma.read(addr, &mut buf)?;
        let w: [u64; 8] = words(&buf);
        let code = context::SQ_SIZE.get32(w[0]);
        if code == 0 || code > context::MAX_SQ_SIZE {
            return Err(CqpError::parameter(format_args!("ring size code {code}")));
        }
        let base = w[1];
        if base == 0 || base % 512 != 0 {
            return Err(CqpError::parameter(format_args!("ring address {base:#x}")));
        }
        Ok(Cqp {
            ring: RingMemory::Block(base),
            next: Cursor::new(4 << (code - 1)),
            head: 0,
            tail: 0,
            failed: false,
            context: w[3],
            delay: None,
        })
    }

    /// Destroys the control queue: everything of the function goes with it.
    pub(crate) fn cqp_destroy(&mut self) {
        if self.cqp.take().is_some() {
            self.leftovers = Some(self.counts_json());
        }
        self.drop_objects();
        self.regs.cqp_failed = false;
    }

    /// The driver posted up to `head`.
    pub(crate) fn cqp_doorbell(&mut self, head: u32) {
        self.counts.doorbells.cqp += 1;
        let Some(cqp) = &mut self.cqp else {
            // Drivers clear the register before the first create, and may not know of a reset yet.
            if head != 0 && self.reset_below_cqp {
                self.log(format_args!("CQP doorbell {head} after a reset"));
            } else if head != 0 {
                self.violate(format_args!("CQP doorbell {head} without a CQP"));
            }
            return;
        };
        if head >= cqp.next.size {
            let size = cqp.next.size;
            self.violate(format_args!(
                "CQP doorbell {head} beyond the ring of {size}"
            ));
            return;
        }
        cqp.head = head;
        self.cqp_run();
    }

    /// Lets an operation go that a fault holds back.
    pub(crate) fn cqp_release(&mut self) -> bool {
        let released = match self.cqp.as_mut().and_then(|c| c.delay.as_mut()) {
            Some(delay) => {
                delay.released = true;
                true
            }
            None => false,
        };
        self.cqp_run();
        released
    }

    fn cqp_run(&mut self) {
        loop {
            let Some(cqp) = &mut self.cqp else { return };
            if cqp.posted() == 0 || cqp.held() {
                return;
            }
            let delayed = cqp.delay.take().is_some();
            let at = cqp.next;
            let ring = cqp.ring;
            let wqe: Result<Wqe, _> =
                ring.read(&self.hmc, &*self.host.dma, u64::from(at.index) * WQE_SIZE);
            let wqe = match wqe {
                Ok(w) => w,
                Err(e) => {
                    self.violate(format_args!("CQP WQE {}: {e}", at.index));
                    self.cqp_step();
                    self.cqp_complete(at.index, Err(e.into()));
                    continue;
                }
            };
            let op = Op::decode(wqe[3]);
            let name = op.map_or("UNKNOWN", Op::name);
            let action = match op {
                Ok(op) if !delayed => self.faults.take(op),
                _ => None,
            };
            match action {
                Some(Action::Delay { until_ops }) => {
                    self.log(format_args!("fault: {name} held back"));
                    if let Some(cqp) = &mut self.cqp {
                        cqp.delay = Some(Delay {
                            until_ops,
                            released: false,
                        });
                    }
                }
                Some(Action::Swallow { execute }) => {
                    self.log(format_args!("fault: {name} never completes"));
                    self.cqp_step();
                    if execute {
                        let _ = self.cqp_execute(op, &wqe, at);
                    }
                }
                Some(Action::Fail { major, minor }) => {
                    self.cqp_step();
                    let reason = "fault ordered".to_owned();
                    self.cqp_done(
                        at.index,
                        name,
                        Err(CqpError {
                            major,
                            minor,
                            reason,
                        }),
                    );
                }
                None => {
                    self.cqp_step();
                    let result = self.cqp_execute(op, &wqe, at);
                    self.cqp_done(at.index, name, result);
                }
            }
        }
    }

    fn cqp_step(&mut self) {
        if let Some(cqp) = &mut self.cqp {
            cqp.next.advance(1);
        }
    }

    fn cqp_done(&mut self, index: u32, name: &'static str, result: OpResult) {
        self.counts.op(name, result.is_ok());
        if let Err(e) = &result {
            self.log(format_args!("CQP {name} refused: {e}"));
        }
        self.cqp_complete(index, result);
    }

    fn cqp_complete(&mut self, index: u32, result: OpResult) {
        let Some(cqp) = &mut self.cqp else { return };
        cqp.tail = (cqp.tail + 1) % cqp.next.size.max(1);
        cqp.failed = result.is_err();
        let context = cqp.context;
        let (value, minor, major) = match &result {
            Ok(done) => (done.value, done.minor, 0),
            Err(e) => (0, e.minor, e.major),
        };
        if result.is_err() {
            self.regs.cqp_error = u32::from(major) << 16 | u32::from(minor);
        }
        if self.cqs.contains_key(&CCQ) {
            let flags = cqe::MINOR.put(minor.into())
                | cqe::MAJOR.put(major.into())
                | cqe::WQE_INDEX.put(index.into())
                | cqe::ERROR.flag(result.is_err());
            self.cq_write(
                CCQ,
                CqEntry {
                    body: [0, context, value.into(), flags],
                    extension: None,
                    solicited: false,
                },
            );
        }
    }

    fn cqp_execute(&mut self, op: Result<Op, u8>, wqe: &Wqe, at: Cursor) -> OpResult {
        if WQE_VALID.is_set(wqe[3]) != at.polarity {
            self.violate(format_args!(
                "CQP WQE {} posted with the wrong polarity",
                at.index
            ));
            return Err(CqpError::parameter("valid bit"));
        }
        let op = op.map_err(CqpError::unknown_op)?;
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
