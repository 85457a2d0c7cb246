// SPDX-License-Identifier: GPL-2.0

//! Stopping queue pairs while their queue sets change.

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
    struct SuspendHeader(u64) {
        23:0 qpid;
    }
}

/// Has a queue pair stop sending. When it stands still an asynchronous event says so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SuspendQp {
    /// Queue pair number.
    pub(crate) qp: u32,
}

impl Command for SuspendQp {
    const OP: Op = Op::SuspendQp;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        Ok(Wqe::new().with::<3>(SuspendHeader::from(0).try_with_qpid(self.qp)?))
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}

/// Has a suspended queue pair go on, in another queue set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResumeQp {
    /// Queue pair number.
    pub(crate) qp: u32,
    /// Handle of the queue set.
    pub(crate) qs_handle: u16,
}

impl Command for ResumeQp {
    const OP: Op = Op::ResumeQp;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        Ok(Wqe::new()
            .with::<2>(u64::from(self.qs_handle))
            .with::<3>(SuspendHeader::from(0).try_with_qpid(self.qp)?))
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}
