// SPDX-License-Identifier: GPL-2.0

//! Workqueues of one's own, and taking queued work back.

use core::ptr::NonNull;
use kernel::{
    bindings,
    prelude::*,
    sync::Arc,
    workqueue::{
        HasDelayedWork,
        HasWork,
        Queue,
        Work,
        WorkItem, //
    }, //
};

/// The kernel's queue for short work on the processor that queues it.
///
/// The `kernel` crate's `system()` is the old name of the same thing, of which 7.3 warns.
pub fn system_percpu() -> &'static Queue {
    // SAFETY: Made before modules are loaded, and never destroyed.
    unsafe { Queue::from_raw(bindings::system_percpu_wq) }
}

/// A workqueue that its owner made. Dropping it waits for what is queued. May sleep.
///
/// # Invariants
///
/// Owns the queue.
pub struct OwnedQueue(NonNull<bindings::workqueue_struct>);

impl OwnedQueue {
    /// A queue that runs one item at a time, in order, and that memory reclaim may wait for.
    /// Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn ordered(name: &'static CStr) -> Result<Self> {
        let flags = bindings::wq_flags_WQ_UNBOUND
            | bindings::wq_flags_WQ_MEM_RECLAIM
            | bindings::wq_flags___WQ_ORDERED;

        Self::new(name, flags, 1)
    }

    /// A queue that runs any number of items, in no order, and that memory reclaim may wait for.
    /// Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn unbound(name: &'static CStr) -> Result<Self> {
        Self::new(
            name,
            bindings::wq_flags_WQ_UNBOUND | bindings::wq_flags_WQ_MEM_RECLAIM,
            0,
        )
    }

    fn new(name: &'static CStr, flags: bindings::wq_flags, max_active: c_int) -> Result<Self> {
        // SAFETY: A format with one string argument.
        let queue = unsafe {
            bindings::alloc_workqueue_noprof(
                c"%s".as_char_ptr(),
                flags,
                max_active,
                name.as_char_ptr(),
            )
        };

        // INVARIANT: The function gives the queue to its caller.
        NonNull::new(queue).map(Self).ok_or(ENOMEM)
    }

    /// The queue.
    pub fn queue(&self) -> &Queue {
        // SAFETY: Valid as long as it is owned.
        unsafe { Queue::from_raw(self.0.as_ptr()) }
    }

    /// Waits for everything queued so far. May sleep.
    pub fn flush(&self) {
        // SAFETY: Owned.
        unsafe { bindings::__flush_workqueue(self.0.as_ptr()) };
    }
}

impl Drop for OwnedQueue {
    fn drop(&mut self) {
        // SAFETY: Owned, and used no more.
        unsafe { bindings::destroy_workqueue(self.0.as_ptr()) };
    }
}

// SAFETY: The C functions may be called by any task.
unsafe impl Send for OwnedQueue {}

// SAFETY: As above.
unsafe impl Sync for OwnedQueue {}

/// Takes `item` off its queue, and waits if it is running. Returns whether it was queued. The item
/// may be queued again afterwards: the caller sees to it that nobody does. May sleep.
pub fn cancel_work_sync<T, const ID: u64>(item: &Arc<T>) -> bool
where
    T: HasWork<T, ID> + WorkItem<ID, Pointer = Arc<T>>,
{
    let this = Arc::as_ptr(item).cast_mut();
    // SAFETY: A valid item, kept by the reference.
    let work = unsafe { Work::<T, ID>::raw_get(T::raw_get_work(this)) };

    // SAFETY: An initialised work item.
    let queued = unsafe { bindings::cancel_work_sync(work) };
    if queued {
        // SAFETY: Queueing took a count that the run would have given back; it never runs.
        drop(unsafe { Arc::from_raw(this) });
    }
    queued
}

/// Waits for the run of `item` that is queued, and for one in progress. May sleep.
pub fn flush_work<T, const ID: u64>(item: &Arc<T>)
where
    T: HasWork<T, ID> + WorkItem<ID, Pointer = Arc<T>>,
{
    let this = Arc::as_ptr(item).cast_mut();
    // SAFETY: A valid item, kept by the reference.
    let work = unsafe { Work::<T, ID>::raw_get(T::raw_get_work(this)) };

    // SAFETY: An initialised work item.
    unsafe { bindings::flush_work(work) };
}

/// As [`cancel_work_sync`], for an item queued with a delay.
pub fn cancel_delayed_work_sync<T, const ID: u64>(item: &Arc<T>) -> bool
where
    T: HasDelayedWork<T, ID> + WorkItem<ID, Pointer = Arc<T>>,
{
    let this = Arc::as_ptr(item).cast_mut();
    // SAFETY: A valid item, kept by the reference.
    let work = unsafe { Work::<T, ID>::raw_get(T::raw_get_work(this)) };
    // SAFETY: `HasDelayedWork` promises that the work is the one in a `delayed_work`.
    let delayed = unsafe { kernel::container_of!(work, bindings::delayed_work, work) };

    // SAFETY: An initialised delayed work item.
    let queued = unsafe { bindings::cancel_delayed_work_sync(delayed) };
    if queued {
        // SAFETY: As in `cancel_work_sync`.
        drop(unsafe { Arc::from_raw(this) });
    }
    queued
}
