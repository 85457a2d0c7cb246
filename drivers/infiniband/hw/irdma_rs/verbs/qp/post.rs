// SPDX-License-Identifier: GPL-2.0

//! Work requests of kernel queue pairs: posting them, and their completions.

use kernel::prelude::*;
use rdma::{
    cq::{
        Completion,
        Completions,
        NetworkHeader,
        WcOpcode,
        WcStatus, //
    },
    net::MacAddress,
    qp::QpNum,
    wr::{
        RecvList,
        SendList,
        SendOpcode,
        SendRequest,
        Sge, //
    },
};

use super::{
    super::{
        cq::CqShared,
        Data,
        Irdma, //
    },
    shared::Posting,
    QpShared,
    Side, //
};
use crate::queues::{
    cqe::{
        Cqe,
        MAJOR_FLUSHED,
        RQ_OP_WRITE_IMM,
        RQ_OP_WRITE_IMM_SOLICITED, //
    },
    flush::Status,
    geometry::MAX_SGE,
    sq::{
        self,
        UdSend, //
    },
    wqe::Fragment,
};

/// Major codes of sends that the device reports as errors and that went out all the same.
const BENIGN_SEND: core::ops::RangeInclusive<u64> = 0xe000..=0xefff;

/// Bits of a VLAN tag that hold the VLAN's number.
const VLAN_ID: u16 = 0xfff;

/// Where the priority is in a VLAN tag.
const VLAN_PRIORITY_SHIFT: u32 = 13;

// CAST: A small constant.
const SGES: usize = MAX_SGE as usize;

/// The memory of a request as the queues take it.
struct Fragments {
    list: [Fragment; SGES],
    len: usize,
}

impl Fragments {
    fn new(sges: &[Sge]) -> Result<Self> {
        let mut list = [Fragment::default(); SGES];

        if sges.len() > list.len() {
            return Err(EINVAL);
        }
        for (place, sge) in list.iter_mut().zip(sges) {
            *place = Fragment {
                addr: sge.addr,
                len: sge.length,
                lkey: sge.lkey,
            };
        }
        Ok(Self {
            list,
            len: sges.len(),
        })
    }

    fn get(&self) -> &[Fragment] {
        self.list.get(..self.len).unwrap_or_default()
    }
}

impl From<Status> for WcStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Success => WcStatus::Success,
            Status::LocalLength => WcStatus::LocLenErr,
            Status::LocalQpOperation => WcStatus::LocQpOpErr,
            Status::LocalProtection => WcStatus::LocProtErr,
            Status::Flushed => WcStatus::WrFlushErr,
            Status::MwBind => WcStatus::MwBindErr,
            Status::RemoteAccess => WcStatus::RemAccessErr,
            Status::RemoteInvalidRequest => WcStatus::RemInvReqErr,
            Status::RemoteOperation => WcStatus::RemOpErr,
            Status::RetryExceeded => WcStatus::RetryExcErr,
            Status::RnrRetryExceeded => WcStatus::RnrRetryExcErr,
            Status::Fatal => WcStatus::FatalErr,
            Status::General => WcStatus::GeneralErr,
        }
    }
}

/// How the device says a work request ended.
struct End {
    status: Status,
    flushed: bool,
    vendor_err: u32,
}

impl End {
    fn new(cqe: &Cqe) -> Self {
        let (major, minor) = (cqe.status.major().get(), cqe.status.minor().get());
        let benign = cqe.status.sq().into_bool() && BENIGN_SEND.contains(&major);

        if !cqe.status.error().into_bool() || benign {
            return Self {
                status: Status::Success,
                flushed: false,
                vendor_err: 0,
            };
        }
        let flushed = major == MAJOR_FLUSHED;
        Self {
            status: if flushed {
                Status::from_flush_code(minor)
            } else {
                Status::General
            },
            flushed,
            // Two numbers of 16 bits.
            vendor_err: u32::try_from(major << 16 | minor).unwrap_or(0),
        }
    }
}

impl QpShared {
    /// Posts send requests in order and rings the doorbell for those the device is to see.
    pub(super) fn post_send(&self, list: &mut SendList<'_, Irdma>) -> Result {
        let mut guard = self.sq.lock();
        let sq = (*guard).as_mut().ok_or(EINVAL)?;
        let (mut posted, mut failed) = (false, Ok(()));

        for request in list {
            let remembered = sq::SendRequest {
                wr_id: request.wr_id(),
                signaled: request.is_signaled() || self.signal_all,
                kind: 0,
            };
            failed = if sq.flushed {
                sq.queue.post_flushed(remembered)
            } else if self.may_post(Posting::All) {
                Self::ud_send(&request).and_then(|(fragments, send)| {
                    let send = UdSend {
                        fragments: fragments.get(),
                        ..send
                    };
                    sq.queue.post_ud(&send, remembered)
                })
            } else {
                Err(EINVAL)
            };
            if failed.is_err() {
                break;
            }
            posted = true;
        }
        let flushed = sq.flushed;
        if posted && !flushed {
            self.dev.ring_sq(self.number);
        }
        drop(guard);
        if posted && flushed {
            self.send_cq.flushed();
        }
        failed
    }

    /// Translates a send request; the fragments are to be put in.
    fn ud_send(request: &SendRequest<'_, Irdma>) -> Result<(Fragments, UdSend<'static>)> {
        let imm = match request.opcode() {
            SendOpcode::Send => None,
            SendOpcode::SendWithImm(imm) => Some(u32::from_be_bytes(imm)),
            SendOpcode::Other(_) => return Err(EINVAL),
        };
        if request.is_inline() {
            return Err(EINVAL);
        }
        let datagram = request.datagram().ok_or(EINVAL)?;
        let send = UdSend {
            fragments: &[],
            imm,
            ah: datagram.ah.number(),
            dest_qpn: datagram.remote_qp.get(),
            dest_qkey: datagram.remote_qkey,
            solicited: request.is_solicited(),
            fence: request.is_fenced(),
        };
        Ok((Fragments::new(request.sges())?, send))
    }

    /// Posts receive requests in order.
    pub(super) fn post_recv(&self, list: &mut RecvList<'_>) -> Result {
        let mut guard = self.rq.lock();
        let rq = (*guard).as_mut().ok_or(EINVAL)?;
        let (mut posted, mut failed) = (false, Ok(()));

        for request in list {
            failed = if rq.flushed {
                rq.queue.post_flushed(request.wr_id())
            } else if self.may_post(Posting::Receives) {
                Fragments::new(request.sges())
                    .and_then(|fragments| rq.queue.post(fragments.get(), request.wr_id()))
            } else {
                Err(EINVAL)
            };
            if failed.is_err() {
                break;
            }
            posted = true;
        }
        let flushed = rq.flushed;
        drop(guard);
        if posted && flushed {
            self.recv_cq.flushed();
        }
        failed
    }

    /// Takes both queues of a kernel queue pair out of the device's hands: it has written all the
    /// completions it will write.
    pub(super) fn mark_flushed(&self) {
        let sq = (*self.sq.lock()).as_mut().map(|sq| sq.flushed = true);
        let rq = (*self.rq.lock()).as_mut().map(|rq| rq.flushed = true);

        // The user library does this for its own queues.
        if sq.is_some() {
            self.send_cq.flushed();
        }
        if rq.is_some() {
            self.recv_cq.flushed();
        }
    }

    /// Returns which flushed queue has work requests to complete in `cq`.
    pub(crate) fn has_flushed(&self, cq: &CqShared) -> Option<Side> {
        let send = core::ptr::eq(&*self.send_cq, cq)
            && matches!(&*self.sq.lock(), Some(sq) if sq.flushed && sq.queue.has_requests());
        if send {
            return Some(Side::Send);
        }
        let receive = core::ptr::eq(&*self.recv_cq, cq)
            && matches!(&*self.rq.lock(), Some(rq) if rq.flushed && !rq.queue.is_empty());
        receive.then_some(Side::Receive)
    }

    /// Completes the oldest work request of a flushed queue.
    pub(crate) fn flush_next(&self, side: Side, out: &mut Completions<'_>) {
        let (wr_id, opcode) = match side {
            Side::Send => {
                let next = (*self.sq.lock())
                    .as_mut()
                    .and_then(|sq| sq.queue.flush_next());
                (next.map(|request| request.wr_id), WcOpcode::Send)
            }
            Side::Receive => {
                let next = (*self.rq.lock())
                    .as_mut()
                    .and_then(|rq| rq.queue.flush_next());
                (next, WcOpcode::Recv)
            }
        };
        if let Some(wr_id) = wr_id {
            out.push(
                &self.upcall,
                Completion::new(wr_id, opcode, WcStatus::WrFlushErr),
            );
        }
    }

    /// Gives a completion that the device wrote to the consumer.
    ///
    /// One of a queue pair that is gone is dropped.
    pub(crate) fn complete(data: &Data, cqe: &Cqe, out: &mut Completions<'_>) {
        let Ok(number) = u32::try_from(cqe.qp.qp_id().get()) else {
            return;
        };
        let Some(qp) = data.kernel_qps.get(number) else {
            return;
        };
        if qp.cookie != cqe.context {
            return;
        }
        if cqe.status.sq().into_bool() {
            qp.complete_send(cqe, out);
        } else {
            qp.complete_recv(cqe, out);
        }
    }

    fn complete_send(&self, cqe: &Cqe, out: &mut Completions<'_>) {
        let end = End::new(cqe);
        let index = u32::try_from(cqe.status.wqe_idx().get()).unwrap_or(u32::MAX);
        let request = {
            let mut guard = self.sq.lock();
            let Some(sq) = (*guard).as_mut() else {
                return;
            };
            sq.flushed |= end.flushed;
            let named = sq.queue.complete(index);
            if end.flushed {
                named.or_else(|| sq.queue.flush_next())
            } else {
                named
            }
        };
        if end.flushed {
            self.send_cq.flushed();
        }
        let Some(request) = request else {
            return;
        };
        if request.signaled || end.status != Status::Success {
            out.push(
                &self.upcall,
                Completion {
                    vendor_err: end.vendor_err,
                    ..Completion::new(request.wr_id, WcOpcode::Send, end.status.into())
                },
            );
        }
    }

    fn complete_recv(&self, cqe: &Cqe, out: &mut Completions<'_>) {
        let end = End::new(cqe);
        let index = u32::try_from(cqe.status.wqe_idx().get()).unwrap_or(u32::MAX);
        let wr_id = {
            let mut guard = self.rq.lock();
            let Some(rq) = (*guard).as_mut() else {
                return;
            };
            rq.flushed |= end.flushed;
            let named = rq.queue.complete(index);
            if end.flushed {
                named.or_else(|| rq.queue.flush_next())
            } else {
                named
            }
        };
        if end.flushed {
            self.recv_cq.flushed();
        }
        let Some(wr_id) = wr_id else {
            return;
        };
        let opcode = match cqe.status.rq_op().get() {
            RQ_OP_WRITE_IMM | RQ_OP_WRITE_IMM_SOLICITED => WcOpcode::RecvRdmaWithImm,
            _ => WcOpcode::Recv,
        };
        let completion = Completion {
            vendor_err: end.vendor_err,
            ..Completion::new(wr_id, opcode, end.status.into())
        };
        if end.status != Status::Success {
            out.push(&self.upcall, completion);
            return;
        }

        let extension = cqe.extension.unwrap_or_default();
        let vlan = extension.vlan.unwrap_or(0);
        out.push(
            &self.upcall,
            Completion {
                byte_len: u32::try_from(cqe.length.payload_len().get()).unwrap_or(0),
                src_qp: QpNum::new(u32::try_from(cqe.qp.src_qpn().get()).unwrap_or(0)),
                grh: true,
                network_header: Some(if cqe.status.ipv4().into_bool() {
                    NetworkHeader::Ipv4
                } else {
                    NetworkHeader::Ipv6
                }),
                imm: extension.imm.map(u32::to_be_bytes),
                smac: extension.smac.map(MacAddress::new),
                // A tag with number zero gives a priority and names no VLAN.
                vlan: Some(vlan & VLAN_ID).filter(|vlan| *vlan != 0),
                // CAST: Three bits.
                sl: (vlan >> VLAN_PRIORITY_SHIFT) as u8,
                ..completion
            },
        );
    }
}
