// SPDX-License-Identifier: GPL-2.0

//! File `limits`: how many objects of each kind the device has room for, and how many there are.

use kernel::prelude::*;
use rdma::sys::debugfs::{
    self,
    Records, //
};

use super::Shown;

pub(super) struct View;

impl debugfs::View<Shown> for View {
    const NAME: &'static CStr = c"limits";

    fn show(shown: &Shown, from: u32, out: &mut Records<'_>) -> Result {
        let ids = &shown.dev.ids;

        if from == 0 && !out.push(0, fmt!("object limit used\n")) {
            return Ok(());
        }
        let rows = [
            ("qp", ids.qps.capacity(), ids.qps.used()),
            ("cq", ids.cqs.capacity(), ids.cqs.used()),
            ("mr", ids.mrs.capacity(), ids.mrs.used()),
            ("ah", ids.ahs.capacity(), ids.ahs.used()),
            ("pd", ids.pds.capacity(), ids.pds.used()),
            ("mcast_group", shown.groups.capacity(), shown.groups.count()),
        ];
        for (number, (object, limit, used)) in (1..).zip(rows) {
            if number >= from && !out.push(number, fmt!("{object} {limit} {used}\n")) {
                break;
            }
        }
        Ok(())
    }
}
