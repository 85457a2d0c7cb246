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
