// SPDX-License-Identifier: GPL-2.0

//! How a control operation can fail.

use kernel::{
    fmt,
    prelude::*, //
};

/// The pair of codes in a completion of the control queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    /// Class of the error.
    pub(crate) major: u16,
    /// The error inside its class; without an error, a result of some operations.
    pub(crate) minor: u16,
}

impl Code {
    /// The major code of all errors the driver knows by name.
    const CQP: u16 = 0xffff;

    /// The object is in a state that does not allow the operation.
    pub(crate) const INVALID_STATE: Self = Self::cqp(0x8002);
    /// Flush found nothing to flush.
    pub(crate) const FLUSH_NO_WQE_PENDING: Self = Self::cqp(0x8006);
    /// Modify met a connection closing badly.
    pub(crate) const MODIFY_QP_BAD_CLOSE: Self = Self::cqp(0x8007);
    /// The transport is closed already.
    pub(crate) const LLP_CLOSED: Self = Self::cqp(0x8009);
    /// A reset was not sent.
    pub(crate) const RESET_NOT_SENT: Self = Self::cqp(0x800a);
    /// The device gives up: only a reset helps.
    pub(crate) const FATAL: Self = Self::cqp(0x8029);

    const fn cqp(minor: u16) -> Self {
        Self {
            major: Self::CQP,
            minor,
        }
    }

    /// What the code says, as far as the driver knows.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::INVALID_STATE => "the object's state does not allow it",
            Self::FLUSH_NO_WQE_PENDING => "nothing to flush",
            Self::MODIFY_QP_BAD_CLOSE => "the connection closed badly",
            Self::LLP_CLOSED => "the transport is closed",
            Self::RESET_NOT_SENT => "the reset was not sent",
            Self::FATAL => "fatal, only a reset helps",
            Self {
                major: Self::CQP, ..
            } => "a failure without a name",
            _ => "a class of errors without a name",
        }
    }

    /// Whether the answer belongs to ordinary operation and is not worth a message.
    pub(crate) fn is_expected(self) -> bool {
        matches!(
            self,
            Self::INVALID_STATE
                | Self::FLUSH_NO_WQE_PENDING
                | Self::MODIFY_QP_BAD_CLOSE
                | Self::LLP_CLOSED
                | Self::RESET_NOT_SENT
        )
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_fmt(fmt!("{:#06x}/{:#06x}", self.major, self.minor))
    }
}

/// Why a control operation did not succeed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure {
    /// The operation was not handed to the device, for the given reason. When the control queue is
    /// dead or the function is being reset this is what every operation gets, at once.
    NotSent(Error),
    /// The device completed the operation with an error.
    Refused(Code),
    /// The device did not answer in time. The operation may still be carried out, so the memory and
    /// the ids it names stay the device's until the function has been reset.
    TimedOut,
}

impl Failure {
    /// Whether the device may still act on the operation.
    ///
    /// A failed *create* that is not in flight leaves nothing in the device. A failed *destroy*
    /// always leaves the object's memory and id with the device, whatever this says.
    pub(crate) fn in_flight(self) -> bool {
        matches!(self, Self::TimedOut)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotSent(reason) => reason,
            Failure::Refused(Code::INVALID_STATE) => EBUSY,
            Failure::Refused(_) => EIO,
            Failure::TimedOut => ETIMEDOUT,
        }
    }
}

impl From<Error> for Failure {
    /// An error met before the operation reached the device.
    fn from(reason: Error) -> Self {
        Self::NotSent(reason)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(reason) => f.write_fmt(fmt!("not sent, error {}", reason.to_errno())),
            Self::Refused(code) => f.write_fmt(fmt!("refused by the device, code {}", code)),
            Self::TimedOut => f.write_str("not answered by the device"),
        }
    }
}
