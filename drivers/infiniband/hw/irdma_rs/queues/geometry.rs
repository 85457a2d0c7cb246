// SPDX-License-Identifier: GPL-2.0

//! How large rings are.
//!
//! The user library and the kernel compute the depth of a queue from the same capabilities by the same
//! rule: the library to lay out its memory, the kernel to tell the device. Kernel queues obey it too.

use kernel::prelude::*;

use super::{
    cqe::ENTRY_SIZE,
    wqe::QUANTUM, //
};

/// Fragments a work request can have.
pub(crate) const MAX_SGE: u32 = 13;

/// Bytes a work request can carry in its WQE.
pub(crate) const MAX_INLINE: u32 = 101;

/// Quanta a send or receive queue can have.
pub(crate) const MAX_QUANTA: u32 = 32768;

/// Work requests a smallest queue has room for.
const MIN_WRS: u32 = 8;

/// Quanta of a send queue that are never used: the room that is cleared ahead of the producer.
const SQ_RESERVED: u32 = 258;

/// Quanta of a receive queue that are never used: full and empty must differ.
const RQ_RESERVED: u32 = 1;

/// Work requests of any shape that fit into a largest queue: what the device reports.
pub(crate) const MAX_WRS: u32 = (MAX_QUANTA - SQ_RESERVED) >> 3;

/// Entries a completion ring can have.
const MAX_CQ_ENTRIES: u32 = 1_048_575;

/// Completions a largest queue holds: what the device reports. Each may take two entries, and two
/// more are spare in a kernel queue.
pub(crate) const MAX_CQE: u32 = MAX_CQ_ENTRIES / 2 - 2;

/// Entries of a largest ring that the user library may ask for: it has one spare completion.
const MAX_USER_CQ_ENTRIES: u32 = (MAX_CQE + 1) * 2;

/// Entries of a smallest ring.
const MIN_CQ_ENTRIES: u32 = 4;

/// The size of a ring that the device must not be given, in bytes.
const BAD_CQ_BYTES: u32 = 4096;

/// What a caller wants of a queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Capabilities {
    pub(crate) send_wr: u32,
    pub(crate) recv_wr: u32,
    pub(crate) send_sge: u32,
    pub(crate) recv_sge: u32,
    pub(crate) inline_data: u32,
}

/// The size of a send or receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkQueue {
    /// Quanta in the ring, a power of two.
    depth: u32,
    /// A work request takes at most `1 << shift` quanta; in a receive queue, exactly.
    shift: u32,
    /// Quanta never used.
    reserved: u32,
}

impl WorkQueue {
    /// Returns the size of the send queue for `caps`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `caps` asks for more than a queue can have.
    pub(crate) fn send(caps: &Capabilities) -> Result<Self> {
        if caps.send_wr > MAX_WRS || caps.send_sge > MAX_SGE || caps.inline_data > MAX_INLINE {
            return Err(EINVAL);
        }
        // A place more than there are fragments, for the immediate.
        let shift = shift_for(caps.send_sge + 1, caps.inline_data);
        Self::new(caps.send_wr, shift, SQ_RESERVED)
    }

    /// Returns the size of the receive queue for `caps`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `caps` asks for more than a queue can have.
    pub(crate) fn recv(caps: &Capabilities) -> Result<Self> {
        if caps.recv_wr > MAX_WRS || caps.recv_sge > MAX_SGE {
            return Err(EINVAL);
        }
        Self::new(caps.recv_wr, shift_for(caps.recv_sge, 0), RQ_RESERVED)
    }

    fn new(wrs: u32, shift: u32, reserved: u32) -> Result<Self> {
        // `wrs` is at most `MAX_WRS` and `shift` at most 3: no overflow.
        let depth = ((wrs << shift) + reserved)
            .next_power_of_two()
            .max(MIN_WRS << shift);

        if depth > MAX_QUANTA {
            return Err(EINVAL);
        }
        Ok(Self {
            depth,
            shift,
            reserved,
        })
    }

    /// Returns the quanta in the ring.
    pub(crate) const fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns the base-2 logarithm of the quanta of a largest work request.
    pub(crate) const fn shift(&self) -> u32 {
        self.shift
    }

    /// Returns how many work requests of the largest shape fit at a time.
    pub(crate) const fn wrs(&self) -> u32 {
        (self.depth - self.reserved) >> self.shift
    }

    /// Returns the size code of the queue pair context: the ring has `4 << code` quanta.
    pub(crate) const fn code(&self) -> u32 {
        // `depth` is at least 8.
        self.depth.ilog2() - 2
    }

    /// Returns the bytes in the ring.
    pub(crate) const fn bytes(&self) -> usize {
        // CAST: widening, and at most 1 MiB.
        self.depth as usize * QUANTUM
    }
}

/// Returns the base-2 logarithm of the quanta that `places` fragments or `inline` bytes need.
const fn shift_for(places: u32, inline: u32) -> u32 {
    if places <= 1 && inline <= 8 {
        0
    } else if places < 4 && inline <= 39 {
        1
    } else if places < 8 && inline <= 101 {
        2
    } else {
        3
    }
}

/// Returns the entries in the ring of a kernel completion queue for `cqe` completions.
///
/// # Errors
///
/// `EINVAL` if `cqe` is zero or more than [`MAX_CQE`].
pub(crate) fn kernel_cq_entries(cqe: u32) -> Result<u32> {
    if cqe == 0 || cqe > MAX_CQE {
        return Err(EINVAL);
    }
    let entries = (cqe + 2) * 2;
    if entries * ENTRY_SIZE == BAD_CQ_BYTES {
        return Ok(entries + 2);
    }
    Ok(entries)
}

/// Returns the entries in the ring of a user completion queue; the library already asks for entries
/// rather than completions.
///
/// # Errors
///
/// `EINVAL` if `entries` is zero or more than the library asks for [`MAX_CQE`] completions.
pub(crate) fn user_cq_entries(entries: u32) -> Result<u32> {
    if entries == 0 || entries > MAX_USER_CQ_ENTRIES {
        return Err(EINVAL);
    }
    Ok(entries.max(MIN_CQ_ENTRIES))
}

#[kernel::macros::kunit_tests(irdma_rs_geometry)]
mod tests {
    use super::*;

    fn caps(wr: u32, sge: u32, inline_data: u32) -> Capabilities {
        Capabilities {
            send_wr: wr,
            recv_wr: wr,
            send_sge: sge,
            recv_sge: sge,
            inline_data,
        }
    }

    #[test]
    fn sizes_send_queues() -> Result {
        // Work requests, fragments, inline bytes: depth and shift.
        for (wr, sge, inline, depth, shift) in [
            (0, 0, 0, 512, 0),
            (254, 0, 8, 512, 0),
            (255, 0, 8, 1024, 0),
            (128, 2, 0, 1024, 1),
            (1, 3, 0, 512, 2),
            (1, 1, 40, 512, 2),
            (1, 7, 0, 512, 3),
            (MAX_WRS, 13, 101, 32768, 3),
        ] {
            let queue = WorkQueue::send(&caps(wr, sge, inline))?;
            assert_eq!((queue.depth(), queue.shift()), (depth, shift));
            assert!(queue.wrs() >= wr);
            assert_eq!(4 << queue.code(), depth);
        }
        Ok(())
    }

    #[test]
    fn sizes_receive_queues() -> Result {
        for (wr, sge, depth, shift) in [
            (0, 0, 8, 0),
            (7, 1, 8, 0),
            (8, 1, 16, 0),
            (512, 1, 1024, 0),
            (511, 1, 512, 0),
            (1, 2, 16, 1),
            (1, 13, 64, 3),
            (MAX_WRS, 13, 32768, 3),
        ] {
            let queue = WorkQueue::recv(&caps(wr, sge, 0))?;
            assert_eq!((queue.depth(), queue.shift()), (depth, shift));
            assert!(queue.wrs() >= wr);
        }
        Ok(())
    }

    #[test]
    fn refuses_one_more_than_reported() {
        for over in [
            caps(MAX_WRS + 1, 1, 0),
            caps(1, MAX_SGE + 1, 0),
            caps(u32::MAX, u32::MAX, u32::MAX),
        ] {
            assert_eq!(WorkQueue::send(&over), Err(EINVAL));
            assert_eq!(WorkQueue::recv(&over), Err(EINVAL));
        }
        assert_eq!(WorkQueue::send(&caps(1, 1, MAX_INLINE + 1)), Err(EINVAL));
    }

    #[test]
    fn sizes_completion_queues() -> Result {
        assert_eq!(kernel_cq_entries(1)?, 6);
        // 128 entries would be 4096 bytes.
        assert_eq!(kernel_cq_entries(61)?, 126);
        assert_eq!(kernel_cq_entries(62)?, 130);
        assert!(kernel_cq_entries(MAX_CQE)? <= MAX_CQ_ENTRIES);
        assert_eq!(kernel_cq_entries(MAX_CQE + 1), Err(EINVAL));
        assert_eq!(kernel_cq_entries(0), Err(EINVAL));
        assert_eq!(user_cq_entries(2)?, 4);
        assert_eq!(user_cq_entries((MAX_CQE + 1) * 2)?, (MAX_CQE + 1) * 2);
        assert_eq!(user_cq_entries((MAX_CQE + 2) * 2), Err(EINVAL));
        assert_eq!(user_cq_entries(0), Err(EINVAL));
        Ok(())
    }
}
