// SPDX-License-Identifier: GPL-2.0

//! Queue pairs while the traffic classes change: see [`crate::tc`].
//!
//! A queue pair must not send while its queue set is taken away. It is suspended before, and goes on in
//! a queue set of the new classes afterwards. One that cannot be suspended, or for which there is no new
//! queue set, is moved to the error state and its owner told: it would not send any more, or where it
//! must not.

use kernel::prelude::*;
use rdma::event::QpEvent;

use super::{
    shared::Created,
    QpShared,
    DATAGRAM_PRIORITY, //
};
use crate::cqp::cmd::{
    FlushCode,
    ResumeQp,
    SuspendQp, //
};

impl QpShared {
    /// Has the device stop sending.
    pub(super) fn suspend_sending(&self) {
        let control = self.control.lock();
        // One in error does not send.
        if control.created.as_ref().is_none_or(|c| c.in_error) {
            return;
        }
        self.suspended.reinit();
        let suspended = self.dev.cqp.execute(&SuspendQp { qp: self.number });
        drop(control);
        if let Err(failure) = suspended {
            self.suspended.complete_all();
            self.give_up("suspended", failure.into());
        }
    }

    /// Has the device go on sending, in a queue set of the traffic classes as they are now. Nothing
    /// happens to a queue pair that has such a queue set.
    pub(super) fn resume_sending(&self) {
        let resumed = {
            let mut control = self.control.lock();
            match control.created.as_mut() {
                Some(created) if !created.in_error && !created.queue_set.is_current() => {
                    self.change_queue_set(created)
                }
                _ => Ok(()),
            }
        };
        if let Err(error) = resumed {
            self.give_up("resumed", error);
        }
    }

    fn change_queue_set(&self, created: &mut Created) -> Result {
        created.queue_set = self.dev.scheduler.join(DATAGRAM_PRIORITY)?;
        let qs_handle = created.queue_set.handle();
        created.context.qs_handle = qs_handle;
        created.write_context()?;
        Ok(self.dev.cqp.execute(&ResumeQp {
            qp: self.number,
            qs_handle,
        })?)
    }

    fn give_up(&self, what: &str, error: Error) {
        // On a device that is being reset anyway this is nothing to tell.
        if self.dev.cqp.is_alive() {
            dev_err!(
                self.dev.port.log(),
                "queue pair {}: cannot be {what} for a change of traffic classes, error {}\n",
                self.number,
                error.to_errno()
            );
        }
        self.fail(FlushCode::General, FlushCode::General, QpEvent::Fatal);
    }
}
