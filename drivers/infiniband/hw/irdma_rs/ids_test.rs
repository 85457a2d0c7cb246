// SPDX-License-Identifier: GPL-2.0

//! Random uses of number spaces next to a table of which numbers are out.

use crate::ids::{
    Id,
    IdSpace,
    LentId, //
};
use kernel::prelude::*;
use rdma::testing::random::Random;

fn expect(good: bool, what: &str) -> Result {
    if good {
        return Ok(());
    }
    pr_err!("irdma_rs: ids: {what}\n");
    Err(EINVAL)
}

fn run(seed: u64, first: u32, limit: u32) -> Result {
    let space = IdSpace::new(first, limit)?;
    let mut random = Random::new(seed);
    let mut out: KVec<Id> = KVec::new();
    let mut lent: KVec<(u32, LentId)> = KVec::new();
    let mut taken = KVec::from_elem(false, usize::try_from(limit)?, GFP_KERNEL)?;
    // Numbers that were given up.
    let mut lost = 0;

    for step in 0..3000u32 {
        let rising = (step / 500) % 2 == 0;
        let chance = random.below(10);

        if chance < if rising { 7 } else { 3 } {
            let used = u32::try_from(out.len() + lent.len())? + lost;
            match space.alloc() {
                Ok(id) => {
                    expect(id.get() >= first && id.get() < limit, "range")?;
                    let place = taken.get_mut(id.get() as usize).ok_or(EINVAL)?;
                    expect(!core::mem::replace(place, true), "a number twice")?;
                    out.push(id, GFP_KERNEL)?;
                }
                Err(error) => {
                    expect(error == ENOMEM, "errno")?;
                    expect(used == space.capacity(), "a number was lost")?;
                }
            }
        } else if chance < 9 && !out.is_empty() {
            let at = random.index(out.len());
            let id = out.remove(at).map_err(|_| EINVAL)?;
            if random.chance(1, 3) {
                lent.push((id.get(), id.lend()), GFP_KERNEL)?;
            } else {
                *taken.get_mut(id.get() as usize).ok_or(EINVAL)? = false;
                drop(id);
            }
        } else if !lent.is_empty() {
            let at = random.index(lent.len());
            let (number, id) = lent.remove(at).map_err(|_| EINVAL)?;
            // Rarely the device does not let go.
            if random.chance(1, 50) && lost < limit / 4 {
                lost += 1;
                drop(id);
            } else {
                id.release();
                *taken.get_mut(number as usize).ok_or(EINVAL)? = false;
            }
        }
    }
    drop(out);
    for (_, id) in lent {
        id.release();
    }
    let mut count = 0;
    let mut all = KVec::new();
    while let Ok(id) = space.alloc() {
        all.push(id, GFP_KERNEL)?;
        count += 1;
    }
    expect(count == space.capacity() - lost, "capacity at the end")
}

#[kernel::macros::kunit_tests(irdma_rs_ids_model)]
mod suite {
    use super::*;

    #[test]
    fn numbers_are_unique_and_none_is_lost() -> Result {
        for (seed, first, limit) in [
            (1, 0, 1),
            (2, 3, 4),
            (3, 1, 64),
            (4, 0, 65),
            (5, 3, 1000),
            (6, 60, 70),
        ] {
            run(seed, first, limit)?;
        }
        Ok(())
    }

    #[test]
    fn a_number_comes_back_as_late_as_possible() -> Result {
        let space = IdSpace::new(2, 100)?;
        let first = space.alloc()?.get();

        for _ in 0..97 {
            assert!(space.alloc()?.get() != first);
        }
        assert_eq!(space.alloc()?.get(), first);
        Ok(())
    }
}
