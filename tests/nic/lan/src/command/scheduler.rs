// SPDX-License-Identifier: GPL-2.0
//! Commands on the transmit scheduler's tree.

use super::{Answer, Code, Command};
use crate::firmware::Firmware;
use crate::le::{Load, Store};
use crate::scheduler::{element_data, Refused, DEFAULT, ELEMENT, NO_PARENT};

/// Layers of the tree.
const LAYERS: u8 = 9;
/// Elements a layer may hold, of the device and of the function.
const LAYER_ELEMENTS: u16 = 512;
/// Children an element may have.
const MAX_SIBLINGS: u16 = 64;
/// Rate limit profiles of a layer, of each kind.
const PROFILES: u16 = 128;
/// RDMA queue sets of the function.
const RDMA_QSETS: u16 = 64;
/// Bytes of a branch in the default topology: header and room for nine elements.
const BRANCH: usize = 8 + 9 * ELEMENT;

impl From<Refused> for Code {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Missing => Code::Enoent,
            Refused::InUse => Code::Einval,
            Refused::Full => Code::Enospc,
        }
    }
}

/// 0x0412: query the scheduler's resources.
pub fn resources(command: &mut Command) -> Answer {
    let mut data = vec![0; 32 + 32 * usize::from(LAYERS)];
    data.put_u16(0, LAYERS.into())?;
    data.put_u16(2, LAYERS.into())?;
    data.put_u16(8, RDMA_QSETS)?;
    for layer in 0..LAYERS {
        let at = 32 + 32 * usize::from(layer);
        data.put_u8(at, layer)?;
        data.put_u16(at + 2, LAYER_ELEMENTS)?;
        data.put_u16(at + 4, LAYER_ELEMENTS)?;
        data.put_u16(at + 10, MAX_SIBLINGS)?;
        for profiles in [12, 14, 16] {
            data.put_u16(at + profiles, PROFILES)?;
        }
    }
    command.answer(data)
}

/// 0x0400: get the default topology: one branch.
pub fn default_topology(firmware: &Firmware, command: &mut Command) -> Answer {
    let mut data = vec![0; BRANCH];
    data.put_u32(0, NO_PARENT)?;
    data.put_u16(4, u16::try_from(DEFAULT.len()).unwrap_or(0))?;
    for (index, teid) in DEFAULT.into_iter().enumerate() {
        // The driver deletes the entry point and may ask again after a reset of its own.
        if let Some(element) = firmware.scheduler.get(teid) {
            data.put(8 + ELEMENT * index, &element.encode())?;
        }
    }
    command.set_u8(1, 1);
    command.answer(data)
}

/// 0x0401: add elements below a parent.
pub fn add(firmware: &mut Firmware, command: &mut Command) -> Answer {
    let parent = command.data.u32_at(0)?;
    let count = command.data.u16_at(4)?;
    if count > MAX_SIBLINGS {
        return Err(Code::Einval);
    }
    for index in 0..usize::from(count) {
        let at = 8 + ELEMENT * index;
        let data = element_data(&command.data, at)?;
        let element = firmware.scheduler.add(parent, data)?;
        command.data.put(at, &element.encode())?;
    }
    command.set_u16(2, 1);
    Ok(())
}

/// Visits `count` (parameter 0) elements of the buffer by id and offset.
fn each(command: &mut Command, mut visit: impl FnMut(&mut [u8], usize, u32) -> Answer) -> Answer {
    let count = command.u16(0);
    for index in 0..usize::from(count) {
        let at = ELEMENT * index;
        let teid = command.data.u32_at(at + 4)?;
        visit(&mut command.data, at, teid)?;
    }
    command.set_u16(2, count);
    Ok(())
}

/// 0x0403: configure elements.
pub fn configure(firmware: &mut Firmware, command: &mut Command) -> Answer {
    each(command, |data, at, teid| {
        let element = element_data(data, at)?;
        Ok(firmware.scheduler.configure(teid, element)?)
    })
}

/// 0x0404: read elements.
pub fn query(firmware: &mut Firmware, command: &mut Command) -> Answer {
    each(command, |data, at, teid| {
        let element = firmware.scheduler.get(teid).ok_or(Code::Enoent)?;
        Ok(data.put(at, &element.encode())?)
    })
}

/// 0x0408: move elements to another parent.
pub fn move_elements(firmware: &mut Firmware, command: &mut Command) -> Answer {
    let destination = command.data.u32_at(4)?;
    let count = command.data.u16_at(8)?;
    for index in 0..usize::from(count) {
        let teid = command.data.u32_at(12 + 4 * index)?;
        firmware.scheduler.move_to(teid, destination)?;
    }
    command.set_u16(2, 1);
    Ok(())
}

/// 0x0409, 0x040a: suspend and resume elements.
pub fn suspend(command: &mut Command) -> Answer {
    let count = command.u16(0);
    command.set_u16(2, count);
    Ok(())
}

/// 0x040e: the element of each traffic class.
pub fn port_teids(firmware: &Firmware, command: &mut Command) -> Answer {
    let mut data = vec![0; 64];
    for (class, teid) in firmware.scheduler.classes().into_iter().enumerate() {
        data.put_u32(32 + 4 * class, teid.unwrap_or(NO_PARENT))?;
    }
    command.answer(data)
}

/// 0x040f: delete elements.
pub fn delete(firmware: &mut Firmware, command: &mut Command) -> Answer {
    let count = command.data.u16_at(4)?;
    for index in 0..usize::from(count) {
        let teid = command.data.u32_at(8 + 4 * index)?;
        firmware.scheduler.remove(teid)?;
    }
    command.set_u16(2, 1);
    Ok(())
}
