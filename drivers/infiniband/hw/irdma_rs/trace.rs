// SPDX-License-Identifier: GPL-2.0

//! Trace events: control commands, attaching and detaching.
//!
//! C header: `include/trace/events/irdma_rs.h`, which says what the fields mean. An event that is off
//! costs a jump that is not taken.

use kernel::{
    device::Device,
    prelude::*,
    time::Delta, //
};
use rdma::{
    gid::MulticastGid,
    sys::trace::declare_trace, //
};

use crate::cqp::{
    Failure,
    Op,
    Outcome, //
};

declare_trace! {
    fn irdma_rs_cqp(
        device: &Device,
        op: u8,
        duration_ns: u64,
        error: i32,
        major: u16,
        minor: u16,
        outstanding: u16,
    );
    fn irdma_rs_mcast_attach(
        device: &Device,
        qpn: u32,
        mgid: &[u8; 16],
        vlan: i32,
        index: u16,
        error: i32,
    );
    fn irdma_rs_mcast_detach(
        device: &Device,
        qpn: u32,
        mgid: &[u8; 16],
        vlan: i32,
        index: u16,
        error: i32,
    );
}

/// The errno of a result, negative, or zero.
fn errno(result: Result) -> i32 {
    result.map_or_else(Error::to_errno, |()| 0)
}

/// A control command ended after `duration`, while `outstanding` others have not. Any context.
#[inline]
pub(crate) fn cqp(device: &Device, op: Op, duration: Delta, outcome: Outcome, outstanding: u16) {
    let (error, major, minor) = match outcome {
        Ok(completed) => (0, 0, completed.minor),
        Err(failure) => {
            let error = Error::from(failure).to_errno();
            match failure {
                Failure::Refused(code) => (error, code.major, code.minor),
                Failure::NotSent(_) | Failure::TimedOut => (error, 0, 0),
            }
        }
    };
    let duration = u64::try_from(duration.as_nanos()).unwrap_or(0);

    irdma_rs_cqp(
        device,
        op.code(),
        duration,
        error,
        major,
        minor,
        outstanding,
    );
}

/// The group of an event.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    /// Its address as it was asked for.
    pub(crate) gid: MulticastGid,
    /// Its VLAN in the device.
    pub(crate) vlan: Option<u16>,
    /// Its index in the device, 0 for none.
    pub(crate) index: u16,
}

impl Group {
    fn vlan(&self) -> i32 {
        self.vlan.map_or(-1, i32::from)
    }
}

/// Whether anybody wants to know of attaches.
#[inline(always)]
pub(crate) fn attach_enabled() -> bool {
    irdma_rs_mcast_attach_enabled()
}

/// Whether anybody wants to know of detaches.
#[inline(always)]
pub(crate) fn detach_enabled() -> bool {
    irdma_rs_mcast_detach_enabled()
}

/// A queue pair was attached, or was not.
#[inline]
pub(crate) fn attach(device: &Device, qp: u32, group: &Group, result: Result) {
    let mgid = group.gid.gid().octets();
    irdma_rs_mcast_attach(device, qp, &mgid, group.vlan(), group.index, errno(result));
}

/// A queue pair was detached, or was not.
#[inline]
pub(crate) fn detach(device: &Device, qp: u32, group: &Group, result: Result) {
    let mgid = group.gid.gid().octets();
    irdma_rs_mcast_detach(device, qp, &mgid, group.vlan(), group.index, errno(result));
}
