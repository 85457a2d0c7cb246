// SPDX-License-Identifier: GPL-2.0

//! How work ended that did not succeed.
//!
//! The device writes one error completion for each flushed queue that was not empty; its minor code
//! says what was wrong with the oldest work request. The completions of the others, and of those posted
//! later, are made in software.

/// Status of a completion, of those the queues of this device produce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Success,
    LocalLength,
    LocalQpOperation,
    LocalProtection,
    /// The queue was flushed.
    Flushed,
    MwBind,
    RemoteAccess,
    RemoteInvalidRequest,
    RemoteOperation,
    RetryExceeded,
    RnrRetryExceeded,
    Fatal,
    General,
}

impl Status {
    /// Returns what the minor code of a flush completion means (`FLUSH_..`).
    pub(crate) const fn from_flush_code(code: u64) -> Self {
        match code {
            1 => Status::Flushed,
            2 => Status::LocalProtection,
            3 => Status::RemoteAccess,
            4 => Status::LocalQpOperation,
            5 => Status::RemoteOperation,
            6 => Status::LocalLength,
            8 => Status::RetryExceeded,
            9 => Status::MwBind,
            10 => Status::RemoteInvalidRequest,
            11 => Status::RnrRetryExceeded,
            // 7 by name, and 0 and whatever else for want of a better one.
            _ => Status::Fatal,
        }
    }
}

#[kernel::macros::kunit_tests(irdma_rs_flush)]
mod tests {
    use super::*;

    #[test]
    fn names_the_codes() {
        for (code, status) in [
            (0, Status::Fatal),
            (1, Status::Flushed),
            (6, Status::LocalLength),
            (7, Status::Fatal),
            (11, Status::RnrRetryExceeded),
            (12, Status::Fatal),
        ] {
            assert_eq!(Status::from_flush_code(code), status);
        }
    }
}
