// SPDX-License-Identifier: GPL-2.0

//! Memory regions.
//!
//! Unlike the other objects, the driver allocates a region itself and hands the core a pointer.

use kernel::{
    error::from_result,
    impl_flags,
    prelude::*, //
};

use crate::{
    bindings,
    details::{
        self,
        Details, //
    },
    object::Object,
    ops::Operations,
    pd::Pd,
    udata::{
        self,
        Caller, //
    }, //
};

/// A memory region with the driver's part of it.
pub type Mr<D> = Object<D, bindings::ib_mr>;

impl_flags!(
    /// What may be done to a region, or by remote QPs to a QP.
    #[derive(Debug, Clone, Default, Copy, PartialEq, Eq)]
    pub struct Access(u32);

    /// One right of [`Access`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum AccessRight {
        /// The device may write for local requests and receives.
        LocalWrite = bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE,
        /// Remote QPs may write.
        RemoteWrite = bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE,
        /// Remote QPs may read.
        RemoteRead = bindings::ib_access_flags_IB_ACCESS_REMOTE_READ,
        /// Remote QPs may do atomic operations.
        RemoteAtomic = bindings::ib_access_flags_IB_ACCESS_REMOTE_ATOMIC,
        /// Memory windows may be bound.
        MwBind = bindings::ib_access_flags_IB_ACCESS_MW_BIND,
        /// Addresses count from zero.
        ZeroBased = bindings::ib_access_flags_IB_ZERO_BASED,
        /// Pages are not pinned but faulted in.
        OnDemand = bindings::ib_access_flags_IB_ACCESS_ON_DEMAND,
        /// The memory consists of huge pages.
        HugeTlb = bindings::ib_access_flags_IB_ACCESS_HUGETLB,
        /// Writes may be reordered on the bus.
        RelaxedOrdering = bindings::ib_access_flags_IB_ACCESS_RELAXED_ORDERING,
    }
);

impl Access {
    /// Rights from the core's flags.
    pub(crate) fn from_raw(flags: c_int) -> Self {
        // CAST: The same bits, as the C side has them in an `int`.
        Self(flags as u32)
    }

    /// The flags as the user ABI codes them.
    pub fn bits(self) -> u32 {
        self.0
    }
}

/// Memory of a process to be registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserRange {
    /// Address in the process.
    pub start: u64,
    /// Octets.
    pub len: u64,
    /// Address that work requests use.
    pub iova: u64,
}

/// The keys of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MrKeys {
    /// For local requests.
    pub lkey: u32,
    /// For remote ones.
    pub rkey: u32,
}

/// The driver's part of a memory region.
#[vtable]
pub trait MrOps<D: Operations>: Send + Sync + Sized {
    /// Registers memory of a process. Process context.
    fn register_user<'a>(
        pd: Pin<&'a Pd<D>>,
        range: UserRange,
        access: Access,
        caller: Caller<'a, D>,
    ) -> impl PinInit<Self, Error> + 'a;

    /// Makes a region of all memory, addressed by DMA addresses, for kernel consumers. Process
    /// context.
    fn dma(_pd: Pin<&Pd<D>>, _access: Access) -> impl PinInit<Self, Error> {
        // The initializer is never made; its type is needed all the same.
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR);
        #[allow(unreachable_code)]
        {
            Err::<Self, Error>(EOPNOTSUPP)
        }
    }

    /// The keys. They do not change.
    fn keys(&self) -> MrKeys;

    /// Tells what an operator may want to know beside what the core knows. Process context.
    fn details(_this: Pin<&Mr<D>>, _details: &mut Details<'_>) -> Result {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Takes the region away from the device. Process context. If it fails, the region goes on.
    fn deregister(this: Pin<&Mr<D>>) -> Result;
}

/// Allocates a region in `pd` and hands it to the core.
///
/// # Safety
///
/// `pd` is a live domain of a device of `D`.
unsafe fn hand_over<D: Operations>(
    pd: *mut bindings::ib_pd,
    init: impl PinInit<D::Mr, Error>,
) -> Result<*mut bindings::ib_mr> {
    let this = KBox::pin_init(Mr::<D>::boxed((), init), GFP_KERNEL)?;
    let MrKeys { lkey, rkey } = this.keys();
    let raw = this.as_raw();

    // SAFETY: Nobody else has the region yet; a live domain has its device set.
    unsafe {
        (*raw).device = (*pd).device;
        (*raw).pd = pd;
        (*raw).lkey = lkey;
        (*raw).rkey = rkey;
    }

    // SAFETY: The core does not move it; `deregister` takes the box back.
    let this = KBox::into_raw(unsafe { Pin::into_inner_unchecked(this) });
    // `raw` is at offset 0: see `Object::SIZE`.
    const_assert!(Mr::<D>::SIZE > 0);
    Ok(this.cast())
}

fn to_ptr(result: Result<*mut bindings::ib_mr>) -> *mut bindings::ib_mr {
    result.unwrap_or_else(|error| error.to_ptr())
}

/// # Safety
///
/// Called by the core with a live domain of a device of `D`.
pub(crate) unsafe extern "C" fn get_dma<D: Operations>(
    pd: *mut bindings::ib_pd,
    access: c_int,
) -> *mut bindings::ib_mr {
    // SAFETY: By this function's contract.
    let init = D::Mr::dma(unsafe { Pd::<D>::from_raw(pd) }, Access::from_raw(access));

    // SAFETY: By this function's contract.
    to_ptr(unsafe { hand_over::<D>(pd, init) })
}

/// # Safety
///
/// Called by the core with a live domain of a device of `D`, and null or the udata of the call.
pub(crate) unsafe extern "C" fn register_user<D: Operations>(
    pd: *mut bindings::ib_pd,
    start: u64,
    len: u64,
    iova: u64,
    access: c_int,
    dmah: *mut bindings::ib_dmah,
    udata: *mut bindings::ib_udata,
) -> *mut bindings::ib_mr {
    to_ptr((|| {
        // DMA handles steer the memory's traffic, which no device of this layer can do.
        if !dmah.is_null() {
            return Err(EOPNOTSUPP);
        }

        // SAFETY: By this function's contract.
        let domain = unsafe { Pd::<D>::from_raw(pd) };
        // SAFETY: By this function's contract.
        let caller = unsafe { Caller::from_udata(udata) }?;
        let range = UserRange { start, len, iova };
        let init = D::Mr::register_user(domain, range, Access::from_raw(access), caller);

        // SAFETY: By this function's contract.
        unsafe { hand_over::<D>(pd, init) }
    })())
}

/// # Safety
///
/// Called by the core with a region that `hand_over` gave it and nobody uses, and null or the
/// udata of the call.
pub(crate) unsafe extern "C" fn deregister<D: Operations>(
    raw: *mut bindings::ib_mr,
    udata: *mut bindings::ib_udata,
) -> c_int {
    from_result(|| {
        // SAFETY: By this function's contract.
        unsafe { udata::no_io(udata) }?;

        // SAFETY: By this function's contract.
        D::Mr::deregister(unsafe { Mr::<D>::from_raw(raw) })?;

        // SAFETY: The box that `hand_over` gave up, still at its place.
        drop(unsafe { Pin::new_unchecked(KBox::from_raw(raw.cast::<Mr<D>>())) });
        Ok(0)
    })
}

/// # Safety
///
/// Called by the core with a message it is filling and a live region.
pub(crate) unsafe extern "C" fn details<D: Operations>(
    message: *mut kernel::bindings::sk_buff,
    raw: *mut bindings::ib_mr,
) -> c_int {
    // SAFETY: By this function's contract; the core holds the region during the call.
    let this = unsafe { Mr::<D>::from_raw(raw) };

    // SAFETY: By this function's contract.
    from_result(|| unsafe { details::fill(message, |details| D::Mr::details(this, details)) })
}
