// SPDX-License-Identifier: GPL-2.0

//! MSI-X vectors that the LAN driver lends.

use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

use super::function::Function;
use crate::bindings;

/// Vectors of the function. Dropping the last count gives them back; a requested interrupt keeps
/// one.
pub struct VectorSet {
    function: Arc<Function>,
    entries: KVec<kernel::bindings::msix_entry>,
}

impl VectorSet {
    /// Takes up to `want` vectors, and at least `least`. Process context.
    ///
    /// # Errors
    ///
    /// `ENODEV` once the device is unbound, `ENOMEM` if there are fewer than `least`.
    pub fn acquire(function: Arc<Function>, least: usize, want: usize) -> Result<Arc<Self>> {
        let mut set = Self {
            entries: KVec::with_capacity(want, GFP_KERNEL)?,
            function: function.clone(),
        };
        let live = function.access()?;

        for _ in 0..want {
            let mut entry: kernel::bindings::msix_entry = pin_init::zeroed();

            // SAFETY: Valid while live; the entry is written.
            let code = unsafe { bindings::ice_alloc_rdma_qvector(live.cdev(), &mut entry) };
            if to_result(code).is_err() {
                break;
            }
            set.entries
                .push_within_capacity(entry)
                .map_err(|_| ENOMEM)?;
        }
        drop(live);

        if set.entries.len() < least {
            return Err(ENOMEM);
        }
        Ok(Arc::new(set, GFP_KERNEL)?)
    }

    /// How many vectors there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The device's number of vector `index`, which its registers want.
    pub fn device_index(&self, index: usize) -> Option<u16> {
        self.entries.get(index).map(|entry| entry.entry)
    }

    /// The kernel's interrupt number of vector `index`.
    pub(crate) fn irq(&self, index: usize) -> Option<c_uint> {
        self.entries.get(index).map(|entry| entry.vector)
    }
}

impl Drop for VectorSet {
    fn drop(&mut self) {
        let Ok(live) = self.function.access() else {
            // The LAN driver has taken all its vectors back.
            return;
        };

        for entry in self.entries.iter_mut() {
            // SAFETY: Valid while live; a vector that was taken, and freed once.
            unsafe { bindings::ice_free_rdma_qvector(live.cdev(), entry) };
        }
    }
}

// SAFETY: The entries are two numbers each; the function is `Send`.
unsafe impl Send for VectorSet {}

// SAFETY: As above.
unsafe impl Sync for VectorSet {}
