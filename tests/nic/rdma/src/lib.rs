// SPDX-License-Identifier: GPL-2.0
//! The RDMA half of the virtual E810: what stands behind the protocol engine's registers.
//!
//! It is written from the hardware contract in `Documentation/`, shares no layout with the Linux
//! driver of this project, and is judged by the stock driver. Everything the guest writes is taken
//! for hostile: it is checked, refused with an error completion or an event, and logged. What
//! breaks a rule of the device without being refused is recorded as a violation (`state`).
//!
//! # Glossary
//!
//! - CQP, CCQ: control queue pair and the completion queue of its operations (queue 0).
//! - CEQ, AEQ: completion event queue and asynchronous event queue; their entries raise interrupts.
//! - HMC, SD, PD, PBLE: host memory that backs objects, its segment and page descriptors, and the
//!   page addresses (physical buffer list entries) kept there.
//! - STag: key of a memory region. AH: address handle. WQE, CQE: entries of work and completion
//!   queues. Quantum: 32 bytes, the unit of work queues.
//!
//! # Threads
//!
//! Registers, frames, resets and control commands are handled on the caller's thread, posted sends
//! on one worker thread per function. One lock guards the [`model`]; it is never held while frames
//! leave or while other causes are set.
//!
//! # Limits
//!
//! Queue pairs of type RC can be created, changed and destroyed; their transport, and with it fast
//! registration and local invalidation, is not modelled yet: their posted WQEs stay where they
//! are, and a line in the log says so.

mod aeq;
mod ah;
mod args;
mod bits;
mod ceq;
mod check;
mod config;
mod control;
mod counts;
mod cq;
mod cqe;
mod cqp;
mod craft;
mod faults;
mod hmc;
mod host;
mod icrc;
mod ip;
mod mcast;
mod model;
mod packet;
mod qp;
mod receive;
mod regs;
mod ring;
mod rq;
mod sched;
mod send;
mod sq;
mod stag;
mod stats;
mod wqe;

pub use config::{Config, Kind, ObjectLimit};
pub use control::HELP;

use model::{Effects, Model};
use nic_bus::{Host, RdmaFunction, Reset};
use regs::Register;
use serde_json::Value;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// WQEs of one queue pair that the worker takes before the next queue pair has its turn.
const TURN: usize = 8;

/// The RDMA half of one function.
pub struct Rdma {
    shared: Arc<Shared>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

/// What the worker shares with everybody else.
struct Shared {
    host: Host,
    state: Mutex<State>,
    wake: Condvar,
}

struct State {
    model: Model,
    stop: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The model is changed step by step and stays usable if a thread died on the way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `f` under the lock and carries out what it leaves to be done.
    fn with<R>(&self, f: impl FnOnce(&mut Model) -> R) -> R {
        let mut state = self.lock();
        let result = f(&mut state.model);
        self.finish(state);
        result
    }

    /// Drops the lock, wakes the worker and lets frames out.
    fn finish(&self, mut state: MutexGuard<'_, State>) {
        let effects: Effects = std::mem::take(&mut state.model.out);
        let work = !state.model.work.is_empty();
        drop(state);
        if work {
            self.wake.notify_one();
        }
        effects.apply(&self.host);
    }

    /// The worker: one turn of one queue pair at a time.
    fn work(&self) {
        loop {
            let mut state = self.lock();
            while state.model.work.is_empty() && !state.stop {
                state = self
                    .wake
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            if state.stop {
                return;
            }
            state.model.sq_turn(TURN);
            self.finish(state);
        }
    }
}

impl Rdma {
    /// A function with the default limits.
    pub fn new(host: Host) -> Arc<Self> {
        Self::with_config(host, Config::default())
    }

    /// A function with these limits.
    pub fn with_config(host: Host, config: Config) -> Arc<Self> {
        let shared = Arc::new(Shared {
            host: host.clone(),
            state: Mutex::new(State {
                model: Model::new(host, config),
                stop: false,
            }),
            wake: Condvar::new(),
        });
        let its = shared.clone();
        let worker = thread::Builder::new()
            .name("rdma".to_owned())
            .spawn(move || its.work())
            .map_err(|e| {
                shared
                    .host
                    .log
                    .line(format_args!("rdma: no thread for sends: {e}"));
            })
            .ok();
        Arc::new(Self {
            shared,
            worker: Mutex::new(worker),
        })
    }
}

impl Drop for Rdma {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.wake.notify_all();
        let worker = self
            .worker
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(worker) = worker {
            // A worker that died has nothing left to do.
            let _ = worker.join();
        }
    }
}

impl RdmaFunction for Rdma {
    fn read32(&self, offset: u32) -> Option<u32> {
        let register = Register::decode(offset)?;
        Some(self.shared.with(|m| m.read32(register)))
    }

    fn write32(&self, offset: u32, value: u32) -> bool {
        let Some(register) = Register::decode(offset) else {
            return false;
        };
        self.shared.with(|m| m.write32(register, value));
        true
    }

    fn wants(&self, frame: &[u8]) -> bool {
        self.shared.lock().model.wants(frame)
    }

    fn receive(&self, frame: &[u8]) {
        self.shared.with(|m| m.receive(frame));
    }

    fn set_filter(&self, vsi: u16, enabled: bool) {
        self.shared.with(|m| {
            if enabled {
                m.filters.insert(vsi);
            } else {
                m.filters.remove(&vsi);
            }
        });
    }

    fn queue_set(&self, handle: u16, teid: u32, present: bool) {
        self.shared.with(|m| {
            if present {
                m.queue_sets.insert(handle, teid);
            } else {
                m.queue_sets.remove(&handle);
            }
        });
    }

    fn reset(&self, kind: Reset) {
        self.shared.with(|m| m.reset(kind));
    }

    fn control(&self, command: &str, args: &Value) -> Option<Result<Value, String>> {
        self.shared.with(|m| m.control(command, args))
    }
}
