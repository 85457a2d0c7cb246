// SPDX-License-Identifier: GPL-2.0

//! Protection domains.

use kernel::{
    error::from_result,
    prelude::*, //
};

use crate::{
    bindings,
    device::Device,
    object::Object,
    ops::Operations,
    udata::{
        self,
        Caller, //
    }, //
};

/// A protection domain with the driver's part of it.
pub type Pd<D> = Object<D, bindings::ib_pd>;

/// The driver's part of a protection domain.
pub trait PdOps<D: Operations>: Send + Sync + Sized {
    /// Makes a domain. Process context. Dropping it deallocates.
    fn alloc<'a>(dev: &'a Device<D>, caller: Caller<'a, D>) -> impl PinInit<Self, Error> + 'a;
}

/// # Safety
///
/// Called by the core with a fresh domain of a device of `D`, and null or the udata of the call.
pub(crate) unsafe extern "C" fn alloc<D: Operations>(
    raw: *mut bindings::ib_pd,
    udata: *mut bindings::ib_udata,
) -> c_int {
    from_result(|| {
        // SAFETY: The core set the device, which outlives its objects.
        let dev = unsafe { Device::<D>::from_raw((*raw).device) };
        // SAFETY: By this function's contract.
        let caller = unsafe { Caller::from_udata(udata) }?;

        // SAFETY: The core allocated `size_ib_pd` zeroed octets.
        unsafe { Pd::<D>::create(raw, (), D::Pd::alloc(dev, caller)) }?;
        Ok(0)
    })
}

/// # Safety
///
/// Called by the core with a domain that `alloc` finished and nobody uses, and null or the udata
/// of the call.
pub(crate) unsafe extern "C" fn dealloc<D: Operations>(
    raw: *mut bindings::ib_pd,
    udata: *mut bindings::ib_udata,
) -> c_int {
    from_result(|| {
        // SAFETY: By this function's contract.
        unsafe { udata::no_io(udata) }?;

        // SAFETY: By this function's contract; the core frees the memory after this success.
        unsafe { Pd::<D>::destroy(raw) };
        Ok(0)
    })
}
