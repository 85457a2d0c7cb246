// SPDX-License-Identifier: GPL-2.0

//! Completing the outstanding work of a queue pair with errors.

use super::super::{
    Command,
    Completed,
    Op,
    Wqe, //
};
use kernel::{
    bitfield,
    prelude::*, //
};

bitfield! {
    struct FlushHeader(u64) {
        62:62 flushrq;
        61:61 flushsq;
        60:60 userflcode;
        23:0 qpid;
    }
}

bitfield! {
    struct FlushCodes(u64) {
        63:48 sqmjerr;
        47:32 sqmnerr;
        31:16 rqmjerr;
        15:0 rqmnerr;
    }
}

/// Reason written into the completions of flushed work (`FLUSH_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushCode {
    /// Work request flushed.
    General = 1,
    /// Local protection error.
    Prot = 2,
    /// Remote access error.
    RemAccess = 3,
    /// Local queue pair operation error.
    LocQpOp = 4,
    /// Remote operation error.
    RemOp = 5,
    /// Local length error.
    LocLen = 6,
    /// Fatal error.
    Fatal = 7,
    /// Retries exhausted.
    RetryExc = 8,
    /// Memory window bind error.
    MwBind = 9,
    /// Remote invalid request.
    RemInvReq = 10,
    /// Receiver-not-ready retries exhausted.
    RnrRetryExc = 11,
}

impl FlushCode {
    /// The code's number.
    pub(crate) const fn value(self) -> u16 {
        // CAST: the enum's discriminants are small and positive.
        self as u16
    }
}

/// Flushes one or both queues of a queue pair that is in error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlushWqes {
    /// Queue pair number.
    pub(crate) qp: u32,
    /// Flush the send queue, with this reason.
    pub(crate) sq: Option<FlushCode>,
    /// Flush the receive queue, with this reason.
    pub(crate) rq: Option<FlushCode>,
}

/// For which of the queues asked for a completion with an error was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flushed {
    /// Send queue.
    pub(crate) sq: bool,
    /// Receive queue.
    pub(crate) rq: bool,
}

impl FlushWqes {
    /// Major code of flush completions.
    pub(crate) const MAJOR: u16 = 1;

    /// Minor code: nothing was flushed.
    const NONE: u16 = 0;
    /// Minor code: only the receive queue was flushed.
    const RQ_ONLY: u16 = 2;
    /// Minor code: only the send queue was flushed.
    const SQ_ONLY: u16 = 3;
}

impl Command for FlushWqes {
    const OP: Op = Op::FlushWqes;
    type Answer = Flushed;

    fn wqe(&self) -> Result<Wqe> {
        let mut codes = FlushCodes::from(0);
        if let Some(code) = self.sq {
            codes = codes.with_sqmjerr(Self::MAJOR).with_sqmnerr(code.value());
        }
        if let Some(code) = self.rq {
            codes = codes.with_rqmjerr(Self::MAJOR).with_rqmnerr(code.value());
        }
        Ok(Wqe::new().with::<2>(codes).with::<3>(
            FlushHeader::from(0)
                .try_with_qpid(self.qp)?
                .with_const_userflcode::<1>()
                .with_flushsq(self.sq.is_some())
                .with_flushrq(self.rq.is_some()),
        ))
    }

    fn answer(&self, completed: Completed) -> Self::Answer {
        let (sq, rq) = match completed.minor {
            Self::NONE => (false, false),
            Self::RQ_ONLY => (false, true),
            Self::SQ_ONLY => (true, false),
            _ => (true, true),
        };
        Flushed {
            sq: sq && self.sq.is_some(),
            rq: rq && self.rq.is_some(),
        }
    }
}
