// SPDX-License-Identifier: GPL-2.0

//! Completions that are waited for with a timeout and used again.
//!
//! The `kernel` crate's completion can only be waited for without end.

use kernel::{
    bindings,
    prelude::*,
    time::{
        msecs_to_jiffies,
        Msecs, //
    },
    types::Opaque, //
};

use crate::bindings::rdma_rs_reinit_completion;

/// A C `struct completion`.
#[pin_data]
pub struct Completion {
    #[pin]
    inner: Opaque<bindings::completion>,
}

// SAFETY: The C functions synchronise by the lock inside.
unsafe impl Send for Completion {}

// SAFETY: As above.
unsafe impl Sync for Completion {}

impl Completion {
    /// A completion that nobody has completed.
    pub fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            inner <- Opaque::ffi_init(|inner: *mut bindings::completion| {
                // SAFETY: Valid for writing, and pinned.
                unsafe { bindings::init_completion(inner) };
            }),
        })
    }

    /// Lets one waiter go on, now or when it comes. Any context.
    pub fn complete(&self) {
        // SAFETY: Initialised in `new`.
        unsafe { bindings::complete(self.inner.get()) };
    }

    /// Lets everybody go on, now and for good, until [`Completion::reinit`]. Any context.
    pub fn complete_all(&self) {
        // SAFETY: Initialised in `new`.
        unsafe { bindings::complete_all(self.inner.get()) };
    }

    /// Makes a completed one like new. Who still waits for it to be completed then waits for the next
    /// time. Any context.
    pub fn reinit(&self) {
        // SAFETY: Initialised in `new`.
        unsafe { rdma_rs_reinit_completion(self.inner.get()) };
    }

    /// Waits, not interruptibly, up to `timeout` milliseconds. Returns whether it was completed.
    /// Process context.
    #[must_use]
    pub fn wait_timeout(&self, timeout: Msecs) -> bool {
        // SAFETY: Initialised in `new`.
        let left = unsafe {
            bindings::wait_for_completion_timeout(self.inner.get(), msecs_to_jiffies(timeout))
        };

        left != 0
    }

    /// Takes a completion if there is one. Any context.
    #[must_use]
    pub fn try_wait(&self) -> bool {
        // SAFETY: Initialised in `new`.
        unsafe { bindings::try_wait_for_completion(self.inner.get()) }
    }
}
