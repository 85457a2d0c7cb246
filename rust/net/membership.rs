// SPDX-License-Identifier: GPL-2.0

//! The host's membership in a multicast group.
//!
//! An RDMA device that is attached to a group delivers what reaches its port, and no more. For the
//! group to reach the port, a snooping switch has to see an IGMP or MLD report; and a device in
//! software, behind the IP stack, hears of packets only that the stack takes in. Both follow from
//! the membership of the net device, which this module holds without a socket.

use core::net::IpAddr;
use kernel::{
    bindings::in6_addr,
    error::to_result,
    prelude::*,
    sync::aref::ARef, //
};

use crate::{
    bindings,
    net::NetDevice, //
};

/// The membership of a net device in a group: reports are sent, queries answered and the MAC
/// filter lets the group in. Dropping it leaves the group. May sleep, takes RTNL.
///
/// Memberships in one group add up. Turning IP off and on again on the net device ends all of
/// them. Dropping this one has no effect then, unless somebody has joined the group anew: the
/// kernel counts memberships by address, and takes that one away.
#[must_use = "the net device leaves the group when this is dropped"]
pub struct Membership {
    device: ARef<NetDevice>,
    group: IpAddr,
}

impl Membership {
    /// Makes `device` a member of `group`. Process context, without RTNL held.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `group` is no multicast address, or IPv6 is off on the device.
    /// - `ENODEV`: IPv4 is off on the device.
    /// - `ENOMEM`.
    pub fn join(device: ARef<NetDevice>, group: IpAddr) -> Result<Self> {
        if !group.is_multicast() {
            return Err(EINVAL);
        }

        match group {
            IpAddr::V4(v4) => {
                // SAFETY: A held device, and an address in wire order.
                to_result(unsafe {
                    bindings::rdma_rs_ip_mc_join(device.as_raw(), u32::from_ne_bytes(v4.octets()))
                })?;
            }
            IpAddr::V6(v6) => {
                let address = raw(v6.octets());

                // SAFETY: A held device, and an address that is read during the call.
                to_result(unsafe { bindings::ipv6_dev_mc_inc(device.as_raw().cast(), &address) })?;
            }
        }

        Ok(Self { device, group })
    }

    /// The group.
    pub fn group(&self) -> IpAddr {
        self.group
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        match self.group {
            IpAddr::V4(v4) => {
                // SAFETY: A held device, and an address in wire order.
                unsafe {
                    bindings::rdma_rs_ip_mc_leave(
                        self.device.as_raw(),
                        u32::from_ne_bytes(v4.octets()),
                    );
                }
            }
            IpAddr::V6(v6) => {
                let address = raw(v6.octets());

                // The only failure is that there is nothing to leave.
                // SAFETY: A held device, and an address that is read during the call.
                unsafe { bindings::ipv6_dev_mc_dec(self.device.as_raw().cast(), &address) };
            }
        }
    }
}

fn raw(octets: [u8; 16]) -> in6_addr {
    let mut address: in6_addr = pin_init::zeroed();

    address.in6_u.u6_addr8 = octets;
    address
}
