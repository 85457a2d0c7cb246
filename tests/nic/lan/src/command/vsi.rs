// SPDX-License-Identifier: GPL-2.0
//! Adding, updating and freeing VSIs. The PE filter of a VSI is the card's to know.

use super::{capability::FUNCTION_VSIS, Answer, Code, Command};
use crate::vsi::Vsi;
use crate::Lan;

/// "The number is valid" in the first parameter.
const NUMBER_VALID: u16 = 1 << 15;
/// The number in it.
const NUMBER: u16 = 0x3ff;

/// The answer's counts of VSIs in use and free.
fn counts(lan: &Lan, command: &mut Command) {
    let used = u16::try_from(lan.switch.read().vsis().len()).unwrap_or(FUNCTION_VSIS);
    command.set_u16(2, 0);
    command.set_u16(4, used);
    command.set_u16(6, FUNCTION_VSIS.saturating_sub(used));
}

/// Tells the card about a VSI's PE filter, if it changed.
fn pe_filter(lan: &Lan, number: u16, before: bool, after: bool) {
    if before != after {
        lan.set_pe_filter(number, after);
    }
}

/// 0x0210: add.
pub fn add(lan: &Lan, command: &mut Command) -> Answer {
    let vsi = Vsi::new(&command.data)?;
    let filter = vsi.pe_filter();
    let asked = command.u16(0);
    let number = (asked & NUMBER_VALID != 0).then_some(asked & NUMBER);
    let number = lan
        .switch
        .write()
        .add_vsi(number, FUNCTION_VSIS, vsi)
        .ok_or(Code::Enospc)?;
    pe_filter(lan, number, false, filter);
    command.set_u16(0, number);
    counts(lan, command);
    Ok(())
}

/// 0x0211: update.
pub fn update(lan: &Lan, command: &mut Command) -> Answer {
    let number = command.u16(0) & NUMBER;
    let (before, after) = {
        let mut switch = lan.switch.write();
        let vsi = switch.vsi_mut(number).ok_or(Code::Enoent)?;
        let before = vsi.pe_filter();
        vsi.update(&command.data)?;
        (before, vsi.pe_filter())
    };
    pe_filter(lan, number, before, after);
    command.set_u16(0, number);
    counts(lan, command);
    Ok(())
}

/// 0x0213: free.
pub fn free(lan: &Lan, command: &mut Command) -> Answer {
    let number = command.u16(0) & NUMBER;
    let vsi = lan.switch.write().remove_vsi(number).ok_or(Code::Enoent)?;
    pe_filter(lan, number, vsi.pe_filter(), false);
    counts(lan, command);
    Ok(())
}
