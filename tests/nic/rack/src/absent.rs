// SPDX-License-Identifier: GPL-2.0
//! Halves that are not there: registers read zero, frames are lost. For tests of the card.

use nic_bus::{LanFunction, RdmaFunction, Reset};
use serde_json::Value;

/// A card without a LAN half.
pub struct NoLan;

impl LanFunction for NoLan {
    fn read32(&self, _offset: u32) -> u32 {
        0
    }
    fn write32(&self, _offset: u32, _value: u32) {}
    fn has_address(&self, _mac: [u8; 6]) -> bool {
        false
    }
    fn receive(&self, _frame: &[u8]) {}
    fn link_changed(&self, _up: bool) {}
    fn other_cause(&self, _bits: u32) {}
    fn reset(&self, _kind: Reset) {}
    fn control(&self, _command: &str, _args: &Value) -> Option<Result<Value, String>> {
        None
    }
}

/// A card without an RDMA half.
pub struct NoRdma;

impl RdmaFunction for NoRdma {
    fn read32(&self, _offset: u32) -> Option<u32> {
        None
    }
    fn write32(&self, _offset: u32, _value: u32) -> bool {
        false
    }
    fn wants(&self, _frame: &[u8]) -> bool {
        false
    }
    fn receive(&self, _frame: &[u8]) {}
    fn set_filter(&self, _vsi: u16, _enabled: bool) {}
    fn queue_set(&self, _handle: u16, _teid: u32, _present: bool) {}
    fn reset(&self, _kind: Reset) {}
    fn control(&self, _command: &str, _args: &Value) -> Option<Result<Value, String>> {
        None
    }
}
