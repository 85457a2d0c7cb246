// SPDX-License-Identifier: GPL-2.0
//! RSS keys and tables.

use super::{capability::RSS_TABLE, Answer, Code, Command};
use crate::le::Load;
use crate::rss::TableId;
use crate::Lan;

/// VSI number in the first parameter.
const VSI: u16 = 0x3ff;

/// 0x0b02: set a VSI's key.
pub fn set_key(lan: &Lan, command: &mut Command) -> Answer {
    let key = command.data.array_at(0)?;
    lan.switch.write().rss.set_key(command.u16(0) & VSI, key);
    Ok(())
}

/// 0x0b04: get a VSI's key.
pub fn get_key(lan: &Lan, command: &mut Command) -> Answer {
    let key = lan.switch.read().rss.key(command.u16(0) & VSI);
    command.answer(key.to_vec())
}

/// The table a command is about.
fn table_id(command: &Command) -> Result<TableId, Code> {
    let flags = command.u16(2);
    match flags & 3 {
        0 => Ok(TableId::Vsi(command.u16(0) & VSI)),
        1 => Ok(TableId::Function),
        2 => Ok(TableId::Global(command.params.u8_at(2)? >> 4)),
        _ => Err(Code::Einval),
    }
}

/// 0x0b03: set a table. An entry names a queue of the VSI.
pub fn set_table(lan: &Lan, command: &mut Command) -> Answer {
    let table = command.data.clone();
    if table.len() > usize::from(RSS_TABLE) {
        return Err(Code::Einval);
    }
    let id = table_id(command)?;
    if lan.switch.write().rss.set_table(id, table) {
        Ok(())
    } else {
        Err(Code::Enospc)
    }
}

/// 0x0b05: get a table, as much of it as the buffer holds.
pub fn get_table(lan: &Lan, command: &mut Command) -> Answer {
    let mut table = lan.switch.read().rss.table(table_id(command)?).to_vec();
    table.resize(command.data.len().min(usize::from(RSS_TABLE)), 0);
    command.answer(table)
}
