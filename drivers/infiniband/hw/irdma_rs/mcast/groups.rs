// SPDX-License-Identifier: GPL-2.0

//! The multicast groups of a device: [`List`] with the device behind it.

use core::net::IpAddr;

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    time::Delta,
};
use rdma::{
    gid::MulticastGid,
    net::NetDevice, //
};

use super::{
    context::{
        Contexts,
        MAX_MEMBERS, //
    },
    group::{
        GroupKey,
        Number, //
    },
    hardware::{
        Command,
        Failure,
        Hardware, //
    },
    index::GroupIndex,
    list::{
        List,
        Occasion, //
    },
    mac::group_mac,
    membership::{
        Memberships,
        Record, //
    },
    view::GroupView,
    vlan::{
        Joins,
        Vlans, //
    },
};
use crate::{
    cqp::{
        self,
        cmd::{
            CreateMcastGrp,
            DestroyMcastGrp,
            McastGroup,
            ModifyMcastGrp, //
        },
    },
    dev::Dev,
    ids::Id,
    sched::QueueSet,
    tc::QueueSetUser, //
};

/// The priority of what a group's members receive.
const PRIORITY: u8 = 0;

/// How long a group that the device refused to change is left alone, if nothing else happens.
const RETRY: Delta = Delta::from_secs(10);

/// The way to the device.
struct Device {
    dev: Arc<Dev>,
    contexts: Arc<Contexts>,
}

impl Device {
    /// Says how a command that failed leaves the device.
    fn failure(&self, failure: cqp::Failure) -> Failure {
        let error = failure.into();

        match failure {
            cqp::Failure::NotSent(_) if !self.dev.cqp.is_alive() => Failure::Gone(error),
            cqp::Failure::NotSent(_) | cqp::Failure::Refused(_) => Failure::Refused(error),
            cqp::Failure::TimedOut => Failure::Unanswered(error),
        }
    }
}

impl Hardware for Device {
    type Share = QueueSet;

    fn share(&self) -> Result<QueueSet> {
        self.dev.scheduler.join(PRIORITY)
    }

    fn is_current(&self, share: &QueueSet) -> bool {
        share.is_current()
    }

    fn execute(
        &self,
        command: Command,
        key: &GroupKey,
        index: GroupIndex,
        share: &QueueSet,
        members: &[u64; MAX_MEMBERS],
    ) -> Result<(), Failure> {
        // A device that failed to answer may still be reading the context.
        self.dev.cqp.usable().map_err(Failure::Gone)?;

        let port = &self.dev.port;
        let context = self
            .contexts
            .write(port, index, members)
            .map_err(Failure::Refused)?;
        let group = McastGroup {
            index: index.get(),
            ip: key.ip,
            mac: group_mac(key.ip),
            vlan: key.vlan,
            function: port.pf_id(),
            qs_handle: share.handle(),
            context,
        };
        let cqp = &self.dev.cqp;

        match command {
            Command::Create => cqp.execute(&CreateMcastGrp { group }),
            Command::Modify => cqp.execute(&ModifyMcastGrp { group }),
            Command::Destroy => cqp.execute(&DestroyMcastGrp { group }),
        }
        .map_err(|failure| self.failure(failure))
    }
}

impl Number for Arc<Id> {
    fn get(&self) -> u32 {
        Id::get(self)
    }
}

/// The memberships of a queue pair of the verbs.
#[pin_data]
pub(crate) struct QpMemberships {
    /// None once the queue pair is destroyed.
    #[pin]
    inner: Mutex<Option<Memberships<Arc<Id>>>>,
}

impl QpMemberships {
    /// The queue pair `number` is attached to nothing.
    pub(crate) fn new(number: Arc<Id>) -> impl PinInit<Self> {
        pin_init!(Self {
            inner <- new_mutex!(
                Some(Memberships::new(number)),
                "irdma_rs::mcast::QpMemberships"
            ),
        })
    }

    /// Calls `f` with what is recorded of `ip`, if the queue pair is attached to it. Process context;
    /// waits for an attach or a detach of the queue pair that is running.
    pub(crate) fn with(&self, ip: IpAddr, f: impl FnOnce(&Record)) {
        if let Some(record) = self.inner.lock().as_ref().and_then(|inner| inner.get(ip)) {
            f(record);
        }
    }

    /// Calls `f` with each address that the queue pair is attached to. Process context.
    ///
    /// Returns false, without a call, while an attach or a detach of the queue pair is running.
    pub(crate) fn for_each(&self, mut f: impl FnMut(IpAddr, &Record)) -> bool {
        let Some(inner) = self.inner.try_lock() else {
            return false;
        };
        for (ip, record) in inner.iter().flat_map(Memberships::iter) {
            f(*ip, record);
        }
        true
    }
}

/// Whose interfaces tell which VLANs an attach is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interfaces {
    /// Those in the network namespace of the calling process.
    Callers,
    /// All.
    All,
}

/// The multicast groups of a device.
#[pin_data(PinnedDrop)]
pub(crate) struct Groups {
    device: Device,
    #[pin]
    list: List<Arc<Id>, QueueSet>,
}

impl Groups {
    /// Makes the empty list of `dev`.
    pub(crate) fn new(dev: Arc<Dev>) -> impl PinInit<Self, Error> {
        let objects = dev.limits.groups;

        try_pin_init!(Self {
            list <- List::new(objects),
            device: Device {
                dev,
                contexts: Arc::pin_init(Contexts::new(list.limit()), GFP_KERNEL)?,
            },
        })
    }

    /// Returns how many groups there can be.
    pub(crate) fn capacity(&self) -> u32 {
        self.list.capacity()
    }

    /// Finds out which VLANs an attach to `ip` is about; see [`super::vlan`].
    fn vlans(&self, ip: IpAddr, interfaces: Interfaces) -> Result<Vlans> {
        let netdev = self.device.dev.port.netdev()?;
        let mut joins = Joins::new();

        netdev.for_each_above(|device: &NetDevice| {
            let counts = interfaces == Interfaces::All || device.is_in_callers_namespace();
            if counts && device.has_joined(ip) {
                joins.add(device.vlan_tag());
            }
        });
        joins.decide()
    }

    /// Attaches a queue pair once more to a group. Process context.
    ///
    /// When this returns, the device delivers the next packet to the queue pair.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if a group is full, no group is left, or memory is short; `EIO` if the device refused,
    /// or `EBUSY` if it did so because of a state; `ETIMEDOUT` if it did not answer, and what else
    /// becomes of commands to a device that is gone.
    /// The queue pair is then attached as before.
    pub(crate) fn attach(
        &self,
        memberships: &QpMemberships,
        gid: MulticastGid,
        interfaces: Interfaces,
    ) -> Result {
        let ip = gid.ip();
        let mut inner = memberships.inner.lock();
        let memberships = (*inner).as_mut().ok_or(EINVAL)?;

        // To count one more use no command is needed; but nothing would be delivered.
        self.device.dev.cqp.usable()?;
        memberships.attach(&self.list, &self.device, ip, || self.vlans(ip, interfaces))
    }

    /// Detaches a queue pair once from a group. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the queue pair is not attached to it.
    pub(crate) fn detach(&self, memberships: &QpMemberships, gid: MulticastGid) -> Result {
        let mut inner = memberships.inner.lock();
        let memberships = (*inner).as_mut().ok_or(EINVAL)?;

        memberships.detach(&self.list, &self.device, gid.ip())
    }

    /// Takes a queue pair that is about to be destroyed out of all groups, and has the device forget
    /// what it refused to forget of others. Process context.
    pub(crate) fn leave(&self, memberships: &QpMemberships) {
        let left = memberships.inner.lock().take();

        if let Some(mut left) = left {
            // Nothing is, normally: the core does not destroy a queue pair that is attached.
            left.detach_all(&self.list, &self.device);
        }
        self.list.retry(&self.device, Occasion::Cleanup);
    }

    /// Returns how many groups there are.
    pub(crate) fn count(&self) -> u32 {
        self.list.count()
    }

    /// Describes the group with this key, if there is one. Process context.
    pub(crate) fn view_of(&self, key: GroupKey) -> Option<GroupView> {
        self.list.view_of(key)
    }

    /// Describes the group that follows `after` in the order of keys, or the first; see
    /// [`List::view`]. Process context.
    pub(crate) fn view(&self, after: Option<GroupKey>) -> Option<GroupView> {
        self.list.view(after)
    }
}

impl QueueSetUser for Groups {
    fn queue_sets_changed(&self) {
        self.list.refresh(&self.device);
    }

    fn look(&self) {
        self.list.retry(&self.device, Occasion::Overdue(RETRY));
    }
}

#[pinned_drop]
impl PinnedDrop for Groups {
    fn drop(self: Pin<&mut Self>) {
        let Device { dev, contexts } = &self.device;

        // Groups that could not be destroyed get their last chance before the device goes away.
        self.list.retry(&self.device, Occasion::Last);
        // A command that was not answered may still be reading.
        dev.keep(contexts.clone());
    }
}
