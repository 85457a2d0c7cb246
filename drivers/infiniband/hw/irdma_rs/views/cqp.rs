// SPDX-License-Identifier: GPL-2.0

//! File `cqp`: the control queue in comment lines, then the commands by operation.

use kernel::prelude::*;
use rdma::sys::debugfs::{
    self,
    Records, //
};

use super::Shown;
use crate::cqp::{
    Op,
    RingView, //
};

/// Records before that of the first operation.
const HEAD: u32 = 2;

pub(super) struct View;

impl debugfs::View<Shown> for View {
    const NAME: &'static CStr = c"cqp";

    fn show(shown: &Shown, from: u32, out: &mut Records<'_>) -> Result {
        let cqp = &shown.dev.cqp;

        if from == 0 && !ring(&cqp.ring_view(), out) {
            return Ok(());
        }
        if from <= 1
            && !out.push(
                1,
                fmt!("command done refused timed_out not_sent longest_us\n"),
            )
        {
            return Ok(());
        }
        for (number, op) in (HEAD..).zip(Op::ALL) {
            if number < from {
                continue;
            }
            let counts = cqp.counts(op);
            let line = out.push(
                number,
                fmt!(
                    "{op} {} {} {} {} {}\n",
                    counts.done,
                    counts.refused,
                    counts.timed_out,
                    counts.not_sent,
                    counts.longest_us
                ),
            );
            if !line {
                break;
            }
        }
        Ok(())
    }
}

/// Record 0: the ring.
fn ring(ring: &RingView, out: &mut Records<'_>) -> bool {
    let state = if ring.dead.is_some() { "dead" } else { "alive" };
    let reason = ring.dead.map_or(0, Error::to_errno);
    let (oldest, age) = ring
        .oldest
        .map_or(("-", 0), |(op, age)| (op.name(), age.as_millis()));

    out.push(
        0,
        fmt!(
            "# state {state} error {reason} completions {} outstanding {} of {} oldest {oldest} \
             age_ms {age}\n",
            ring.mode,
            ring.outstanding,
            RingView::CAPACITY
        ),
    )
}
