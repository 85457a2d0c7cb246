// SPDX-License-Identifier: GPL-2.0

//! Address handles.

use kernel::{
    error::from_result,
    prelude::*, //
};

use crate::{
    bindings,
    device::PortNum,
    gid::{
        Gid,
        GidAttr, //
    },
    net::MacAddress,
    object::Object,
    ops::Operations,
    pd::Pd,
    udata::Caller, //
};

/// An address handle with the driver's part of it.
pub type Ah<D> = Object<D, bindings::ib_ah>;

/// Whether an operation may sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    /// It may.
    MaySleep,
    /// It may not: the caller holds a spinlock or has interrupts off.
    Atomic,
}

/// A way to another port, over RoCE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    /// Local port.
    pub port: PortNum,
    /// Service level.
    pub sl: u8,
    /// Static rate as the core codes it.
    pub static_rate: u8,
    /// Destination.
    pub dgid: Gid,
    /// Index of the source in the port's GID table.
    pub sgid_index: u8,
    /// Flow label.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
    /// Traffic class.
    pub traffic_class: u8,
    /// MAC address of the next hop.
    pub dmac: MacAddress,
}

/// A path that a consumer gives, with its source.
#[derive(Clone, Copy)]
pub struct PathView<'a>(&'a bindings::rdma_ah_attr);

impl<'a> PathView<'a> {
    pub(crate) fn new(attr: &'a bindings::rdma_ah_attr) -> Self {
        Self(attr)
    }

    /// The numbers of the path.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is no RoCE path or has no global route.
    pub fn path(&self) -> Result<Path> {
        let global = u32::from(self.0.ah_flags) & bindings::ib_ah_flags_IB_AH_GRH != 0;
        if self.0.type_ != bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE || !global {
            return Err(EINVAL);
        }

        Ok(Path {
            port: PortNum::new(self.0.port_num),
            sl: self.0.sl,
            static_rate: self.0.static_rate,
            dgid: Gid::from_raw(self.0.grh.dgid),
            sgid_index: self.0.grh.sgid_index,
            flow_label: self.0.grh.flow_label,
            hop_limit: self.0.grh.hop_limit,
            traffic_class: self.0.grh.traffic_class,
            // SAFETY: The type says which member of the union is set.
            dmac: MacAddress::new(unsafe { self.0.__bindgen_anon_1.roce.dmac }),
        })
    }

    /// The source of the path. Hold a count of it to keep it.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the path has none.
    pub fn source(&self) -> Result<&'a GidAttr> {
        if self.0.grh.sgid_attr.is_null() {
            return Err(EINVAL);
        }

        // SAFETY: The core holds the entry as long as the attributes.
        Ok(unsafe { GidAttr::from_raw(self.0.grh.sgid_attr) })
    }
}

/// What the consumer asks for.
pub struct AhInit<'a> {
    attr: &'a bindings::rdma_ah_init_attr,
}

impl<'a> AhInit<'a> {
    /// The path.
    pub fn path(&self) -> PathView<'a> {
        // SAFETY: Valid as long as the attributes.
        PathView(unsafe { &*self.attr.ah_attr })
    }

    /// Whether the operation may sleep.
    pub fn context(&self) -> Context {
        if self.attr.flags & bindings::rdma_create_ah_flags_RDMA_CREATE_AH_SLEEPABLE != 0 {
            Context::MaySleep
        } else {
            Context::Atomic
        }
    }
}

/// The driver's part of an address handle.
#[vtable]
pub trait AhOps<D: Operations>: Send + Sync + Sized {
    /// Makes a handle, in the context that `init` tells.
    fn create<'a>(
        pd: Pin<&'a Pd<D>>,
        init: AhInit<'a>,
        caller: Caller<'a, D>,
    ) -> impl PinInit<Self, Error> + 'a;

    /// The path that the handle was made of.
    fn query(_this: Pin<&Ah<D>>) -> Result<Path> {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Takes the handle away from the device.
    fn destroy(this: Pin<&Ah<D>>, context: Context) -> Result;
}

/// # Safety
///
/// Called by the core with a fresh handle of a device of `D`, its attributes, and null or the
/// udata of the call.
pub(crate) unsafe extern "C" fn create<D: Operations>(
    raw: *mut bindings::ib_ah,
    attr: *mut bindings::rdma_ah_init_attr,
    udata: *mut bindings::ib_udata,
) -> c_int {
    from_result(|| {
        // SAFETY: The core set the domain, which outlives its handles.
        let pd = unsafe { Pd::<D>::from_raw((*raw).pd) };
        // SAFETY: By this function's contract.
        let caller = unsafe { Caller::from_udata(udata) }?;
        let init = AhInit {
            // SAFETY: Valid during the call.
            attr: unsafe { &*attr },
        };

        // SAFETY: The core allocated `size_ib_ah` zeroed octets.
        unsafe { Ah::<D>::create(raw, (), D::Ah::create(pd, init, caller)) }?;
        Ok(0)
    })
}

/// # Safety
///
/// Called by the core with a live handle and room for the attributes.
pub(crate) unsafe extern "C" fn query<D: Operations>(
    raw: *mut bindings::ib_ah,
    attr: *mut bindings::rdma_ah_attr,
) -> c_int {
    from_result(|| {
        // SAFETY: By this function's contract.
        let this = unsafe { Ah::<D>::from_raw(raw) };
        let path = D::Ah::query(this)?;
        // SAFETY: By this function's contract.
        let attr = unsafe { &mut *attr };

        attr.type_ = bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE;
        // CAST: A one-bit flag in the lowest octet.
        attr.ah_flags = bindings::ib_ah_flags_IB_AH_GRH as u8;
        attr.port_num = path.port.get();
        attr.sl = path.sl;
        attr.static_rate = path.static_rate;
        attr.grh.dgid = path.dgid.to_raw();
        attr.grh.sgid_index = path.sgid_index;
        attr.grh.flow_label = path.flow_label;
        attr.grh.hop_limit = path.hop_limit;
        attr.grh.traffic_class = path.traffic_class;
        attr.__bindgen_anon_1.roce.dmac = path.dmac.octets();
        Ok(0)
    })
}

/// # Safety
///
/// Called by the core with a handle that `create` finished and no work request uses.
pub(crate) unsafe extern "C" fn destroy<D: Operations>(
    raw: *mut bindings::ib_ah,
    flags: u32,
) -> c_int {
    from_result(|| {
        let context = if flags & bindings::rdma_destroy_ah_flags_RDMA_DESTROY_AH_SLEEPABLE != 0 {
            Context::MaySleep
        } else {
            Context::Atomic
        };

        // SAFETY: By this function's contract.
        D::Ah::destroy(unsafe { Ah::<D>::from_raw(raw) }, context)?;

        // SAFETY: By this function's contract; the core frees the memory after this success.
        unsafe { Ah::<D>::destroy(raw) };
        Ok(0)
    })
}
