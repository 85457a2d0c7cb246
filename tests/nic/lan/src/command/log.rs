// SPDX-License-Identifier: GPL-2.0
//! The firmware's log. The model has no firmware that could fill it; the commands succeed so that
//! the driver does not warn about old firmware.

use super::{Answer, Command};

/// Log modules a driver knows.
const MODULES: u8 = 32;

/// 0xff30, 0xff31: configure and register.
pub fn configure() -> Answer {
    Ok(())
}

/// 0xff32: query the levels, all "none".
pub fn query(command: &mut Command) -> Answer {
    let data = (0..MODULES).flat_map(|id| [id, 0, 0, 0]).collect();
    command.set_u8(2, MODULES);
    command.set_u8(3, 1);
    command.answer(data)
}
