// SPDX-License-Identifier: GPL-2.0

//! RDMA devices: allocation, registration, attributes.
//!
//! [`UnregisteredDevice`] owns a device nobody can see yet; [`UnregisteredDevice::register`] turns
//! it into a [`Registration`]. Dropping either ends in the core's `dealloc_driver` callback, the
//! only place that drops the driver's data: no verb runs any more by then.

use core::{
    alloc::Layout,
    marker::PhantomData,
    mem::offset_of,
    ptr::NonNull, //
};
use kernel::{
    device,
    error::to_result,
    prelude::*,
    types::{
        NotThreadSafe,
        Opaque, //
    },
};

use crate::{
    bindings,
    event::DeviceEvent,
    net::NetDevice,
    ops::{
        Operations,
        Table, //
    }, //
};

/// A port number, from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortNum(u32);

impl PortNum {
    /// The port with this number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// The driver id in the user ABI, by which user libraries choose their provider.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriverId(pub(crate) bindings::rdma_driver_id);

impl DriverId {
    /// The id of Intel's RDMA drivers.
    pub const IRDMA: Self = Self(bindings::rdma_driver_id_RDMA_DRIVER_IRDMA);
}

/// Capabilities of a device that user space sees.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct DeviceCaps(u64);

impl DeviceCaps {
    /// Memory windows.
    pub const MEM_WINDOW: Self =
        Self(bindings::ib_uverbs_device_cap_flags_IB_UVERBS_DEVICE_MEM_WINDOW as u64);
    /// Memory management extensions.
    pub const MEM_MGT_EXTENSIONS: Self =
        Self(bindings::ib_uverbs_device_cap_flags_IB_UVERBS_DEVICE_MEM_MGT_EXTENSIONS as u64);
    /// RNR NAK generation for RC.
    pub const RC_RNR_NAK_GEN: Self =
        Self(bindings::ib_uverbs_device_cap_flags_IB_UVERBS_DEVICE_RC_RNR_NAK_GEN as u64);

    /// Both.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What a device can do. Every limit can be reached exactly.
#[derive(Clone, Default)]
#[allow(
    missing_docs,
    reason = "the fields are those of `struct ib_device_attr`"
)]
pub struct DeviceAttrs {
    pub fw_ver: u64,
    /// Octets in wire order.
    pub sys_image_guid: [u8; 8],
    pub max_mr_size: u64,
    pub page_size_cap: u64,
    pub vendor_id: u32,
    pub vendor_part_id: u32,
    pub hw_ver: u32,
    pub max_qp: u32,
    pub max_qp_wr: u32,
    pub device_caps: DeviceCaps,
    /// Kernel consumers may use the device's reserved lkey.
    pub local_dma_lkey: bool,
    pub max_send_sge: u32,
    pub max_recv_sge: u32,
    pub max_sge_rd: u32,
    pub max_cq: u32,
    pub max_cqe: u32,
    pub max_mr: u32,
    pub max_mw: u32,
    pub max_pd: u32,
    pub max_qp_rd_atom: u32,
    pub max_qp_init_rd_atom: u32,
    pub max_res_rd_atom: u32,
    pub max_mcast_grp: u32,
    pub max_mcast_qp_attach: u32,
    pub max_total_mcast_qp_attach: u32,
    pub max_ah: u32,
    pub max_srq: u32,
    pub max_srq_wr: u32,
    pub max_srq_sge: u32,
    pub max_fast_reg_page_list_len: u32,
    pub max_pkeys: u16,
    pub local_ca_ack_delay: u8,
}

impl DeviceAttrs {
    pub(crate) fn fill(&self, raw: &mut bindings::ib_device_attr) {
        raw.fw_ver = self.fw_ver;
        raw.sys_image_guid = u64::from_ne_bytes(self.sys_image_guid);
        raw.max_mr_size = self.max_mr_size;
        raw.page_size_cap = self.page_size_cap;
        raw.vendor_id = self.vendor_id;
        raw.vendor_part_id = self.vendor_part_id;
        raw.hw_ver = self.hw_ver;
        raw.max_qp = self.max_qp;
        raw.max_qp_wr = self.max_qp_wr;
        raw.device_cap_flags = self.device_caps.0;
        raw.kernel_cap_flags = if self.local_dma_lkey {
            u64::from(bindings::ib_kernel_cap_flags_IBK_LOCAL_DMA_LKEY)
        } else {
            0
        };
        raw.max_send_sge = self.max_send_sge;
        raw.max_recv_sge = self.max_recv_sge;
        raw.max_sge_rd = self.max_sge_rd;
        raw.max_cq = self.max_cq;
        raw.max_cqe = self.max_cqe;
        raw.max_mr = self.max_mr;
        raw.max_mw = self.max_mw;
        raw.max_pd = self.max_pd;
        raw.max_qp_rd_atom = self.max_qp_rd_atom;
        raw.max_qp_init_rd_atom = self.max_qp_init_rd_atom;
        raw.max_res_rd_atom = self.max_res_rd_atom;
        raw.max_mcast_grp = self.max_mcast_grp;
        raw.max_mcast_qp_attach = self.max_mcast_qp_attach;
        raw.max_total_mcast_qp_attach = self.max_total_mcast_qp_attach;
        raw.max_ah = self.max_ah;
        raw.max_srq = self.max_srq;
        raw.max_srq_wr = self.max_srq_wr;
        raw.max_srq_sge = self.max_srq_sge;
        raw.max_fast_reg_page_list_len = self.max_fast_reg_page_list_len;
        raw.max_pkeys = self.max_pkeys;
        raw.local_ca_ack_delay = self.local_ca_ack_delay;
    }
}

/// A path MTU of InfiniBand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs, reason = "the names are the numbers of octets")]
pub enum Mtu {
    Mtu256,
    Mtu512,
    Mtu1024,
    Mtu2048,
    Mtu4096,
}

/// Octets of all headers and trailers of a RoCE packet behind the Ethernet header: GRH, UDP, BTH, XRC,
/// atomic and ICRC.
const ROCE_HEADERS: u32 = 40 + 8 + 12 + 4 + 28 + 4;

impl Mtu {
    /// The largest MTU of at most `octets`, if any.
    pub fn for_octets(octets: u32) -> Option<Self> {
        Some(match octets {
            4096.. => Self::Mtu4096,
            2048.. => Self::Mtu2048,
            1024.. => Self::Mtu1024,
            512.. => Self::Mtu512,
            256.. => Self::Mtu256,
            _ => return None,
        })
    }

    /// The largest MTU for which there is room in Ethernet frames with `octets` of payload, whatever
    /// headers a packet has, if any. The core's rdma_cm derives the MTU of a path in the same way
    /// (`iboe_get_mtu()`), so a port never promises more than a path.
    pub fn for_ethernet(octets: u32) -> Option<Self> {
        Self::for_octets(octets.saturating_sub(ROCE_HEADERS))
    }

    /// Octets of payload.
    pub const fn octets(self) -> u32 {
        match self {
            Self::Mtu256 => 256,
            Self::Mtu512 => 512,
            Self::Mtu1024 => 1024,
            Self::Mtu2048 => 2048,
            Self::Mtu4096 => 4096,
        }
    }

    pub(crate) fn to_raw(self) -> bindings::ib_mtu {
        match self {
            Self::Mtu256 => bindings::ib_mtu_IB_MTU_256,
            Self::Mtu512 => bindings::ib_mtu_IB_MTU_512,
            Self::Mtu1024 => bindings::ib_mtu_IB_MTU_1024,
            Self::Mtu2048 => bindings::ib_mtu_IB_MTU_2048,
            Self::Mtu4096 => bindings::ib_mtu_IB_MTU_4096,
        }
    }

    pub(crate) fn from_raw(raw: bindings::ib_mtu) -> Option<Self> {
        Some(match raw {
            bindings::ib_mtu_IB_MTU_256 => Self::Mtu256,
            bindings::ib_mtu_IB_MTU_512 => Self::Mtu512,
            bindings::ib_mtu_IB_MTU_1024 => Self::Mtu1024,
            bindings::ib_mtu_IB_MTU_2048 => Self::Mtu2048,
            bindings::ib_mtu_IB_MTU_4096 => Self::Mtu4096,
            _ => return None,
        })
    }
}

/// What a port is doing, on Ethernet.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields are those of `struct ib_port_attr`")]
pub struct PortAttrs {
    /// Up with a carrier.
    pub active: bool,
    pub max_mtu: Mtu,
    pub active_mtu: Mtu,
    pub gid_tbl_len: u16,
    pub pkey_tbl_len: u16,
    /// CM_SUP and REINIT_SUP among others, as in PortInfo.
    pub port_cap_flags: PortCaps,
    pub max_msg_sz: u32,
    pub lid: u16,
    /// Speed and width as the core codes them, from [`Device::eth_speed`].
    pub speed: EthSpeed,
}

/// Capabilities of a port.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct PortCaps(u32);

impl PortCaps {
    /// Communication management.
    pub const CM_SUP: Self = Self(bindings::ib_port_capability_mask_bits_IB_PORT_CM_SUP);
    /// Reinitialisation.
    pub const REINIT_SUP: Self = Self(bindings::ib_port_capability_mask_bits_IB_PORT_REINIT_SUP);

    /// Both.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Speed and width of an Ethernet port in the terms of InfiniBand.
#[derive(Clone, Copy, Debug)]
pub struct EthSpeed {
    speed: u16,
    width: u8,
}

impl EthSpeed {
    /// The slowest there is, for a port whose net device does not say.
    pub const UNKNOWN: Self = Self {
        // CAST: Values of the C enumerations, below 256.
        speed: bindings::ib_port_speed_IB_SPEED_SDR as u16,
        // CAST: As above.
        width: bindings::ib_port_width_IB_WIDTH_1X as u8,
    };
}

impl PortAttrs {
    pub(crate) fn fill(&self, raw: &mut bindings::ib_port_attr) {
        let (state, phys_state) = if self.active {
            (
                bindings::ib_port_state_IB_PORT_ACTIVE,
                bindings::ib_port_phys_state_IB_PORT_PHYS_STATE_LINK_UP,
            )
        } else {
            (
                bindings::ib_port_state_IB_PORT_DOWN,
                bindings::ib_port_phys_state_IB_PORT_PHYS_STATE_DISABLED,
            )
        };

        raw.state = state;
        // CAST: A value of the C enumeration, below 8.
        raw.phys_state = phys_state as u8;
        raw.max_mtu = self.max_mtu.to_raw();
        raw.active_mtu = self.active_mtu.to_raw();
        raw.gid_tbl_len = i32::from(self.gid_tbl_len);
        raw.set_ip_gids(1);
        raw.port_cap_flags = self.port_cap_flags.0;
        raw.max_msg_sz = self.max_msg_sz;
        raw.pkey_tbl_len = self.pkey_tbl_len;
        raw.lid = u32::from(self.lid);
        raw.active_speed = self.speed.speed;
        raw.active_width = self.speed.width;
    }
}

/// What never changes about a RoCEv2 port.
#[derive(Clone, Copy, Debug)]
pub struct PortImmutable {
    /// Entries of the P_Key table.
    pub pkey_tbl_len: u16,
    /// Entries of the GID table.
    pub gid_tbl_len: u16,
    /// Largest MAD in octets.
    pub max_mad_size: u32,
}

/// What the core has to know of a device when it is registered.
pub struct DeviceInfo<'a> {
    /// Device name with a `%d` for the number.
    pub name: &'static CStr,
    /// Number of ports; port 1 is the one of `netdev`.
    pub ports: u32,
    /// Number of completion vectors.
    pub comp_vectors: u32,
    /// Node GUID, octets in wire order.
    pub node_guid: [u8; 8],
    /// The reserved lkey, if [`DeviceAttrs::local_dma_lkey`] says there is one.
    pub local_dma_lkey: u32,
    /// The net device of port 1.
    pub netdev: &'a NetDevice,
}

/// An RDMA device with the driver's data.
///
/// # Invariants
///
/// `ibdev` is a device that `_ib_alloc_device()` initialised, `data` is initialised.
#[repr(C)]
pub struct Device<D: Operations> {
    ibdev: Opaque<bindings::ib_device>,
    data: D::Data,
}

impl<D: Operations> Device<D> {
    /// # Safety
    ///
    /// `ptr` is the start of a `Device<D>` that is not deallocated during `'a`.
    pub(crate) unsafe fn from_raw<'a>(ptr: *mut bindings::ib_device) -> &'a Self {
        // SAFETY: `ibdev` is at offset 0, asserted in `UnregisteredDevice::new`.
        unsafe { &*ptr.cast::<Self>() }
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::ib_device {
        self.ibdev.get()
    }

    /// The driver's data.
    pub fn data(&self) -> &D::Data {
        &self.data
    }

    /// The device to use for DMA. `None` before the device is registered.
    pub fn dma_device(&self) -> Option<&device::Device<device::Bound>> {
        // SAFETY: Valid by the type invariant; set once, before any verb can run.
        let dma = NonNull::new(unsafe { (*self.as_raw()).dma_device })?;

        // SAFETY: `register` took a bound device for the time of the registration; verbs run
        // only within it.
        Some(unsafe { device::Device::from_raw(dma.as_ptr()) })
    }

    /// Speed and width of an Ethernet port from its net device. Process context.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the port has no net device.
    pub fn eth_speed(&self, port: PortNum) -> Result<EthSpeed> {
        let mut speed = 0u16;
        let mut width = 0u8;

        // SAFETY: A valid device, and room for both results.
        to_result(unsafe {
            bindings::ib_get_eth_speed(self.as_raw(), port.get(), &mut speed, &mut width)
        })?;

        Ok(EthSpeed { speed, width })
    }

    /// Announces `event` to the device's consumers. Any context; delivered later.
    pub fn dispatch(&self, event: DeviceEvent) {
        let event = event.to_raw(self.as_raw());

        // SAFETY: A valid event, which the core copies.
        unsafe { bindings::ib_dispatch_event(&event) };
    }
}

/// The device that stands for `ibdev` in the driver model.
pub(crate) fn ibdev_device(ibdev: *mut bindings::ib_device) -> *mut kernel::bindings::device {
    // SAFETY: Takes an address and reads nothing; every caller has a valid device.
    unsafe { (&raw mut (*ibdev).__bindgen_anon_1.dev).cast() }
}

impl<D: Operations> AsRef<device::Device> for Device<D> {
    fn as_ref(&self) -> &device::Device {
        // SAFETY: The embedded device is initialised by `_ib_alloc_device()`.
        unsafe { device::Device::from_raw(ibdev_device(self.as_raw())) }
    }
}

/// A device that is not registered yet. Dropping it deallocates it.
///
/// # Invariants
///
/// Owns the device.
pub struct UnregisteredDevice<D: Operations>(NonNull<Device<D>>, NotThreadSafe);

impl<D: Operations> UnregisteredDevice<D> {
    /// Allocates a device with the driver's `data`. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and those of `data`.
    pub fn new(data: impl PinInit<D::Data, Error>) -> Result<Self> {
        const_assert!(offset_of!(Device<D>, ibdev) == 0);

        let size = Layout::new::<Device<D>>().pad_to_align().size();
        // SAFETY: The size covers the C structure; the initial net namespace never goes away.
        let raw = unsafe { bindings::_ib_alloc_device(size, bindings::rdma_rs_init_net()) };
        let this = NonNull::new(raw.cast::<Device<D>>()).ok_or(ENOMEM)?;

        // SAFETY: The allocation covers `data`.
        let slot = unsafe { &raw mut (*this.as_ptr()).data };
        // SAFETY: `slot` is uninitialised, and stays in place until `dealloc_driver`.
        if let Err(error) = unsafe { pin_init::raw_try_init(slot, data) } {
            // SAFETY: Ours alone; without operations this frees the memory and no more.
            unsafe { bindings::ib_dealloc_device(raw) };
            return Err(error);
        }

        // SAFETY: The table is static. From here on deallocation drops `data`.
        unsafe { bindings::ib_set_device_ops(raw, &Table::<D>::OPS) };

        // INVARIANT: Nobody else has the pointer.
        Ok(Self(this, NotThreadSafe))
    }

    /// The device.
    pub fn device(&self) -> &Device<D> {
        // SAFETY: Owned and initialised.
        unsafe { self.0.as_ref() }
    }

    /// Makes the device known to the RDMA core and so to everybody. Process context.
    ///
    /// Verbs may run before this returns.
    ///
    /// # Errors
    ///
    /// Those of the core, with the device given back.
    ///
    /// # Safety
    ///
    /// The registration must not be forgotten: it has to be dropped before `dma` is unbound.
    pub unsafe fn register<'bound>(
        self,
        dma: &'bound device::Device<device::Bound>,
        info: DeviceInfo<'_>,
    ) -> Result<Registration<'bound, D>, (Error, Self)> {
        let raw = self.device().as_raw();
        let dma = core::ptr::from_ref(dma)
            .cast::<kernel::bindings::device>()
            .cast_mut();

        let registered = (|| {
            let vectors = c_int::try_from(info.comp_vectors).map_err(|_| EINVAL)?;

            // SAFETY: Ours alone until it is registered.
            unsafe {
                (*ibdev_device(raw)).parent = dma;
                // CAST: 1.
                (*raw).node_type = bindings::RDMA_NODE_IB_CA as u8;
                (*raw).phys_port_cnt = info.ports;
                (*raw).num_comp_vectors = vectors;
                (*raw).node_guid = u64::from_ne_bytes(info.node_guid);
                (*raw).local_dma_lkey = info.local_dma_lkey;
            }

            // SAFETY: A net device held by the caller; the core takes its own count.
            to_result(unsafe { bindings::ib_device_set_netdev(raw, info.netdev.as_raw(), 1) })?;

            // SAFETY: A bound device with DMA parameters, as PCI devices have them.
            unsafe { bindings::rdma_rs_dma_set_max_seg_size(dma, u32::MAX) };

            // SAFETY: Prepared, and not registered yet.
            to_result(unsafe { bindings::ib_register_device(raw, info.name.as_char_ptr(), dma) })
        })();

        if let Err(error) = registered {
            return Err((error, self));
        }

        let this = self.0;
        core::mem::forget(self);

        // INVARIANT: Registered just now, taken over from `self`.
        Ok(Registration(this, PhantomData))
    }
}

impl<D: Operations> Drop for UnregisteredDevice<D> {
    fn drop(&mut self) {
        // SAFETY: Owned and not registered; `dealloc_driver` drops the data.
        unsafe { bindings::ib_dealloc_device(self.0.as_ptr().cast()) };
    }
}

/// A registered device. Dropping it unregisters and deallocates it: consumers are told to let go,
/// user contexts are cut off, and the driver's data is dropped. May sleep.
///
/// # Invariants
///
/// Owns the registration.
pub struct Registration<'bound, D: Operations>(
    NonNull<Device<D>>,
    PhantomData<&'bound device::Device<device::Bound>>,
);

impl<D: Operations> Registration<'_, D> {
    /// The device.
    pub fn device(&self) -> &Device<D> {
        // SAFETY: Alive as long as it is registered.
        unsafe { self.0.as_ref() }
    }
}

impl<D: Operations> Drop for Registration<'_, D> {
    fn drop(&mut self) {
        // SAFETY: Registered by the type invariant; the table has a `dealloc_driver`, so this
        // deallocates too.
        unsafe { bindings::ib_unregister_device(self.0.as_ptr().cast()) };
    }
}

// SAFETY: May be unregistered by any task.
unsafe impl<D: Operations> Send for Registration<'_, D> {}

// SAFETY: A shared reference gives `&Device`, which is made for many.
unsafe impl<D: Operations> Sync for Registration<'_, D> {}

/// Drops the driver's data, as the last callback of a device.
///
/// # Safety
///
/// Called by `ib_dealloc_device()` with the start of a `Device<D>`.
pub(crate) unsafe extern "C" fn dealloc_driver<D: Operations>(ibdev: *mut bindings::ib_device) {
    let this = ibdev.cast::<Device<D>>();

    // SAFETY: Initialised in `new`; no callback runs during or after this one.
    unsafe { core::ptr::drop_in_place(&raw mut (*this).data) };
}
