// SPDX-License-Identifier: GPL-2.0
//! Control operations whose completion the driver does not have: held back or swallowed by a fault.
//!
//! Until the completion, or the end of the control queue, the device may read what the operation
//! names. What it names is therefore remembered when the operation is fetched and compared later;
//! and no object that it names may be created anew before.

use super::op::Op;
use super::Wqe;
use crate::bits::{bits, Field};
use crate::model::Model;
use nic_bus::Dma;
use serde_json::{json, Value};

/// Bytes of a group context.
const GROUP_CONTEXT: usize = 64;
/// Word 3: the object's number.
const GROUP: Field = bits(12, 0);
const QP: Field = bits(23, 0);
const CQ: Field = bits(18, 0);

/// Memory that an operation reads besides its WQE, as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Input {
    addr: u64,
    bytes: Vec<u8>,
}

impl Input {
    /// What is there now; `None` if it cannot be read.
    fn read(dma: &dyn Dma, addr: u64, len: usize) -> Option<Self> {
        let mut bytes = vec![0; len];
        dma.read(addr, &mut bytes).ok()?;
        Some(Self { addr, bytes })
    }

    fn changed(&self, dma: &dyn Dma) -> bool {
        Self::read(dma, self.addr, self.bytes.len()).is_some_and(|now| now != *self)
    }
}

/// One operation without a completion.
#[derive(Clone, Debug)]
pub(super) struct Unanswered {
    op: Op,
    wqe: Wqe,
    input: Option<Input>,
}

impl Unanswered {
    pub(super) fn new(dma: &dyn Dma, op: Op, wqe: Wqe) -> Self {
        let input = match op {
            Op::CreateMcastGrp | Op::ModifyMcastGrp | Op::DestroyMcastGrp => {
                Input::read(dma, wqe[4], GROUP_CONTEXT)
            }
            Op::CreateQp | Op::ModifyQp => Input::read(dma, wqe[2], crate::qp::CONTEXT_SIZE),
            _ => None,
        };
        Self { op, wqe, input }
    }

    /// The object that the operation is about, if its number must not be used again before the
    /// completion.
    fn object(&self) -> Option<Object> {
        Object::of(self.op, &self.wqe)
    }

    fn text(&self) -> String {
        match self.object() {
            Some(object) => format!("{} of {}", self.op.name(), object.text()),
            None => self.op.name().to_owned(),
        }
    }
}

/// Kind and number of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Object {
    kind: &'static str,
    number: u32,
}

impl Object {
    fn of(op: Op, wqe: &Wqe) -> Option<Self> {
        let (kind, field) = match op {
            Op::CreateMcastGrp | Op::ModifyMcastGrp | Op::DestroyMcastGrp => ("group", GROUP),
            Op::CreateQp | Op::ModifyQp | Op::DestroyQp => ("QP", QP),
            Op::CreateCq | Op::ModifyCq | Op::DestroyCq => ("CQ", CQ),
            _ => return None,
        };
        Some(Self {
            kind,
            number: field.get32(wqe[3]),
        })
    }

    fn text(self) -> String {
        format!("{} {}", self.kind, self.number)
    }
}

/// Whether the operation brings an object into being.
fn creates(op: Op) -> bool {
    matches!(op, Op::CreateMcastGrp | Op::CreateQp | Op::CreateCq)
}

impl Model {
    /// Records it if the operation creates an object whose number an earlier one without a
    /// completion still uses.
    pub(super) fn check_early_reuse<'a>(
        &self,
        op: Op,
        wqe: &Wqe,
        mut earlier: impl Iterator<Item = &'a Unanswered>,
    ) -> Option<String> {
        let object = Object::of(op, wqe).filter(|_| creates(op))?;
        let first = earlier.find(|u| u.object() == Some(object))?;
        Some(format!(
            "{} of {} while {} has no completion",
            op.name(),
            object.text(),
            first.op.name()
        ))
    }

    /// Records it if memory that the device may still read for the operation has changed.
    pub(super) fn check_input(&mut self, held: &Unanswered) {
        let dma = self.host.dma.clone();
        if let Some(input) = held.input.as_ref().filter(|i| i.changed(&*dma)) {
            self.violate_once(format_args!(
                "{}: the context at {:#x} was rewritten before the completion",
                held.text(),
                input.addr
            ));
        }
    }

    /// Records it if the WQE or the memory it names is not what it was when it was posted.
    pub(super) fn check_unchanged(&mut self, held: &Unanswered, op: Op, wqe: &Wqe) {
        if (held.op, held.wqe) != (op, *wqe) {
            self.violate_once(format_args!(
                "{}: the WQE was rewritten before the completion",
                held.text()
            ));
        }
        self.check_input(held);
    }

    /// The same for all operations without a completion.
    pub(crate) fn check_unanswered(&mut self) {
        let list: Vec<Unanswered> = self
            .cqp
            .iter()
            .flat_map(|c| c.unanswered())
            .cloned()
            .collect();
        for held in &list {
            self.check_input(held);
        }
    }

    /// The operations without a completion.
    pub(crate) fn unanswered_json(&self) -> Value {
        self.cqp
            .iter()
            .flat_map(|c| c.unanswered())
            .map(|u| {
                let object = u.object();
                json!({
                    "op": u.op.name(),
                    "kind": object.map(|o| o.kind),
                    "number": object.map(|o| o.number),
                })
            })
            .collect()
    }
}
