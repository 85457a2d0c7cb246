// SPDX-License-Identifier: GPL-2.0
//! Receiving: [`classify`] a frame, choose a queue, write it into the buffers of a [`queue`]
//! (sections 10.1 and 10.2 of the hardware contract).

pub mod classify;
pub mod queue;

use crate::frame::{self, Header};
use crate::stats::{self, Direction};
use crate::switch::Switch;
use crate::vsi::{VlanStrip, Vsi};
use crate::Lan;
use classify::{Integrity, Packet, Ptype};
use nic_bus::DmaError;
use queue::{Completion, RxQueue};
use std::collections::HashMap;

/// The receive queues that the driver enabled.
#[derive(Default)]
pub struct RxQueues {
    queues: HashMap<u16, RxQueue>,
}

impl RxQueues {
    /// Enables a queue.
    pub fn enable(&mut self, number: u16, queue: RxQueue) {
        self.queues.insert(number, queue);
    }

    /// Disables a queue: no buffer of it is touched afterwards.
    pub fn disable(&mut self, number: u16) {
        self.queues.remove(&number);
    }

    /// The driver gave buffers up to, not including, `tail`.
    pub fn set_tail(&mut self, number: u16, tail: u32) {
        if let Some(queue) = self.queues.get_mut(&number) {
            queue.set_tail(tail);
        }
    }

    /// Queues enabled.
    pub fn len(&self) -> usize {
        self.queues.len()
    }
}

/// Why a frame did not reach the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// The queue is off.
    NoQueue,
    /// The queue has too few buffers, or none for frames this long.
    NoBuffer,
    /// A descriptor or buffer is not in guest memory.
    Dma(DmaError),
}

impl From<DmaError> for Dropped {
    fn from(error: DmaError) -> Self {
        Dropped::Dma(error)
    }
}

/// Delivers a frame from the wire to every VSI that wants it.
pub fn receive(lan: &Lan, frame: &[u8]) {
    let Some(header) = Header::parse(frame) else {
        return;
    };
    lan.stats.port(Direction::Receive, &header, frame.len());
    let switch = lan.switch.read();
    for number in switch.receivers(&header) {
        let Some(vsi) = switch.vsi(number) else {
            continue;
        };
        match to_vsi(lan, &switch, number, vsi, &header, frame) {
            Ok(()) => lan
                .stats
                .vsi(number, Direction::Receive, &header, frame.len()),
            Err(reason) => {
                lan.stats.receive_discarded(number);
                if let Dropped::Dma(error) = reason {
                    lan.log(format_args!("receive: VSI {number}: {error}"));
                }
            }
        }
    }
}

/// Delivers a frame to one VSI.
fn to_vsi(
    lan: &Lan,
    switch: &Switch,
    number: u16,
    vsi: &Vsi,
    header: &Header,
    frame: &[u8],
) -> Result<(), Dropped> {
    let packet = Packet::classify(header, frame);
    let hash = packet.flow.map(|flow| {
        let flow = if vsi.symmetric_hash() {
            flow.symmetric()
        } else {
            flow
        };
        flow.hash(&switch.rss.key(number))
    });
    let queue = choose(switch, number, vsi, hash);

    let mut frame = frame.to_vec();
    let tag = match (vsi.vlan_strip(), header.vlan) {
        (VlanStrip::TagAndPriority, Some(tag)) => Some(tag),
        (VlanStrip::Tag, Some(tag)) => Some(tag & 0xfff),
        _ => None,
    };
    let offloads = &lan.stats.offloads;
    if matches!(packet.integrity, Integrity::BadIp | Integrity::BadTransport) {
        stats::count(&offloads.bad_checksums);
    }
    if tag.is_some() {
        stats::count(&offloads.tags_stripped);
        frame::remove_tag(&mut frame, header);
    }
    let completion = Completion {
        ptype: packet.ptype,
        integrity: packet.integrity,
        // Without a protocol the driver makes no use of the hash.
        hash: hash.filter(|_| packet.ptype != Ptype::L2),
        tag,
    };
    lan.rx
        .lock()
        .queues
        .get_mut(&queue)
        .ok_or(Dropped::NoQueue)?
        .deliver(lan.host.dma.as_ref(), &frame, &completion)?;
    lan.queue_cause(crate::regs::Register::RxCause(queue));
    Ok(())
}

/// The queue for a hash. Packets without one, and VSIs without a table, use the first queue.
fn choose(switch: &Switch, number: u16, vsi: &Vsi, hash: Option<u32>) -> u16 {
    let table = switch.rss.table(vsi.rss_table(number));
    let entry = hash
        .zip(u32::try_from(table.len()).ok())
        .and_then(|(hash, len)| hash.checked_rem(len))
        .and_then(|index| table.get(usize::try_from(index).ok()?))
        .copied();
    vsi.queue(entry.map_or(0, u16::from))
}
