// SPDX-License-Identifier: GPL-2.0
//! Transmit queues and RDMA queue sets. Receive queues have no command: the driver programs their
//! registers.

use super::{Answer, Code, Command};
use crate::firmware::Firmware;
use crate::le::{Load, Store};
use crate::regs::QUEUES;
use crate::scheduler::LEAF;
use crate::tx::queue::TxQueue;
use crate::Lan;

/// Bytes of a group before its elements.
const GROUP: usize = 8;
/// Bytes of a transmit queue in a group.
const QUEUE: usize = 48;
/// Bytes of a queue set in a group.
const QUEUE_SET: usize = 24;
/// Queue number of a queue set in the disable command.
const IS_QUEUE_SET: u16 = 1 << 15;

/// The scheduler data of a new leaf: what the driver asks, with the type fixed.
fn leaf(data: &[u8], at: usize) -> Result<[u8; 16], Code> {
    let mut element: [u8; 16] = data.array_at(at)?;
    element.put_u8(0, LEAF)?;
    Ok(element)
}

/// 0x0c30: add transmit queues.
pub fn add_transmit(lan: &Lan, firmware: &mut Firmware, command: &mut Command) -> Answer {
    let mut at = 0;
    for _ in 0..command.u8(0) {
        let parent = command.data.u32_at(at)?;
        let count = command.data.u8_at(at + 4)?;
        at += GROUP;
        for _ in 0..count {
            let number = command.data.u16_at(at)?;
            let context = command.data.array_at(at + 8)?;
            let element = leaf(&command.data, at + 32)?;
            if number >= QUEUES {
                return Err(Code::Einval);
            }
            let teid = firmware.scheduler.add(parent, element)?.teid;
            let Some(queue) = TxQueue::new(&context, teid)? else {
                firmware.scheduler.remove_leaf(teid);
                return Err(Code::Einval);
            };
            lan.debug(format_args!("transmit queue {number}: {queue:?}"));
            lan.tx.lock().add(number, queue);
            command.data.put_u32(at + 4, teid)?;
            at += QUEUE;
        }
    }
    Ok(())
}

/// 0x0c31: disable transmit queues and remove queue sets. A queue that is gone already, by a reset,
/// is no error.
pub fn disable(lan: &Lan, firmware: &mut Firmware, command: &mut Command) -> Answer {
    let mut at = 0;
    for _ in 0..command.u8(1) {
        let parent = command.data.u32_at(at)?;
        let count = usize::from(command.data.u8_at(at + 4)?);
        for index in 0..count {
            let number = command.data.u16_at(at + 6 + 2 * index)?;
            if number & IS_QUEUE_SET != 0 {
                remove_queue_set(lan, firmware, parent, number & !IS_QUEUE_SET);
            } else if let Some(queue) = lan.tx.lock().remove(number) {
                firmware.scheduler.remove_leaf(queue.teid);
            }
        }
        // Groups start on 32-bit boundaries.
        at = (at + 6 + 2 * count).next_multiple_of(4);
    }
    Ok(())
}

/// 0x0c33: add RDMA queue sets.
pub fn add_rdma(lan: &Lan, firmware: &mut Firmware, command: &mut Command) -> Answer {
    let mut at = 0;
    for _ in 0..command.u8(0) {
        let parent = command.data.u32_at(at)?;
        let count = command.data.u16_at(at + 4)?;
        at += GROUP;
        for _ in 0..count {
            let handle = command.data.u16_at(at)?;
            let element = leaf(&command.data, at + 8)?;
            let teid = firmware.scheduler.add(parent, element)?.teid;
            command.data.put_u32(at + 4, teid)?;
            if let Some(old) = firmware.queue_sets.insert((parent, handle), teid) {
                firmware.scheduler.remove_leaf(old);
            }
            lan.queue_set(handle, teid, true);
            at += QUEUE_SET;
        }
    }
    Ok(())
}

/// Removes a queue set, wherever its parent has moved.
fn remove_queue_set(lan: &Lan, firmware: &mut Firmware, parent: u32, handle: u16) {
    if let Some(teid) = firmware.queue_sets.remove(&(parent, handle)) {
        firmware.scheduler.remove_leaf(teid);
        lan.queue_set(handle, teid, false);
    } else {
        lan.debug(format_args!("queue set {handle}: removed but not there"));
    }
}
