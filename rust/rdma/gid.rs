// SPDX-License-Identifier: GPL-2.0

//! Global identifiers and the entries of the GID table.

use core::{
    net::{
        IpAddr,
        Ipv6Addr, //
    },
    ptr::NonNull, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::aref::{
        ARef,
        AlwaysRefCounted, //
    },
    types::Opaque, //
};

use crate::{
    bindings,
    device::PortNum,
    net::MacAddress, //
};

/// A GID: 16 octets in wire order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(transparent)]
pub struct Gid([u8; 16]);

impl Gid {
    /// The GID with these octets.
    pub const fn new(octets: [u8; 16]) -> Self {
        Self(octets)
    }

    /// The octets in wire order.
    pub const fn octets(self) -> [u8; 16] {
        self.0
    }

    /// The address that the GID holds in RoCEv2: IPv4 if it is v4-mapped, else IPv6.
    pub fn ip(self) -> IpAddr {
        Ipv6Addr::from(self.0).to_canonical()
    }

    pub(crate) fn from_raw(raw: bindings::ib_gid) -> Self {
        // SAFETY: Every member of the union covers the same 16 octets.
        Self(unsafe { raw.raw })
    }

    pub(crate) fn to_raw(self) -> bindings::ib_gid {
        bindings::ib_gid { raw: self.0 }
    }
}

/// A GID that names a multicast group.
///
/// Either an `ff00::/8` address or a v4-mapped address whose IPv4 part is multicast; the latter is
/// the usual RoCEv2 group. The rule is that of the core's `rdma_is_multicast_addr()`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MulticastGid(Gid);

impl MulticastGid {
    /// Checks `gid`; `None` if it is no multicast address.
    pub fn new(gid: Gid) -> Option<Self> {
        gid.ip().is_multicast().then_some(Self(gid))
    }

    /// The plain GID.
    pub const fn gid(self) -> Gid {
        self.0
    }

    /// The group's address: IPv4 if v4-mapped, else IPv6.
    pub fn ip(self) -> IpAddr {
        self.0.ip()
    }
}

/// The kind of an entry of the GID table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GidKind {
    /// InfiniBand.
    Ib,
    /// RoCE version 1, without UDP.
    RoceV1,
    /// RoCE version 2, over UDP.
    RoceV2,
}

/// What Ethernet needs to know of a GID table entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct L2Fields {
    /// Source MAC of the entry's net device.
    pub smac: MacAddress,
    /// VLAN of the entry's net device, if it is one.
    pub vlan: Option<u16>,
}

/// An entry of the core's GID table, counted.
///
/// # Invariants
///
/// Wraps a valid `struct ib_gid_attr` that somebody holds a count of.
#[repr(transparent)]
pub struct GidAttr(Opaque<bindings::ib_gid_attr>);

impl GidAttr {
    /// # Safety
    ///
    /// `ptr` is a GID table entry whose count somebody holds during `'a`.
    pub(crate) unsafe fn from_raw<'a>(ptr: *const bindings::ib_gid_attr) -> &'a Self {
        // SAFETY: The type is transparent; validity by this function's contract.
        unsafe { &*ptr.cast::<Self>() }
    }

    fn as_raw(&self) -> *mut bindings::ib_gid_attr {
        self.0.get()
    }

    /// The GID.
    pub fn gid(&self) -> Gid {
        // SAFETY: Valid by the type invariant; the field does not change while the entry is held.
        Gid::from_raw(unsafe { (*self.as_raw()).gid })
    }

    /// The kind of the entry.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a kind this layer does not know.
    pub fn kind(&self) -> Result<GidKind> {
        // SAFETY: As in `gid`.
        match unsafe { (*self.as_raw()).gid_type } {
            // The C enumeration gives RoCE version 1 a name of its own.
            bindings::ib_gid_type_IB_GID_TYPE_IB => Ok(GidKind::Ib),
            bindings::ib_gid_type_IB_GID_TYPE_ROCE => Ok(GidKind::RoceV1),
            bindings::ib_gid_type_IB_GID_TYPE_ROCE_UDP_ENCAP => Ok(GidKind::RoceV2),
            _ => Err(EINVAL),
        }
    }

    /// Index in the port's GID table.
    pub fn index(&self) -> u16 {
        // SAFETY: As in `gid`.
        unsafe { (*self.as_raw()).index }
    }

    /// The port whose table holds the entry.
    pub fn port(&self) -> PortNum {
        // SAFETY: As in `gid`.
        PortNum::new(unsafe { (*self.as_raw()).port_num })
    }

    /// Source MAC and VLAN of the entry's net device. Any context.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the net device is gone or down.
    pub fn l2_fields(&self) -> Result<L2Fields> {
        let mut smac = [0u8; 6];
        let mut vlan = 0u16;

        // SAFETY: A valid entry, and room for one VLAN id and one MAC.
        to_result(unsafe {
            bindings::rdma_read_gid_l2_fields(self.as_raw(), &mut vlan, smac.as_mut_ptr())
        })?;

        Ok(L2Fields {
            smac: MacAddress::new(smac),
            // The C function leaves 0xffff for an untagged device.
            vlan: (vlan < 4096).then_some(vlan),
        })
    }
}

// SAFETY: The core counts entries with the two functions below.
unsafe impl AlwaysRefCounted for GidAttr {
    fn inc_ref(&self) {
        // SAFETY: Valid and held, by the type invariant.
        unsafe { bindings::rdma_hold_gid_attr(self.as_raw()) };
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller hands over one count.
        unsafe { bindings::rdma_put_gid_attr(obj.cast().as_ptr()) };
    }
}

// SAFETY: Entries may be read and released on any CPU.
unsafe impl Send for GidAttr {}

// SAFETY: An entry does not change while it is held.
unsafe impl Sync for GidAttr {}

/// A counted reference to an entry of the GID table.
pub type GidAttrRef = ARef<GidAttr>;

#[kernel::prelude::kunit_tests(rdma_gid)]
mod tests {
    use super::*;

    fn gid(text: &[u16; 8]) -> Gid {
        Gid::new(Ipv6Addr::from(*text).octets())
    }

    #[test]
    fn multicast_gids_are_v6_or_v4_mapped() {
        for (words, multicast) in [
            // ff0e::1
            ([0xff0e, 0, 0, 0, 0, 0, 0, 1], true),
            // fe80::1
            ([0xfe80, 0, 0, 0, 0, 0, 0, 1], false),
            // ::ffff:224.0.0.0, ::ffff:239.255.255.255
            ([0, 0, 0, 0, 0, 0xffff, 0xe000, 0], true),
            ([0, 0, 0, 0, 0, 0xffff, 0xefff, 0xffff], true),
            // ::ffff:223.255.255.255, ::ffff:240.0.0.0
            ([0, 0, 0, 0, 0, 0xffff, 0xdfff, 0xffff], false),
            ([0, 0, 0, 0, 0, 0xffff, 0xf000, 0], false),
            // The v4-compatible form is not v4-mapped.
            ([0, 0, 0, 0, 0, 0, 0xe000, 1], false),
            ([0; 8], false),
        ] {
            assert_eq!(MulticastGid::new(gid(&words)).is_some(), multicast);
        }
    }

    #[test]
    fn v4_mapped_groups_are_ipv4() {
        let group = MulticastGid::new(gid(&[0, 0, 0, 0, 0, 0xffff, 0xef01, 0x0203]));

        assert_eq!(group.map(|g| g.ip()), Some(IpAddr::from([239u8, 1, 2, 3])));
    }
}
