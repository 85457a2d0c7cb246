// SPDX-License-Identifier: GPL-2.0

//! Critical errors of the device, which reach the driver through the LAN driver.
//!
//! The LAN driver owns the interrupt for other causes (OICR) and hands on what concerns the protocol
//! engine. Errors of the host memory come in bursts: they are counted, and printed ever more rarely.

use crate::{
    dev::Dev,
    regs::*, //
};
use kernel::{
    bitfield,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

bitfield! {
    /// The causes that concern the protocol engine.
    struct Causes(u32) {
        28:28 pe_criterr;
        27:27 pe_push;
        26:26 hmc_err;
    }
}

/// `GLPE_CRITERR` value of an error that needs no reset: "Q1 resource check".
const CRITERR_Q1_RESOURCE_CHECK: u32 = 0x0001_024d;

/// Errors of the host memory, of all functions.
static HMC_ERRORS: Atomic<u32> = Atomic::new(0);

/// Acts on a critical error with the given causes. Process context.
pub(crate) fn handle(dev: &Dev, register: u32) {
    let causes = Causes::from(register);
    let port = &dev.port;
    let mut reset = false;

    if causes.pe_criterr().into_bool() {
        let code = port
            .read(GLPE_CRITERR)
            .map_or(0, |register| register.into_raw());
        if code == CRITERR_Q1_RESOURCE_CHECK {
            dev_warn!(
                port.log(),
                "critical error {code:#010x}: Q1 resource check\n"
            );
        } else {
            dev_err!(port.log(), "critical error {code:#010x}\n");
            reset = true;
        }
    }
    if causes.hmc_err().into_bool() {
        let count = HMC_ERRORS.fetch_add(1, Relaxed).wrapping_add(1);
        if count.is_power_of_two() {
            dev_err!(
                port.log(),
                "host memory error {count}: information {:#010x}, data {:#010x}\n",
                port.read(PFHMC_ERRORINFO)
                    .map_or(0, |register| register.into_raw()),
                port.read(PFHMC_ERRORDATA)
                    .map_or(0, |register| register.into_raw())
            );
        }
    }
    if causes.pe_push().into_bool() {
        dev_err!(port.log(), "push error\n");
        reset = true;
    }
    if reset {
        dev_err!(port.log(), "requesting a reset of the function\n");
        dev.cqp.reset();
    }
}
