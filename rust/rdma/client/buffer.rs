// SPDX-License-Identifier: GPL-2.0

//! Memory that a device writes received messages to.

use core::ptr::NonNull;
use kernel::{
    bindings::dma_data_direction,
    prelude::*,
    sync::aref::ARef, //
};

use crate::{
    bindings,
    client::Device, //
};

const FROM_DEVICE: dma_data_direction = dma_data_direction::DMA_FROM_DEVICE;

/// Memory mapped for a device to write. Dropping it unmaps and frees.
///
/// # Invariants
///
/// `memory` points at the `len` octets of `_owner` and is the only way to them; `addr` is their
/// mapping for `device`.
pub(super) struct RecvBuffer {
    device: ARef<Device>,
    memory: NonNull<u8>,
    len: u32,
    addr: u64,
    _owner: KVec<u8>,
}

impl RecvBuffer {
    /// Allocates and maps `len` octets. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`: no memory, or no room in the device's address space.
    pub(super) fn new(device: &Device, len: u32) -> Result<Self> {
        let size = usize::try_from(len).map_err(|_| EINVAL)?;
        let mut owner = KVec::from_elem(0u8, size, GFP_KERNEL)?;
        let memory = NonNull::new(owner.as_mut_ptr()).ok_or(ENOMEM)?;

        // SAFETY: A held device, and memory that `kmalloc()` gave, of this size.
        let addr = unsafe {
            bindings::rdma_rs_dma_map_single(
                device.as_raw(),
                memory.as_ptr().cast(),
                size,
                FROM_DEVICE,
            )
        };
        // SAFETY: The result of the mapping.
        if unsafe { bindings::rdma_rs_dma_mapping_error(device.as_raw(), addr) } != 0 {
            return Err(ENOMEM);
        }

        // INVARIANT: Mapped just now; moving the vector does not move its memory.
        Ok(Self {
            device: ARef::from(device),
            memory,
            len,
            addr,
            _owner: owner,
        })
    }

    /// The entry of a request for the whole buffer.
    pub(super) fn sge(&self, lkey: u32) -> bindings::ib_sge {
        bindings::ib_sge {
            addr: self.addr,
            length: self.len,
            lkey,
        }
    }

    /// Hands the memory to the device.
    pub(super) fn give(&self) {
        // SAFETY: Mapped by the type invariant.
        unsafe {
            bindings::rdma_rs_dma_sync_for_device(
                self.device.as_raw(),
                self.addr,
                // CAST: A `u32` fits.
                self.len as usize,
                FROM_DEVICE,
            );
        }
    }

    /// The first `len` octets, as the device left them; fewer if the buffer is shorter.
    ///
    /// # Safety
    ///
    /// The device has completed its request for the buffer, and nobody hands it to the device
    /// again while the result is in use.
    pub(super) unsafe fn take(&self, len: u32) -> &[u8] {
        // SAFETY: Mapped by the type invariant.
        unsafe {
            bindings::rdma_rs_dma_sync_for_cpu(
                self.device.as_raw(),
                self.addr,
                // CAST: A `u32` fits.
                self.len as usize,
                FROM_DEVICE,
            );
        }

        // CAST: A `u32` fits.
        let len = len.min(self.len) as usize;
        // SAFETY: Initialised memory of at least this length, which nobody writes by this
        // function's contract.
        unsafe { core::slice::from_raw_parts(self.memory.as_ptr(), len) }
    }
}

impl Drop for RecvBuffer {
    fn drop(&mut self) {
        // SAFETY: Mapped by the type invariant, with these arguments.
        unsafe {
            bindings::rdma_rs_dma_unmap_single(
                self.device.as_raw(),
                self.addr,
                // CAST: A `u32` fits.
                self.len as usize,
                FROM_DEVICE,
            );
        }
    }
}

// SAFETY: The memory is the buffer's own, and may be unmapped and freed by any task.
unsafe impl Send for RecvBuffer {}

// SAFETY: Shared references give the memory only under the contract of `take`.
unsafe impl Sync for RecvBuffer {}
