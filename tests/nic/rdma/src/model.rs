// SPDX-License-Identifier: GPL-2.0
//! The state of the function: registers, queues and objects.
//!
//! One lock guards all of it, so a control operation, a packet and a doorbell never overlap, and
//! after a reset nothing of the old state can act. Guest memory is accessed and interrupt vectors
//! are raised under the lock; frames and other causes leave through [`Effects`] after it was
//! dropped, since what they call may come back to this function.

use crate::aeq::Aeq;
use crate::ah::Ah;
use crate::ceq::Ceq;
use crate::config::Config;
use crate::counts::Counts;
use crate::cq::{Cq, Gone};
use crate::cqp::Cqp;
use crate::faults::Faults;
use crate::hmc::Hmc;
use crate::mcast::Groups;
use crate::qp::Qp;
use crate::regs::Registers;
use crate::sched::Node;
use crate::stag::Stags;
use crate::stats::Stats;
use nic_bus::{Host, Reset};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

/// Kept texts of broken invariants; later ones are counted only.
const MAX_VIOLATIONS: usize = 256;

/// What is to be done after the lock was dropped.
#[derive(Default)]
pub(crate) struct Effects {
    /// Frames for the wire.
    pub(crate) frames: Vec<Vec<u8>>,
    /// Bits of the other interrupt cause.
    pub(crate) causes: u32,
}

impl Effects {
    /// Carries the effects out.
    pub(crate) fn apply(self, host: &Host) {
        for frame in self.frames {
            host.wire.send(frame);
        }
        if self.causes != 0 {
            host.interrupts.other_cause(self.causes);
        }
    }
}

/// Broken invariants.
#[derive(Default)]
pub(crate) struct Violations {
    pub(crate) texts: Vec<String>,
    pub(crate) count: u64,
}

/// Everything the function knows.
pub(crate) struct Model {
    pub(crate) host: Host,
    pub(crate) config: Config,
    pub(crate) regs: Registers,
    pub(crate) cqp: Option<Cqp>,
    pub(crate) hmc: Hmc,
    pub(crate) qps: BTreeMap<u32, Qp>,
    pub(crate) cqs: BTreeMap<u32, Cq>,
    /// The last queue of each number that was destroyed, also if the control queue has gone since.
    pub(crate) cqs_gone: BTreeMap<u32, Gone>,
    pub(crate) ceqs: BTreeMap<u32, Ceq>,
    pub(crate) aeq: Option<Aeq>,
    pub(crate) stags: Stags,
    pub(crate) arps: BTreeMap<u16, [u8; 6]>,
    pub(crate) ahs: BTreeMap<u32, Ah>,
    pub(crate) groups: Groups,
    pub(crate) sched: BTreeMap<u16, Node>,
    /// VSIs with the PE filter on.
    pub(crate) filters: BTreeSet<u16>,
    /// Queue sets that `ice` made: handle and TEID.
    pub(crate) queue_sets: BTreeMap<u16, u32>,
    pub(crate) stats: Stats,
    pub(crate) counts: Counts,
    pub(crate) faults: Faults,
    pub(crate) violations: Violations,
    /// Counts of live objects that `check` compares with.
    pub(crate) mark: Option<Value>,
    /// Objects that were left when the control queue was last destroyed.
    pub(crate) leftovers: Option<Value>,
    /// A reset took a live CQP away, and none has been created since.
    pub(crate) reset_below_cqp: bool,
    /// Queue pairs with posted sends.
    pub(crate) work: VecDeque<u32>,
    pub(crate) out: Effects,
}

impl Model {
    pub(crate) fn new(host: Host, config: Config) -> Self {
        Self {
            host,
            config,
            regs: Registers::default(),
            cqp: None,
            hmc: Hmc::default(),
            qps: BTreeMap::new(),
            cqs: BTreeMap::new(),
            cqs_gone: BTreeMap::new(),
            ceqs: BTreeMap::new(),
            aeq: None,
            stags: Stags::default(),
            arps: BTreeMap::new(),
            ahs: BTreeMap::new(),
            groups: Groups::default(),
            sched: BTreeMap::new(),
            filters: BTreeSet::new(),
            queue_sets: BTreeMap::new(),
            stats: Stats::default(),
            counts: Counts::default(),
            faults: Faults::default(),
            violations: Violations::default(),
            mark: None,
            leftovers: None,
            reset_below_cqp: false,
            work: VecDeque::new(),
            out: Effects::default(),
        }
    }

    /// One line into the card's log.
    pub(crate) fn log(&self, text: fmt::Arguments<'_>) {
        self.host.log.line(format_args!("rdma: {text}"));
    }

    /// Records that the driver broke a rule of the device.
    pub(crate) fn violate(&mut self, text: fmt::Arguments<'_>) {
        self.log(format_args!("violation: {text}"));
        self.violations.count += 1;
        if self.violations.texts.len() < MAX_VIOLATIONS {
            self.violations.texts.push(text.to_string());
        }
    }

    /// The same for what may be found more than once: recorded the first time.
    pub(crate) fn violate_once(&mut self, text: fmt::Arguments<'_>) {
        let text = text.to_string();
        if !self.violations.texts.contains(&text) {
            self.violate(format_args!("{text}"));
        }
    }

    /// Puts a queue pair on the worker's list.
    pub(crate) fn kick(&mut self, id: u32) {
        if let Some(qp) = self.qps.get_mut(&id) {
            if !qp.queued {
                qp.queued = true;
                self.work.push_back(id);
            }
        }
    }

    /// Forgets every object; what `ice` programmed stays.
    pub(crate) fn drop_objects(&mut self) {
        self.hmc = Hmc::default();
        self.qps.clear();
        self.cqs.clear();
        self.ceqs.clear();
        self.aeq = None;
        self.stags = Stags::default();
        self.arps.clear();
        self.ahs.clear();
        self.groups = Groups::default();
        self.sched.clear();
        self.work.clear();
    }

    /// The function was reset. With the guest gone, its memory says nothing any more.
    pub(crate) fn reset(&mut self, kind: Reset) {
        if kind != Reset::Disconnect {
            self.check_unanswered();
        }
        self.reset_below_cqp |= self.cqp.take().is_some();
        self.drop_objects();
        self.regs = Registers::default();
        self.filters.clear();
        self.queue_sets.clear();
        self.leftovers = None;
        self.out = Effects::default();
    }
}
