// SPDX-License-Identifier: GPL-2.0
//! Data center bridging. The firmware's own agent is off, so the driver negotiates, or is told by
//! its administrator (`dcb ets set`), and tells the device: which traffic classes there are shows in
//! the scheduler, whose tree has one branch for each. Priority flow control is nothing to a wire
//! that loses no frame.

use super::{Answer, Command};
use crate::firmware::Firmware;
use crate::le::Load;
use crate::scheduler::CLASSES;
use crate::Lan;

/// TLV type "organizationally specific" and end of the list, in the upper seven bits of its head.
const SPECIFIC: u16 = 127;
const END: u16 = 0;
/// Length of a TLV in the lower nine bits.
const LENGTH: u16 = 0x1ff;
/// IEEE 802.1 (00-80-C2), ETS configuration.
const ETS_CONFIGURATION: [u8; 4] = [0x00, 0x80, 0xc2, 9];
/// Where the priority assignment begins in such a TLV: after name and the byte of flags.
const PRIORITIES: usize = 5;

/// 0x0303: set the flow control mode. The driver compares the answer with its request.
pub fn pfc_mode() -> Answer {
    Ok(())
}

/// 0x0a0a: control the LLDP filter.
pub fn filter() -> Answer {
    Ok(())
}

/// 0x0a08: set the local MIB. Its ETS configuration says which traffic classes are in use.
pub fn set_mib(lan: &Lan, firmware: &mut Firmware, command: &Command) -> Answer {
    if let Some(classes) = classes(&command.data) {
        lan.debug(format_args!("traffic classes {classes:#04x}"));
        firmware.scheduler.set_classes(classes)?;
    }
    Ok(())
}

/// Traffic classes in use, as a bit map, by the priorities that the MIB assigns to them.
fn classes(mib: &[u8]) -> Option<u8> {
    let mut rest = mib;
    loop {
        let head: [u8; 2] = rest.array_at(0).ok()?;
        let head = u16::from_be_bytes(head);
        let (kind, len) = (head >> LENGTH.count_ones(), usize::from(head & LENGTH));
        if kind == END {
            return None;
        }
        let value = rest.bytes_at(2, len).ok()?;
        if kind == SPECIFIC && value.starts_with(&ETS_CONFIGURATION) {
            let table = value.bytes_at(PRIORITIES, CLASSES / 2).ok()?;
            let classes = table.iter().flat_map(|two| [two >> 4, two & 0xf]);
            // Classes 8 to 15 mean something else in the standard.
            let map = classes
                .filter(|class| *class < 8)
                .fold(0, |map, class| map | 1 << class);
            return Some(map);
        }
        rest = rest.get(2 + len..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A MIB with another TLV before an ETS configuration of these priorities.
    fn mib(table: [u8; 4]) -> Vec<u8> {
        let mut bytes = vec![
            0xfe, 6, 0, 0x80, 0xc2, 11, 0, 8, 0xfe, 25, 0, 0x80, 0xc2, 9, 0,
        ];
        bytes.extend(table);
        bytes.extend([100, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        bytes
    }

    #[test]
    fn classes_are_those_that_priorities_go_to() {
        assert_eq!(classes(&mib([0, 0, 0, 0])), Some(1));
        assert_eq!(classes(&mib([0x01, 0x23, 0, 0])), Some(0b1111));
        assert_eq!(classes(&mib([0xf7, 0, 0, 0])), Some(0b1000_0001));
    }

    #[test]
    fn a_mib_without_them_says_nothing() {
        let whole = mib([0x01, 0, 0, 0]);
        for len in 0..whole.len() - 16 {
            assert_eq!(classes(&whole[..len]), None, "{len}");
        }
        assert_eq!(classes(&[0, 0, 0xfe, 25]), None);
    }
}
