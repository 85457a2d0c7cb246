// SPDX-License-Identifier: GPL-2.0

//! Queue sets: leaves of the LAN driver's transmit scheduler.

use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

use super::function::Function;
use crate::bindings;

/// A queue set. Dropping it removes it from the scheduler. May sleep.
pub struct Qset {
    function: Arc<Function>,
    params: bindings::iidc_rdma_qset_params,
}

impl Qset {
    /// Adds a queue set with the number `handle` to traffic class `tc`. Process context.
    ///
    /// # Errors
    ///
    /// `ENODEV` once the device is unbound, and those of the LAN driver.
    pub fn add(function: Arc<Function>, handle: u16, tc: u8) -> Result<Self> {
        let live = function.access()?;
        let mut params = bindings::iidc_rdma_qset_params {
            teid: 0,
            qs_handle: handle,
            vport_id: live.vport_id(),
            tc,
        };

        // SAFETY: Valid while live; the parameters are read and the node's number is written.
        to_result(unsafe { bindings::ice_add_rdma_qset(live.cdev(), &mut params) })?;
        drop(live);

        Ok(Self { function, params })
    }

    /// The scheduler's number of the node.
    pub fn teid(&self) -> u32 {
        self.params.teid
    }

    /// The number given to [`Qset::add`].
    pub fn handle(&self) -> u16 {
        self.params.qs_handle
    }
}

impl Drop for Qset {
    fn drop(&mut self) {
        let Ok(live) = self.function.access() else {
            // The LAN driver has taken its scheduler down.
            return;
        };

        // SAFETY: Valid while live; the parameters of a set that was added.
        let code = unsafe { bindings::ice_del_rdma_qset(live.cdev(), &mut self.params) };
        if let Err(error) = to_result(code) {
            pr_warn!(
                "queue set {} (node {:#x}): cannot remove it: {}\n",
                self.params.qs_handle,
                self.params.teid,
                error.to_errno()
            );
        }
    }
}
