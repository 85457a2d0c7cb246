// SPDX-License-Identifier: GPL-2.0

//! Pinned and mapped memory of a process.

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    device,
    dma::DmaAddress,
    error::from_err_ptr,
    prelude::*,
    sync::aref::ARef, //
};

use crate::{
    bindings,
    device::Device,
    mr::Access,
    ops::Operations, //
};

/// A size of the blocks in which a device addresses memory: a power of two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PageSize(u64);

impl PageSize {
    /// The kernel's pages, 4 KiB: always possible.
    pub const BASE: Self = Self(kernel::page::PAGE_SIZE as u64);

    /// Octets.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Where `address` lies in its block.
    pub const fn offset_of(self, address: u64) -> u64 {
        address & self.0.wrapping_sub(1)
    }

    /// Octets, for the C side, whose `unsigned long` has 64 bits on the platforms of this layer.
    fn raw(self) -> usize {
        // CAST: See above.
        self.0 as usize
    }
}

/// Memory of the calling process, pinned and mapped for DMA. Dropping it releases the pages. May
/// sleep.
///
/// It may outlive the registration of its RDMA device, for a driver whose device did not let go of
/// it, but not the binding of the device that DMA is done by.
///
/// # Invariants
///
/// Owns the `ib_umem`, and counts the `ib_device` that this points to.
pub struct Umem {
    raw: NonNull<bindings::ib_umem>,
    // Dropped after the memory was released.
    _device: ARef<device::Device>,
}

impl Umem {
    /// Pins `len` octets at `start` of the calling process. Process context, in a system call of
    /// that process.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such range, `EPERM` or `ENOMEM` if the process may not pin so
    /// much, `EFAULT` if the memory is not there.
    pub fn pin<D: Operations>(
        dev: &Device<D>,
        start: u64,
        len: u64,
        access: Access,
    ) -> Result<Self> {
        let len = usize::try_from(len).map_err(|_| EINVAL)?;
        let access = c_int::try_from(access.bits()).map_err(|_| EINVAL)?;

        // SAFETY: A valid device; without attributes the address counts.
        let umem = from_err_ptr(unsafe {
            bindings::ib_umem_get_attr_or_va(dev.as_raw(), core::ptr::null(), 0, start, len, access)
        })?;

        // INVARIANT: The function gives the memory to its caller.
        Ok(Self {
            raw: NonNull::new(umem).ok_or(EINVAL)?,
            _device: dev.as_ref().into(),
        })
    }

    /// The largest of the `supported` page sizes (a bitmap) in which the device can address the
    /// memory at `iova`, if any.
    pub fn best_page_size(&self, supported: u64, iova: u64) -> Option<PageSize> {
        // CAST: `unsigned long` has 64 bits on the platforms of this layer.
        let supported = supported as usize;
        // SAFETY: Owned.
        let size = unsafe { bindings::ib_umem_find_best_pgsz(self.raw.as_ptr(), supported, iova) };

        // CAST: As above.
        (size != 0).then_some(PageSize(size as u64))
    }

    /// How many blocks of `page_size` the memory spans.
    pub fn num_blocks(&self, page_size: PageSize) -> usize {
        // SAFETY: Owned; the page size is a power of two.
        unsafe { bindings::rdma_rs_umem_num_dma_blocks(self.raw.as_ptr(), page_size.raw()) }
    }

    /// Offset of the first octet in its 4 KiB page.
    pub fn offset(&self) -> usize {
        // SAFETY: Owned; constant.
        unsafe { (*self.raw.as_ptr()).address & (kernel::page::PAGE_SIZE - 1) }
    }

    /// Octets.
    pub fn len(&self) -> usize {
        // SAFETY: Owned; constant.
        unsafe { (*self.raw.as_ptr()).length }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// DMA addresses of the blocks of `page_size`.
    pub fn blocks(&self, page_size: PageSize) -> DmaBlocks<'_> {
        let mut iter = pin_init::zeroed();

        // SAFETY: Owned; the iterator borrows the memory.
        unsafe {
            bindings::rdma_rs_umem_block_iter_start(&mut iter, self.raw.as_ptr(), page_size.raw())
        };
        DmaBlocks {
            iter,
            left: self.num_blocks(page_size),
            _umem: PhantomData,
        }
    }
}

impl Drop for Umem {
    fn drop(&mut self) {
        // SAFETY: Owned; the device it is unmapped for is counted.
        unsafe { bindings::ib_umem_release(self.raw.as_ptr()) };
    }
}

// SAFETY: Any task may release the memory; the C side keeps the process it belongs to.
unsafe impl Send for Umem {}

// SAFETY: Shared references only read.
unsafe impl Sync for Umem {}

/// The blocks of a [`Umem`], from its start.
pub struct DmaBlocks<'a> {
    iter: bindings::ib_block_iter,
    left: usize,
    _umem: PhantomData<&'a Umem>,
}

impl Iterator for DmaBlocks<'_> {
    type Item = DmaAddress;

    fn next(&mut self) -> Option<DmaAddress> {
        self.left = self.left.checked_sub(1)?;

        // SAFETY: Started on memory that the borrow keeps.
        if !unsafe { bindings::__rdma_block_iter_next(&mut self.iter) } {
            self.left = 0;
            return None;
        }

        // SAFETY: The step above set the address.
        Some(unsafe { bindings::rdma_rs_block_iter_dma_address(&mut self.iter) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}
