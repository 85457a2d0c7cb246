// SPDX-License-Identifier: GPL-2.0

//! Registration as a client of the RDMA core.
//!
//! The core calls a client for each device that is there, comes or goes. Its `add` callback gets
//! the device and nothing of the client, so the client is found by its type: each type has one
//! static [`Slot`], and is registered once at a time.

use core::{
    cell::UnsafeCell,
    ptr, //
};
use kernel::{
    error::{
        from_result,
        to_result, //
    },
    prelude::*,
    sync::atomic::{
        Atomic,
        Full,
        Release, //
    },
    types::Opaque, //
};

use crate::{
    bindings,
    client::Device, //
};

/// A consumer of RDMA devices.
///
/// Callbacks run in process context; those for one device never run at the same time.
pub trait Client: HasSlot + Send + Sync + 'static {
    /// The name in the core and of the objects in `rdma resource`.
    const NAME: &'static CStr;

    /// What the client keeps for a device.
    type Data: Send;

    /// A device is there. `None` if the client does not want it.
    ///
    /// # Errors
    ///
    /// Any: the core does not tell anybody, so say what is wrong before returning it. The client
    /// hears no more of the device.
    fn add(&self, device: &Device) -> Result<Option<Pin<KBox<Self::Data>>>>;

    /// The device, or the client, is about to go. When this returns, nothing may hold the device:
    /// who still does makes the removal wait.
    fn remove(&self, device: &Device, data: Pin<KBox<Self::Data>>) {
        let _ = device;
        drop(data);
    }
}

/// A type with a slot of its own. Implemented by [`client_slot!`](crate::client_slot).
///
/// # Safety
///
/// `slot` returns the same reference every time.
pub unsafe trait HasSlot: Sized {
    /// The slot.
    fn slot() -> &'static Slot<Self>;
}

/// Gives a client type its slot.
#[macro_export]
macro_rules! client_slot {
    ($client:ty) => {
        // SAFETY: There is one static, which the function returns.
        unsafe impl $crate::client::HasSlot for $client {
            fn slot() -> &'static $crate::client::Slot<Self> {
                static SLOT: $crate::client::Slot<$client> = $crate::client::Slot::new();

                &SLOT
            }
        }
    };
}

/// Where the registration of a client type is kept.
///
/// # Invariants
///
/// While `taken` is 1, one [`Registration`] owns the slot: only it writes the other fields, and
/// only while the core does not know `raw`. While the core knows `raw`, `client` is valid.
pub struct Slot<C> {
    taken: Atomic<u32>,
    raw: Opaque<bindings::ib_client>,
    client: UnsafeCell<*const C>,
}

impl<C> Slot<C> {
    /// An empty slot.
    pub const fn new() -> Self {
        // INVARIANT: Not taken.
        Self {
            taken: Atomic::new(0),
            raw: Opaque::uninit(),
            client: UnsafeCell::new(ptr::null()),
        }
    }
}

impl<C> Default for Slot<C> {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: Fields are written only by the owner of the slot while nobody else looks, by the type
// invariant; the client is shared with the core's threads, which `Sync` allows.
unsafe impl<C: Sync> Sync for Slot<C> {}

/// A registered client. Dropping it takes the client from every device and waits until that is
/// done: no callback runs after it. May sleep.
///
/// # Invariants
///
/// Owns the slot of `C`, with `client` in it, and the core knows the slot's `raw`.
pub struct Registration<C: Client> {
    client: KBox<C>,
}

impl<C: Client> Registration<C> {
    /// Registers `client`; [`Client::add`] has run for all present devices when this returns.
    /// Process context.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: a client of this type is registered already.
    /// - `ENOMEM`, and those of the core.
    pub fn new(client: C) -> Result<Self> {
        let client = KBox::new(client, GFP_KERNEL)?;
        let slot = C::slot();

        if slot.taken.cmpxchg(0, 1, Full).is_err() {
            return Err(EBUSY);
        }

        // SAFETY: The slot is ours, and the core does not know it.
        unsafe { slot.client.get().write(&raw const *client) };

        let raw = bindings::ib_client {
            name: C::NAME.as_char_ptr(),
            add: Some(add::<C>),
            remove: Some(remove::<C>),
            ..pin_init::zeroed()
        };
        // SAFETY: As above.
        unsafe { slot.raw.get().write(raw) };

        // SAFETY: Filled, in a static, and not registered.
        let registered = to_result(unsafe { bindings::ib_register_client(slot.raw.get()) });
        if let Err(error) = registered {
            // The core has undone what it did, so nobody uses the slot.
            slot.taken.store(0, Release);
            return Err(error);
        }

        // INVARIANT: Taken and registered above.
        Ok(Self { client })
    }

    /// The client.
    pub fn client(&self) -> &C {
        &self.client
    }
}

impl<C: Client> Drop for Registration<C> {
    fn drop(&mut self) {
        let slot = C::slot();

        // SAFETY: Registered, by the type invariant. No callback runs after this.
        unsafe { bindings::ib_unregister_client(slot.raw.get()) };
        slot.taken.store(0, Release);
    }
}

/// The client of type `C` that is registered.
///
/// # Safety
///
/// Called within a callback of the slot's `raw`.
unsafe fn registered<'a, C: Client>() -> &'a C {
    // SAFETY: The core knows `raw`, so nobody writes `client` and it is valid, by the invariant of
    // `Slot`; unregistering waits for callbacks.
    unsafe { &**C::slot().client.get() }
}

/// # Safety
///
/// Called by the core with a device, for the slot of `C`.
unsafe extern "C" fn add<C: Client>(ibdev: *mut bindings::ib_device) -> c_int {
    from_result(|| {
        // SAFETY: A callback of the slot.
        let client = unsafe { registered::<C>() };
        // SAFETY: The core holds the device during the call.
        let device = unsafe { Device::from_raw(ibdev) };

        let data = client.add(device)?.ok_or(EOPNOTSUPP)?;
        // SAFETY: The pointee stays where it is until `remove` pins it again.
        let data = KBox::into_raw(unsafe { Pin::into_inner_unchecked(data) });

        // SAFETY: Within `add`, for the client that the call is for.
        unsafe { bindings::ib_set_client_data(ibdev, C::slot().raw.get(), data.cast()) };
        Ok(0)
    })
}

/// # Safety
///
/// Called by the core with a device that `add` took and what it set for it, once.
unsafe extern "C" fn remove<C: Client>(ibdev: *mut bindings::ib_device, data: *mut c_void) {
    if data.is_null() {
        return;
    }

    // SAFETY: A callback of the slot.
    let client = unsafe { registered::<C>() };
    // SAFETY: The core holds the device during the call.
    let device = unsafe { Device::from_raw(ibdev) };
    // SAFETY: Made by `add`, and given back once.
    let data = unsafe { KBox::from_raw(data.cast::<C::Data>()) };

    client.remove(device, KBox::into_pin(data));
}
