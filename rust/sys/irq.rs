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

/// How much of the work a hard interrupt has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// All.
    Done,
    /// A part: the thread is to do the rest.
    Rest,
}

/// What to do when a vector fires.
pub trait VectorHandler: Send + Sync + 'static {
    /// Called in hard interrupt context: does what is quickly done, and leaves the rest to
    /// [`VectorHandler::thread`] or to work.
    fn interrupt(&self) -> Served;

    /// Called in a thread of the interrupt after a call that left a rest; may sleep. The vector may
    /// fire meanwhile if the device lets it.
    fn thread(&self);
}

/// A requested interrupt with its handler. Dropping it frees the interrupt and waits for a handler
/// in progress, and for its thread. May sleep.
///
/// # Invariants
///
/// While the value exists, the interrupt calls `call` and `call_thread` with its address.
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
                // SAFETY: The set owns the number for as long as `_set` refers to it, and that is
                // until after `free_irq()` in `drop`. `name` is static. The functions have the types of
                // a handler and of a thread, and take the address, which is pinned and, handlers
                // borrowing nothing, good until `drop` even if that is never called.
                to_result(unsafe {
                    bindings::request_threaded_irq(
                        *irq,
                        Some(Self::call),
                        Some(Self::call_thread),
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

    /// Waits for a handler in progress, and for its thread. May sleep.
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

        match this.handler.interrupt() {
            Served::Done => bindings::irqreturn::IRQ_HANDLED,
            Served::Rest => bindings::irqreturn::IRQ_WAKE_THREAD,
        }
    }

    /// # Safety
    ///
    /// Called by the interrupt's thread with the address that `request` gave.
    unsafe extern "C" fn call_thread(_irq: c_int, this: *mut c_void) -> bindings::irqreturn_t {
        // SAFETY: Valid until `free_irq()` returned, which waits for the thread.
        let this = unsafe { &*this.cast::<Self>() };

        this.handler.thread();
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
