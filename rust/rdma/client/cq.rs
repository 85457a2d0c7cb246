// SPDX-License-Identifier: GPL-2.0

//! Completion queues of consumers.

use core::ptr::NonNull;
use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::aref::ARef, //
};

use crate::{
    bindings,
    client::Device, //
};

/// A completion queue that the core polls from a workqueue, so in process context.
///
/// It serves one queue pair, which takes it over: that is what makes it possible to know that no
/// completion of the queue pair is on its way any more, whatever the device does (see
/// [`UdQp`](super::UdQp)). Dropping it waits for completions being processed. May sleep.
///
/// # Invariants
///
/// Owns `raw`, a queue of `device` that the core allocated.
pub struct Cq {
    raw: NonNull<bindings::ib_cq>,
    device: ARef<Device>,
}

impl Cq {
    /// Allocates a queue with room for `entries` completions, listed as `owner`'s in `rdma
    /// resource`. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a number of entries that the device does not have or for none, `ENOMEM`, and
    /// those of the driver.
    pub fn new(device: &Device, entries: u32, owner: &'static CStr) -> Result<Self> {
        let device = ARef::from(device);
        let entries = c_int::try_from(entries).map_err(|_| EINVAL)?;
        if entries == 0 {
            return Err(EINVAL);
        }

        // SAFETY: A held device, and a name that stays.
        let raw = from_err_ptr(unsafe {
            bindings::__ib_alloc_cq_any(
                device.as_raw(),
                core::ptr::null_mut(),
                entries,
                bindings::ib_poll_context_IB_POLL_WORKQUEUE,
                owner.as_char_ptr(),
            )
        })?;

        // INVARIANT: Allocated just now.
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            device,
        })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    pub(super) fn as_raw(&self) -> *mut bindings::ib_cq {
        self.raw.as_ptr()
    }
}

impl Drop for Cq {
    fn drop(&mut self) {
        // SAFETY: Owned by the type invariant; the queue pair that uses it is destroyed before.
        unsafe { bindings::ib_free_cq(self.as_raw()) };
    }
}

// SAFETY: The core lets any task free a queue.
unsafe impl Send for Cq {}

// SAFETY: A shared reference gives a pointer for functions that synchronise.
unsafe impl Sync for Cq {}
