// SPDX-License-Identifier: GPL-2.0
//! Commands on the port: address, capabilities, link, loopback.

use super::{Answer, Command};
use crate::firmware::Firmware;
use crate::le::Load;
use crate::phy::{Phy, ReportMode};
use crate::Lan;
use std::sync::atomic::Ordering;

/// 0x0107: read the station address.
pub fn read_mac(lan: &Lan, command: &mut Command) -> Answer {
    const LAN_ADDRESS_VALID: u16 = 1 << 4;
    command.set_u16(0, LAN_ADDRESS_VALID);
    command.set_u8(4, 1);
    let mut data = vec![0, 0]; // port 0, type LAN
    data.extend_from_slice(&lan.host.wire.mac());
    command.answer(data)
}

/// 0x0600: report capabilities.
pub fn capabilities(lan: &Lan, firmware: &Firmware, command: &mut Command) -> Answer {
    const ACTIVE: u16 = 1 << 2;
    let mode = if command.u16(2) & ACTIVE != 0 {
        ReportMode::Active
    } else {
        ReportMode::Possible
    };
    lan.debug(format_args!("port capabilities: {mode:?}"));
    command.answer(firmware.phy.report(mode))
}

/// 0x0601: configure.
pub fn configure(lan: &Lan, firmware: &mut Firmware, command: &mut Command) -> Answer {
    let capabilities = command.data.u8_at(16)?;
    let fec = command.data.u8_at(22)?;
    firmware.phy.configure(capabilities, fec);
    lan.apply_phy(firmware);
    Ok(())
}

/// 0x0603: configure the MAC. The port carries every frame up to its limit anyway.
pub fn mac_config() -> Answer {
    Ok(())
}

/// 0x0605: restart auto-negotiation.
pub fn restart(lan: &Lan, firmware: &mut Firmware, command: &mut Command) -> Answer {
    const LINK_ENABLE: u8 = 1 << 2;
    firmware.phy.enable(command.u8(2) & LINK_ENABLE != 0);
    lan.apply_phy(firmware);
    Ok(())
}

/// 0x0607: link status, and whether events follow.
pub fn link_status(lan: &Lan, firmware: &mut Firmware, command: &mut Command) -> Answer {
    match command.u16(2) & 3 {
        2 => firmware.phy.events = false,
        3 => firmware.phy.events = true,
        _ => {}
    }
    command.set_u16(2, u16::from(firmware.phy.events));
    command.answer(Phy::status(lan.link_up()))
}

/// 0x0620: MAC loopback.
pub fn loopback(lan: &Lan, command: &mut Command) -> Answer {
    const ENABLE: u8 = 1 << 0;
    let enabled = command.u8(0) & ENABLE != 0;
    lan.loopback.store(enabled, Ordering::Relaxed);
    Ok(())
}
