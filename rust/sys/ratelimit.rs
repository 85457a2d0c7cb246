// SPDX-License-Identifier: GPL-2.0

//! Messages that must not flood the kernel log.
//!
//! The `kernel` crate's printing macros have no limit.

use kernel::{
    bindings,
    prelude::*,
    types::Opaque, //
};

use crate::bindings::{
    rdma_rs_ratelimit,
    rdma_rs_ratelimit_init, //
};

/// Lets through ten messages of one kind every five seconds, the kernel's usual limit.
#[pin_data]
pub struct RateLimit {
    #[pin]
    state: Opaque<bindings::ratelimit_state>,
}

// SAFETY: The state holds no pointer and belongs to no task.
unsafe impl Send for RateLimit {}

// SAFETY: The C functions synchronise by the lock inside.
unsafe impl Sync for RateLimit {}

impl RateLimit {
    /// A limit that has let nothing through yet.
    pub fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state <- Opaque::ffi_init(|state: *mut bindings::ratelimit_state| {
                // SAFETY: Valid for writing, and pinned.
                unsafe { rdma_rs_ratelimit_init(state) };
            }),
        })
    }

    /// Asks for leave to print a message. Any context.
    ///
    /// Returns how many messages were refused since the last one that was let through, or `None` if
    /// this one is refused.
    pub fn allow(&self) -> Option<u32> {
        let mut missed = 0;

        // SAFETY: Initialised in `new`; room for the count.
        unsafe { rdma_rs_ratelimit(self.state.get(), &mut missed) }.then_some(missed)
    }
}
