// SPDX-License-Identifier: GPL-2.0

//! Contexts of processes on a device.

use core::marker::PhantomData;
use kernel::{
    error::from_result,
    prelude::*, //
};

use crate::{
    bindings,
    device::Device,
    mmap::{
        IoPage,
        MmapEntry, //
    },
    object::Object,
    ops::Operations,
    udata::Udata, //
};

/// A context of a process with the driver's part of it.
pub type Ucontext<D> = Object<D, bindings::ib_ucontext>;

/// A context that is being made.
pub struct UcontextInit<'a, D: Operations> {
    raw: *mut bindings::ib_ucontext,
    udata: &'a Udata,
    _driver: PhantomData<&'a Device<D>>,
}

impl<'a, D: Operations> UcontextInit<'a, D> {
    /// The device.
    pub fn device(&self) -> &'a Device<D> {
        // SAFETY: The core set the device, which outlives its contexts.
        unsafe { Device::from_raw((*self.raw).device) }
    }

    /// Private data of the call.
    pub fn udata(&self) -> &'a Udata {
        self.udata
    }

    /// Lets the process map a page of the device. The entry belongs into the context's data: the
    /// process can map the page as long as the entry exists.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and `EBUSY` if there is no offset left.
    pub fn insert_mmap(&self, page: IoPage) -> Result<MmapEntry> {
        // SAFETY: The context is initialised but for our part, and the entry goes away before it.
        unsafe { MmapEntry::insert(self.raw, page) }
    }
}

/// The driver's part of a context.
pub trait UcontextOps<D: Operations>: Send + Sync + Sized {
    /// Makes a context: checks the request, answers it. Process context.
    ///
    /// Dropping it deallocates.
    fn alloc<'a>(init: UcontextInit<'a, D>) -> impl PinInit<Self, Error> + 'a;
}

/// # Safety
///
/// Called by the core with a fresh context of a device of `D` and the udata of the call.
pub(crate) unsafe extern "C" fn alloc<D: Operations>(
    raw: *mut bindings::ib_ucontext,
    udata: *mut bindings::ib_udata,
) -> c_int {
    from_result(|| {
        if udata.is_null() {
            return Err(EINVAL);
        }

        let init = UcontextInit {
            raw,
            // SAFETY: The udata of the call in progress.
            udata: unsafe { Udata::from_raw(udata) },
            _driver: PhantomData,
        };

        // SAFETY: The core allocated `size_ib_ucontext` zeroed octets.
        unsafe { Ucontext::<D>::create(raw, (), D::Ucontext::alloc(init)) }?;
        Ok(0)
    })
}

/// # Safety
///
/// Called by the core with a context that `alloc` finished, and never again.
pub(crate) unsafe extern "C" fn dealloc<D: Operations>(raw: *mut bindings::ib_ucontext) {
    // SAFETY: By this function's contract; every object of the context is gone.
    unsafe { Ucontext::<D>::destroy(raw) };
}

/// The device goes away under a process. The core unmaps its pages by itself; that the operation
/// is there tells it that a device may be unplugged while contexts are open.
///
/// # Safety
///
/// None beyond the C prototype's.
pub(crate) unsafe extern "C" fn disassociate(_raw: *mut bindings::ib_ucontext) {}
