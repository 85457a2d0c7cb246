// SPDX-License-Identifier: GPL-2.0

//! Net devices, seen from an RDMA driver that shares a port with one.

use core::{
    net::IpAddr,
    ptr::NonNull, //
};
use kernel::{
    container_of,
    prelude::*,
    sync::{
        aref::AlwaysRefCounted,
        rcu, //
    },
    types::Opaque, //
};

use crate::bindings;

/// An Ethernet address, octets in wire order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(transparent)]
pub struct MacAddress([u8; 6]);

impl MacAddress {
    /// The address with these octets.
    pub const fn new(octets: [u8; 6]) -> Self {
        Self(octets)
    }

    /// The octets in wire order.
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// The modified EUI-64 of the address: `ff:fe` in the middle, universal bit inverted.
    pub const fn eui64(self) -> [u8; 8] {
        let [a, b, c, d, e, f] = self.0;

        [a ^ 2, b, c, 0xff, 0xfe, d, e, f]
    }
}

impl core::fmt::Display for MacAddress {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [a, b, c, d, e, f] = self.0;

        write!(out, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

/// A net device, counted.
///
/// # Invariants
///
/// Wraps a valid `struct net_device` that somebody holds a count of.
#[repr(transparent)]
pub struct NetDevice(Opaque<bindings::net_device>);

impl NetDevice {
    /// # Safety
    ///
    /// `ptr` is a net device whose count somebody holds during `'a`, or that cannot go away for
    /// another reason.
    pub(crate) unsafe fn from_raw<'a>(ptr: *mut bindings::net_device) -> &'a Self {
        // SAFETY: The type is transparent; validity by this function's contract.
        unsafe { &*ptr.cast::<Self>() }
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::net_device {
        self.0.get()
    }

    /// Whether both are the same device.
    pub fn is(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }

    /// The MTU in octets. Any context; may change at any time.
    pub fn mtu(&self) -> u32 {
        // SAFETY: Valid by the type invariant; a racing change is what the C side reads too.
        unsafe { (&raw const (*self.as_raw()).mtu).read_volatile() }
    }

    /// The unicast MAC address. Any context; may change under RTNL.
    pub fn mac(&self) -> MacAddress {
        let mut octets = [0u8; 6];

        // SAFETY: A valid device, and room for an Ethernet address.
        unsafe { bindings::rdma_rs_netdev_mac(self.as_raw(), octets.as_mut_ptr()) };

        MacAddress::new(octets)
    }

    /// Whether the device is up and has a carrier. Any context.
    pub fn is_link_up(&self) -> bool {
        // SAFETY: Valid by the type invariant.
        unsafe { bindings::rdma_rs_netdev_link_up(self.as_raw()) }
    }

    /// The VLAN id, if the device is a VLAN on another one. Any context.
    pub fn vlan_id(&self) -> Option<u16> {
        // SAFETY: Valid by the type invariant.
        let vlan = unsafe { bindings::rdma_rs_vlan_dev_vlan_id(self.as_raw()) };

        (vlan < 4096).then_some(vlan)
    }

    /// Whether the device is `lower`, or a VLAN on it. Any context.
    pub fn is_on(&self, lower: &Self) -> bool {
        // SAFETY: Valid by the type invariant. The result is compared, never followed.
        let real = unsafe { bindings::rdma_rs_vlan_dev_real_dev(self.as_raw()) };

        self.is(lower) || real == lower.as_raw()
    }

    /// The tag that frames of the device bear on the wire, as far as one 802.1Q tag can say it: `None`
    /// for a device that is no VLAN or VLAN 0, and for stacked and provider VLANs. Any context.
    pub fn vlan_tag(&self) -> Option<u16> {
        // SAFETY: Valid by the type invariant.
        let tag = unsafe { bindings::rdma_rs_vlan_tag(self.as_raw()) };

        (1..4096).contains(&tag).then_some(tag)
    }

    /// Whether the device is in the network namespace of the calling process. Process context.
    pub fn is_in_callers_namespace(&self) -> bool {
        // SAFETY: Valid by the type invariant.
        unsafe { bindings::rdma_rs_netdev_in_callers_net(self.as_raw()) }
    }

    /// Whether the IP stack is a member of the group `group` on the device: somebody has joined it,
    /// from whatever sources. It may be left at any time. Any context.
    pub fn has_joined(&self, group: IpAddr) -> bool {
        let _rcu = rcu::read_lock();

        match group {
            // SAFETY: A valid device in an RCU read section, and four octets.
            IpAddr::V4(group) => unsafe {
                bindings::rdma_rs_netdev_in_group4(self.as_raw(), group.octets().as_ptr())
            },
            // SAFETY: A valid device in an RCU read section, and sixteen octets.
            IpAddr::V6(group) => unsafe {
                bindings::rdma_rs_netdev_in_group6(self.as_raw(), group.octets().as_ptr())
            },
        }
    }

    /// Calls `f` with the device and every device above it, such as VLANs on it, in all network
    /// namespaces and some perhaps twice, in an RCU read section: `f` must not sleep. Any context.
    pub fn for_each_above<F: FnMut(&NetDevice)>(&self, mut f: F) {
        let _rcu = rcu::read_lock();

        f(self);
        let mut private = bindings::netdev_nested_priv {
            data: (&raw mut f).cast(),
            ..pin_init::zeroed()
        };
        // SAFETY: A valid device in an RCU read section; the callback gets the closure it expects,
        // and never ends the walk, so there is no result.
        unsafe {
            bindings::netdev_walk_all_upper_dev_rcu(
                self.as_raw().cast(),
                Some(Self::visit::<F>),
                &mut private,
            )
        };
    }

    /// # Safety
    ///
    /// `device` is valid during the call, and `data` of `private` points to an `F` that nobody else
    /// uses.
    unsafe extern "C" fn visit<F: FnMut(&NetDevice)>(
        device: *mut bindings::net_device,
        private: *mut bindings::netdev_nested_priv,
    ) -> c_int {
        // SAFETY: By this function's contract.
        let f = unsafe { &mut *(*private).data.cast::<F>() };

        // SAFETY: By this function's contract.
        f(unsafe { Self::from_raw(device) });
        0
    }

    /// Calls `f` with every address of the device, IPv4 then IPv6, in an RCU read section: `f`
    /// must not sleep. Any context.
    pub fn for_each_ip(&self, mut f: impl FnMut(IpAddr)) {
        let _rcu = rcu::read_lock();

        // SAFETY: A valid device in an RCU read section.
        let mut ifa = unsafe { bindings::rdma_rs_in_dev_first(self.as_raw()) };
        while !ifa.is_null() {
            // SAFETY: Addresses on the list are freed a grace period after they leave it. The link
            // may change meanwhile.
            let (next, local) = unsafe {
                (
                    (&raw const (*ifa).ifa_next).read_volatile(),
                    (*ifa).ifa_local,
                )
            };

            f(IpAddr::from(local.to_ne_bytes()));
            ifa = next;
        }

        // SAFETY: A valid device in an RCU read section.
        let Some(idev) = NonNull::new(unsafe { bindings::rdma_rs_in6_dev_get(self.as_raw()) })
        else {
            return;
        };

        // SAFETY: `idev` is freed a grace period after it left the device.
        let head = unsafe { &raw mut (*idev.as_ptr()).addr_list };
        // SAFETY: The head of an RCU list is valid as long as its owner. The link may change
        // meanwhile.
        let mut node = unsafe { (&raw const (*head).next).read_volatile() };
        while node != head {
            // SAFETY: Entries of `addr_list` are embedded in an `inet6_ifaddr`.
            let ifp = unsafe { container_of!(node, bindings::inet6_ifaddr, if_list) };
            // SAFETY: Freed a grace period after it left the list.
            let octets = unsafe { (*ifp).addr.in6_u.u6_addr8 };

            f(IpAddr::from(octets));
            // SAFETY: As above.
            node = unsafe { (&raw const (*node).next).read_volatile() };
        }
    }
}

// SAFETY: The two functions count the references of a net device.
unsafe impl AlwaysRefCounted for NetDevice {
    fn inc_ref(&self) {
        // SAFETY: Valid and held, by the type invariant.
        unsafe { bindings::rdma_rs_dev_hold(self.as_raw()) };
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller hands over one count.
        unsafe { bindings::rdma_rs_dev_put(obj.cast().as_ptr()) };
    }
}

// SAFETY: A net device may be used and released on any CPU.
unsafe impl Send for NetDevice {}

// SAFETY: The methods read fields that the C side reads without a lock too.
unsafe impl Sync for NetDevice {}

#[kunit_tests(rdma_net_device)]
mod tests {
    use super::*;

    #[test]
    fn eui64_inverts_the_universal_bit() {
        let mac = MacAddress::new([0x02, 0xe8, 0x10, 0, 0, 1]);

        assert_eq!(mac.eui64(), [0x00, 0xe8, 0x10, 0xff, 0xfe, 0, 0, 1]);
    }
}
