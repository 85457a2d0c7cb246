// SPDX-License-Identifier: GPL-2.0

//! Objects found by the number in an event.
//!
//! An event carries a number, never a pointer. The handler looks the number up, takes a reference
//! under the lock, and works on the object outside it, so that the object may be destroyed at any
//! time. Destroying goes: stop the hardware, remove from the table, cut the object's way to its
//! owner, let asynchronous events settle
//! ([`AeqSlot::settle`](super::vectors::AeqSlot::settle)), drop. Events of the old object that the
//! device wrote before are handled by then, and hit none that gets its number.

use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        SpinLockIrq, //
    },
};

/// Objects of one kind by number. Usable in any context.
#[pin_data]
pub(crate) struct Table<T: ?Sized + 'static> {
    #[pin]
    entries: SpinLockIrq<KVVec<Option<Arc<T>>>>,
}

impl<T: ?Sized + Send + Sync> Table<T> {
    /// A table for the numbers below `limit`.
    pub(crate) fn new(limit: u32) -> Result<impl PinInit<Self>> {
        // CAST: Widening.
        let mut entries = KVVec::with_capacity(limit as usize, GFP_KERNEL)?;
        for _ in 0..limit {
            entries.push(None, GFP_KERNEL)?;
        }
        Ok(pin_init!(Self {
            entries <- new_spinlock_irq!(entries, "Table::entries"),
        }))
    }

    /// Makes `object` known under `number`.
    ///
    /// # Errors
    ///
    /// `ERANGE` when there is no such number, `EEXIST` when it is in use.
    pub(crate) fn insert(&self, number: u32, object: Arc<T>) -> Result {
        let mut entries = self.entries.lock();
        // CAST: Widening.
        let place = entries.get_mut(number as usize).ok_or(ERANGE)?;
        if place.is_some() {
            return Err(EEXIST);
        }
        *place = Some(object);
        Ok(())
    }

    /// Makes `number` unknown; gives back what was known under it, for the caller to drop.
    pub(crate) fn remove(&self, number: u32) -> Option<Arc<T>> {
        // CAST: Widening.
        self.entries.lock().get_mut(number as usize)?.take()
    }

    /// Goes through what is known, in the order of numbers. The lock is not held between two steps:
    /// what comes or goes meanwhile may be missed. Any context.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Arc<T>> + '_ {
        let len = self.entries.lock().len();

        // CAST: The table was made for a number of 32 bits.
        (0..len as u32).filter_map(|number| self.get(number))
    }

    /// What is known under `number`, which may be any value a device can make up.
    pub(crate) fn get(&self, number: u32) -> Option<Arc<T>> {
        // CAST: Widening.
        self.entries.lock().get(number as usize)?.clone()
    }
}
