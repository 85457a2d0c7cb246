// SPDX-License-Identifier: GPL-2.0

//! The multicast groups of a device: [`List`] with the device behind it.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use rdma::gid::MulticastGid;

use super::{
    context::{
        Contexts,
        MAX_MEMBERS, //
    },
    group::GroupKey,
    index::GroupIndex,
    list::{
        Command,
        Failure,
        Hardware,
        List, //
    },
    mac::group_mac,
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
    sched::QueueSet, //
};

/// The priority of what a group's members receive.
const PRIORITY: u8 = 0;

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

    fn execute(
        &self,
        command: Command,
        key: &GroupKey,
        index: GroupIndex,
        share: &QueueSet,
        members: &[u64; MAX_MEMBERS],
    ) -> Result<(), Failure> {
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

/// The multicast groups of a device.
#[pin_data(PinnedDrop)]
pub(crate) struct Groups {
    device: Device,
    #[pin]
    list: List<Id, QueueSet>,
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

    /// The group of an MGID. A queue pair has no VLAN: tagged and untagged packets both match.
    fn key(gid: MulticastGid) -> GroupKey {
        GroupKey {
            ip: gid.ip(),
            vlan: None,
        }
    }

    /// Attaches a queue pair once more to a group; see [`List::attach`]. Process context.
    pub(crate) fn attach(&self, gid: MulticastGid, qp: u32) -> Result {
        self.list.attach(&self.device, Self::key(gid), qp)
    }

    /// Detaches a queue pair once from a group; see [`List::detach`]. Process context.
    pub(crate) fn detach(&self, gid: MulticastGid, qp: u32) -> Result {
        self.list.detach(&self.device, Self::key(gid), qp)
    }

    /// Repeats what the device refused when members left; see [`List::retry`]. Process context.
    pub(crate) fn retry(&self) {
        self.list.retry(&self.device);
    }

    /// Lets go of the number of a destroyed queue pair; see [`List::forget`]. Process context.
    pub(crate) fn forget(&self, qp: u32, number: Id) {
        self.list.forget(&self.device, qp, number);
    }
}

#[pinned_drop]
impl PinnedDrop for Groups {
    fn drop(self: Pin<&mut Self>) {
        let Device { dev, contexts } = &self.device;

        // Groups that could not be destroyed get their last chance before the device goes away.
        self.list.retry(&self.device);
        // A command that was not answered may still be reading.
        dev.keep(contexts.clone());
    }
}
