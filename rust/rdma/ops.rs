// SPDX-License-Identifier: GPL-2.0

//! The operation table of a device.
//!
//! A driver implements [`Operations`] and one trait per object. The table is made from them at
//! compile time; an operation the driver does not implement is absent from it, which is how the
//! core knows that it is not supported.

use core::marker::PhantomData;
use kernel::{
    error::from_result,
    module::this_module,
    prelude::*, //
};

use crate::{
    ah::{
        self,
        Ah,
        AhOps, //
    },
    bindings,
    cq::{
        self,
        Cq,
        CqOps, //
    },
    device::{
        self,
        Device,
        DeviceAttrs,
        DriverId,
        PortAttrs,
        PortImmutable,
        PortNum, //
    },
    mmap,
    mr::{
        self,
        MrOps, //
    },
    pd::{
        self,
        Pd,
        PdOps, //
    },
    qp::{
        self,
        Qp,
        QpOps, //
    },
    ucontext::{
        self,
        Ucontext,
        UcontextOps, //
    },
    udata, //
};

/// Room for the firmware version that a device reports.
const FW_STR_LEN: usize = bindings::IB_FW_VERSION_NAME_MAX as usize;

/// A driver for a family of RoCEv2 devices.
#[vtable]
pub trait Operations: Sized + Send + Sync + 'static {
    /// Driver's data of a device, dropped after its last verb.
    type Data: Send + Sync;
    /// Context of a process on the device.
    type Ucontext: UcontextOps<Self>;
    /// Protection domain.
    type Pd: PdOps<Self>;
    /// Completion queue.
    type Cq: CqOps<Self>;
    /// Queue pair.
    type Qp: QpOps<Self>;
    /// Memory region.
    type Mr: MrOps<Self>;
    /// Address handle.
    type Ah: AhOps<Self>;

    /// Id in the user ABI.
    const DRIVER_ID: DriverId;
    /// Version of the user ABI.
    const ABI_VERSION: u32;

    /// What the device can do. Process context.
    fn query_device(dev: &Device<Self>) -> Result<DeviceAttrs>;

    /// What a port is doing. Process context.
    fn query_port(dev: &Device<Self>, port: PortNum) -> Result<PortAttrs>;

    /// What never changes about a port. Called once, while the device is being registered.
    fn port_immutable(dev: &Device<Self>, port: PortNum) -> Result<PortImmutable>;

    /// An entry of a port's P_Key table. Any context.
    fn query_pkey(dev: &Device<Self>, port: PortNum, index: u16) -> Result<u16>;

    /// Major and minor version of the firmware.
    fn fw_version(_dev: &Device<Self>) -> (u32, u32) {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }
}

/// The C operation table of a driver.
pub(crate) struct Table<D>(PhantomData<D>);

impl<D: Operations> Table<D> {
    /// The table. `ib_set_device_ops()` copies it.
    pub(crate) const OPS: bindings::ib_device_ops = bindings::ib_device_ops {
        owner: this_module::<D::OwnerModule>().as_ptr(),
        driver_id: D::DRIVER_ID.0,
        uverbs_abi_ver: D::ABI_VERSION,
        // Bit 0 is `uverbs_no_driver_id_binding`, bit 1 `uverbs_robust_udata`; `check_bits`
        // compares with bindgen's own accessors.
        _bitfield_1: bindings::__BindgenBitfieldUnit::new([0b10]),

        query_device: Some(Self::query_device),
        query_port: Some(Self::query_port),
        get_port_immutable: Some(Self::get_port_immutable),
        query_pkey: Some(Self::query_pkey),
        get_link_layer: Some(Self::get_link_layer),
        get_dev_fw_str: if D::HAS_FW_VERSION {
            Some(Self::get_dev_fw_str)
        } else {
            None
        },
        dealloc_driver: Some(device::dealloc_driver::<D>),

        alloc_ucontext: Some(ucontext::alloc::<D>),
        dealloc_ucontext: Some(ucontext::dealloc::<D>),
        disassociate_ucontext: Some(ucontext::disassociate),
        mmap: Some(mmap::mmap),
        mmap_free: Some(mmap::free),

        alloc_pd: Some(pd::alloc::<D>),
        dealloc_pd: Some(pd::dealloc::<D>),

        create_ah: Some(ah::create::<D>),
        create_user_ah: Some(ah::create::<D>),
        destroy_ah: Some(ah::destroy::<D>),
        query_ah: if <D::Ah as AhOps<D>>::HAS_QUERY {
            Some(ah::query::<D>)
        } else {
            None
        },

        create_cq: Some(cq::create::<D>),
        create_user_cq: Some(cq::create::<D>),
        destroy_cq: Some(cq::destroy::<D>),
        pre_destroy_cq: Some(cq::pre_destroy::<D>),
        poll_cq: if <D::Cq as CqOps<D>>::HAS_POLL {
            Some(cq::poll::<D>)
        } else {
            None
        },
        req_notify_cq: if <D::Cq as CqOps<D>>::HAS_ARM {
            Some(cq::arm::<D>)
        } else {
            None
        },
        resize_user_cq: if <D::Cq as CqOps<D>>::HAS_RESIZE {
            Some(cq::resize::<D>)
        } else {
            None
        },
        fill_res_cq_entry: if <D::Cq as CqOps<D>>::HAS_DETAILS {
            Some(cq::details::<D>)
        } else {
            None
        },

        create_qp: Some(qp::create::<D>),
        modify_qp: Some(qp::modify::<D>),
        query_qp: if <D::Qp as QpOps<D>>::HAS_QUERY {
            Some(qp::query::<D>)
        } else {
            None
        },
        destroy_qp: Some(qp::destroy::<D>),
        post_send: if <D::Qp as QpOps<D>>::HAS_POST_SEND {
            Some(qp::post_send::<D>)
        } else {
            None
        },
        post_recv: if <D::Qp as QpOps<D>>::HAS_POST_RECV {
            Some(qp::post_recv::<D>)
        } else {
            None
        },
        attach_mcast: if <D::Qp as QpOps<D>>::HAS_ATTACH_MCAST {
            Some(qp::attach_mcast::<D>)
        } else {
            None
        },
        detach_mcast: if <D::Qp as QpOps<D>>::HAS_DETACH_MCAST {
            Some(qp::detach_mcast::<D>)
        } else {
            None
        },
        fill_res_qp_entry: if <D::Qp as QpOps<D>>::HAS_DETAILS {
            Some(qp::details::<D>)
        } else {
            None
        },

        get_dma_mr: if <D::Mr as MrOps<D>>::HAS_DMA {
            Some(mr::get_dma::<D>)
        } else {
            None
        },
        reg_user_mr: Some(mr::register_user::<D>),
        dereg_mr: Some(mr::deregister::<D>),
        fill_res_mr_entry: if <D::Mr as MrOps<D>>::HAS_DETAILS {
            Some(mr::details::<D>)
        } else {
            None
        },

        size_ib_ah: Ah::<D>::SIZE,
        size_ib_cq: Cq::<D>::SIZE,
        size_ib_pd: Pd::<D>::SIZE,
        size_ib_qp: Qp::<D>::SIZE,
        size_ib_ucontext: Ucontext::<D>::SIZE,

        ..pin_init::zeroed()
    };

    /// # Safety
    ///
    /// Called by the core with a device of `D`, room for the attributes, and null or the udata of
    /// a call in progress.
    unsafe extern "C" fn query_device(
        ibdev: *mut bindings::ib_device,
        attrs: *mut bindings::ib_device_attr,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By this function's contract.
            unsafe { udata::no_io(udata) }?;

            // SAFETY: By this function's contract.
            let dev = unsafe { Device::<D>::from_raw(ibdev) };
            let result = D::query_device(dev)?;

            // SAFETY: By this function's contract; the core cleared the attributes.
            result.fill(unsafe { &mut *attrs });
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Called by the core with a device of `D` and room for the attributes.
    unsafe extern "C" fn query_port(
        ibdev: *mut bindings::ib_device,
        port: u32,
        attrs: *mut bindings::ib_port_attr,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By this function's contract.
            let dev = unsafe { Device::<D>::from_raw(ibdev) };
            let result = D::query_port(dev, PortNum::new(port))?;

            // SAFETY: By this function's contract; the core cleared the attributes.
            result.fill(unsafe { &mut *attrs });
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Called by the core with a device of `D` and room for the attributes.
    unsafe extern "C" fn get_port_immutable(
        ibdev: *mut bindings::ib_device,
        port: u32,
        immutable: *mut bindings::ib_port_immutable,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By this function's contract.
            let dev = unsafe { Device::<D>::from_raw(ibdev) };
            let result = D::port_immutable(dev, PortNum::new(port))?;

            // SAFETY: By this function's contract.
            let immutable = unsafe { &mut *immutable };
            immutable.pkey_tbl_len = c_int::from(result.pkey_tbl_len);
            immutable.gid_tbl_len = c_int::from(result.gid_tbl_len);
            immutable.core_cap_flags = bindings::RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
            immutable.max_mad_size = result.max_mad_size;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Called by the core with a device of `D` and room for a P_Key.
    unsafe extern "C" fn query_pkey(
        ibdev: *mut bindings::ib_device,
        port: u32,
        index: u16,
        pkey: *mut u16,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By this function's contract.
            let dev = unsafe { Device::<D>::from_raw(ibdev) };
            let result = D::query_pkey(dev, PortNum::new(port), index)?;

            // SAFETY: By this function's contract.
            unsafe { *pkey = result };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// None beyond the C prototype's.
    unsafe extern "C" fn get_link_layer(
        _ibdev: *mut bindings::ib_device,
        _port: u32,
    ) -> bindings::rdma_link_layer {
        bindings::rdma_link_layer_IB_LINK_LAYER_ETHERNET
    }

    /// # Safety
    ///
    /// Called by the core with a device of `D` and room for `IB_FW_VERSION_NAME_MAX` octets.
    unsafe extern "C" fn get_dev_fw_str(ibdev: *mut bindings::ib_device, text: *mut c_char) {
        // SAFETY: By this function's contract.
        let dev = unsafe { Device::<D>::from_raw(ibdev) };
        let (major, minor) = D::fw_version(dev);

        // SAFETY: Room by this function's contract, a format with two unsigned arguments.
        unsafe {
            kernel::bindings::snprintf(
                text.cast(),
                FW_STR_LEN,
                c"%u.%u".as_char_ptr(),
                major,
                minor,
            )
        };
    }
}
