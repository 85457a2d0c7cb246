// SPDX-License-Identifier: GPL-2.0

//! Attaching to multicast groups and detaching, as trace events tell of it.

use kernel::prelude::*;
use rdma::gid::MulticastGid;

use super::{
    super::Data,
    QpShared, //
};
use crate::{
    mcast::Interfaces,
    trace, //
};

impl QpShared {
    /// Attaches the queue pair once more to a group.
    pub(super) fn attach(&self, data: &Data, gid: MulticastGid, interfaces: Interfaces) -> Result {
        let result = data.groups.attach(&self.memberships, gid, interfaces);

        if trace::attach_enabled() {
            let found = match result {
                Ok(()) => self.traced(data, gid),
                Err(_) => Traced::none(gid),
            };
            found.each(|group| trace::attach(self.dev.port.log(), self.number, group, result));
        }
        result
    }

    /// Takes one attach back.
    pub(super) fn detach(&self, data: &Data, gid: MulticastGid) -> Result {
        // Of those that it was attached to, some may be gone afterwards.
        let found = trace::detach_enabled().then(|| self.traced(data, gid));
        let result = data.groups.detach(&self.memberships, gid);

        if let Some(found) = found {
            found.each(|group| trace::detach(self.dev.port.log(), self.number, group, result));
        }
        result
    }

    /// Returns the groups of the device that an attach to `gid` took.
    fn traced(&self, data: &Data, gid: MulticastGid) -> Traced {
        let mut found = Traced::none(gid);

        self.memberships.with(gid.ip(), |record| {
            for key in record.keys(gid.ip()) {
                let index = data.groups.view_of(key).map_or(0, |group| group.index);
                // One less in the trace if memory is short.
                let _ = found.groups.push((key.vlan, index), GFP_KERNEL);
            }
        });
        found
    }
}

/// Groups of an attach or a detach; none for one without effect.
struct Traced {
    gid: MulticastGid,
    groups: KVec<(Option<u16>, u16)>,
}

impl Traced {
    fn none(gid: MulticastGid) -> Self {
        Self {
            gid,
            groups: KVec::new(),
        }
    }

    /// Calls `f` with each, at least once.
    fn each(&self, f: impl Fn(&trace::Group)) {
        let group = |vlan, index| trace::Group {
            gid: self.gid,
            vlan,
            index,
        };

        if self.groups.is_empty() {
            f(&group(None, 0));
        }
        for &(vlan, index) in &self.groups {
            f(&group(vlan, index));
        }
    }
}
