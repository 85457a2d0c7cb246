// SPDX-License-Identifier: GPL-2.0
//! The admin commands of `ice` (sections 5 and 6 of the hardware contract), one file a group.
//!
//! A command is carried out under the firmware lock. It finds its request in [`Command`] and leaves
//! its answer there; what it asks of the card (PE filter, RDMA queue sets) happens before the
//! driver sees it complete.

mod capability;
mod code;
mod dcb;
mod general;
mod log;
mod nvm;
mod package;
mod phy;
mod queue;
mod resource;
mod rss;
mod scheduler;
mod switch;
mod vsi;

pub use capability::FUNCTION_VSIS;
pub use code::Code;

use crate::firmware::Firmware;
use crate::le::Load;
use crate::Lan;

/// What a handler returns.
pub type Answer = Result<(), Code>;

/// A command on its way through its handler.
#[derive(Debug)]
pub struct Command {
    /// The command.
    pub opcode: u16,
    /// Parameters: the request's, then the answer's. Of a command with a buffer only the first
    /// eight bytes reach the driver.
    pub params: [u8; 16],
    /// The buffer: the request's, then the answer's.
    pub data: Vec<u8>,
    /// Bytes the driver set aside for the answer.
    room: usize,
}

impl Command {
    /// A command as it came.
    pub fn new(opcode: u16, params: [u8; 16], data: Vec<u8>) -> Self {
        let room = data.len();
        Self {
            opcode,
            params,
            data,
            room,
        }
    }

    /// The answer.
    pub fn finish(self) -> ([u8; 16], Vec<u8>) {
        (self.params, self.data)
    }

    /// Replaces the buffer, if the driver set enough aside.
    fn answer(&mut self, data: Vec<u8>) -> Answer {
        if data.len() > self.room {
            return Err(Code::Enomem);
        }
        self.data = data;
        Ok(())
    }

    /// Sets a byte of the parameters. `at` is a constant of the caller's below 16.
    fn set_u8(&mut self, at: usize, value: u8) {
        self.set(at, &[value]);
    }

    /// Sets a 16-bit parameter.
    fn set_u16(&mut self, at: usize, value: u16) {
        self.set(at, &value.to_le_bytes());
    }

    /// Sets a 32-bit parameter.
    fn set_u32(&mut self, at: usize, value: u32) {
        self.set(at, &value.to_le_bytes());
    }

    fn set(&mut self, at: usize, bytes: &[u8]) {
        for (to, from) in self.params.iter_mut().skip(at).zip(bytes) {
            *to = *from;
        }
    }

    /// A byte of the parameters.
    fn u8(&self, at: usize) -> u8 {
        self.params.u8_at(at).unwrap_or(0)
    }

    /// A 16-bit parameter.
    fn u16(&self, at: usize) -> u16 {
        self.params.u16_at(at).unwrap_or(0)
    }
}

/// Carries out `command`. An error leaves no data in the buffer.
pub fn execute(lan: &Lan, firmware: &mut Firmware, command: &mut Command) -> Answer {
    firmware.count(command.opcode);
    let answer = match firmware.faults.take(command.opcode) {
        Some(code) => Err(code),
        None => dispatch(lan, firmware, command),
    };
    if let Err(code) = answer {
        command.data.clear();
        if code != Code::Esrch {
            lan.debug(format_args!(
                "admin command {:#06x}: refused with {code:?}",
                command.opcode
            ));
        }
    }
    answer
}

fn dispatch(lan: &Lan, firmware: &mut Firmware, command: &mut Command) -> Answer {
    match command.opcode {
        0x0001 => general::version(command),
        0x0002 | 0x0003 | 0x0110 | 0x0203 | 0x0613 => Ok(()),
        0x0008 => general::request_resource(firmware, command),
        0x0009 => general::release_resource(),
        0x000a | 0x000b => capability::list(lan, command),
        0x0107 => phy::read_mac(lan, command),
        0x0108 => Ok(()),
        0x0200 => switch::configuration(command),
        0x0208 => resource::allocate(firmware, command),
        0x0209 => resource::free(lan, firmware, command),
        0x020d => switch::vlan_mode(command),
        0x0210 => vsi::add(lan, command),
        0x0211 => vsi::update(lan, command),
        0x0213 => vsi::free(lan, command),
        0x02a0 => switch::add_rules(lan, command),
        0x02a1 => switch::update_rules(lan, command),
        0x02a2 => switch::remove_rules(lan, command),
        0x02a4 => switch::clear(lan),
        0x0303 => dcb::pfc_mode(),
        0x0400 => scheduler::default_topology(firmware, command),
        0x0401 => scheduler::add(firmware, command),
        0x0403 => scheduler::configure(firmware, command),
        0x0404 => scheduler::query(firmware, command),
        0x0408 => scheduler::move_elements(firmware, command),
        0x0409 | 0x040a => scheduler::suspend(command),
        0x040e => scheduler::port_teids(firmware, command),
        0x040f => scheduler::delete(firmware, command),
        0x0412 => scheduler::resources(command),
        0x0600 => phy::capabilities(lan, firmware, command),
        0x0601 => phy::configure(lan, firmware, command),
        0x0603 => phy::mac_config(),
        0x0605 => phy::restart(lan, firmware, command),
        0x0607 => phy::link_status(lan, firmware, command),
        0x0620 => phy::loopback(lan, command),
        0x06e9 => Ok(()),
        0x0701 => nvm::read(firmware, command),
        0x0706 => nvm::checksum(command),
        0x0a08 => dcb::set_mib(lan, firmware, command),
        0x0a0a => dcb::filter(),
        0x0b02 => rss::set_key(lan, command),
        0x0b03 => rss::set_table(lan, command),
        0x0b04 => rss::get_key(lan, command),
        0x0b05 => rss::get_table(lan, command),
        0x0c30 => queue::add_transmit(lan, firmware, command),
        0x0c31 => queue::disable(lan, firmware, command),
        0x0c33 => queue::add_rdma(lan, firmware, command),
        0x0c40 => package::download(firmware, command),
        0x0c41 | 0x0c42 => package::section(),
        0x0c43 => package::list(firmware, command),
        0xff30 | 0xff31 => log::configure(),
        0xff32 => log::query(command),
        // Port options, topology nodes and module memory of which the virtual card has none.
        0x06e0 | 0x06ea | 0x06ee => Err(Code::Esrch),
        opcode => {
            lan.log(format_args!("admin command {opcode:#06x}: not known"));
            Err(Code::Esrch)
        }
    }
}
