// SPDX-License-Identifier: GPL-2.0
//! Registers of the RDMA half: decoding of offsets apart from what a read or write does.

use crate::bits::{bit, bits, low16, low32, Field};
use crate::cq::doorbell_id;
use crate::model::Model;
use std::collections::{BTreeMap, BTreeSet};

/// Number of registers in the arrays.
const CEQCTLS: u32 = 2048;
const VSIS: u32 = 768;
const VFS: u32 = 256;

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Register {
    CqpTail,
    CqpDb,
    CcqpStatus,
    CcqpHigh,
    CcqpLow,
    CqArm,
    CqAck,
    AeqAlloc,
    CqpErrCodes,
    WqeAlloc,
    CeqCtl(u32),
    AeqCtl,
    LbarCtrl,
    CpuStatus,
    PdInv,
    CritErr,
    HmcErrorInfo,
    HmcErrorData,
    /// Accepted and without effect.
    Ignored,
    /// An unused word of the doorbell page.
    DoorbellPage(u32),
}

/// Offset of the page of user doorbells.
const DOORBELL_PAGE: u32 = 0x7F_0000;

impl Register {
    pub(crate) fn decode(offset: u32) -> Option<Self> {
        let array = |base: u32, count: u32| -> Option<u32> {
            let rest = offset.checked_sub(base)?;
            (rest % 4 == 0 && rest / 4 < count).then_some(rest / 4)
        };
        Some(match offset {
            0x50_0880 => Self::CqpTail,
            0x50_0800 => Self::CqpDb,
            0x50_A000 => Self::CcqpStatus,
            0x50_A100 => Self::CcqpHigh,
            0x50_A080 => Self::CcqpLow,
            0x50_2C00 => Self::CqArm,
            0x50_2C80 => Self::CqAck,
            0x50_2D00 => Self::AeqAlloc,
            0x50_A200 => Self::CqpErrCodes,
            0x50_4400 => Self::WqeAlloc,
            0x16_CB00 => Self::AeqCtl,
            0x09_DE74 => Self::LbarCtrl,
            0x50_BA5C | 0x50_BA60 | 0x50_BA64 => Self::CpuStatus,
            0x52_0300 => Self::PdInv,
            0x53_4000 => Self::CritErr,
            0x52_0400 => Self::HmcErrorInfo,
            0x52_0500 => Self::HmcErrorData,
            0x7F_0000 => Self::WqeAlloc,
            0x7F_0040 => Self::CqArm,
            _ => {
                if let Some(ceq) = array(0x15_C000, CEQCTLS) {
                    Self::CeqCtl(ceq)
                } else if array(0x41_4000, VSIS).is_some() || array(0x52_8300, VFS).is_some() {
                    Self::Ignored
                } else {
                    Self::DoorbellPage(array(DOORBELL_PAGE, 1024)?)
                }
            }
        })
    }
}

/// Value of the CPU status registers of a function that is ready.
const CPU_READY: u32 = 0x80;
/// Doorbell space of 8 MiB.
const LBAR_8M: u32 = 0x20;

/// Status of the control queue.
const CCQP_DONE: u32 = 1;
const CCQP_ERR: u32 = 1 << 31;

/// Control registers of the event queues.
const MSIX_INDEX: Field = bits(10, 0);
const CAUSE_ENABLE: Field = bit(30);

/// Kept register values.
#[derive(Default)]
pub(crate) struct Registers {
    ccqp_high: u32,
    ceq_ctl: BTreeMap<u32, u32>,
    aeq_ctl: u32,
    /// Event queues that had an event while their cause was off.
    ceq_waiting: BTreeSet<u32>,
    aeq_waiting: bool,
    pub(crate) cqp_failed: bool,
    pub(crate) cqp_error: u32,
    pub(crate) critical_error: u32,
    pub(crate) hmc_error_info: u32,
    pub(crate) hmc_error_data: u32,
}

fn vector(control: u32) -> Option<u16> {
    let control = u64::from(control);
    CAUSE_ENABLE
        .is_set(control)
        .then(|| low16(MSIX_INDEX.get(control)))
}

impl Model {
    pub(crate) fn read32(&self, register: Register) -> u32 {
        match register {
            Register::CqpTail => self.cqp.as_ref().map_or(0, |c| c.tail()),
            Register::CcqpStatus => {
                let done = if self.cqp.is_some() { CCQP_DONE } else { 0 };
                let error = if self.regs.cqp_failed { CCQP_ERR } else { 0 };
                done | error
            }
            Register::CcqpHigh => self.regs.ccqp_high,
            Register::CqpErrCodes => self.regs.cqp_error,
            Register::CeqCtl(ceq) => self.regs.ceq_ctl.get(&ceq).copied().unwrap_or(0),
            Register::AeqCtl => self.regs.aeq_ctl,
            Register::LbarCtrl => LBAR_8M,
            Register::CpuStatus => CPU_READY,
            Register::CritErr => self.regs.critical_error,
            Register::HmcErrorInfo => self.regs.hmc_error_info,
            Register::HmcErrorData => self.regs.hmc_error_data,
            Register::CqpDb
            | Register::CcqpLow
            | Register::CqArm
            | Register::CqAck
            | Register::AeqAlloc
            | Register::WqeAlloc
            | Register::PdInv
            | Register::Ignored
            | Register::DoorbellPage(_) => 0,
        }
    }

    pub(crate) fn write32(&mut self, register: Register, value: u32) {
        match register {
            Register::CcqpHigh => self.regs.ccqp_high = value,
            Register::CcqpLow => {
                let addr = u64::from(self.regs.ccqp_high) << 32 | u64::from(value);
                if addr == 0 {
                    self.cqp_destroy();
                } else {
                    self.cqp_create(addr);
                }
            }
            Register::CqpDb => self.cqp_doorbell(value),
            Register::CqArm => self.cq_arm(doorbell_id(value)),
            Register::CqAck => self.cq_ack(doorbell_id(value)),
            Register::AeqAlloc => self.aeq_return(value),
            Register::WqeAlloc => self.sq_doorbell(value),
            Register::CeqCtl(ceq) => {
                self.regs.ceq_ctl.insert(ceq, value);
                if vector(value).is_some() && self.regs.ceq_waiting.remove(&ceq) {
                    self.ceq_interrupt(ceq);
                }
            }
            Register::AeqCtl => {
                self.regs.aeq_ctl = value;
                if vector(value).is_some() && std::mem::take(&mut self.regs.aeq_waiting) {
                    self.aeq_interrupt();
                }
            }
            // Cleared by the driver before it creates the control queue; both follow its state.
            Register::CqpTail | Register::CcqpStatus => {}
            Register::CritErr => self.regs.critical_error = value,
            Register::HmcErrorInfo => self.regs.hmc_error_info = value,
            Register::HmcErrorData => self.regs.hmc_error_data = value,
            // Page descriptors are read at each use.
            Register::PdInv | Register::Ignored => {}
            Register::CqpErrCodes | Register::LbarCtrl | Register::CpuStatus => {
                self.log(format_args!("write of {value:#x} to {register:?}"));
            }
            Register::DoorbellPage(word) => {
                self.log(format_args!(
                    "write of {value:#x} to word {word} of the doorbell page"
                ));
            }
        }
    }

    /// Raises the vector of a completion event queue, or remembers it until its cause is on.
    pub(crate) fn ceq_interrupt(&mut self, ceq: u32) {
        let control = self.regs.ceq_ctl.get(&ceq).copied().unwrap_or(0);
        match vector(control) {
            Some(v) => self.host.interrupts.event(v),
            None => {
                self.regs.ceq_waiting.insert(ceq);
            }
        }
    }

    /// Raises the vector of the asynchronous event queue, or remembers it until its cause is on.
    pub(crate) fn aeq_interrupt(&mut self) {
        match vector(self.regs.aeq_ctl) {
            Some(v) => self.host.interrupts.event(v),
            None => self.regs.aeq_waiting = true,
        }
    }

    /// A send doorbell. The upper bits would be an index for pushed WQEs.
    fn sq_doorbell(&mut self, value: u32) {
        self.counts.doorbells.sq += 1;
        let id = low32(u64::from(value) & 0xF_FFFF);
        if self.qps.contains_key(&id) {
            self.kick(id);
        } else {
            self.violate(format_args!(
                "send doorbell of QP {id}, which does not exist"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_decode() {
        for (offset, register) in [
            (0x50_0880, Some(Register::CqpTail)),
            (0x15_C000, Some(Register::CeqCtl(0))),
            (0x15_C00C, Some(Register::CeqCtl(3))),
            (0x15_C00D, None),
            (0x15_E000, None),
            (0x7F_0000, Some(Register::WqeAlloc)),
            (0x7F_0040, Some(Register::CqArm)),
            (0x7F_0044, Some(Register::DoorbellPage(17))),
            (0x7F_1000, None),
            (0x16_0000, None),
            (0, None),
        ] {
            assert_eq!(Register::decode(offset), register, "{offset:#x}");
        }
    }
}
