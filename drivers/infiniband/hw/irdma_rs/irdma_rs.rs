// SPDX-License-Identifier: GPL-2.0
//! RDMA driver for Intel E810.
use kernel::prelude::*;
module! {
    type: IrdmaModule,
    name: "irdma_rs",
    authors: ["The irdma_rs authors"],
    description: "RDMA driver for Intel E810",
    license: "GPL",
}
struct IrdmaModule;
impl kernel::Module for IrdmaModule {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}
