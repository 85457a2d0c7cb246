// SPDX-License-Identifier: GPL-2.0
//! Transmitting: take [`descriptor`]s from a [`queue`], gather frames, carry out the [`offload`]s
//! they ask for, send (section 10.3 of the hardware contract).

pub mod assembly;
pub mod descriptor;
pub mod offload;
pub mod queue;

use crate::frame::{Header, MAX_FRAME, MIN_FRAME};
use crate::regs::Register;
use crate::stats::{self, Direction};
use crate::Lan;
use assembly::{Job, Step};
use descriptor::Descriptor;
use nic_bus::DmaError;
use queue::TxQueue;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// The transmit queues that the driver added.
#[derive(Default)]
pub struct TxQueues {
    queues: HashMap<u16, TxQueue>,
}

impl TxQueues {
    /// Adds a queue.
    pub fn add(&mut self, number: u16, queue: TxQueue) {
        self.queues.insert(number, queue);
    }

    /// Removes a queue: no descriptor of it is touched afterwards.
    pub fn remove(&mut self, number: u16) -> Option<TxQueue> {
        self.queues.remove(&number)
    }

    /// Index of the next descriptor that the device takes from a queue, 0 if it is not there.
    pub fn head(&self, number: u16) -> u32 {
        self.queues.get(&number).map_or(0, TxQueue::head)
    }

    /// Queues in use.
    pub fn len(&self) -> usize {
        self.queues.len()
    }
}

/// The driver rang the doorbell of queue `number`: sends everything before `tail`. At most one
/// round of the ring is walked.
pub fn doorbell(lan: &Lan, number: u16, tail: u32) {
    let mut queues = lan.tx.lock();
    let Some(queue) = queues.queues.get_mut(&number) else {
        lan.log(format_args!(
            "transmit: doorbell of queue {number}, which is not there"
        ));
        return;
    };
    if !queue.set_tail(tail) {
        lan.log(format_args!(
            "transmit: queue {number}: tail {tail} is outside the ring"
        ));
        return;
    }
    let mut completed = false;
    while let Some(address) = queue.next() {
        match step(lan, queue, address) {
            Ok(done) => completed |= done,
            Err(error) => lan.log(format_args!("transmit: queue {number}: {error}")),
        }
        queue.advance();
    }
    drop(queues);
    if completed {
        lan.queue_cause(Register::TxCause(number));
    }
}

/// Takes the descriptor at `address`; `true` if it was marked done.
fn step(lan: &Lan, queue: &mut TxQueue, address: u64) -> Result<bool, DmaError> {
    let dma = lan.host.dma.as_ref();
    let word0 = dma.read_u64(address)?;
    let word1 = dma.read_u64(address.wrapping_add(8))?;
    let descriptor = Descriptor::decode(word0, word1);
    let report = match queue.assembly.take(dma, descriptor) {
        Step::More => false,
        Step::Finished { job, report } => {
            if let Some(job) = job {
                send(lan, queue.vsi, job);
            }
            report
        }
        Step::Malformed { reason, report } => {
            lan.log(format_args!("transmit: VSI {}: {reason}", queue.vsi));
            lan.stats.transmit_error(queue.vsi);
            report
        }
    };
    if report {
        dma.write_u64(address.wrapping_add(8), word1 | descriptor::DONE)?;
    }
    Ok(report)
}

/// Carries out the offloads and sends what comes of it.
fn send(lan: &Lan, vsi: u16, job: Job) {
    let offloads = &lan.stats.offloads;
    if job.context.segmentation.is_some() {
        stats::count(&offloads.segmented);
    } else if job.first.transport.is_some() {
        stats::count(&offloads.checksums);
    }
    if job.first.tag.or(job.context.tag).is_some() {
        stats::count(&offloads.tags_inserted);
    }
    let frames = match offload::finish(job) {
        Ok(frames) => frames,
        Err(reason) => {
            lan.log(format_args!("transmit: VSI {vsi}: {reason}"));
            lan.stats.transmit_error(vsi);
            return;
        }
    };
    for mut frame in frames {
        if frame.len() < MIN_FRAME {
            frame.resize(MIN_FRAME, 0);
        }
        let header = Header::parse(&frame).filter(|_| frame.len() <= MAX_FRAME);
        let Some(header) = header else {
            lan.stats.transmit_error(vsi);
            continue;
        };
        if !lan.switch.read().may_leave(&header) {
            continue;
        }
        lan.stats
            .vsi(vsi, Direction::Transmit, &header, frame.len());
        if lan.loopback.load(Ordering::Relaxed) {
            crate::rx::receive(lan, &frame);
        } else if lan.link_up() {
            lan.stats.port(Direction::Transmit, &header, frame.len());
            lan.host.wire.send(frame);
        } else {
            lan.stats.link_down();
        }
    }
}
