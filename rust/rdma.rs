// SPDX-License-Identifier: GPL-2.0
//! RDMA for Rust in the kernel.
use kernel::prelude::*;
#[path = "bindings/mod.rs"]
mod bindings;
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
        Ok(Self)
    }
}
