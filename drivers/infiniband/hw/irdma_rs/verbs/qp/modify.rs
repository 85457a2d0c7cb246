// SPDX-License-Identifier: GPL-2.0

//! States and attributes of queue pairs.
//!
//! The device learns of a change by a command that moves the queue pair to a state, possibly the one
//! it is in, and makes the device read the context again. What the core sees changes after the device
//! has accepted the change.
//!
//! The device cannot bring a queue pair back to where it was when it was created. One that returns to
//! the reset state is stopped, and cannot leave that state again.

use kernel::{
    prelude::*,
    time::Msecs, //
};
use rdma::{
    device::Mtu,
    event::QpEvent,
    mr::AccessRight,
    qp::{
        self,
        QpAttrs,
        QpChange,
        QpState, //
    },
    udata::Caller,
};

use super::{
    super::{
        abi::{
            ModifyQpReq,
            ModifyQpResp, //
        },
        Irdma,
    },
    shared::{
        Control,
        Created, //
    },
    QpShared,
};
use crate::{
    cqp::cmd::{
        self,
        FlushCode,
        FlushWqes,
        ModifyQp, //
    },
    dev::Dev,
    events::{
        aeq::Source,
        AeCode,
        AsyncEvent,
        QpEvents, //
    },
};

/// The only port.
const PORT: u32 = 1;

/// Returns the bytes of payload that a datagram may have: what `query_port` says.
pub(super) fn datagram_mtu(dev: &Dev) -> Result<u16> {
    let mtu = Mtu::for_ethernet(dev.port.netdev()?.mtu()).unwrap_or(Mtu::Mtu256);
    Ok(u16::try_from(mtu.octets())?)
}

/// What an asynchronous event of a queue pair is to its consumer.
struct Meaning {
    flush: FlushCode,
    event: QpEvent,
}

impl Meaning {
    fn of(code: AeCode) -> Self {
        let (flush, event) = match code.0 {
            0x0102..=0x010a | 0x011c => (FlushCode::Prot, QpEvent::AccessError),
            0x0133 | 0x020a => (FlushCode::LocQpOp, QpEvent::Fatal),
            0x0132 | 0x0134 | 0x0135 | 0x0303 | 0x0305 => (FlushCode::LocLen, QpEvent::Fatal),
            0x0112 | 0x020d => (FlushCode::RemAccess, QpEvent::AccessError),
            0x0114 | 0x0118 | 0x0119 | 0x011b => (FlushCode::MwBind, QpEvent::AccessError),
            0x050a => (FlushCode::RetryExc, QpEvent::Fatal),
            0x0208 => (FlushCode::RemInvReq, QpEvent::RequestError),
            0x0316 | 0x020e | 0x0505 | 0x0507 => (FlushCode::RemOp, QpEvent::Fatal),
            0x050f => (FlushCode::RnrRetryExc, QpEvent::Fatal),
            0x0700 | 0x0703 | 0x0704 | 0x0705 => (FlushCode::Fatal, QpEvent::Fatal),
            _ => (FlushCode::General, QpEvent::Fatal),
        };
        Self { flush, event }
    }
}

impl QpShared {
    /// Changes the queue pair as its owner asks.
    pub(super) fn modify(&self, change: &QpChange<'_>, caller: &Caller<'_, Irdma>) -> Result {
        let request = Self::flush_request(caller)?;
        let mut control = self.control.lock();

        if let (QpState::Err, Some(QpState::Err), Some(request)) =
            (control.attrs.state, change.state, request)
        {
            if request.sq_flush != 0 || request.rq_flush != 0 {
                return self.flush_again(&request, caller);
            }
        }
        let attrs = Self::apply(&control, change)?;
        if attrs.state == QpState::Err || attrs.state == QpState::Reset {
            let used = control.used;
            let created = control.created.as_mut().ok_or(ENODEV)?;
            if used || attrs.state == QpState::Err {
                self.halt(created, FlushCode::General, FlushCode::General)?;
            }
        } else {
            self.tell(&mut control, &attrs)?;
        }
        control.used |= attrs.state != QpState::Reset;
        control.attrs = attrs;
        self.set_posting(attrs.state);
        drop(control);
        Self::respond(caller)
    }

    /// Reads what the user library sends along with a modification, if anything.
    fn flush_request(caller: &Caller<'_, Irdma>) -> Result<Option<ModifyQpReq>> {
        let Some(udata) = caller.udata() else {
            return Ok(None);
        };
        if udata.response_len() != 0 && udata.response_len() < ModifyQpResp::MIN {
            return Err(EINVAL);
        }
        if udata.request_len() == 0 {
            return Ok(None);
        }
        // Both octets that mean something.
        udata.request::<ModifyQpReq>(2).map(Some)
    }

    fn respond(caller: &Caller<'_, Irdma>) -> Result {
        match caller.udata() {
            Some(udata) if udata.response_len() != 0 => udata.respond(&ModifyQpResp::default()),
            _ => Ok(()),
        }
    }

    /// Checks a change against the state and returns the attributes after it.
    fn apply(control: &Control, change: &QpChange<'_>) -> Result<QpAttrs> {
        let current = control.attrs.state;
        let next = change.state.unwrap_or(current);

        if change.cur_state.is_some_and(|state| state != current)
            || !change.is_allowed(current, next, control.kind)
        {
            return Err(EINVAL);
        }
        if change.port.is_some_and(|port| port.get() != PORT)
            || change.pkey_index.is_some_and(|index| index != 0)
        {
            return Err(EINVAL);
        }
        if change.migration || change.caps.is_some() {
            return Err(EOPNOTSUPP);
        }
        match next {
            // A device that has stopped cannot begin anew.
            QpState::Init if current == QpState::Reset && control.used => return Err(EINVAL),
            QpState::Rtr if control.kind == qp::QpType::Rc => return Err(EOPNOTSUPP),
            QpState::Sqd => return Err(EOPNOTSUPP),
            QpState::Sqe => return Err(EINVAL),
            _ => {}
        }

        let mut attrs = control.attrs;
        attrs.state = next;
        attrs.access = change.access.unwrap_or(attrs.access);
        attrs.qkey = change.qkey.unwrap_or(attrs.qkey);
        attrs.sq_psn = change.sq_psn.unwrap_or(attrs.sq_psn);
        attrs.rq_psn = change.rq_psn.unwrap_or(attrs.rq_psn);
        Ok(attrs)
    }

    /// Tells the device of `attrs`, whose state is one in which it works.
    fn tell(&self, control: &mut Control, attrs: &QpAttrs) -> Result {
        let datagram = control.kind.is_datagram();
        let created = control.created.as_mut().ok_or(ENODEV)?;
        let before = created.context;

        created.context.qkey = attrs.qkey;
        created.context.remote_read = attrs.access.contains(AccessRight::RemoteRead);
        created.context.remote_write = attrs.access.contains(AccessRight::RemoteWrite);
        if attrs.state == QpState::Rts {
            created.context.send_psn = Some(attrs.sq_psn);
        }
        if datagram {
            created.context.mtu = datagram_mtu(&self.dev)?;
        }
        let receiving = matches!(attrs.state, QpState::Rtr | QpState::Rts);
        let told = created.write_context().and_then(|()| {
            let command = ModifyQp {
                qp: created.reference(self.number)?,
                next: match attrs.state {
                    QpState::Rtr => cmd::QpState::Rtr,
                    QpState::Rts => cmd::QpState::Rts,
                    _ => cmd::QpState::Idle,
                },
                ord_valid: attrs.state == QpState::Rts,
                cq_num_valid: receiving,
                arp_index_valid: receiving,
            };
            Ok(self.dev.cqp.execute(&command)?)
        });
        if told.is_err() {
            created.context = before;
            // It fitted before.
            created.write_context()?;
        }
        told
    }

    /// Stops the device's work on the queue pair and has it complete what it holds.
    fn halt(&self, created: &mut Created, sq: FlushCode, rq: FlushCode) -> Result {
        if created.in_error {
            return Ok(());
        }
        let stopped = self.dev.cqp.execute(&ModifyQp {
            qp: created.reference(self.number)?,
            next: cmd::QpState::Error,
            ord_valid: false,
            cq_num_valid: false,
            arp_index_valid: false,
        });
        match stopped {
            Ok(()) => {
                created.in_error = true;
                self.flush(Some(sq), Some(rq));
                Ok(())
            }
            // Nobody takes orders any more, nor completes anything: the rest is up to us.
            Err(_) if !self.dev.cqp.is_alive() => {
                created.in_error = true;
                self.mark_flushed();
                Ok(())
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Has the device write the completions of flushed queues. That there is nothing to flush is an
    /// error to the device and none to us.
    fn flush(&self, sq: Option<FlushCode>, rq: Option<FlushCode>) {
        let _ = self.dev.cqp.execute(&FlushWqes {
            qp: self.number,
            sq,
            rq,
        });
        self.mark_flushed();
    }

    /// Flushes what a process posted after its queue pair had stopped.
    fn flush_again(&self, request: &ModifyQpReq, caller: &Caller<'_, Irdma>) -> Result {
        let general = |wanted: u8| (wanted != 0).then_some(FlushCode::General);

        self.flush(general(request.sq_flush), general(request.rq_flush));
        Self::respond(caller)
    }

    /// Moves the queue pair to the error state, if it is not there, and tells its owner.
    pub(super) fn fail(&self, sq: FlushCode, rq: FlushCode, event: QpEvent) {
        let mut control = self.control.lock();
        let Some(created) = control.created.as_mut() else {
            return;
        };
        if created.in_error {
            return;
        }
        if self.halt(created, sq, rq).is_err() {
            // If the device refuses, it has stopped by itself: that is what the event says.
            created.in_error = true;
            self.flush(Some(sq), Some(rq));
        }
        control.used = true;
        control.attrs.state = QpState::Err;
        self.set_posting(QpState::Err);
        drop(control);
        self.upcall.event(event);
    }

    /// Stops the device's work before the queue pair is destroyed; there is no way back.
    pub(super) fn stop(&self, created: &mut Created) {
        let _ = self.halt(created, FlushCode::General, FlushCode::General);
    }
}

impl QpEvents for QpShared {
    fn event(&self, event: &AsyncEvent) {
        if event.code == AeCode::QP_SUSPEND_COMPLETE {
            self.suspended.complete_all();
            return;
        }
        let meaning = Meaning::of(event.code);
        let blame = |source| {
            if event.source == source {
                meaning.flush
            } else {
                FlushCode::General
            }
        };

        self.fail(blame(Source::Sq), blame(Source::Rq), meaning.event);
    }

    fn suspend(&self) {
        self.suspend_sending();
    }

    fn wait_suspended(&self, limit: Msecs) {
        if !self.suspended.wait_timeout(limit) {
            self.fail(FlushCode::General, FlushCode::General, QpEvent::Fatal);
        }
    }

    fn resume(&self) {
        self.resume_sending();
    }
}
