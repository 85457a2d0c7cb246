// SPDX-License-Identifier: GPL-2.0
//! What the function can do. Capabilities that are not modelled are not listed: virtual functions,
//! clocks, sensors, flash updates, link aggregation.

use super::{Answer, Command};
use crate::regs::QUEUES;
use crate::Lan;

/// List the capabilities of the device; 0x000a lists the function's.
const DEVICE: u16 = 0x000b;

/// VSIs of the device.
const DEVICE_VSIS: u32 = 768;
/// VSIs guaranteed to the function.
pub const FUNCTION_VSIS: u16 = 64;
/// Entries of the function's RSS table.
pub const RSS_TABLE: u16 = 2048;
/// Bits of an entry's queue number.
const RSS_ENTRY_BITS: u32 = 9;
/// Flow Director entries guaranteed and shared.
const FLOW_DIRECTOR: (u32, u32) = (512, 1024);
/// Longest frame without FCS that the port carries with a VLAN tag.
const MAX_MTU: u32 = 9702;

/// One capability: id, number, logical id, physical id.
type Capability = (u16, u32, u32, u32);

/// 0x000a, 0x000b: list capabilities.
pub fn list(lan: &Lan, command: &mut Command) -> Answer {
    let vsis = if command.opcode == DEVICE {
        DEVICE_VSIS
    } else {
        u32::from(FUNCTION_VSIS)
    };
    let capabilities: [Capability; 10] = [
        (0x05, 1, 0, 0), // valid functions: the first
        (0x17, vsis, 0, 0),
        (0x18, 1, 1, 8), // DCB: class 0 of 8 in use
        (0x40, RSS_TABLE.into(), RSS_ENTRY_BITS, 0),
        (0x41, QUEUES.into(), 0, 0),
        (0x42, QUEUES.into(), 0, 0),
        (0x43, lan.config.vectors.into(), 0, 0),
        (0x45, FLOW_DIRECTOR.0, FLOW_DIRECTOR.1, 0),
        (0x47, MAX_MTU, 0, 0),
        (0x51, 1, 0, 0), // RDMA
    ];
    let mut data = Vec::new();
    let mut count = 0;
    for (id, number, logical, physical) in capabilities {
        count += 1;
        data.extend_from_slice(&id.to_le_bytes());
        data.extend_from_slice(&[1, 0]); // version of the element
        for word in [number, logical, physical] {
            data.extend_from_slice(&word.to_le_bytes());
        }
        data.extend_from_slice(&[0; 16]);
    }
    command.set_u32(4, count);
    command.answer(data)
}
