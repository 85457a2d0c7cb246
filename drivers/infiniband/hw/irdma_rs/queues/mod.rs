// SPDX-License-Identifier: GPL-2.0

//! Send, receive and completion queues.
//!
//! - `geometry`: how large rings are;
//! - `wqe`, `cqe`: the words of their entries;
//! - `qpctx`: what the device is told of a queue pair;
//! - `memory`: ring memory as words;
//! - `sq`, `rq`, `cq`: the rings of queue pairs and completion queues of the kernel;
//! - `flush`: why a queue was flushed, and completions made in software.
//!
//! The rings of user queues are the business of the user library; of these the driver knows sizes and
//! addresses only.
//!
//! Words of the trade: *WQE*, work queue entry; *CQE*, completion queue entry; *SQ*, *RQ*, *CQ*, the
//! queues; *quantum*, 32 bytes, the unit of work queues; *polarity*, the value of the valid bit that
//! means "new" in this pass over the ring; *doorbell*, the register write that tells of new entries;
//! *shadow area*, where the consumer of a CQ tells the device how far it is.

pub(crate) mod cq;
pub(crate) mod cqe;
pub(crate) mod flush;
pub(crate) mod geometry;
pub(crate) mod memory;
pub(crate) mod qpctx;
pub(crate) mod rq;
pub(crate) mod sq;
#[cfg(CONFIG_KUNIT = "y")]
mod tests;
pub(crate) mod wqe;
