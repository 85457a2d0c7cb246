// SPDX-License-Identifier: GPL-2.0
//! Allocating and freeing resource ids.

use super::{Answer, Code, Command};
use crate::firmware::Firmware;
use crate::le::{Load, Store};
use crate::resources::{Resources, VSI_LIST_PRUNE, VSI_LIST_REPLICATE};
use crate::switch::ListKind;
use crate::Lan;

/// Bytes before the ids: type and count.
const HEADER: usize = 4;

/// 0x0208: allocate. Entries of a shared pool are counted, not named: such a request asks for more
/// than its buffer could list and gets one pool id.
pub fn allocate(firmware: &mut Firmware, command: &mut Command) -> Answer {
    let kind = Resources::kind(command.data.u16_at(0)?);
    let count = usize::from(command.data.u16_at(2)?);
    let listed = command.data.len().saturating_sub(HEADER) / 2;
    let count = count.min(listed);
    let ids = firmware
        .resources
        .allocate(kind, count)
        .ok_or(Code::Enospc)?;
    for (index, id) in ids.into_iter().enumerate() {
        command.data.put_u16(HEADER + 2 * index, id)?;
    }
    Ok(())
}

/// 0x0209: free. Freeing a VSI list removes its members.
pub fn free(lan: &Lan, firmware: &mut Firmware, command: &mut Command) -> Answer {
    let kind = Resources::kind(command.data.u16_at(0)?);
    let count = usize::from(command.data.u16_at(2)?);
    let listed = command.data.len().saturating_sub(HEADER) / 2;
    for index in 0..count.min(listed) {
        let id = command.data.u16_at(HEADER + 2 * index)?;
        if !firmware.resources.free(kind, id) {
            lan.debug(format_args!(
                "resource {kind:#x}/{id}: freed but not in use"
            ));
        }
        let list = match kind {
            VSI_LIST_REPLICATE => ListKind::Replicate,
            VSI_LIST_PRUNE => ListKind::Prune,
            _ => continue,
        };
        lan.switch.write().remove_list(list, id);
    }
    Ok(())
}
