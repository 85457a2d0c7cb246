// SPDX-License-Identifier: GPL-2.0
//! The admin send queue: takes commands from the ring, has them carried out, and completes them in
//! order, all within the write of the tail register.

use super::descriptor::{Descriptor, LEN};
use crate::command::{self, Command};
use crate::firmware::Firmware;
use crate::Lan;
use nic_bus::DmaError;

/// Carries out everything between head and tail.
pub fn process(lan: &Lan, firmware: &mut Firmware) {
    while let Some(address) = firmware.send.next() {
        if let Err(error) = entry(lan, firmware, address) {
            lan.log(format_args!("admin queue: stopped: {error}"));
            firmware.send.fail();
            return;
        }
        firmware.send.advance();
    }
}

/// Carries out the command at `address`.
fn entry(lan: &Lan, firmware: &mut Firmware, address: u64) -> Result<(), DmaError> {
    let dma = &lan.host.dma;
    let mut bytes = [0; LEN];
    dma.read(address, &mut bytes)?;
    let mut descriptor = Descriptor::decode(&bytes);

    let room = if descriptor.has_buffer() {
        usize::from(descriptor.data_len)
    } else {
        0
    };
    let mut data = vec![0; room];
    if room > 0 {
        dma.read(descriptor.buffer(), &mut data)?;
    }

    let mut command = Command::new(descriptor.opcode, descriptor.params, data);
    let result = match command::execute(lan, firmware, &mut command) {
        Ok(()) => 0,
        Err(code) => code as u16,
    };
    let (params, answer) = command.finish();

    if descriptor.has_buffer() {
        let answer = answer.get(..room.min(answer.len())).unwrap_or_default();
        if !answer.is_empty() {
            dma.write(descriptor.buffer(), answer)?;
        }
        // The answer is never longer than the 16-bit room it was cut to.
        descriptor.data_len = u16::try_from(answer.len()).unwrap_or(0);
        // The address stays in the descriptor: drivers find their buffer by it.
        for (to, from) in descriptor.params.iter_mut().take(8).zip(params) {
            *to = from;
        }
    } else {
        descriptor.params = params;
    }
    descriptor.complete(result);
    dma.write(address, &descriptor.encode())
}
