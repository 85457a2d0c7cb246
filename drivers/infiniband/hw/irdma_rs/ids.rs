// SPDX-License-Identifier: GPL-2.0

//! Numbers of hardware objects.
//!
//! A number is an owner: dropping it makes the number free again. Numbers are handed out upwards and
//! around, so that one just freed comes back as late as possible.
//!
//! Once the device knows an object by its number, the number is *lent* ([`Id::lend`]): it is free again
//! only when somebody says that the device has let go ([`LentId::release`]). Dropping it otherwise
//! gives the number up, and it is never handed out again.

use kernel::{
    id_pool::IdPool,
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        SpinLockIrq, //
    },
};

struct Pool {
    used: IdPool,
    /// Numbers taken, those given up for good included.
    count: u32,
    /// Where the next search starts.
    next: usize,
}

/// The numbers of one kind of object. Usable in any context.
#[pin_data]
pub(crate) struct IdSpace {
    first: u32,
    limit: u32,
    #[pin]
    pool: SpinLockIrq<Pool>,
}

impl IdSpace {
    /// Numbers from `first` up to, and without, `limit`.
    pub(crate) fn new(first: u32, limit: u32) -> Result<Arc<Self>> {
        let pool = Pool {
            // CAST: `usize` has 64 bits on the machines this device exists for.
            used: IdPool::with_capacity(limit as usize, GFP_KERNEL)?,
            count: 0,
            next: first as usize,
        };
        Arc::pin_init(
            pin_init!(Self {
                first,
                limit,
                pool <- new_spinlock_irq!(pool, "IdSpace::pool"),
            }),
            GFP_KERNEL,
        )
    }

    /// How many objects there can be at once.
    pub(crate) fn capacity(&self) -> u32 {
        self.limit.saturating_sub(self.first)
    }

    /// How many numbers are taken, those of objects that the device does not let go of included.
    /// [`IdSpace::take_exactly`] may take one below the first.
    pub(crate) fn used(&self) -> u32 {
        self.pool.lock().count
    }

    /// Takes a free number.
    ///
    /// # Errors
    ///
    /// `ENOMEM` when all are taken, as the verbs want it.
    pub(crate) fn alloc(self: &Arc<Self>) -> Result<Id> {
        let mut pool = self.pool.lock();
        let start = pool.next;
        // CAST: `usize` has 64 bits on the machines this device exists for.
        let value = match Self::take(&mut pool.used, start, self.limit) {
            Some(value) => value,
            None => Self::take(&mut pool.used, self.first as usize, self.limit).ok_or(ENOMEM)?,
        };
        pool.count = pool.count.saturating_add(1);
        // CAST: As above.
        pool.next = if value as usize + 1 < self.limit as usize {
            value as usize + 1
        } else {
            self.first as usize
        };
        Ok(Id {
            space: self.clone(),
            value,
            lent: false,
        })
    }

    /// Takes one certain number.
    ///
    /// # Errors
    ///
    /// `EBUSY` when it is taken, `EINVAL` when it is not of this space.
    pub(crate) fn take_exactly(self: &Arc<Self>, value: u32) -> Result<Id> {
        if value >= self.limit {
            return Err(EINVAL);
        }
        let mut pool = self.pool.lock();
        // CAST: Widening.
        let unused = pool.used.find_unused_id(value as usize).ok_or(EBUSY)?;
        if unused.as_u32() != value {
            return Err(EBUSY);
        }
        unused.acquire();
        pool.count = pool.count.saturating_add(1);
        Ok(Id {
            space: self.clone(),
            value,
            lent: false,
        })
    }

    /// Takes the first free number from `start` on.
    fn take(used: &mut IdPool, start: usize, limit: u32) -> Option<u32> {
        let unused = used.find_unused_id(start)?;
        let value = unused.as_u32();
        if value >= limit {
            // The pool is never smaller than a machine word has bits.
            return None;
        }
        unused.acquire();
        Some(value)
    }
}

/// A number taken from an [`IdSpace`].
pub(crate) struct Id {
    space: Arc<IdSpace>,
    value: u32,
    /// The device knows the number: dropping it does not make it free.
    lent: bool,
}

impl Id {
    /// The number.
    pub(crate) fn get(&self) -> u32 {
        self.value
    }

    /// The device is about to know the number.
    pub(crate) fn lend(mut self) -> LentId {
        self.lent = true;
        LentId(self)
    }
}

/// A number the device knows. Dropping it gives the number up for good.
pub(crate) struct LentId(Id);

impl LentId {
    /// The device does not use the number any more: frees it.
    pub(crate) fn release(mut self) {
        self.0.lent = false;
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        if !self.lent {
            let mut pool = self.space.pool.lock();
            // CAST: Widening.
            pool.used.release_id(self.value as usize);
            pool.count = pool.count.saturating_sub(1);
        }
    }
}

#[kunit_tests(irdma_rs_ids)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_in_range_and_come_back_late() -> Result {
        let space = IdSpace::new(3, 6)?;
        assert_eq!(space.capacity(), 3);
        let a = space.alloc()?;
        assert_eq!(a.get(), 3);
        drop(a);
        let b = space.alloc()?;
        let c = space.alloc()?;
        assert_eq!((b.get(), c.get()), (4, 5));
        let d = space.alloc()?;
        assert_eq!(d.get(), 3);
        assert_eq!(space.alloc().err(), Some(ENOMEM));
        drop(c);
        assert_eq!(space.alloc()?.get(), 5);
        Ok(())
    }

    #[test]
    fn certain_and_lent_numbers() -> Result {
        let space = IdSpace::new(2, 4)?;
        let one = space.take_exactly(1)?;
        assert_eq!(space.take_exactly(1).err(), Some(EBUSY));
        assert_eq!(space.take_exactly(4).err(), Some(EINVAL));
        drop(one);
        space.alloc()?.lend().release();
        drop(space.alloc()?.lend());
        drop(space.alloc()?.lend());
        assert_eq!(space.alloc().err(), Some(ENOMEM));
        Ok(())
    }
}
