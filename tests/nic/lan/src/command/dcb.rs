// SPDX-License-Identifier: GPL-2.0
//! Data center bridging. The firmware's own agent is off, so the driver negotiates and only tells
//! the device, which has one traffic class and no priority flow control to configure.

use super::Answer;

/// 0x0303: set the flow control mode. The driver compares the answer with its request.
pub fn pfc_mode() -> Answer {
    Ok(())
}

/// 0x0a08, 0x0a0a: set the local MIB, control the LLDP filter.
pub fn accept() -> Answer {
    Ok(())
}
