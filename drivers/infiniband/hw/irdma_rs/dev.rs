// SPDX-License-Identifier: GPL-2.0

//! What the parts of the driver share: one function of the card, brought up.

use crate::{
    arp::ArpTable,
    cqp::{
        cmd::McastGroup,
        Cqp, //
    },
    events::{
        vectors::AeqSlot,
        CqEvents,
        QpEvents,
        Table, //
    },
    hmc::{
        objects::Object,
        Hmc, //
    },
    ids::IdSpace,
    lan::Port,
    regs::*,
    sched::Scheduler,
    tc,
    verbs::ah::LeftOver, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
};
use rdma::sys::workqueue::OwnedQueue;

/// Protection domain numbers the device's formats have room for.
const PD_LIMIT: u32 = 262_144;

/// Numbers below this one are not for users: queue pair 1 is the GSI, completion queue 0 the CCQ.
const FIRST_QUEUE: u32 = 3;

/// Number of the GSI queue pair.
pub(crate) const GSI_QP: u32 = 1;

/// How many objects of each kind the device granted, the reserved ones included: every number is
/// below its count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Queue pairs.
    pub(crate) qps: u32,
    /// Completion queues.
    pub(crate) cqs: u32,
    /// Memory regions.
    pub(crate) mrs: u32,
    /// Address handles.
    pub(crate) ahs: u32,
    /// Multicast groups.
    pub(crate) groups: u32,
    /// Destination MAC addresses.
    pub(crate) arps: u32,
}

/// Version of the firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Firmware {
    /// Major number.
    pub(crate) major: u32,
    /// Minor number.
    pub(crate) minor: u32,
}

/// Free numbers of the objects of the verbs.
pub(crate) struct Ids {
    /// Queue pairs of users, [`GSI_QP`] left out.
    pub(crate) qps: Arc<IdSpace>,
    /// Completion queues of users.
    pub(crate) cqs: Arc<IdSpace>,
    /// Indices of memory regions, of which steering tags are made.
    pub(crate) mrs: Arc<IdSpace>,
    /// Address handles.
    pub(crate) ahs: Arc<IdSpace>,
    /// Protection domains.
    pub(crate) pds: Arc<IdSpace>,
}

/// One function, after its host memory has been negotiated.
#[pin_data]
pub(crate) struct Dev {
    /// The LAN driver's side, registers included.
    pub(crate) port: Arc<Port>,
    /// The way to give orders.
    pub(crate) cqp: Arc<Cqp>,
    /// Page buffer lists.
    pub(crate) hmc: Arc<Hmc>,
    /// What the device granted.
    pub(crate) limits: Limits,
    /// Free numbers.
    pub(crate) ids: Ids,
    /// Queue pairs that events reach.
    #[pin]
    pub(crate) qps: Table<dyn QpEvents>,
    /// Completion queues that events reach.
    #[pin]
    pub(crate) cqs: Table<dyn CqEvents>,
    /// The asynchronous event queue, while there is one.
    pub(crate) aeq: Arc<AeqSlot>,
    /// Destination MAC addresses.
    pub(crate) arp: Arc<ArpTable>,
    /// Address handles that the device did not destroy.
    #[pin]
    pub(crate) left_ahs: LeftOver,
    /// Queue sets.
    pub(crate) scheduler: Arc<Scheduler>,
    /// The change of traffic classes under way.
    #[pin]
    pub(crate) tc: tc::Change,
    /// Runs work items of the verbs, in no order.
    pub(crate) work: OwnedQueue,
    /// Completion event queues; completion vectors of the device.
    ceqs: Atomic<u32>,
    firmware: Firmware,
}

impl Dev {
    /// Tables for what the device granted.
    pub(crate) fn new(
        port: Arc<Port>,
        cqp: Arc<Cqp>,
        hmc: Arc<Hmc>,
        firmware: Firmware,
    ) -> Result<Arc<Self>> {
        let limits = Limits {
            qps: hmc.count(Object::Qp),
            cqs: hmc.count(Object::Cq),
            mrs: hmc.count(Object::Mr),
            ahs: hmc.count(Object::Fsiav),
            groups: hmc
                .count(Object::Fsimc)
                .min(u32::from(McastGroup::INDEX_LIMIT)),
            arps: hmc.count(Object::Arp),
        };
        let ids = Ids {
            qps: IdSpace::new(FIRST_QUEUE, limits.qps)?,
            cqs: IdSpace::new(FIRST_QUEUE, limits.cqs)?,
            mrs: IdSpace::new(1, limits.mrs)?,
            ahs: IdSpace::new(1, limits.ahs)?,
            pds: IdSpace::new(FIRST_QUEUE, PD_LIMIT)?,
        };
        let arp = ArpTable::new(cqp.clone(), limits.arps)?;
        let scheduler = Scheduler::new(port.clone(), cqp.clone())?;
        let work = OwnedQueue::unbound(c"irdma_rs")?;
        let aeq = AeqSlot::new()?;
        let qps = Table::new(limits.qps)?;
        let cqs = Table::new(limits.cqs)?;
        Arc::pin_init(
            pin_init!(Self {
                port,
                cqp,
                hmc,
                limits,
                ids,
                qps <- qps,
                cqs <- cqs,
                aeq,
                arp,
                left_ahs <- LeftOver::new(),
                scheduler,
                tc <- tc::Change::new(),
                work,
                ceqs: Atomic::new(0),
                firmware,
            }),
            GFP_KERNEL,
        )
    }

    /// Version of the firmware, major and minor.
    pub(crate) fn fw_version(&self) -> (u32, u32) {
        (self.firmware.major, self.firmware.minor)
    }

    /// Number of completion vectors.
    pub(crate) fn ceqs(&self) -> u32 {
        self.ceqs.load(Relaxed)
    }

    pub(crate) fn set_ceqs(&self, count: u32) {
        self.ceqs.store(count, Relaxed);
    }

    /// Keeps `item`, which the device may still use, until the device has let go of everything. Any
    /// context.
    pub(crate) fn keep(&self, item: impl Send + Sync + 'static) {
        self.cqp.keep(item);
    }

    /// Rings the send doorbell of a queue pair; its entries are in memory. Any context.
    pub(crate) fn ring_sq(&self, qp: u32) {
        self.port.write_reg(PFPE_WQEALLOC::from(qp));
    }

    /// Arms a completion queue; the request is in its shadow area. Any context.
    pub(crate) fn ring_cq_arm(&self, cq: u32) {
        self.port.write_reg(PFPE_CQARM::from(cq));
    }
}
