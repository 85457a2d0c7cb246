// SPDX-License-Identifier: GPL-2.0
//! Values of the registers that remember what was written.

use crate::regs::{Register, GLGEN_RSTAT_TYPE_SHIFT};
use nic_bus::Reset;
use std::collections::HashMap;

/// Register values by offset. Only offsets with a name are stored, so a guest cannot grow it.
#[derive(Default)]
pub struct Registers {
    values: HashMap<u32, u32>,
    /// `PFINT_OICR`: causes not yet read.
    pub other_cause: u32,
    /// `PFINT_OICR_ENA`.
    pub other_cause_enable: u32,
    /// `PFINT_OICR_CTL`.
    pub other_cause_control: u32,
    /// `GLGEN_RSTAT`.
    pub reset_state: u32,
}

impl Registers {
    /// What was written to `offset`, or `initial`.
    pub fn get(&self, offset: u32, initial: u32) -> u32 {
        self.values.get(&offset).copied().unwrap_or(initial)
    }

    /// Remembers a write to a register with a name.
    pub fn set(&mut self, offset: u32, value: u32) {
        debug_assert!(Register::decode(offset).is_some());
        self.values.insert(offset, value);
    }

    /// Returns to reset values. A core reset (`core_type` is its type in `GLGEN_RSTAT`) announces
    /// itself by the "other cause" interrupt, so mask and vector of that one survive it.
    pub fn reset(&mut self, kind: Reset, core_type: u32) {
        let old = std::mem::take(self);
        match kind {
            Reset::Function => self.reset_state = old.reset_state,
            Reset::Core => {
                self.other_cause_enable = old.other_cause_enable;
                self.other_cause_control = old.other_cause_control;
                self.reset_state = core_type << GLGEN_RSTAT_TYPE_SHIFT;
            }
            Reset::Disconnect => {}
        }
    }
}
