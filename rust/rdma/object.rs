// SPDX-License-Identifier: GPL-2.0

//! Objects that the RDMA core allocates and a driver fills.
//!
//! The core allocates `ops.size_ib_x` zeroed bytes, sets the links of the C structure at their
//! start and calls the create operation. It frees them after the destroy operation returned 0,
//! and only then. [`Object`] is that memory: the C part first, what this layer keeps beside it
//! next, the driver's part last. The core owns the memory, we own what follows the C part.
//!
//! Rules that hold for every object: create takes an initializer, so that a failure leaves
//! nothing behind; only a destroy that returned `Ok` is followed by dropping the data; no
//! callback ever forms a `&mut` to the driver's part.

use core::{
    alloc::Layout,
    mem::offset_of,
    ops::Deref, //
};
use kernel::{
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

use crate::{
    bindings,
    device::Device,
    event::{
        CqUpcall,
        QpUpcall, //
    },
    ops::Operations, //
};

/// A structure of the RDMA core that an object of a driver `D` embeds at its start.
///
/// # Safety
///
/// The type is a C structure that the core allocates with the size the operation table gives, or
/// that is handed to the core by pointer; `device` points at its device member.
pub unsafe trait CObject<D: Operations> {
    /// What this layer keeps beside the C structure.
    type Link: Send + Sync;

    /// The driver's part.
    type Data: Send + Sync;

    /// The device that the structure belongs to.
    ///
    /// # Safety
    ///
    /// `this` is valid and its device is set.
    unsafe fn device(this: *mut Self) -> *mut bindings::ib_device;
}

/// The C part, this layer's part and the driver's part of one verbs object.
///
/// # Invariants
///
/// In every reference handed out, `link` and `data` are initialised and `raw` is a C structure
/// whose links are set.
#[repr(C)]
#[pin_data]
pub struct Object<D: Operations, C: CObject<D>> {
    #[pin]
    raw: Opaque<C>,
    link: C::Link,
    #[pin]
    data: C::Data,
}

impl<D: Operations, C: CObject<D>> Object<D, C> {
    /// The size the core has to allocate, for `ops.size_ib_x`.
    pub(crate) const SIZE: usize = {
        assert!(offset_of!(Self, raw) == 0);
        // A slab object of a padded size is aligned well enough for any type of this alignment.
        Layout::new::<Self>().pad_to_align().size()
    };

    /// The finished object behind a pointer that the core hands to a callback.
    ///
    /// # Safety
    ///
    /// `ptr` is the `raw` part of an object that [`Object::create`] initialised, and it is not
    /// destroyed during `'a`.
    pub(crate) unsafe fn from_raw<'a>(ptr: *mut C) -> Pin<&'a Self> {
        // SAFETY: `raw` is at offset 0 (see `SIZE`) and the object is valid for `'a` by this
        // function's contract.
        let this = unsafe { &*ptr.cast::<Self>() };

        // SAFETY: Objects stay where the core allocated them until they are destroyed.
        unsafe { Pin::new_unchecked(this) }
    }

    /// Fills this layer's and the driver's part of a fresh object.
    ///
    /// # Errors
    ///
    /// Those of `init`; the object is then as untouched as before.
    ///
    /// # Safety
    ///
    /// `ptr` starts an allocation of at least [`Object::SIZE`] bytes whose C part is set and whose
    /// other parts are uninitialised; it stays in place until [`Object::destroy`].
    pub(crate) unsafe fn create(
        ptr: *mut C,
        link: C::Link,
        init: impl PinInit<C::Data, Error>,
    ) -> Result {
        let this = ptr.cast::<Self>();

        // SAFETY: The allocation covers the whole object by this function's contract.
        let slot = unsafe { &raw mut (*this).data };

        // SAFETY: `slot` is uninitialised and stays in place; on error nobody touches it again.
        unsafe { pin_init::raw_try_init(slot, init) }?;

        // SAFETY: As for `slot`.
        let slot = unsafe { &raw mut (*this).link };

        // SAFETY: `slot` is valid for writing and holds nothing to drop.
        unsafe { slot.write(link) };

        Ok(())
    }

    /// Drops this layer's and the driver's part. The memory remains the core's.
    ///
    /// # Safety
    ///
    /// `ptr` is an object that [`Object::create`] filled, nobody refers to it any more, and it is
    /// not used as one afterwards.
    pub(crate) unsafe fn destroy(ptr: *mut C) {
        let this = ptr.cast::<Self>();

        // SAFETY: Initialised, and dropped only here.
        unsafe { core::ptr::drop_in_place(&raw mut (*this).data) };

        // SAFETY: As above.
        unsafe { core::ptr::drop_in_place(&raw mut (*this).link) };
    }

    /// An initializer of a whole object, for those the driver allocates itself.
    ///
    /// The C part is zeroed; whoever makes the object sets its links before it is used.
    pub(crate) fn boxed(
        link: C::Link,
        init: impl PinInit<C::Data, Error>,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            raw: Opaque::zeroed(),
            link,
            data <- init,
        })
    }

    /// The C part.
    pub(crate) fn as_raw(&self) -> *mut C {
        self.raw.get()
    }

    /// What this layer keeps beside the C part.
    pub(crate) fn link(&self) -> &C::Link {
        &self.link
    }

    /// The device that the object belongs to.
    pub fn device(&self) -> &Device<D> {
        // SAFETY: Valid, with its device set, by the type invariant.
        let device = unsafe { C::device(self.as_raw()) };

        // SAFETY: A device of `D`, which outlives its objects.
        unsafe { Device::from_raw(device) }
    }

    /// The driver's part.
    pub fn data(self: Pin<&Self>) -> Pin<&C::Data> {
        // SAFETY: `data` is structurally pinned.
        unsafe { self.map_unchecked(|this| &this.data) }
    }
}

impl<D: Operations, C: CObject<D>> Deref for Object<D, C> {
    type Target = C::Data;

    fn deref(&self) -> &C::Data {
        &self.data
    }
}

// SAFETY: The core may create, use and destroy an object on any CPU; the parts beside the C
// structure are `Send`.
unsafe impl<D: Operations, C: CObject<D>> Send for Object<D, C> {}

// SAFETY: Shared references reach the C structure only through the core's functions, which
// synchronise, and the other parts are `Sync`.
unsafe impl<D: Operations, C: CObject<D>> Sync for Object<D, C> {}

macro_rules! c_object {
    ($($c:ident: $data:ident, $link:ty;)*) => {
        $(
            // SAFETY: The core allocates it with `size_ib_x` of the table, or takes a pointer; it
            // has a `device` member.
            unsafe impl<D: Operations> CObject<D> for bindings::$c {
                type Link = $link;
                type Data = D::$data;

                unsafe fn device(this: *mut Self) -> *mut bindings::ib_device {
                    // SAFETY: By this function's contract.
                    unsafe { (*this).device }
                }
            }
        )*
    };
}

c_object! {
    ib_ah: Ah, ();
    ib_cq: Cq, Arc<CqUpcall>;
    ib_mr: Mr, ();
    ib_pd: Pd, ();
    ib_qp: Qp, Arc<QpUpcall>;
    ib_ucontext: Ucontext, ();
}
