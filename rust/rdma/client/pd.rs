// SPDX-License-Identifier: GPL-2.0

//! Protection domains of consumers.

use core::ptr::NonNull;
use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    }, //
};

use crate::{
    bindings,
    client::Device, //
};

/// A protection domain. Dropping the last reference gives it back. May sleep.
///
/// # Invariants
///
/// Owns `raw`, a domain of `device` that the core allocated.
pub struct Pd {
    raw: NonNull<bindings::ib_pd>,
    device: ARef<Device>,
}

impl Pd {
    /// Allocates a domain, listed as `owner`'s in `rdma resource`. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and those of the driver.
    pub fn new(device: &Device, owner: &'static CStr) -> Result<Arc<Self>> {
        let device = ARef::from(device);

        // SAFETY: A held device, and a name that stays.
        let raw = from_err_ptr(unsafe {
            bindings::__ib_alloc_pd(device.as_raw(), 0, owner.as_char_ptr())
        })?;
        let raw = NonNull::new(raw).ok_or(ENOMEM)?;

        // INVARIANT: Allocated just now. If the next step fails, dropping gives it back.
        let pd = Self { raw, device };
        Ok(Arc::new(pd, GFP_KERNEL)?)
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    pub(super) fn as_raw(&self) -> *mut bindings::ib_pd {
        self.raw.as_ptr()
    }

    /// The key by which the device reaches memory that is mapped for it.
    pub(super) fn local_dma_lkey(&self) -> u32 {
        // SAFETY: Valid by the type invariant; constant.
        unsafe { (*self.as_raw()).local_dma_lkey }
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        // SAFETY: Owned by the type invariant; everything made in it holds a reference, so there
        // is nothing left.
        let result = unsafe { bindings::ib_dealloc_pd_user(self.as_raw(), core::ptr::null_mut()) };

        if result != 0 {
            dev_err!(
                self.device.as_ref(),
                "protection domain cannot be deallocated: error {}\n",
                result
            );
        }
    }
}

// SAFETY: The core lets any task use and deallocate a domain.
unsafe impl Send for Pd {}

// SAFETY: Shared references give constants and a pointer for functions that synchronise.
unsafe impl Sync for Pd {}
