// SPDX-License-Identifier: GPL-2.0
//! What a refused admin command returns.

use crate::le::Short;

/// Error codes of the firmware; the numbers are Linux's errno, as on the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The object does not exist.
    Enoent = 2,
    /// The command does not exist.
    Esrch = 3,
    /// The buffer is too small.
    Enomem = 9,
    /// A parameter is wrong, or the buffer ends before its content.
    Einval = 14,
    /// No object is left.
    Enospc = 16,
}

impl Code {
    /// Every code.
    pub const ALL: [Self; 5] = [
        Code::Enoent,
        Code::Esrch,
        Code::Enomem,
        Code::Einval,
        Code::Enospc,
    ];
}

impl From<Short> for Code {
    fn from(_: Short) -> Self {
        Code::Einval
    }
}
