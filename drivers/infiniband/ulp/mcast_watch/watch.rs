// SPDX-License-Identifier: GPL-2.0

//! One device that is watched: a queue pair and the groups it is in.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        aref::ARef,
        Arc,
        Mutex, //
    }, //
};
use rdma::{
    client::{
        Client,
        Cq,
        Device,
        Pd,
        UdAttrs,
        UdQp, //
    },
    lid::Lid,
    mcast,
    net::{
        membership,
        NetDevice, //
    }, //
};

use crate::{
    spec::GroupSpec,
    tally::{
        Counter,
        Table, //
    },
    Settings,
    Watcher, //
};

/// A group that the device is in. Dropped from top to bottom.
struct Member {
    rdma: mcast::Membership<Counter>,
    /// Makes the fabric send the group here, and a device in software hear of it.
    _host: Option<membership::Membership>,
}

/// A device and its groups. Dropping it leaves all groups.
#[pin_data]
pub(crate) struct Watch {
    // Dropped from top to bottom: the queue pair goes when no member holds it any more.
    /// Held while groups are joined and left.
    #[pin]
    members: Mutex<KVec<Member>>,
    qp: Arc<UdQp<Counter>>,
    table: Arc<Table>,
    netdev: Option<ARef<NetDevice>>,
    lid: Lid,
}

impl Watch {
    /// Starts watching `device`, with no group yet.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and those of the device.
    pub(crate) fn new(device: &Device, settings: &Settings) -> Result<impl PinInit<Self, Error>> {
        let status = device.port(settings.port)?;
        let table = Arc::pin_init(Table::new(device.name()), GFP_KERNEL)?;

        let attrs = UdAttrs {
            port: settings.port,
            qkey: settings.qkey,
            depth: settings.depth,
            max_payload: status.max_mtu.octets(),
            owner: Watcher::NAME,
        };
        let qp = UdQp::new(
            Pd::new(device, Watcher::NAME)?,
            Cq::new(
                device,
                UdQp::<Counter>::completions(settings.depth),
                Watcher::NAME,
            )?,
            attrs,
            Counter(table.clone()),
        )?;

        let qp = Arc::new(qp, GFP_KERNEL)?;
        let netdev = device.netdev(settings.port);
        let lid = settings.lid;
        Ok(try_pin_init!(Self {
            members <- new_mutex!(KVec::new()),
            qp,
            table,
            netdev,
            lid,
        }))
    }

    /// The LID of groups for which the user gives none.
    pub(crate) fn default_lid(&self) -> Lid {
        self.lid
    }

    /// The counters.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// The queue pair.
    pub(crate) fn qp(&self) -> &UdQp<Counter> {
        &self.qp
    }

    /// Joins a group; what comes from now on is counted. Process context.
    ///
    /// # Errors
    ///
    /// With a message, `EEXIST` if the device is in the group; `ENODEV` if IP is off on its net
    /// device; `ENOMEM` if there is no memory or no place in the device; others of the device.
    pub(crate) fn join(&self, spec: GroupSpec) -> Result {
        self.try_join(spec).inspect_err(|error| {
            dev_err!(
                self.qp.device().as_ref(),
                "mcast_watch: cannot join {:?}: {error:?}\n",
                spec.gid.ip()
            );
        })
    }

    fn try_join(&self, spec: GroupSpec) -> Result {
        let mut members = self.members.lock();

        if members.iter().any(|member| member.rdma.gid() == spec.gid) {
            return Err(EEXIST);
        }
        members.reserve(1, GFP_KERNEL)?;

        let host = match &self.netdev {
            Some(netdev) => Some(membership::Membership::join(netdev.clone(), spec.gid.ip())?),
            None => None,
        };
        self.table.insert(spec)?;
        let rdma = mcast::Membership::attach(&self.qp, spec.gid, spec.lid)
            .inspect_err(|_| self.table.remove(spec.gid.gid()))?;

        members.push(Member { rdma, _host: host }, GFP_KERNEL)?;
        Ok(())
    }

    /// Leaves a group and forgets its counters. Process context.
    ///
    /// # Errors
    ///
    /// With a message, `ENOENT` if the device is not in the group; those of the device, which is
    /// in the group then as before.
    pub(crate) fn leave(&self, spec: GroupSpec) -> Result {
        self.try_leave(spec).inspect_err(|error| {
            dev_err!(
                self.qp.device().as_ref(),
                "mcast_watch: cannot leave {:?}: {error:?}\n",
                spec.gid.ip()
            );
        })
    }

    fn try_leave(&self, spec: GroupSpec) -> Result {
        let mut members = self.members.lock();

        let at = members
            .iter()
            .position(|member| member.rdma.gid() == spec.gid)
            .ok_or(ENOENT)?;
        let Member { rdma, _host } = members.remove(at).map_err(|_| ENOENT)?;

        if let Err((error, rdma)) = rdma.detach() {
            // There is room: it was taken out just now.
            members.push(Member { rdma, _host }, GFP_KERNEL)?;
            return Err(error);
        }
        self.table.remove(spec.gid.gid());
        Ok(())
    }
}
