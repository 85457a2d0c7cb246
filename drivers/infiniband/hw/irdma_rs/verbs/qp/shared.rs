// SPDX-License-Identifier: GPL-2.0

//! The half of a queue pair that events, completion queues and posting reach.

use kernel::{
    dma::DmaAddress,
    new_mutex, new_spinlock_irq,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex,
        SpinLockIrq, //
    },
};
use rdma::{
    device::PortNum,
    event::QpUpcall,
    mr::Access,
    qp::{
        self,
        QpAttrs,
        QpCaps,
        QpNum,
        QpState, //
    },
    sys::completion::Completion,
};

use super::super::{
    cq::CqShared,
    pages::Location,
    rings::TakenRing, //
};
use crate::{
    cqp::cmd::{
        QpRef,
        QpType, //
    },
    dev::Dev,
    ids::Id,
    mcast::QpMemberships,
    mem::DmaWords,
    queues::{
        qpctx::QpContext,
        rq::RecvQueue,
        sq::SendQueue, //
    },
    sched::QueueSet,
};

/// One of the two queues of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Send,
    Receive,
}

/// The queues of a kernel queue pair.
pub(super) struct KernelQueues {
    pub(super) sq: SendQueue<Arc<DmaWords>>,
    pub(super) rq: RecvQueue<Arc<DmaWords>>,
}

/// A queue of a kernel queue pair in use.
pub(super) struct InUse<Q> {
    pub(super) queue: Q,
    /// The device no longer looks at it: completions are made in software.
    pub(super) flushed: bool,
}

/// Where the rings of a process are.
pub(super) enum RingPlace {
    /// Each contiguous at its address.
    Direct { sq: DmaAddress, rq: DmaAddress },
    /// Both in one list of pages, that of the receive ring from the given entry on.
    List { list: Location, rq_offset: u32 },
}

/// The rings as the device was given them.
pub(super) enum Rings {
    Kernel {
        sq: Arc<DmaWords>,
        rq: Arc<DmaWords>,
        shadow: DmaAddress,
    },
    User {
        place: RingPlace,
        shadow: DmaAddress,
        memory: TakenRing,
    },
}

impl Rings {
    /// Returns the addresses, or indexes in the page lists, of the send and the receive ring.
    pub(super) fn addresses(&self) -> Result<(u64, u64)> {
        Ok(match self {
            Rings::Kernel { sq, rq, .. } => (sq.address(), rq.address()),
            Rings::User {
                place: RingPlace::Direct { sq, rq },
                ..
            } => (*sq, *rq),
            Rings::User {
                place: RingPlace::List { list, rq_offset },
                ..
            } => {
                let Location::List(list) = list else {
                    return Err(EINVAL);
                };
                let sq = list.index()?;
                let rq = sq.checked_add(*rq_offset).ok_or(EINVAL)?;
                (u64::from(sq), u64::from(rq))
            }
        })
    }

    fn are_listed(&self) -> bool {
        matches!(
            self,
            Rings::User {
                place: RingPlace::List { .. },
                ..
            }
        )
    }

    fn shadow(&self) -> DmaAddress {
        match self {
            Rings::Kernel { shadow, .. } | Rings::User { shadow, .. } => *shadow,
        }
    }
}

/// What the device has of a queue pair.
pub(super) struct Created {
    pub(super) id: Arc<Id>,
    pub(super) kind: QpType,
    /// What the device was last told.
    pub(super) context: QpContext,
    /// The memory in which it is told.
    pub(super) memory: DmaWords,
    pub(super) rings: Rings,
    pub(super) queue_set: QueueSet,
    /// The device has been told to stop.
    pub(super) in_error: bool,
}

impl Created {
    /// Puts the context where the device reads it with the next command.
    pub(super) fn write_context(&self) -> Result {
        for (i, &word) in self.context.encode()?.iter().enumerate() {
            self.memory.write(i, word)?;
        }
        Ok(())
    }

    /// Returns how commands name the queue pair.
    pub(super) fn reference(&self, number: u32) -> Result<QpRef> {
        Ok(QpRef {
            id: number,
            kind: self.kind,
            context: self.memory.address(),
            shadow: self.rings.shadow(),
            virtual_rings: self.rings.are_listed(),
        })
    }

    /// Keeps all that the device may still use; the process gets its memory back.
    pub(super) fn keep(self, dev: &Dev, number: u32) {
        // On a device that is being reset anyway this is nothing to tell.
        if dev.cqp.is_alive() {
            dev_warn!(
                dev.port.log(),
                "queue pair {number}: its memory is kept until the device is reset\n"
            );
        }
        match self.rings {
            Rings::Kernel { sq, rq, .. } => {
                dev.keep((self.id, self.memory, self.queue_set, sq, rq))
            }
            Rings::User { place, memory, .. } => dev.keep((
                self.id,
                self.memory,
                self.queue_set,
                place,
                memory.abandon(),
            )),
        }
    }
}

/// State and attributes of a queue pair.
pub(super) struct Control {
    /// Until it is destroyed.
    pub(super) created: Option<Created>,
    pub(super) kind: qp::QpType,
    pub(super) attrs: QpAttrs,
    /// It has left the reset state at least once; the device's side cannot be reset.
    pub(super) used: bool,
}

impl Control {
    pub(super) fn new(kind: qp::QpType, caps: QpCaps, signal_all: bool) -> Self {
        Self {
            created: None,
            kind,
            attrs: QpAttrs {
                state: QpState::Reset,
                caps,
                access: Access::default(),
                pkey_index: 0,
                port: PortNum::new(1),
                qkey: 0,
                path_mtu: None,
                retry_cnt: 0,
                rnr_retry: 0,
                rq_psn: 0,
                sq_psn: 0,
                max_rd_atomic: 0,
                max_dest_rd_atomic: 0,
                min_rnr_timer: 0,
                dest_qp: QpNum::new(0),
                signal_all,
            },
            used: false,
        }
    }
}

/// What may be posted in a state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Posting {
    Nothing,
    Receives,
    All,
}

impl Posting {
    const fn code(self) -> u32 {
        match self {
            Posting::Nothing => 0,
            Posting::Receives => 1,
            Posting::All => 2,
        }
    }

    const fn in_state(state: QpState) -> Self {
        match state {
            QpState::Reset => Posting::Nothing,
            QpState::Init | QpState::Rtr => Posting::Receives,
            QpState::Rts | QpState::Sqd | QpState::Sqe | QpState::Err => Posting::All,
        }
    }
}

/// The half of a queue pair that is found by its number.
#[pin_data]
pub(crate) struct QpShared {
    pub(super) dev: Arc<Dev>,
    pub(super) number: u32,
    /// What completions of a kernel queue pair carry; no other one ever has it.
    pub(super) cookie: u64,
    pub(super) upcall: Arc<QpUpcall>,
    pub(super) send_cq: Arc<CqShared>,
    pub(super) recv_cq: Arc<CqShared>,
    pub(super) signal_all: bool,
    /// A [`Posting`].
    posting: Atomic<u32>,
    #[pin]
    pub(super) sq: SpinLockIrq<Option<InUse<SendQueue<Arc<DmaWords>>>>>,
    #[pin]
    pub(super) rq: SpinLockIrq<Option<InUse<RecvQueue<Arc<DmaWords>>>>>,
    #[pin]
    pub(super) control: Mutex<Control>,
    /// Complete unless the device has been told to suspend the queue pair, and has not said yet that
    /// it stands still.
    #[pin]
    pub(super) suspended: Completion,
    /// The multicast groups it is attached to.
    #[pin]
    pub(crate) memberships: QpMemberships,
}

impl QpShared {
    #[expect(clippy::too_many_arguments, reason = "one caller, all different")]
    pub(super) fn new(
        dev: Arc<Dev>,
        id: &Arc<Id>,
        cookie: u64,
        upcall: Arc<QpUpcall>,
        send_cq: Arc<CqShared>,
        recv_cq: Arc<CqShared>,
        queues: Option<KernelQueues>,
        control: Control,
    ) -> Result<Arc<Self>> {
        let signal_all = control.attrs.signal_all;
        let (sq, rq) = match queues {
            Some(KernelQueues { sq, rq }) => (
                Some(InUse {
                    queue: sq,
                    flushed: false,
                }),
                Some(InUse {
                    queue: rq,
                    flushed: false,
                }),
            ),
            None => (None, None),
        };

        let shared = Arc::pin_init(
            pin_init!(Self {
                dev,
                number: id.get(),
                cookie,
                upcall,
                send_cq,
                recv_cq,
                signal_all,
                posting: Atomic::new(Posting::Nothing.code()),
                sq <- new_spinlock_irq!(sq, "irdma_rs::verbs::QpShared::sq"),
                rq <- new_spinlock_irq!(rq, "irdma_rs::verbs::QpShared::rq"),
                control <- new_mutex!(control, "irdma_rs::verbs::QpShared::control"),
                suspended <- Completion::new(),
                memberships <- QpMemberships::new(id.clone()),
            }),
            GFP_KERNEL,
        )?;
        shared.suspended.complete_all();
        Ok(shared)
    }

    /// Notes the state for those who post.
    pub(super) fn set_posting(&self, state: QpState) {
        self.posting.store(Posting::in_state(state).code(), Relaxed);
    }

    /// Returns whether work of this kind may be posted.
    pub(super) fn may_post(&self, wanted: Posting) -> bool {
        self.posting.load(Relaxed) >= wanted.code()
    }
}
