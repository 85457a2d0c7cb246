// SPDX-License-Identifier: GPL-2.0

//! Binding a driver to the auxiliary devices of the LAN driver.
//!
//! The LAN driver finds the event handler by `container_of` from the `device_driver` of the bound
//! driver into a `struct iidc_rdma_core_auxiliary_drv`. So the plain auxiliary adapter of the
//! `kernel` crate must not be used: behind its `auxiliary_driver` there is no handler.

use core::{
    marker::PhantomData,
    mem::offset_of, //
};
use kernel::{
    auxiliary,
    container_of,
    device,
    driver,
    error::{
        from_result,
        to_result, //
    },
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

use super::function::Function;
use crate::bindings;

/// What the LAN driver announces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Event {
    /// The MTU is about to change.
    BeforeMtuChange = bindings::iidc_rdma_event_type_IIDC_RDMA_EVENT_BEFORE_MTU_CHANGE,
    /// The MTU has changed.
    AfterMtuChange = bindings::iidc_rdma_event_type_IIDC_RDMA_EVENT_AFTER_MTU_CHANGE,
    /// The traffic classes are about to change.
    BeforeTcChange = bindings::iidc_rdma_event_type_IIDC_RDMA_EVENT_BEFORE_TC_CHANGE,
    /// The traffic classes have changed.
    AfterTcChange = bindings::iidc_rdma_event_type_IIDC_RDMA_EVENT_AFTER_TC_CHANGE,
    /// A reset is near.
    WarnReset = bindings::iidc_rdma_event_type_IIDC_RDMA_EVENT_WARN_RESET,
    /// The device raised a critical error.
    CriticalError = bindings::iidc_rdma_event_type_IIDC_RDMA_EVENT_CRIT_ERR,
}

/// The events of one announcement.
#[derive(Clone, Copy, Debug)]
pub struct Events {
    bits: u64,
    register: u32,
}

impl Events {
    /// Whether `event` is among them.
    pub fn contains(&self, event: Event) -> bool {
        // CAST: The discriminants are bit numbers below 6.
        self.bits & (1u64 << event as u32) != 0
    }

    /// The interrupt cause register, of a critical error.
    pub fn register(&self) -> u32 {
        self.register
    }
}

/// A driver for the auxiliary devices of the LAN driver.
pub trait Driver: 'static {
    /// The driver's data of a bound device. Dropped at unbind, while the function still works.
    type Data<'bound>: Send + 'bound;

    /// The devices to bind to.
    const ID_TABLE: auxiliary::IdTable<()>;

    /// A device is there. Process context, under the device's lock.
    ///
    /// An RDMA device is registered by the initializer, as its last step, and not before it runs:
    /// the data must not be dropped while the RDMA device is there.
    fn probe<'bound>(
        dev: &'bound auxiliary::Device<device::Core<'_>>,
        function: Arc<Function>,
    ) -> impl PinInit<Self::Data<'bound>, Error> + 'bound;

    /// The LAN driver announces something. Process context, under the device's lock, and under a
    /// mutex of the LAN driver: the handler must not wait for its own unbinding.
    fn event(data: Pin<&Self::Data<'_>>, events: Events);

    /// The device goes away. Process context, under the device's lock; the data is dropped next.
    fn unbind(_data: Pin<&Self::Data<'_>>) {}
}

/// Driver data with the end of the function behind it.
#[pin_data]
pub struct Bound<T> {
    // Dropped in this order: the driver lets go before the function stops working.
    #[pin]
    data: T,
    _revoke: Revoke,
}

/// Revokes a function when dropped.
struct Revoke(Arc<Function>);

impl Drop for Revoke {
    fn drop(&mut self) {
        // Left over only if binding failed after the device was registered.
        self.0.unregister();
        self.0.revoke();
    }
}

/// The registration of a [`Driver`], for [`kernel::driver::Registration`].
pub struct Adapter<T>(PhantomData<T>);

/// The C driver structure.
#[repr(transparent)]
pub struct RawDriver(bindings::iidc_rdma_core_auxiliary_drv);

impl Default for RawDriver {
    fn default() -> Self {
        Self(pin_init::zeroed())
    }
}

// SAFETY: The C structure is `repr(C)`, `Bound` is what `probe_callback` stores, and the offset is
// that of the embedded `device_driver`.
unsafe impl<T: Driver> driver::DriverLayout for Adapter<T> {
    type DriverType = RawDriver;
    type DriverData<'bound> = Bound<T::Data<'bound>>;
    const DEVICE_DRIVER_OFFSET: usize =
        offset_of!(bindings::iidc_rdma_core_auxiliary_drv, adrv.driver);
}

// SAFETY: `unregister` undoes a successful `register` of the same structure.
unsafe impl<T: Driver> driver::RegistrationOps for Adapter<T> {
    unsafe fn register(
        reg: &Opaque<RawDriver>,
        name: &'static CStr,
        module: &'static ThisModule,
    ) -> Result {
        let raw: *mut bindings::iidc_rdma_core_auxiliary_drv = reg.get().cast();

        // SAFETY: The structure is ours alone until it is registered.
        unsafe {
            // Without a name of its own the driver is called like its module.
            (*raw).adrv.name = core::ptr::null();
            (*raw).adrv.probe = Some(Self::probe_callback);
            (*raw).adrv.remove = Some(Self::remove_callback);
            (*raw).adrv.id_table = T::ID_TABLE.as_ptr();
            (*raw).event_handler = Some(Self::event_callback);
        }

        // SAFETY: A complete driver that stays in place until `unregister`.
        to_result(unsafe {
            kernel::bindings::__auxiliary_driver_register(
                &raw mut (*raw).adrv,
                module.as_ptr(),
                name.as_char_ptr(),
            )
        })
    }

    unsafe fn unregister(reg: &Opaque<RawDriver>) {
        let raw: *mut bindings::iidc_rdma_core_auxiliary_drv = reg.get().cast();

        // SAFETY: Registered, by this function's contract.
        unsafe { kernel::bindings::auxiliary_driver_unregister(&raw mut (*raw).adrv) };
    }
}

impl<T: Driver> Adapter<T> {
    /// # Safety
    ///
    /// Called by the auxiliary bus with a device of the LAN driver that matches the id table.
    unsafe extern "C" fn probe_callback(
        adev: *mut kernel::bindings::auxiliary_device,
        _id: *const kernel::bindings::auxiliary_device_id,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The LAN driver embeds its devices so, as its header says.
            let outer =
                unsafe { container_of!(adev, bindings::iidc_rdma_core_auxiliary_dev, adev) };
            // SAFETY: Set before the device was added.
            let cdev = unsafe { (*outer).cdev_info };
            // SAFETY: The LAN driver keeps the information until the device is unbound, and the
            // function is revoked before that.
            let function = unsafe { Function::new(cdev) }?;
            let revoke = Revoke(function.clone());

            // SAFETY: The device is valid and, in this callback, being bound.
            let dev = unsafe { &*adev.cast::<auxiliary::Device<device::CoreInternal<'_>>>() };
            let data = T::probe(dev, function);

            dev.as_ref().set_drvdata(try_pin_init!(Bound {
                data <- data,
                _revoke: revoke,
            }))?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Called by the auxiliary bus with a device that `probe_callback` bound.
    unsafe extern "C" fn remove_callback(adev: *mut kernel::bindings::auxiliary_device) {
        // SAFETY: By this function's contract.
        let dev = unsafe { &*adev.cast::<auxiliary::Device<device::CoreInternal<'_>>>() };
        // SAFETY: Stored by `probe_callback`, and dropped by the driver core after this.
        let bound = unsafe { dev.as_ref().drvdata_borrow::<Bound<T::Data<'_>>>() };

        T::unbind(Self::data(bound));
        bound._revoke.0.unregister();
    }

    /// # Safety
    ///
    /// Called by the LAN driver under the lock of the auxiliary device.
    unsafe extern "C" fn event_callback(
        cdev: *mut bindings::iidc_rdma_core_dev_info,
        event: *mut bindings::iidc_rdma_event,
    ) {
        // SAFETY: Valid during the call. The LAN driver calls under the lock of this device.
        let adev = unsafe { (*cdev).adev };
        if adev.is_null() {
            return;
        }

        // SAFETY: As above. Null before the probe succeeded and after the data was dropped.
        if unsafe { (*adev).dev.driver_data }.is_null() {
            return;
        }

        // SAFETY: As above.
        let dev = unsafe { &*adev.cast::<auxiliary::Device<device::CoreInternal<'_>>>() };
        // SAFETY: Stored by `probe_callback`; the device's lock keeps it from being dropped.
        let bound = unsafe { dev.as_ref().drvdata_borrow::<Bound<T::Data<'_>>>() };
        // SAFETY: Valid during the call.
        let events = unsafe {
            Events {
                // CAST: `unsigned long` has 64 bits on the platforms of this layer.
                bits: (*event).type_[0] as u64,
                register: (*event).reg,
            }
        };

        T::event(Self::data(bound), events);
    }

    fn data<'a, 'bound>(bound: Pin<&'a Bound<T::Data<'bound>>>) -> Pin<&'a T::Data<'bound>> {
        // SAFETY: Structurally pinned.
        unsafe { bound.map_unchecked(|bound| &bound.data) }
    }
}
