// SPDX-License-Identifier: GPL-2.0

//! Processors.

use crate::bindings;

/// How many processors are online. Any context; the answer may be old when it arrives.
pub fn online() -> usize {
    // SAFETY: Reads a counter.
    let count = unsafe { bindings::rdma_rs_num_online_cpus() };

    // CAST: A small number.
    count as usize
}

/// Whether another task should run here now, so that it is no use to go on waiting. Any context.
pub fn need_resched() -> bool {
    // SAFETY: Reads a flag of the current task.
    unsafe { bindings::rdma_rs_need_resched() }
}
