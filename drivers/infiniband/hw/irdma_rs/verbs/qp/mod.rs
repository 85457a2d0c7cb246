// SPDX-License-Identifier: GPL-2.0

//! Queue pairs.
//!
//! - [`shared`]: the half that events, completion queues and posting reach;
//! - [`post`]: posting and completing work requests of the kernel;
//! - [`modify`]: states and attributes;
//! - [`suspend`]: standing still while traffic classes change;
//! - [`mcast`]: multicast groups; [`details`]: what operators see;
//! - this file: creating and destroying.
//!
//! # Locking
//!
//! [`QpShared::control`], a mutex, is held over the commands that change the queue pair; it is the
//! outermost. The locks of the two queues are taken in any context with interrupts off. Nothing nests
//! in them.

mod details;
mod mcast;
mod modify;
mod post;
mod shared;
mod suspend;

pub(crate) use shared::{
    QpShared,
    Side, //
};

use kernel::{
    dma::DmaAddress,
    prelude::*,
    sync::Arc, //
};
use rdma::{
    details::Details,
    gid::MulticastGid,
    lid::Lid,
    pd::Pd,
    qp::{
        self,
        QpAttrs,
        QpCaps,
        QpChange,
        QpInit,
        QpNum,
        QpOps, //
    },
    udata::Caller,
    wr::{
        RecvList,
        SendList, //
    },
};

use self::shared::{
    Control,
    Created,
    KernelQueues,
    RingPlace,
    Rings, //
};
use super::{
    abi::{
        qp_caps,
        CreateQpReq,
        CreateQpResp, //
    },
    destroy,
    device::PKEY,
    pages::{
        survey,
        Location, //
    },
    rings::{
        RingUse,
        TakenRing,
        PAGE, //
    },
    Data,
    Irdma, //
};
use crate::{
    cqp::cmd::{
        CreateQp,
        DestroyQp,
        QpType, //
    },
    dev::{
        Dev,
        GSI_QP, //
    },
    events::QpEvents,
    hmc::Levels,
    mcast::Interfaces,
    queues::{
        geometry::{
            Capabilities,
            WorkQueue, //
        },
        qpctx::{
            QpContext,
            CONTEXT_WORDS, //
        },
        rq::RecvQueue,
        sq::SendQueue, //
    },
};

/// Words of the context memory: the context at its start, behind it the shadow area of a kernel queue
/// pair, which nobody reads.
const CONTEXT_MEMORY: usize = 2 * CONTEXT_WORDS;

/// Retries a queue pair starts with, of timeouts and of "receiver not ready".
const RETRIES: u8 = 2;

/// The priority of datagrams, whose queue pairs have no path to take one from.
pub(super) const DATAGRAM_PRIORITY: u8 = 0;

/// Sizes of the queues of a queue pair.
#[derive(Clone, Copy)]
struct Sizes {
    caps: Capabilities,
    sq: WorkQueue,
    rq: WorkQueue,
}

impl Sizes {
    fn new(caps: &QpCaps) -> Result<Self> {
        let caps = Capabilities {
            send_wr: caps.max_send_wr,
            recv_wr: caps.max_recv_wr,
            send_sge: caps.max_send_sge,
            recv_sge: caps.max_recv_sge,
            inline_data: caps.max_inline_data,
        };
        Ok(Self {
            caps,
            sq: WorkQueue::send(&caps)?,
            rq: WorkQueue::recv(&caps)?,
        })
    }

    /// Returns what the queues really hold.
    fn caps(&self) -> QpCaps {
        QpCaps {
            max_send_wr: self.sq.wrs(),
            max_recv_wr: self.rq.wrs(),
            max_send_sge: self.caps.send_sge,
            max_recv_sge: self.caps.recv_sge,
            max_inline_data: self.caps.inline_data,
        }
    }
}

/// The driver's part of a queue pair.
pub(crate) struct Qp {
    shared: Arc<QpShared>,
    caps: QpCaps,
}

impl Qp {
    /// Takes the memory that the process registered for the queues.
    fn user_rings(
        dev: &Dev,
        sizes: &Sizes,
        request: &CreateQpReq,
        caller: &Caller<'_, Irdma>,
    ) -> Result<Rings> {
        let rings = &caller.ucontext().ok_or(EINVAL)?.rings;
        let memory =
            rings
                .take(request.user_wqe_bufs)
                .map_err(|e| if e == ENOENT { ENODATA } else { e })?;
        let RingUse::Qp { sq_pages, rq_pages } = memory.purpose() else {
            return Err(EINVAL);
        };
        // Page counts have 16 bits: no overflow.
        if sizes.sq.bytes() > sq_pages * PAGE || sizes.rq.bytes() > rq_pages * PAGE {
            return Err(EINVAL);
        }
        let [shadow] = memory.pages(sq_pages + rq_pages, 1)? else {
            return Err(EINVAL);
        };
        let place = Self::user_place(dev, &memory, sq_pages, rq_pages)?;
        Ok(Rings::User {
            shadow: *shadow,
            place,
            memory,
        })
    }

    /// Finds where the two rings of a process are: both at an address, or both in a list.
    fn user_place(
        dev: &Dev,
        memory: &TakenRing,
        sq_pages: usize,
        rq_pages: usize,
    ) -> Result<RingPlace> {
        // CAST: Widening.
        let page = PAGE as u64;
        let sq = memory.pages(0, sq_pages)?;
        let rq = memory.pages(sq_pages, rq_pages)?;

        if let ((_, Some(sq)), (_, Some(rq))) = (
            survey(sq.iter().copied(), page)?,
            survey(rq.iter().copied(), page)?,
        ) {
            return Ok(RingPlace::Direct { sq, rq });
        }
        let both = memory.pages(0, sq_pages + rq_pages)?;
        let list = dev.hmc.alloc_pbles(both.len(), Levels::One)?;
        list.fill(both.iter().copied())?;
        Ok(RingPlace::List {
            list: Location::List(list),
            rq_offset: u32::try_from(sq_pages)?,
        })
    }

    /// Allocates the memory of the queues of a kernel queue pair.
    fn kernel_rings(dev: &Dev, sizes: &Sizes, shadow: DmaAddress) -> Result<(Rings, KernelQueues)> {
        let allocate = |queue: &WorkQueue| {
            let memory = dev.port.alloc(queue.bytes() / size_of::<u64>())?;
            Ok::<_, Error>(Arc::new(memory, GFP_KERNEL)?)
        };
        let sq = allocate(&sizes.sq)?;
        let rq = allocate(&sizes.rq)?;
        let queues = KernelQueues {
            sq: SendQueue::new(sq.clone(), &sizes.sq, sizes.caps.send_sge)?,
            rq: RecvQueue::new(rq.clone(), &sizes.rq, sizes.caps.recv_sge)?,
        };
        Ok((Rings::Kernel { sq, rq, shadow }, queues))
    }

    fn try_create(
        pd: Pin<&Pd<Irdma>>,
        init: &QpInit<'_, Irdma>,
        caller: &Caller<'_, Irdma>,
    ) -> Result<Self> {
        let data = pd.device().data();
        let dev = &data.dev;

        if init.create_flags() != 0 || init.has_srq() {
            return Err(EOPNOTSUPP);
        }
        let (kind, gsi) = match init.qp_type() {
            qp::QpType::Ud => (QpType::Ud, false),
            qp::QpType::Gsi if !caller.is_user() => (QpType::Ud, true),
            qp::QpType::Gsi => return Err(EPERM),
            // Kernel consumers could do nothing with one that cannot be connected.
            qp::QpType::Rc if caller.is_user() => (QpType::Rc, false),
            _ => return Err(EOPNOTSUPP),
        };
        let sizes = Sizes::new(&init.caps())?;
        if !caller.is_user() && sizes.caps.inline_data != 0 {
            return Err(EINVAL);
        }
        let request = match caller.udata() {
            Some(udata) => {
                if udata.response_len() < CreateQpResp::MIN {
                    return Err(EINVAL);
                }
                Some(udata.request::<CreateQpReq>(CreateQpReq::MIN)?)
            }
            None => None,
        };
        let send_cq = init.send_cq().ok_or(EINVAL)?.shared().clone();
        let recv_cq = init.recv_cq().ok_or(EINVAL)?.shared().clone();

        let memory = dev.port.alloc(CONTEXT_MEMORY)?;
        let (rings, queues) = match &request {
            Some(request) => (Self::user_rings(dev, &sizes, request, caller)?, None),
            None => {
                let shadow = memory.address_of(CONTEXT_WORDS)?;
                let (rings, queues) = Self::kernel_rings(dev, &sizes, shadow)?;
                (rings, Some(queues))
            }
        };
        let id = if gsi {
            dev.ids.qps.take_exactly(GSI_QP)?
        } else {
            dev.ids.qps.alloc()?
        };
        // Groups of the device may hold on to it.
        let id = Arc::new(id, GFP_KERNEL)?;
        let number = id.get();
        let queue_set = dev.scheduler.join(DATAGRAM_PRIORITY)?;
        let (sq_addr, rq_addr) = rings.addresses()?;

        // Unlike a pointer it can be compared with what a completion carries, and is never zero.
        let cookie = u64::from(data.generation().wrapping_add(1)) << 32 | u64::from(number);
        let context = QpContext {
            sq_addr,
            rq_addr,
            sq_size: sizes.sq.code(),
            rq_size: sizes.rq.code(),
            rq_wqe_shift: sizes.rq.shift(),
            pd: pd.number(),
            send_cq: send_cq.number(),
            recv_cq: recv_cq.number(),
            completion_context: request.map_or(cookie, |r| r.user_compl_ctx),
            mtu: modify::datagram_mtu(dev)?,
            pkey: PKEY,
            qkey: 0,
            mac: dev.port.netdev()?.mac().octets(),
            qs_handle: queue_set.handle(),
            kernel: request.is_none(),
            remote_read: false,
            remote_write: false,
            dest_qp: 0,
            send_psn: None,
            recv_psn: 0,
            retry: RETRIES,
            rnr_retry: RETRIES,
            path: None,
        };
        let created = Created {
            id,
            kind,
            context,
            memory,
            rings,
            queue_set,
            in_error: false,
        };
        created.write_context()?;

        let shared = QpShared::new(
            dev.clone(),
            &created.id,
            cookie,
            init.upcall().clone(),
            send_cq,
            recv_cq,
            queues,
            Control::new(init.qp_type(), sizes.caps(), init.signal_all()),
        )?;
        if let Err(failure) = dev.cqp.execute(&CreateQp {
            qp: created.reference(number)?,
        }) {
            if failure.in_flight() {
                created.keep(dev, number);
            }
            return Err(failure.into());
        }
        shared.control.lock().created = Some(created);

        if let Err(error) = shared.publish(data, kind, &sizes, caller) {
            shared.destroy(data);
            return Err(error);
        }
        Ok(Self {
            shared,
            caps: sizes.caps(),
        })
    }
}

impl QpShared {
    /// Lets events and completions find the queue pair and tells the process of it.
    fn publish(
        self: &Arc<Self>,
        data: &Data,
        kind: QpType,
        sizes: &Sizes,
        caller: &Caller<'_, Irdma>,
    ) -> Result {
        let dev = &data.dev;

        // Who is stopping queue pairs finds this one, or has not begun, or is through.
        dev.tc
            .steady(|| dev.qps.insert(self.number, self.clone()))?;
        // The traffic classes may have changed before anybody could find it.
        self.resume();
        let Some(udata) = caller.udata() else {
            data.kernel_qps.insert(self.number, self.clone())?;
            self.send_cq.join(self.clone())?;
            if !Arc::ptr_eq(&self.send_cq, &self.recv_cq) {
                self.recv_cq.join(self.clone())?;
            }
            return Ok(());
        };
        let datagram = qp_caps::SEND_WITH_IMM | qp_caps::ROCE | qp_caps::PUSH_MODE;
        udata.respond(&CreateQpResp {
            qp_id: self.number,
            actual_sq_size: sizes.sq.depth() >> sizes.sq.shift(),
            actual_rq_size: sizes.rq.depth() >> sizes.rq.shift(),
            qp_caps: match kind {
                QpType::Ud => datagram,
                QpType::Rc => datagram | qp_caps::WRITE_WITH_IMM,
            },
            ..CreateQpResp::default()
        })
    }

    /// Has the device forget the queue pair. What it does not let go of is kept.
    fn destroy(&self, data: &Data) {
        let dev = &self.dev;
        let Some(mut created) = self.control.lock().created.take() else {
            return;
        };

        self.stop(&mut created);
        // Whoever waits for it to stand still would wait in vain: it is no longer found.
        self.suspended.complete_all();
        // The device may still list it in a group it has been detached from.
        data.groups.leave(&self.memberships);
        let gone = created
            .reference(self.number)
            .map_err(Into::into)
            .and_then(|qp| destroy(dev, &DestroyQp { qp }));

        drop(dev.qps.remove(self.number));
        drop(data.kernel_qps.remove(self.number));
        self.send_cq.leave(self);
        self.recv_cq.leave(self);
        // Whoever still holds this half may do so where memory for DMA cannot be freed.
        let queues = (self.sq.lock().take(), self.rq.lock().take());
        drop(queues);
        match gone {
            Ok(()) => {
                dev.aeq.settle();
                // The number is free now, unless the device still lists it in a group.
                drop(created);
            }
            Err(_) => {
                self.send_cq.pin();
                self.recv_cq.pin();
                created.keep(dev, self.number);
            }
        }
    }
}

#[vtable]
impl QpOps<Irdma> for Qp {
    fn create<'a>(
        pd: Pin<&'a Pd<Irdma>>,
        init: QpInit<'a, Irdma>,
        caller: Caller<'a, Irdma>,
    ) -> impl PinInit<Self, Error> + 'a {
        Self::try_create(pd, &init, &caller)
    }

    fn number(&self) -> QpNum {
        QpNum::new(self.shared.number)
    }

    fn caps(&self) -> QpCaps {
        self.caps
    }

    fn modify(
        this: Pin<&qp::Qp<Irdma>>,
        change: QpChange<'_>,
        caller: Caller<'_, Irdma>,
    ) -> Result {
        this.shared.modify(&change, &caller)
    }

    fn query(this: Pin<&qp::Qp<Irdma>>) -> Result<QpAttrs> {
        Ok(this.shared.control.lock().attrs)
    }

    fn post_send(this: Pin<&qp::Qp<Irdma>>, list: &mut SendList<'_, Irdma>) -> Result {
        this.shared.post_send(list)
    }

    fn post_recv(this: Pin<&qp::Qp<Irdma>>, list: &mut RecvList<'_>) -> Result {
        this.shared.post_recv(list)
    }

    fn attach_mcast(this: Pin<&qp::Qp<Irdma>>, gid: MulticastGid, _lid: Lid) -> Result {
        // Ethernet has no use for the LID; the core has checked what there is to check about it.
        // Consumers in the kernel act for the machine.
        let interfaces = if this.is_user() {
            Interfaces::Callers
        } else {
            Interfaces::All
        };
        this.shared.attach(this.device().data(), gid, interfaces)
    }

    fn detach_mcast(this: Pin<&qp::Qp<Irdma>>, gid: MulticastGid, _lid: Lid) -> Result {
        this.shared.detach(this.device().data(), gid)
    }

    fn details(this: Pin<&qp::Qp<Irdma>>, details: &mut Details<'_>) -> Result {
        this.shared.tell_details(this.device().data(), details)
    }

    fn destroy(this: Pin<&qp::Qp<Irdma>>) -> Result {
        this.shared.destroy(this.device().data());
        Ok(())
    }
}
