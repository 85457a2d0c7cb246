// SPDX-License-Identifier: GPL-2.0

//! What drivers need of the kernel beyond RDMA and the `kernel` crate lacks.

pub mod completion;
pub mod cpu;
pub mod irq;
pub mod workqueue;
