// SPDX-License-Identifier: GPL-2.0

//! Protection domains: a number that memory, address handles and queue pairs have in common.

use kernel::prelude::*;
use rdma::{
    device::Device,
    pd::PdOps,
    udata::Caller, //
};

use super::{
    abi::AllocPdResp,
    Irdma, //
};
use crate::ids::Id;

/// The driver's part of a protection domain.
pub(crate) struct Pd {
    id: Id,
}

impl Pd {
    /// Returns the number that the device knows the domain by.
    pub(crate) fn number(&self) -> u32 {
        self.id.get()
    }

    fn new(device: &Device<Irdma>, caller: Caller<'_, Irdma>) -> Result<Self> {
        let id = device.data().dev.ids.pds.alloc()?;

        if let Some(udata) = caller.udata() {
            if udata.response_len() < size_of::<AllocPdResp>() {
                return Err(EINVAL);
            }
            udata.request_empty()?;
            udata.respond(&AllocPdResp {
                pd_id: id.get(),
                ..AllocPdResp::default()
            })?;
        }
        Ok(Self { id })
    }
}

impl PdOps<Irdma> for Pd {
    fn alloc<'a>(
        device: &'a Device<Irdma>,
        caller: Caller<'a, Irdma>,
    ) -> impl PinInit<Self, Error> + 'a {
        Self::new(device, caller)
    }
}
