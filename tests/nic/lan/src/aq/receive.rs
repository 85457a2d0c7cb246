// SPDX-License-Identifier: GPL-2.0
//! The admin receive queue: events of the firmware. An event without a posted buffer waits for one.

use super::descriptor::{Descriptor, LEN};
use crate::firmware::Firmware;
use crate::Lan;
use nic_bus::DmaError;

/// Events that may wait for a buffer; further ones are lost, which is logged.
const WAITING: usize = 64;

/// An event for the driver.
#[derive(Clone, Debug)]
pub struct Event {
    /// What happened, by the opcode of the command that reports the same.
    pub opcode: u16,
    /// The first half of the parameters; the second is the buffer's address.
    pub params: [u8; 8],
    /// Data.
    pub data: Vec<u8>,
}

/// Delivers `event`, or keeps it until a buffer is posted.
pub fn post(lan: &Lan, firmware: &mut Firmware, event: Event) {
    if firmware.events.len() >= WAITING {
        lan.log(format_args!("admin events: {:#06x} lost", event.opcode));
        return;
    }
    firmware.events.push_back(event);
    process(lan, firmware);
}

/// Delivers waiting events into posted buffers.
pub fn process(lan: &Lan, firmware: &mut Firmware) {
    let mut delivered = false;
    while let Some(address) = firmware.receive.next() {
        let Some(event) = firmware.events.pop_front() else {
            break;
        };
        if let Err(error) = entry(lan, address, &event) {
            lan.log(format_args!("admin events: stopped: {error}"));
            firmware.receive.fail();
            break;
        }
        firmware.receive.advance();
        delivered = true;
    }
    if delivered {
        lan.firmware_cause();
    }
}

/// Writes `event` into the entry at `address` and the buffer posted there.
fn entry(lan: &Lan, address: u64, event: &Event) -> Result<(), DmaError> {
    let dma = &lan.host.dma;
    let mut bytes = [0; LEN];
    dma.read(address, &mut bytes)?;
    let mut descriptor = Descriptor::decode(&bytes);
    let room = usize::from(descriptor.data_len);
    let data = event
        .data
        .get(..room.min(event.data.len()))
        .unwrap_or_default();
    dma.write(descriptor.buffer(), data)?;
    let data_len = u16::try_from(data.len()).unwrap_or(0);
    descriptor.make_event(event.opcode, event.params, data_len);
    dma.write(address, &descriptor.encode())
}
