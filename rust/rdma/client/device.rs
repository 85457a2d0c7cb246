// SPDX-License-Identifier: GPL-2.0

//! A device as a consumer sees it.

use core::ptr::NonNull;
use kernel::{
    device,
    error::{
        from_err_ptr,
        to_result, //
    },
    fmt,
    prelude::*,
    sync::aref::{
        ARef,
        AlwaysRefCounted, //
    },
    types::Opaque, //
};

use crate::{
    bindings,
    device::{
        Mtu,
        PortNum, //
    },
    gid::{
        GidAttr,
        GidAttrRef, //
    },
    net::NetDevice, //
};

/// A registered RDMA device, counted. As long as somebody holds it, it stays registered.
///
/// # Invariants
///
/// Wraps a valid `struct ib_device` that somebody holds a registration count of.
#[repr(transparent)]
pub struct Device(Opaque<bindings::ib_device>);

impl Device {
    /// # Safety
    ///
    /// Somebody holds a registration count of `ptr` during `'a`.
    pub(crate) unsafe fn from_raw<'a>(ptr: *mut bindings::ib_device) -> &'a Self {
        // SAFETY: The type is transparent; validity by this function's contract.
        unsafe { &*ptr.cast::<Self>() }
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::ib_device {
        self.0.get()
    }

    /// Whether both are the same device.
    pub fn is(&self, other: &Self) -> bool {
        ptr_eq(self, other)
    }

    /// The name at present; a device can be renamed.
    pub fn name(&self) -> DeviceName {
        // SAFETY: Valid by the type invariant. The core may write a new name meanwhile: octets,
        // of which the last is never touched.
        let octets = unsafe { (&raw const (*self.as_raw()).name).read_volatile() };

        DeviceName::new(octets)
    }

    /// How many ports there are; they are numbered from 1.
    pub fn ports(&self) -> u32 {
        // SAFETY: Valid by the type invariant; constant.
        unsafe { (*self.as_raw()).phys_port_cnt }
    }

    /// How many multicast groups the device takes; 0 if it has no multicast.
    pub fn max_mcast_groups(&self) -> u32 {
        // SAFETY: Valid by the type invariant; constant while registered.
        unsafe { (*self.as_raw()).attrs.max_mcast_grp }
    }

    /// What the port is doing now. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a port that is not there, `EIO` for an MTU that is none; those of the driver.
    pub fn port(&self, port: PortNum) -> Result<PortStatus> {
        let mut attr: bindings::ib_port_attr = pin_init::zeroed();

        // SAFETY: A valid device, and room for the result.
        to_result(unsafe { bindings::ib_query_port(self.as_raw(), port.get(), &mut attr) })?;

        Ok(PortStatus {
            active: attr.state == bindings::ib_port_state_IB_PORT_ACTIVE,
            max_mtu: Mtu::from_raw(attr.max_mtu).ok_or(EIO)?,
            active_mtu: Mtu::from_raw(attr.active_mtu).ok_or(EIO)?,
            gids: u16::try_from(attr.gid_tbl_len).map_err(|_| EIO)?,
        })
    }

    /// An entry of the port's GID table. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a port or an index that is not there, `ENODATA` for an empty entry.
    pub fn gid(&self, port: PortNum, index: u16) -> Result<GidAttrRef> {
        // SAFETY: A valid device; the core checks the other two.
        let raw = unsafe { bindings::rdma_get_gid_attr(self.as_raw(), port.get(), index.into()) };
        let raw = NonNull::new(from_err_ptr(raw.cast_mut())?).ok_or(EINVAL)?;

        // SAFETY: The core gave us a count; `GidAttr` is transparent.
        Ok(unsafe { ARef::from_raw(raw.cast::<GidAttr>()) })
    }

    /// The net device of the port, if it has one. Process context.
    pub fn netdev(&self, port: PortNum) -> Option<ARef<NetDevice>> {
        // SAFETY: A valid device; the core checks the port.
        let raw = unsafe { bindings::ib_device_get_netdev(self.as_raw(), port.get()) };

        // SAFETY: The core gave us a count; `NetDevice` is transparent.
        NonNull::new(raw.cast::<NetDevice>()).map(|raw| unsafe { ARef::from_raw(raw) })
    }
}

fn ptr_eq(a: &Device, b: &Device) -> bool {
    core::ptr::eq(a, b)
}

// SAFETY: The two functions count the holders of the registration.
unsafe impl AlwaysRefCounted for Device {
    fn inc_ref(&self) {
        // SAFETY: Valid by the type invariant. As somebody holds a count, this takes another one.
        unsafe { bindings::rdma_rs_device_get(self.as_raw()) };
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller hands over one count.
        unsafe { bindings::ib_device_put(obj.cast().as_ptr()) };
    }
}

// SAFETY: A device may be used and released on any CPU.
unsafe impl Send for Device {}

// SAFETY: The methods call functions that synchronise, or read what does not change.
unsafe impl Sync for Device {}

impl AsRef<device::Device> for Device {
    fn as_ref(&self) -> &device::Device {
        // SAFETY: A registered device has its embedded device initialised.
        unsafe { device::Device::from_raw(crate::device::ibdev_device(self.as_raw())) }
    }
}

/// The name of a device.
#[derive(Clone, Copy)]
pub struct DeviceName([u8; 64]);

impl DeviceName {
    fn new(mut octets: [u8; 64]) -> Self {
        // Whatever the core writes meanwhile, there is an end.
        if let Some(last) = octets.last_mut() {
            *last = 0;
        }
        Self(octets)
    }

    /// The name as a C string.
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or(c"")
    }

    /// The name as octets, without the NUL.
    pub fn as_bytes(&self) -> &[u8] {
        self.as_c_str().to_bytes()
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for octet in self.as_bytes() {
            fmt::Write::write_char(out, char::from(*octet))?;
        }
        Ok(())
    }
}

/// What a port is doing.
#[derive(Clone, Copy, Debug)]
pub struct PortStatus {
    /// Ready for traffic.
    pub active: bool,
    /// The largest MTU the port could have.
    pub max_mtu: Mtu,
    /// The MTU it has.
    pub active_mtu: Mtu,
    /// Entries of the GID table, empty ones included.
    pub gids: u16,
}

#[kunit_tests(rdma_client_device)]
mod tests {
    use super::*;

    #[test]
    fn names_end_somewhere() {
        let mut octets = [0u8; 64];
        octets[..4].copy_from_slice(b"rxe0");
        assert_eq!(DeviceName::new(octets).as_bytes(), b"rxe0");

        assert_eq!(DeviceName::new([b'x'; 64]).as_bytes(), [b'x'; 63]);
        assert_eq!(DeviceName::new([0; 64]).as_bytes(), b"");
    }
}
