// SPDX-License-Identifier: GPL-2.0

//! File `mcast_groups`: the multicast groups, in the order of their indexes.

use kernel::{
    fmt::{
        Display,
        Formatter, //
    },
    prelude::*, //
};
use rdma::sys::debugfs::{
    self,
    Records, //
};

use super::{
    text::{
        Address,
        Commas,
        Mac,
        Maybe, //
    },
    Shown,
};
use crate::mcast::{
    group::GroupKey,
    view::{
        GroupState,
        GroupView,
        MemberView, //
    },
    Groups,
};

pub(super) struct View;

impl debugfs::View<Shown> for View {
    const NAME: &'static CStr = c"mcast_groups";

    fn show(shown: &Shown, from: u32, out: &mut Records<'_>) -> Result {
        let groups = &shown.groups;

        if from == 0
            && !out.push(
                0,
                fmt!("index address vlan mac state refusals members device\n"),
            )
        {
            return Ok(());
        }
        for (index, key) in (0..).zip(by_index(groups, from)?) {
            let Some(group) = key.and_then(|key| groups.view_of(key)) else {
                continue;
            };
            // It may be another one of the same name, made meanwhile.
            if u32::from(group.index) == index && !out.push(index, fmt!("{}\n", Line(&group))) {
                break;
            }
        }
        Ok(())
    }
}

/// The groups with indexes from `from` on, each at its index.
fn by_index(groups: &Groups, from: u32) -> Result<KVVec<Option<GroupKey>>> {
    let mut found = KVVec::new();
    let mut after = None;

    while let Some(group) = groups.view(after) {
        let index = usize::from(group.index);

        after = Some(group.key);
        if u32::from(group.index) < from {
            continue;
        }
        while found.len() <= index {
            found.push(None, GFP_KERNEL)?;
        }
        if let Some(place) = found.get_mut(index) {
            *place = Some(group.key);
        }
    }
    Ok(found)
}

/// A queue pair and its uses.
struct Member(MemberView);

impl Display for Member {
    fn fmt(&self, f: &mut Formatter<'_>) -> kernel::fmt::Result {
        f.write_fmt(fmt!("{}x{}", self.0.qp, self.0.uses))
    }
}

/// One group.
struct Line<'a>(&'a GroupView);

impl Display for Line<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> kernel::fmt::Result {
        let group = self.0;

        f.write_fmt(fmt!(
            "{} {} {} {} {} {} ",
            group.index,
            Address(group.key.ip),
            Maybe(group.key.vlan),
            Mac(group.mac),
            group.state.name(),
            group.refusals
        ))?;
        if group.state == GroupState::Busy {
            return f.write_str("? ?");
        }
        f.write_fmt(fmt!(
            "{} {}",
            Commas(group.members.iter().flatten().copied().map(Member)),
            Commas(group.device.iter().flatten().copied())
        ))
    }
}
