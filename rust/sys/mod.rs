// SPDX-License-Identifier: GPL-2.0

//! What drivers and consumers need of the kernel beyond RDMA and the `kernel` crate lacks.

pub mod completion;
pub mod cpu;
pub mod debugfs;
pub mod irq;
pub mod param;
pub mod ratelimit;
pub mod trace;
pub mod workqueue;
