// SPDX-License-Identifier: GPL-2.0

//! Sizes of rings, by rules that do not share the code's shortcuts.

use kernel::prelude::*;
use rdma::testing::words::{
    self,
    name, //
};

use crate::queues::{
    cqe::ENTRY_SIZE,
    geometry::{
        kernel_cq_entries,
        user_cq_entries,
        Capabilities,
        WorkQueue,
        MAX_CQE,
        MAX_INLINE,
        MAX_QUANTA,
        MAX_SGE,
        MAX_WRS, //
    },
    wqe::quanta_for_fragments, //
};

/// Quanta that `bytes` of inline data need: eight go beside the header, 31 into each further one,
/// as one octet of four words holds valid bits.
fn quanta_for_inline(bytes: u32) -> u32 {
    let mut quanta = 1;
    let mut room = 8;

    while room < bytes {
        quanta += 1;
        room += 31;
    }
    quanta
}

/// The smallest power of two that is at least `n`.
fn round_up(n: u32) -> u32 {
    let mut power = 1;

    while power < n {
        power *= 2;
    }
    power
}

fn caps(wrs: u32, sge: u32, inline_data: u32) -> Capabilities {
    Capabilities {
        send_wr: wrs,
        recv_wr: wrs,
        send_sge: sge,
        recv_sge: sge,
        inline_data,
    }
}

/// Numbers of work requests at which something may change.
fn interesting() -> impl Iterator<Item = u32> {
    (0..=15u32)
        .flat_map(|bit| {
            let power = 1u32 << bit;
            [
                power.saturating_sub(259),
                power.saturating_sub(258),
                power.saturating_sub(257),
                power - 1,
                power,
                power + 1,
                MAX_WRS,
            ]
        })
        .filter(|wrs| *wrs <= MAX_WRS)
}

#[kernel::macros::kunit_tests(irdma_rs_queue_sizes)]
mod suite {
    use super::*;

    #[test]
    fn the_most_that_is_reported_is_what_the_kernel_allows() {
        let reserved = words::number(name::SQ_RESERVED);
        let quanta = words::number(name::MAX_WQ_QUANTA);

        assert_eq!(MAX_QUANTA, quanta);
        assert_eq!(
            MAX_WRS,
            (quanta - reserved) / words::number(name::MAX_QUANTA_PER_WR)
        );
    }

    #[test]
    fn send_queues_hold_what_was_asked_and_are_no_larger_than_needed() -> Result {
        let reserved = words::number(name::SQ_RESERVED);

        for sge in 0..=MAX_SGE {
            for inline in 0..=MAX_INLINE {
                // A request takes a power of two of quanta; the immediate needs a place too.
                let quanta = quanta_for_fragments(sge + 1).max(quanta_for_inline(inline));
                let step = round_up(quanta);

                for wrs in interesting() {
                    let queue = WorkQueue::send(&caps(wrs, sge, inline))?;
                    let depth = queue.depth();

                    assert_eq!(1 << queue.shift(), step);
                    assert_eq!(depth, round_up(depth));
                    assert!(depth <= MAX_QUANTA);
                    assert!(wrs * step + reserved <= depth);
                    // Half of it would be too little.
                    assert!(wrs * step + reserved > depth / 2 || depth == 8 * step);
                    assert_eq!(queue.wrs(), (depth - reserved) / step);
                    assert_eq!(4 << queue.code(), depth);
                    assert_eq!(queue.bytes(), usize::try_from(depth)? * 32);
                }
            }
        }
        Ok(())
    }

    #[test]
    fn receive_queues_hold_what_was_asked_and_are_no_larger_than_needed() -> Result {
        let reserved = words::number(name::RQ_RESERVED);

        for sge in 0..=MAX_SGE {
            let step = round_up(quanta_for_fragments(sge));

            for wrs in interesting() {
                let queue = WorkQueue::recv(&caps(wrs, sge, 0))?;
                let depth = queue.depth();

                assert_eq!(1 << queue.shift(), step);
                assert_eq!(depth, round_up(depth));
                assert!(depth <= MAX_QUANTA && depth >= 8 * step);
                assert!(wrs * step + reserved <= depth);
                assert!(wrs * step + reserved > depth / 2 || depth == 8 * step);
                assert!(queue.wrs() >= wrs);
            }
        }
        Ok(())
    }

    #[test]
    fn one_more_than_reported_is_refused_in_every_shape() {
        for sge in 0..=MAX_SGE {
            assert_eq!(WorkQueue::send(&caps(MAX_WRS + 1, sge, 0)), Err(EINVAL));
            assert_eq!(WorkQueue::recv(&caps(MAX_WRS + 1, sge, 0)), Err(EINVAL));
        }
        for over in [MAX_SGE + 1, 14, 255, 1 << 31, u32::MAX] {
            assert_eq!(WorkQueue::send(&caps(1, over, 0)), Err(EINVAL));
            assert_eq!(WorkQueue::recv(&caps(1, over, 0)), Err(EINVAL));
        }
        for over in [MAX_INLINE + 1, 255, 1 << 31, u32::MAX] {
            assert_eq!(WorkQueue::send(&caps(1, 1, over)), Err(EINVAL));
        }
        for over in [32768, 1 << 16, 1 << 31, u32::MAX] {
            assert_eq!(WorkQueue::send(&caps(over, 1, 0)), Err(EINVAL));
            assert_eq!(WorkQueue::recv(&caps(over, 1, 0)), Err(EINVAL));
        }
    }

    #[test]
    fn completion_queues_of_every_size() -> Result {
        for i in 1..10_000 {
            // Those at both ends.
            let cqe = if i < 5000 { i } else { MAX_CQE - i + 5000 };
            let entries = kernel_cq_entries(cqe)?;

            // Each completion may be a double one.
            assert!(entries >= 2 * cqe && entries <= 2 * cqe + 6);
            assert!(entries % 2 == 0);
            assert!(entries * ENTRY_SIZE != 4096);
            // The field of the control WQE has 21 bits, the consumer index 20.
            assert!(entries < 1 << 20);
        }
        for entries in 1..5000 {
            assert_eq!(user_cq_entries(entries)?, entries.max(4));
        }
        for over in [MAX_CQE + 1, 1 << 31, u32::MAX, 0] {
            assert_eq!(kernel_cq_entries(over), Err(EINVAL));
        }
        for over in [(MAX_CQE + 1) * 2 + 1, 1 << 31, u32::MAX, 0] {
            assert_eq!(user_cq_entries(over), Err(EINVAL));
        }
        Ok(())
    }
}
