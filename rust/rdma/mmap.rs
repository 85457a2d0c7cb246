// SPDX-License-Identifier: GPL-2.0

//! Pages of a device that a process may map, such as doorbells.
//!
//! An entry gives a page an offset in the context's file. The core counts an entry as long as it
//! is inserted or mapped, and calls `mmap_free` when the last count goes.

use core::{
    mem::offset_of,
    ptr::NonNull, //
};
use kernel::{
    error::{
        from_result,
        to_result, //
    },
    prelude::*,
    types::Opaque, //
};

use crate::bindings;

/// A page of device registers that may be given to processes, mapped uncached.
///
/// # Invariants
///
/// `pfn` is a page of a device's BAR that holds only what any process may touch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoPage {
    pfn: usize,
}

impl IoPage {
    /// # Safety
    ///
    /// `pfn` fulfils the type invariant as long as the device is bound.
    pub(crate) unsafe fn from_pfn(pfn: usize) -> Self {
        // INVARIANT: By this function's contract.
        Self { pfn }
    }
}

/// What the core counts, with the page behind it.
#[repr(C)]
struct Entry {
    raw: Opaque<bindings::rdma_user_mmap_entry>,
    page: IoPage,
}

/// An inserted entry. Dropping it takes the offset away; pages mapped already stay mapped.
///
/// # Invariants
///
/// Points to an entry that is inserted, hence counted.
pub struct MmapEntry(NonNull<Entry>);

impl MmapEntry {
    /// # Safety
    ///
    /// `ucontext` is a context whose C part is initialised, and it outlives the entry.
    pub(crate) unsafe fn insert(
        ucontext: *mut bindings::ib_ucontext,
        page: IoPage,
    ) -> Result<Self> {
        const_assert!(offset_of!(Entry, raw) == 0);

        let entry = KBox::new(
            Entry {
                raw: Opaque::zeroed(),
                page,
            },
            GFP_KERNEL,
        )?;
        let raw = entry.raw.get();

        // SAFETY: A zeroed entry in memory of its own; the context by this function's contract.
        to_result(unsafe {
            bindings::rdma_user_mmap_entry_insert(ucontext, raw, kernel::page::PAGE_SIZE)
        })?;

        // The core owns the box from here on, until `free`.
        let entry = KBox::into_raw(entry);

        // INVARIANT: Inserted just now.
        NonNull::new(entry).map(Self).ok_or(ENOMEM)
    }

    /// The offset at which the process maps the page.
    pub fn key(&self) -> u64 {
        // SAFETY: Alive by the type invariant.
        let pgoff = unsafe { (*self.0.as_ref().raw.get()).start_pgoff };

        // CAST: `unsigned long` has 64 bits on the platforms of this layer.
        (pgoff as u64) << kernel::page::PAGE_SHIFT
    }
}

impl Drop for MmapEntry {
    fn drop(&mut self) {
        // SAFETY: Inserted by the type invariant; removed once.
        unsafe { bindings::rdma_user_mmap_entry_remove(self.0.as_ptr().cast()) };
    }
}

// SAFETY: The core's functions on entries may be called by any task.
unsafe impl Send for MmapEntry {}

// SAFETY: A shared reference reads a constant.
unsafe impl Sync for MmapEntry {}

/// # Safety
///
/// Called by the core with a context and the area that a process wants to map.
pub(crate) unsafe extern "C" fn mmap(
    ucontext: *mut bindings::ib_ucontext,
    vma: *mut kernel::bindings::vm_area_struct,
) -> c_int {
    from_result(|| {
        // SAFETY: By this function's contract. Counts the entry, and checks offset and length.
        let raw = unsafe { bindings::rdma_user_mmap_entry_get(ucontext, vma) };
        let raw = NonNull::new(raw).ok_or(EINVAL)?;

        // SAFETY: Every entry of our contexts is an `Entry`, with `raw` at offset 0.
        let pfn = unsafe { raw.cast::<Entry>().as_ref() }.page.pfn;

        // SAFETY: The page is one that processes may touch, by the invariant of `IoPage`.
        let mapped = to_result(unsafe {
            bindings::rdma_user_mmap_io(
                ucontext,
                vma,
                pfn,
                kernel::page::PAGE_SIZE,
                bindings::rdma_rs_vma_prot_noncached(vma),
                raw.as_ptr(),
            )
        });

        // SAFETY: Counted by `rdma_user_mmap_entry_get()`.
        unsafe { bindings::rdma_user_mmap_entry_put(raw.as_ptr()) };

        mapped.map(|()| 0)
    })
}

/// # Safety
///
/// Called by the core with an entry whose last count is gone, once.
pub(crate) unsafe extern "C" fn free(raw: *mut bindings::rdma_user_mmap_entry) {
    // SAFETY: `insert` gave the box up; nobody counts the entry any more.
    drop(unsafe { KBox::from_raw(raw.cast::<Entry>()) });
}
