// SPDX-License-Identifier: GPL-2.0
//! The DDP package. The model takes name and version from the metadata and ignores other content:
//! it classifies by fixed rules.

use super::{Answer, Code, Command};
use crate::firmware::{Firmware, Package};
use crate::le::Load;

/// Section type of the metadata.
const METADATA: u32 = 1;
/// Sections a 4 KiB buffer can describe.
const MAX_SECTIONS: u16 = 341;

/// 0x0c40: download one buffer.
pub fn download(firmware: &mut Firmware, command: &mut Command) -> Answer {
    let sections = command.data.u16_at(0)?;
    if sections > MAX_SECTIONS {
        return Err(Code::Einval);
    }
    for section in 0..usize::from(sections) {
        let entry = 4 + 12 * section;
        let kind = command.data.u32_at(entry)?;
        let offset = usize::from(command.data.u16_at(entry + 4)?);
        if kind == METADATA {
            firmware.package = Some(Package {
                version: command.data.array_at(offset)?,
                name: command.data.array_at(offset + 4)?,
                track_id: command.data.array_at(offset + 32)?,
            });
        }
    }
    command.set_u32(0, 0);
    command.set_u32(4, 0);
    Ok(())
}

/// 0x0c41, 0x0c42: read back or replace a section. The request's buffer is the answer.
pub fn section() -> Answer {
    Ok(())
}

/// 0x0c43: list the active packages.
pub fn list(firmware: &Firmware, command: &mut Command) -> Answer {
    let mut data = Vec::new();
    match &firmware.package {
        None => data.extend_from_slice(&0u32.to_le_bytes()),
        Some(package) => {
            data.extend_from_slice(&1u32.to_le_bytes());
            data.extend_from_slice(&package.version);
            data.extend_from_slice(&package.name);
            data.extend_from_slice(&package.track_id);
            data.extend_from_slice(&[0, 1, 0, 0]); // not in NVM, active, not at boot, not modified
        }
    }
    command.answer(data)
}
