// SPDX-License-Identifier: GPL-2.0

//! Tests of the parts of event handling that need no device; KUnit kernels only.

use super::{
    vectors::Plan,
    Table, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rdma::testing::{
    parallel,
    random::Random, //
};

fn table(limit: u32) -> Result<Arc<Table<u32>>> {
    Arc::pin_init(Table::new(limit)?, GFP_KERNEL)
}

#[kernel::macros::kunit_tests(irdma_rs_events)]
mod suite {
    use super::*;

    /// Random numbers, those in range and those a device can make up.
    #[test]
    fn objects_are_found_by_their_number_and_by_no_other() -> Result {
        for (seed, limit) in [(1, 1), (2, 2), (3, 64), (4, 1000)] {
            let table = table(limit)?;
            let mut random = Random::new(seed);
            let mut known = KVec::from_elem(false, usize::try_from(limit)?, GFP_KERNEL)?;

            for _ in 0..2000 {
                let number = if random.flip() {
                    random.below(limit)
                } else {
                    random.bits32(32)
                };
                let here = known.get(number as usize).copied();

                match random.below(3) {
                    0 => {
                        let object = Arc::new(number, GFP_KERNEL)?;
                        let expected = match here {
                            None => Err(ERANGE),
                            Some(true) => Err(EEXIST),
                            Some(false) => Ok(()),
                        };
                        assert_eq!(table.insert(number, object), expected);
                        if let Some(known) = known.get_mut(number as usize) {
                            *known = true;
                        }
                    }
                    1 => {
                        let removed = table.remove(number).map(|object| *object);
                        assert_eq!(removed, (here == Some(true)).then_some(number));
                        if let Some(known) = known.get_mut(number as usize) {
                            *known = false;
                        }
                    }
                    _ => {
                        let found = table.get(number).map(|object| *object);
                        assert_eq!(found, (here == Some(true)).then_some(number));
                    }
                }
            }
        }
        Ok(())
    }

    /// Threads that look up while others remove: what is found stays whole as long as it is held.
    #[test]
    fn an_object_may_go_while_it_is_looked_up() -> Result {
        const NUMBERS: u32 = 4;
        let table = table(NUMBERS)?;

        let task = move |thread: usize| {
            let mut random = Random::new(thread as u64);

            for _ in 0..2000 {
                let number = random.below(NUMBERS);
                match random.below(3) {
                    // Another thread may have been first.
                    0 => drop(table.insert(number, Arc::new(number, GFP_KERNEL)?)),
                    1 => drop(table.remove(number)),
                    _ => {
                        if table.get(number).is_some_and(|object| *object != number) {
                            return Err(EINVAL);
                        }
                    }
                }
            }
            Ok(())
        };
        parallel::run(4, KBox::new(task, GFP_KERNEL)?)
    }

    #[test]
    fn every_event_queue_has_a_vector_of_its_own() {
        for vectors in 1..=65usize {
            for cpus in 1..=64usize {
                for max in [1u32, 2, 8, 64, 1023] {
                    let plan = Plan::new(vectors, cpus, max);
                    let first = usize::from(!plan.shared);

                    assert!(plan.ceqs >= 1 && plan.ceqs <= max);
                    for ceq in 0..plan.ceqs {
                        let vector = plan.vector_of(ceq);
                        // One after the other, so none twice, and all of them exist.
                        assert_eq!(vector, first + ceq as usize);
                        assert!(vector < vectors);
                    }
                    // None is left unused without need.
                    let unused = vectors - first - plan.ceqs as usize;
                    assert!(unused == 0 || plan.ceqs == max);
                }
            }
        }
    }
}
