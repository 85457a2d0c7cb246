// SPDX-License-Identifier: GPL-2.0
//! Why a control operation was refused: the codes the driver sees and the reason for the log.

use crate::host::MemError;
use std::fmt;

/// Major code of everything the device itself refuses.
pub(crate) const MAJOR: u16 = 0xFFFF;

/// A refused control operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CqpError {
    pub(crate) major: u16,
    pub(crate) minor: u16,
    pub(crate) reason: String,
}

/// Minor codes. `INVALID_STATE` is one that drivers know; the others are free numbers that none
/// gives a meaning to, so each is taken as a plain failure.
mod minor {
    pub(super) const UNKNOWN_OP: u16 = 0x0001;
    pub(super) const PARAMETER: u16 = 0x0002;
    pub(super) const RANGE: u16 = 0x0003;
    pub(super) const IN_USE: u16 = 0x0004;
    pub(super) const UNUSED: u16 = 0x0005;
    pub(super) const MEMORY: u16 = 0x0006;
    pub(super) const INVALID_STATE: u16 = 0x8002;
}

impl CqpError {
    fn new(minor: u16, reason: String) -> Self {
        Self {
            major: MAJOR,
            minor,
            reason,
        }
    }

    /// The operation does not exist.
    pub(crate) fn unknown_op(code: u8) -> Self {
        Self::new(minor::UNKNOWN_OP, format!("unknown operation {code:#x}"))
    }

    /// A field holds what it must not.
    pub(crate) fn parameter(reason: impl fmt::Display) -> Self {
        Self::new(minor::PARAMETER, reason.to_string())
    }

    /// An id at or beyond the committed count.
    pub(crate) fn range(what: &str, id: u32, count: u32) -> Self {
        Self::new(minor::RANGE, format!("{what} {id} of {count}"))
    }

    /// Creation of what exists.
    pub(crate) fn in_use(what: &str, id: u32) -> Self {
        Self::new(minor::IN_USE, format!("{what} {id} exists"))
    }

    /// Use of what does not exist.
    pub(crate) fn unused(what: &str, id: u32) -> Self {
        Self::new(minor::UNUSED, format!("no {what} {id}"))
    }

    /// The object's state does not allow it.
    pub(crate) fn state(reason: impl fmt::Display) -> Self {
        Self::new(minor::INVALID_STATE, reason.to_string())
    }
}

impl From<MemError> for CqpError {
    fn from(e: MemError) -> Self {
        Self::new(minor::MEMORY, e.to_string())
    }
}

impl From<nic_bus::DmaError> for CqpError {
    fn from(e: nic_bus::DmaError) -> Self {
        MemError::from(e).into()
    }
}

impl fmt::Display for CqpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (major {:#x}, minor {:#x})",
            self.reason, self.major, self.minor
        )
    }
}
