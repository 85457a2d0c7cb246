// SPDX-License-Identifier: GPL-2.0

//! RDMA for Rust in the kernel.
//!
//! The layer between the C RDMA core and drivers or consumers written in Rust. It holds all the
//! `unsafe` code there is: a driver implements [`ops::Operations`] and the traits of the objects
//! in safe Rust.
//!
//! - [`ops`]: the operation table of a device, made from the driver's traits.
//! - [`device`], [`ucontext`], [`pd`], [`cq`], [`qp`], [`mr`], [`ah`]: the objects of verbs, over
//!   [`object`], the memory they share with the core.
//! - [`udata`], [`umem`], [`mmap`]: what comes from processes.
//! - [`wr`]: work requests of kernel consumers; [`event`]: the way back to consumers.
//! - [`client`], [`mcast`]: the other side, for consumers in the kernel.
//! - [`gid`], [`lid`]: addresses, in types that keep byte orders apart.
//! - [`details`]: what `rdma resource show` lists about an object.
//! - [`mod@net`]: net devices and notifiers; [`sys`]: interrupts, completions, workqueues, debugfs, tracepoints.
//! - [`iidc`]: the interface of Intel's LAN drivers.
//! - [`uapi`]: structures of the user ABI; `testing`: what unit tests have in common.
//!
//! The crate is a module of its own, which drivers depend on.

use kernel::prelude::*;

#[path = "bindings/mod.rs"]
mod bindings;
#[path = "bindings/layout.rs"]
mod layout;

#[cfg(CONFIG_KUNIT = "y")]
#[path = "rdma/address_tests.rs"]
mod address_tests;
#[path = "rdma/ah.rs"]
pub mod ah;
#[path = "rdma/client/mod.rs"]
pub mod client;
#[path = "rdma/cq.rs"]
pub mod cq;
#[path = "rdma/details.rs"]
pub mod details;
#[path = "rdma/device.rs"]
pub mod device;
#[path = "rdma/event.rs"]
pub mod event;
#[path = "rdma/gid.rs"]
pub mod gid;
#[path = "rdma/lid.rs"]
pub mod lid;
#[path = "rdma/mcast.rs"]
pub mod mcast;
#[path = "rdma/mmap.rs"]
pub mod mmap;
#[path = "rdma/mr.rs"]
pub mod mr;
#[path = "rdma/object.rs"]
pub mod object;
#[path = "rdma/ops.rs"]
pub mod ops;
#[path = "rdma/pd.rs"]
pub mod pd;
#[path = "rdma/qp.rs"]
pub mod qp;
#[cfg(CONFIG_KUNIT = "y")]
#[path = "rdma/tests.rs"]
mod tests;
#[path = "rdma/ucontext.rs"]
pub mod ucontext;
#[path = "rdma/udata.rs"]
pub mod udata;
#[path = "rdma/umem.rs"]
pub mod umem;
#[path = "rdma/wr.rs"]
pub mod wr;

#[path = "iidc/mod.rs"]
pub mod iidc;
#[path = "net/mod.rs"]
pub mod net;
#[path = "sys/mod.rs"]
pub mod sys;
#[cfg(CONFIG_KUNIT = "y")]
#[path = "testing/mod.rs"]
pub mod testing;

/// Structures of the user ABI, as the C header lays them out.
///
/// For checking a driver's own declarations against: these have neither byte-order nor padding
/// guarantees that Rust could use.
pub mod uapi {
    pub use crate::bindings::{
        irdma_alloc_pd_resp,
        irdma_alloc_ucontext_req,
        irdma_alloc_ucontext_resp,
        irdma_create_ah_resp,
        irdma_create_cq_req,
        irdma_create_cq_resp,
        irdma_create_qp_req,
        irdma_create_qp_resp,
        irdma_mem_reg_req,
        irdma_modify_qp_req,
        irdma_modify_qp_resp,
        irdma_resize_cq_req, //
    };
}

module! {
    type: RdmaModule,
    name: "rdma_rs",
    authors: ["The irdma_rs authors"],
    description: "RDMA abstractions for Rust drivers",
    license: "GPL",
}

struct RdmaModule;

impl kernel::Module for RdmaModule {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        layout::check()?;
        Ok(Self)
    }
}
