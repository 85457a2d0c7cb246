// SPDX-License-Identifier: GPL-2.0

//! The boundary to the LAN driver, `ice`.
//!
//! `ice` owns the PCI function and lends its RDMA side through an auxiliary device. Everything of the
//! card that this driver touches, it touches through [`Port`].

mod port;

pub(crate) use port::Port;
