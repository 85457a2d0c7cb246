// SPDX-License-Identifier: GPL-2.0
//! Version and the resource locks between functions.

use super::{Answer, Command};
use crate::firmware::Firmware;

/// Version of the admin interface: the highest that adds no health events.
const API: [u8; 4] = [0, 1, 7, 3];
/// Version of the firmware: branch, major, minor, patch.
const FIRMWARE: [u8; 4] = [0, 7, 3, 0];
/// Build number of the firmware.
const BUILD: u32 = 1;
/// ROM version.
const ROM: u32 = 1;

/// Resource: the global configuration, that is the package download.
const GLOBAL_CONFIGURATION: u16 = 4;
/// The lock is granted.
const GRANTED: u16 = 0;
/// The work the lock guards has been done by another function or an earlier driver.
const DONE: u16 = 2;
/// Milliseconds for which a lock is held at most.
const LOCK_TIMEOUT: u32 = 3000;

/// 0x0001: get version.
pub fn version(command: &mut Command) -> Answer {
    command.set_u32(0, ROM);
    command.set_u32(4, BUILD);
    command.set(8, &FIRMWARE);
    command.set(12, &API);
    Ok(())
}

/// 0x0008: request a resource. A card with one function has no other holder, so each is granted,
/// except that a downloaded package stays.
pub fn request_resource(firmware: &Firmware, command: &mut Command) -> Answer {
    let done = command.u16(0) == GLOBAL_CONFIGURATION && firmware.package.is_some();
    command.set_u32(4, LOCK_TIMEOUT);
    command.set_u16(12, if done { DONE } else { GRANTED });
    Ok(())
}

/// 0x0009: release a resource.
pub fn release_resource() -> Answer {
    Ok(())
}
