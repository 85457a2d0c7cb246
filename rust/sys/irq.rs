// SPDX-License-Identifier: GPL-2.0

//! Interrupt vectors that another driver hands out.
//!
//! The `kernel` crate requests interrupts only of buses it knows; here the LAN driver owns the
//! vectors and says which interrupt number is ours.

use kernel::{
    bindings,
    error::to_result,
    prelude::*,
    sync::Arc, //
};

use crate::iidc::VectorSet;

/// What to do when a vector fires.
pub trait VectorHandler: Send + Sync {
    /// Called in hard interrupt context: takes note, and leaves the rest to work.
    fn interrupt(&self);
}

/// A requested interrupt with its handler. Dropping it frees the interrupt and waits for a handler
/// in progress. May sleep.
///
/// # Invariants
///
/// While the value exists, the interrupt calls `call` with its address.
#[pin_data(PinnedDrop)]
pub struct Vector<T: VectorHandler> {
    irq: c_uint,
    #[pin]
    handler: T,
    // The interrupt belongs to the set as long as it is requested.
    _set: Arc<VectorSet>,
    #[pin]
    _pin: core::marker::PhantomPinned,
}

impl<T: VectorHandler> Vector<T> {
    /// Requests vector `index` of `set`. Process context. The handler may run at once.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the set has no such vector, and those of `request_irq()`.
    pub fn request(
        set: Arc<VectorSet>,
        index: usize,
        name: &'static CStr,
        handler: impl PinInit<T, Error>,
    ) -> impl PinInit<Self, Error> {
        let irq = set.irq(index).ok_or(EINVAL);

        try_pin_init!(&this in Self {
            irq: irq?,
            handler <- handler,
            _set: set,
            _pin: core::marker::PhantomPinned,
            // INVARIANT: Requested last, when everything the handler uses is there.
            _: {
                // SAFETY: A pinned address that stays valid until `free_irq()` in `drop`.
                to_result(unsafe {
                    bindings::request_threaded_irq(
                        *irq,
                        Some(Self::call),
                        None,
                        0,
                        name.as_char_ptr(),
                        this.as_ptr().cast(),
                    )
                })?;
            },
        })
    }

    /// The handler.
    pub fn handler(self: Pin<&Self>) -> Pin<&T> {
        // SAFETY: Structurally pinned.
        unsafe { self.map_unchecked(|this| &this.handler) }
    }

    /// Waits for a handler in progress. May sleep.
    pub fn synchronize(&self) {
        // SAFETY: A requested interrupt.
        unsafe { bindings::synchronize_irq(self.irq) };
    }

    /// # Safety
    ///
    /// Called by the interrupt core with the address that `request` gave.
    unsafe extern "C" fn call(_irq: c_int, this: *mut c_void) -> bindings::irqreturn_t {
        // SAFETY: Valid until `free_irq()` returned, which waits for this call.
        let this = unsafe { &*this.cast::<Self>() };

        this.handler.interrupt();
        bindings::irqreturn::IRQ_HANDLED
    }
}

#[pinned_drop]
impl<T: VectorHandler> PinnedDrop for Vector<T> {
    fn drop(self: Pin<&mut Self>) {
        let this = core::ptr::from_ref(&*self).cast_mut();

        // SAFETY: Requested with this address.
        unsafe { bindings::free_irq(self.irq, this.cast()) };
    }
}
