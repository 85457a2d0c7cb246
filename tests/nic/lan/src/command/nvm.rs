// SPDX-License-Identifier: GPL-2.0
//! Reading the flash. Writing it is refused as unknown: the virtual card's image is fixed.

use super::{Answer, Code, Command};
use crate::firmware::Firmware;

/// What a correct shadow RAM adds up to.
const CHECKSUM: u16 = 0xbaba;

/// 0x0701: read. Shadow RAM lies at the start of the flash, so both address spaces are one. The
/// driver finds the size of the flash by reading until this refuses.
pub fn read(firmware: &Firmware, command: &mut Command) -> Answer {
    let offset = usize::from(command.u16(0)) | usize::from(command.u8(2)) << 16;
    let module = command.u16(4);
    let len = usize::from(command.u16(6));
    if module != 0 {
        return Err(Code::Einval);
    }
    let data = firmware.nvm.read(offset, len).ok_or(Code::Einval)?;
    command.answer(data.to_vec())
}

/// 0x0706: verify the checksum of the shadow RAM.
pub fn checksum(command: &mut Command) -> Answer {
    command.set_u16(2, CHECKSUM);
    Ok(())
}
