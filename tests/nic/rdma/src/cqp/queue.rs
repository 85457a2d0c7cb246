// SPDX-License-Identifier: GPL-2.0
//! The control queue pair itself: context, ring, doorbell, and how operations complete.
//!
//! A doorbell executes every posted WQE at once, in order. Completion is the tail register and, as
//! soon as completion queue 0 exists, an entry there.

use super::error::CqpError;
use super::op::Op;
use super::unanswered::Unanswered;
use super::{OpResult, Wqe, CCQ};
use crate::bits::{bit, bits, words, Field};
use crate::cq::CqEntry;
use crate::faults::Action;
use crate::model::Model;
use crate::ring::{Cursor, RingMemory};
use std::collections::VecDeque;

/// Bytes of a control WQE.
const WQE_SIZE: u64 = 64;
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
    /// The operations from the ring position on, as they were when they had to wait.
    waiting: VecDeque<Unanswered>,
    /// Operations that never complete.
    swallowed: Vec<Unanswered>,
}

/// The operation at the ring position is held back.
struct Delay {
    /// Released when so many later operations were posted, else only by command.
    until_ops: Option<u32>,
    released: bool,
    /// What it came to, if it was executed and only its completion is held back.
    executed: Option<OpResult>,
}

/// Operations without a completion that are remembered; a driver waits for fewer.
const MAX_SWALLOWED: usize = 4096;

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

    /// Operations that the driver posted and has no completion of.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = &Unanswered> {
        self.swallowed.iter().chain(&self.waiting)
    }

    /// Number of WQEs posted and not completed.
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
            waiting: VecDeque::new(),
            swallowed: Vec::new(),
        })
    }

    /// Destroys the control queue: everything of the function goes with it.
    pub(crate) fn cqp_destroy(&mut self) {
        self.check_unanswered();
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
        while let Some((at, delay)) = self.cqp_next() {
            let held = self.cqp.as_mut().and_then(|c| c.waiting.pop_front());
            match self.cqp_fetch(at) {
                Ok((op, wqe)) => {
                    if let Some(held) = &held {
                        self.check_unchanged(held, op, &wqe);
                    }
                    match delay {
                        None => {
                            let action = self.faults.take(op);
                            self.cqp_process(at.index, op, &wqe, action);
                        }
                        Some(Delay { executed, .. }) => {
                            self.cqp_step();
                            let result = executed.unwrap_or_else(|| self.cqp_execute(op, &wqe));
                            self.cqp_done(at.index, op.name(), result);
                        }
                    }
                }
                Err(e) => {
                    self.cqp_step();
                    self.cqp_done(at.index, "UNKNOWN", Err(e));
                }
            }
        }
        self.cqp_remember();
    }

    /// The position of the next WQE to process, and how it was held back before.
    fn cqp_next(&mut self) -> Option<(Cursor, Option<Delay>)> {
        let cqp = self.cqp.as_mut()?;
        if cqp.posted() == 0 || cqp.held() {
            return None;
        }
        Some((cqp.next, cqp.delay.take()))
    }

    /// Remembers what is posted behind an operation that is held back.
    fn cqp_remember(&mut self) {
        while let Some(at) = self.cqp.as_ref().and_then(|c| {
            let known = u32::try_from(c.waiting.len()).ok()?;
            (known < c.posted()).then(|| c.next.advanced(known))
        }) {
            let dma = self.host.dma.clone();
            let held = match self.cqp_peek(at) {
                Some((op, wqe)) => {
                    let earlier = self.cqp.iter().flat_map(|c| c.unanswered());
                    if let Some(text) = self.check_early_reuse(op, &wqe, earlier) {
                        self.violate_once(format_args!("{text}"));
                    }
                    Unanswered::new(&*dma, op, wqe)
                }
                // Refused, and why recorded, when its turn comes.
                None => Unanswered::new(&*dma, Op::Nop, Wqe::default()),
            };
            if let Some(cqp) = &mut self.cqp {
                cqp.waiting.push_back(held);
            }
        }
    }

    /// The operation at a ring position, without judging it.
    fn cqp_peek(&self, at: Cursor) -> Option<(Op, Wqe)> {
        let ring = self.cqp.as_ref()?.ring;
        let offset = u64::from(at.index) * WQE_SIZE;
        let wqe: Wqe = ring.read(&self.hmc, &*self.host.dma, offset).ok()?;
        Some((Op::decode(wqe[3]).ok()?, wqe))
    }

    fn cqp_fetch(&mut self, at: Cursor) -> Result<(Op, Wqe), CqpError> {
        let ring = match &self.cqp {
            Some(cqp) => cqp.ring,
            None => return Err(CqpError::state("no CQP")),
        };
        let offset = u64::from(at.index) * WQE_SIZE;
        let wqe: Wqe = ring
            .read(&self.hmc, &*self.host.dma, offset)
            .inspect_err(|e| self.violate(format_args!("CQP WQE {}: {e}", at.index)))?;
        if WQE_VALID.is_set(wqe[3]) != at.polarity {
            self.violate(format_args!(
                "CQP WQE {} posted with the wrong polarity",
                at.index
            ));
            return Err(CqpError::parameter("valid bit"));
        }
        let op = Op::decode(wqe[3]).map_err(CqpError::unknown_op)?;
        Ok((op, wqe))
    }

    fn cqp_process(&mut self, index: u32, op: Op, wqe: &Wqe, action: Option<Action>) {
        let name = op.name();
        let swallowed = self.cqp.iter().flat_map(|c| &c.swallowed);
        if let Some(text) = self.check_early_reuse(op, wqe, swallowed) {
            self.violate_once(format_args!("{text}"));
        }
        match action {
            None => {
                self.cqp_step();
                let result = self.cqp_execute(op, wqe);
                self.cqp_done(index, name, result);
            }
            Some(Action::Fail { major, minor }) => {
                self.cqp_step();
                let reason = "fault ordered".to_owned();
                let error = CqpError {
                    major,
                    minor,
                    reason,
                };
                self.cqp_done(index, name, Err(error));
            }
            Some(Action::Swallow { execute }) => {
                self.log(format_args!("fault: {name} never completes"));
                self.cqp_step();
                self.cqp_swallow(op, wqe);
                if execute {
                    // The driver never learns how it went.
                    let _ = self.cqp_execute(op, wqe);
                }
            }
            Some(Action::Delay { until_ops }) => {
                self.log(format_args!("fault: {name} held back"));
                self.cqp_delay(until_ops, None);
            }
            Some(Action::Late { until_ops }) => {
                self.log(format_args!("fault: completion of {name} held back"));
                let result = self.cqp_execute(op, wqe);
                self.cqp_delay(until_ops, Some(result));
            }
        }
    }

    fn cqp_delay(&mut self, until_ops: Option<u32>, executed: Option<OpResult>) {
        if let Some(cqp) = &mut self.cqp {
            cqp.delay = Some(Delay {
                until_ops,
                released: false,
                executed,
            });
        }
    }

    fn cqp_swallow(&mut self, op: Op, wqe: &Wqe) {
        let held = Unanswered::new(&*self.host.dma, op, *wqe);
        if let Some(cqp) = &mut self.cqp {
            if cqp.swallowed.len() < MAX_SWALLOWED {
                cqp.swallowed.push(held);
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
}
