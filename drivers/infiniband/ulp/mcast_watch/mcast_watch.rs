// SPDX-License-Identifier: GPL-2.0

//! Counts what comes for multicast groups, on any RDMA device.
//!
//! A consumer of RDMA in the kernel, small enough to read as an example and good for finding out
//! whether a group's traffic reaches a machine. On each device it makes one UD queue pair, joins
//! the groups it is told to, and counts datagrams and octets per group and sender.
//!
//! - [`spec`]: what the user writes: groups and names of devices;
//! - [`tally`]: the counters, filled by the queue pair's receiver;
//! - [`watch`]: one device: the queue pair and the groups it is in;
//! - [`files`]: a device's directory in debugfs.
//!
//! `Documentation/admin-guide/mcast_watch.md` tells how to use it.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use rdma::{
    client::{
        Client,
        Device,
        Qkey,
        Registration, //
    },
    device::PortNum,
    lid::Lid,
    sys::debugfs::Root, //
};

mod files;
mod spec;
mod tally;
mod watch;

use files::Watched;
use spec::GroupSpec;
use watch::Watch;

/// Datagrams that may wait for the receiver, at most.
const MAX_DEPTH: u32 = 4096;

/// What the user asked for, the same on every device.
struct Settings {
    /// Which devices: a pattern, empty for all.
    device: &'static str,
    groups: KVec<GroupSpec>,
    port: PortNum,
    qkey: Qkey,
    /// LID of groups for which none is given.
    lid: Lid,
    depth: u32,
}

/// The client of the RDMA core.
struct Watcher {
    settings: Settings,
    /// The directory of all devices' directories.
    _root: Root,
}

rdma::client_slot!(Watcher);

impl Client for Watcher {
    const NAME: &'static CStr = c"mcast_watch";

    type Data = Watched;

    fn add(&self, device: &Device) -> Result<Option<Pin<KBox<Self::Data>>>> {
        let name = device.name();

        if !spec::is_match(self.settings.device.as_bytes(), name.as_bytes())
            || device.max_mcast_groups() == 0
            || self.settings.port.get() > device.ports()
        {
            return Ok(None);
        }

        let watch = Watch::new(device, &self.settings).inspect_err(|error| {
            dev_err!(device.as_ref(), "mcast_watch: no queue pair: {error:?}\n");
        })?;
        let watched = KBox::pin(
            Watched::new(name.as_c_str(), Arc::pin_init(watch, GFP_KERNEL)?),
            GFP_KERNEL,
        )?;

        // A group that cannot be joined is no reason not to watch the others.
        for group in &self.settings.groups {
            let _ = watched.join(*group);
        }

        Ok(Some(watched))
    }
}

/// The module. Dropping it leaves all groups on all devices.
struct McastWatch {
    _registration: Registration<Watcher>,
}

impl kernel::Module for McastWatch {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let settings = settings()?;

        Ok(Self {
            _registration: Registration::new(Watcher {
                settings,
                _root: Root::new(files::TOP),
            })?,
        })
    }
}

/// The parameters, checked.
///
/// # Errors
///
/// `EINVAL`, with a message that names the parameter and its value; `ENOMEM`.
fn settings() -> Result<Settings> {
    let lid = *module_parameters::lid.value_ref();
    let port = *module_parameters::port.value_ref();
    let depth = *module_parameters::depth.value_ref();

    let lid = u16::try_from(lid).map_err(|_| {
        pr_err!("lid: {lid:#x} is more than 16 bits\n");
        EINVAL
    })?;
    if port == 0 {
        pr_err!("port: 0 is none, ports are numbered from 1\n");
        return Err(EINVAL);
    }
    if !(1..=MAX_DEPTH).contains(&depth) {
        pr_err!("depth: {depth} is not within 1 and {MAX_DEPTH}\n");
        return Err(EINVAL);
    }

    let lid = Lid::from_host(lid);
    let text = GROUPS
        .text()
        .inspect_err(|_| pr_err!("groups: is not text\n"))?;
    let mut groups = KVec::new();
    for item in spec::items(text) {
        let group = GroupSpec::parse(item, lid).map_err(|why| {
            pr_err!("groups: \"{item}\": {why}\n");
            EINVAL
        })?;
        groups.push(group, GFP_KERNEL)?;
    }

    Ok(Settings {
        device: DEVICE
            .text()
            .inspect_err(|_| pr_err!("device: is not text\n"))?,
        groups,
        port: PortNum::new(port),
        qkey: Qkey::new(*module_parameters::qkey.value_ref()),
        lid,
        depth,
    })
}

rdma::text_param! {
    /// Groups to join on every device.
    static GROUPS = "groups", "Groups to join, IPv4 or IPv6, each with @LID if it has one, with commas between";
}

rdma::text_param! {
    /// Devices to watch.
    static DEVICE = "device", "Devices to watch, a name with * and ? as in a shell (default: all)";
}

module! {
    type: McastWatch,
    name: "mcast_watch",
    authors: ["The irdma_rs authors"],
    description: "Counts datagrams to multicast groups on RDMA devices",
    license: "GPL",
    params: {
        lid: u32 {
            default: 0xc000,
            description: "LID of groups without one of their own, in host byte order; of no meaning on Ethernet",
        },
        qkey: u32 {
            default: 0x0123_4567,
            description: "Q_Key of the groups",
        },
        port: u32 {
            default: 1,
            description: "Port of each device",
        },
        depth: u32 {
            default: 256,
            description: "Datagrams that may wait to be counted",
        },
    },
}
