// SPDX-License-Identifier: GPL-2.0

//! Random takes and returns of page list space next to a table of who has which granule.

use super::{
    Allocator,
    Extent,
    Run,
    ENTRY,
    GRANULE, //
};
use kernel::prelude::*;
use rdma::testing::random::Random;

/// Whether `len` granules in a row are free in `taken`, below `backed`.
fn has_room(taken: &[bool], backed: usize, len: usize) -> bool {
    let mut row = 0;

    taken.iter().take(backed).any(|taken| {
        row = if *taken { 0 } else { row + 1 };
        row >= len
    })
}

/// Marks the granules of `run`; `false` if one of them does not have the other state.
fn mark(taken: &mut [bool], run: Run, now: bool) -> bool {
    (run.first..run.first + run.len).all(|granule| {
        taken
            .get_mut(granule)
            .is_some_and(|place| core::mem::replace(place, now) != now)
    })
}

fn run(seed: u64, granules: usize, base: u64) -> Result {
    let mut random = Random::new(seed);
    let mut allocator = Allocator::new(&Extent {
        base,
        count: (granules * GRANULE) as u64,
        size: ENTRY,
    })?;
    let skipped = base.next_multiple_of(4096) - base;
    let skipped = usize::try_from(skipped)?
        .div_ceil(GRANULE * 8)
        .min(granules);
    let mut taken = KVec::from_elem(false, granules, GFP_KERNEL)?;
    let mut runs: KVec<Run> = KVec::new();

    for place in taken.iter_mut().take(skipped) {
        *place = true;
    }
    for step in 0..3000 {
        // Memory is added now and then.
        if random.chance(1, 100) {
            let more = allocator.backed + random.index(granules);
            allocator.backed = more.min(granules);
        }
        if random.chance(11, 20) {
            // Mostly small lists.
            let bits = random.below(7);
            let len = 1 + random.index(1 << bits);
            let room = has_room(&taken, allocator.backed, len);
            match allocator.take(len) {
                Some(run) => {
                    let good = run.len == len
                        && run.first + len <= allocator.backed
                        && mark(&mut taken, run, true);
                    if !good {
                        pr_err!("irdma_rs: pble: step {step}: a bad run\n");
                        return Err(EINVAL);
                    }
                    runs.push(run, GFP_KERNEL)?;
                }
                None if room => {
                    pr_err!("irdma_rs: pble: step {step}: {len} granules were there\n");
                    return Err(EINVAL);
                }
                None => {}
            }
        } else if !runs.is_empty() {
            let at = random.index(runs.len());
            let run = runs.remove(at).map_err(|_| EINVAL)?;
            if !mark(&mut taken, run, false) {
                return Err(EINVAL);
            }
            allocator.give_back(run);
        }
    }

    // With all given back, everything fits again in one piece.
    for run in runs {
        allocator.give_back(run);
    }
    allocator.backed = granules;
    let rest = granules - skipped;
    let whole = if rest == 0 {
        None
    } else {
        allocator.take(rest)
    };
    if whole.is_none() != (rest == 0) || allocator.take(1).is_some() {
        pr_err!("irdma_rs: pble: space was lost or made up\n");
        return Err(EINVAL);
    }
    Ok(())
}

#[kernel::macros::kunit_tests(irdma_rs_pble_model)]
mod suite {
    use super::*;

    #[test]
    fn space_is_neither_lost_nor_given_twice() -> Result {
        for (seed, granules, base) in [
            (1, 1, 0),
            (2, 64, 0),
            (3, 65, 512),
            (4, 500, 4096),
            (5, 1000, 0x1200),
            (6, 3, 512),
        ] {
            run(seed, granules, base)?;
        }
        Ok(())
    }
}
