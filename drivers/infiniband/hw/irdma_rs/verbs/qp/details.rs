// SPDX-License-Identifier: GPL-2.0

//! What `rdma resource show qp -dd` shows of a queue pair beside what the core knows.

use kernel::prelude::*;
use rdma::{
    details::Details,
    qp::QpState, //
};

use super::{
    super::Data,
    QpShared, //
};
use crate::views::text::Address;

/// Longest name and longest value of a group.
const GROUP_NAME: usize = "mcast_4095".len();
const GROUP_VALUE: usize =
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff vlan 4095 uses 4294967295".len();

/// Quanta in a ring of this size code.
const fn quanta(code: u32) -> u32 {
    4u32.wrapping_shl(code)
}

impl QpShared {
    /// Tells of the device's side of the queue pair, and of its groups.
    pub(super) fn tell_details(&self, data: &Data, details: &mut Details<'_>) -> Result {
        self.tell_hardware(details)?;
        self.tell_groups(data, details)
    }

    fn tell_hardware(&self, details: &mut Details<'_>) -> Result {
        let control = self.control.lock();
        let Some(created) = control.created.as_ref() else {
            return Ok(());
        };
        let state = match control.attrs.state {
            _ if created.in_error => "error",
            QpState::Rtr => "rtr",
            QpState::Rts => "rts",
            _ => "idle",
        };
        let context = &created.context;

        details.text(fmt!("hw_state"), fmt!("{state}"))?;
        details.number(c"sq_quanta", quanta(context.sq_size))?;
        details.number(c"rq_quanta", quanta(context.rq_size))?;
        details.number(c"send_cqn", context.send_cq)?;
        details.number(c"recv_cqn", context.recv_cq)?;
        details.number(c"queue_set", u32::from(context.qs_handle))
    }

    /// Tells how many groups there are, and of as many as there is room for.
    fn tell_groups(&self, data: &Data, details: &mut Details<'_>) -> Result {
        let mut count = 0u32;

        if !self.memberships.for_each(|_, record| {
            count = count.saturating_add(record.groups());
        }) {
            // An attach or a detach is running; it may take its time.
            return details.text(fmt!("mcast"), fmt!("busy"));
        }
        details.number(c"mcast_groups", count)?;
        if count == 0 {
            return Ok(());
        }
        let mut told = Ok(());
        self.memberships.for_each(|ip, record| {
            for key in record.keys(ip) {
                if told.is_err() || !details.has_room(GROUP_NAME, GROUP_VALUE) {
                    return;
                }
                let Some(group) = data.groups.view_of(key) else {
                    continue;
                };
                let uses = record.uses();
                told = match key.vlan {
                    None => details.text(
                        fmt!("mcast_{}", group.index),
                        fmt!("{} uses {uses}", Address(ip)),
                    ),
                    Some(vlan) => details.text(
                        fmt!("mcast_{}", group.index),
                        fmt!("{} vlan {vlan} uses {uses}", Address(ip)),
                    ),
                };
            }
        });
        told
    }
}
