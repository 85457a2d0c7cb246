// SPDX-License-Identifier: GPL-2.0

//! Who called a verb, and the driver's private data of a system call.
//!
//! Requests may be longer than the kernel's structure if the tail is zero, and shorter down to
//! the member that the first version ended with. Responses are cut or filled with zeroes to the
//! caller's length. The core calls that "robust udata"; devices of this layer declare it.

use core::mem::MaybeUninit;
use kernel::{
    error::to_result,
    prelude::*,
    types::Opaque, //
};
use zerocopy::Immutable;

use crate::{
    bindings,
    ops::Operations,
    ucontext::Ucontext, //
};

/// The private data of one system call.
///
/// # Invariants
///
/// Embedded in the `uverbs_attr_bundle` of a call in progress.
#[repr(transparent)]
pub struct Udata(Opaque<bindings::ib_udata>);

impl Udata {
    /// # Safety
    ///
    /// `ptr` is the `driver_udata` of a bundle that is valid during `'a`.
    pub(crate) unsafe fn from_raw<'a>(ptr: *mut bindings::ib_udata) -> &'a Self {
        // SAFETY: The type is transparent; validity by this function's contract.
        unsafe { &*ptr.cast::<Self>() }
    }

    /// Octets of the request.
    pub fn request_len(&self) -> usize {
        // SAFETY: Valid by the type invariant, constant during the call.
        unsafe { (*self.0.get()).inlen }
    }

    /// Octets the caller has room for in the response.
    pub fn response_len(&self) -> usize {
        // SAFETY: As in `request_len`.
        unsafe { (*self.0.get()).outlen }
    }

    /// Reads the request. `min_len` is where the oldest version of `T` ended; what the caller did
    /// not send is zero. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is shorter than `min_len`, `EOPNOTSUPP` if it has non-zero octets past the
    /// end of `T`, `EFAULT` if it cannot be read.
    pub fn request<T: FromBytes>(&self, min_len: usize) -> Result<T> {
        let mut request = MaybeUninit::<T>::zeroed();

        // SAFETY: Room for `T`; the udata is valid by the type invariant.
        to_result(unsafe {
            bindings::_ib_copy_validate_udata_in(
                self.0.get(),
                request.as_mut_ptr().cast(),
                size_of::<T>(),
                min_len,
            )
        })?;

        // SAFETY: Every octet is initialised, and any octets make a `T: FromBytes`.
        Ok(unsafe { request.assume_init() })
    }

    /// Writes the response, cut or filled with zeroes to the caller's length. Process context.
    ///
    /// # Errors
    ///
    /// `EFAULT` if it cannot be written.
    pub fn respond<T: IntoBytes + Immutable>(&self, response: &T) -> Result {
        let bytes = response.as_bytes();

        // SAFETY: `bytes` is readable memory without padding; the udata is valid.
        to_result(unsafe {
            bindings::_ib_respond_udata(self.0.get(), bytes.as_ptr().cast(), bytes.len())
        })
    }

    /// Checks that the request is empty or zero. Process context.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if it is not, `EFAULT` if it cannot be read.
    pub fn request_empty(&self) -> Result {
        // SAFETY: Valid by the type invariant.
        to_result(unsafe { bindings::rdma_rs_is_udata_in_empty(self.0.get()) })
    }

    /// Fills the caller's response with zeroes. Process context.
    ///
    /// # Errors
    ///
    /// `EFAULT` if it cannot be written.
    pub fn respond_empty(&self) -> Result {
        // SAFETY: Valid by the type invariant.
        to_result(unsafe { bindings::rdma_rs_respond_empty_udata(self.0.get()) })
    }
}

/// For operations that take no private data and give none: checks and answers it.
///
/// # Safety
///
/// `udata` is null or the `driver_udata` of the bundle of the call in progress.
pub(crate) unsafe fn no_io(udata: *mut bindings::ib_udata) -> Result {
    if udata.is_null() {
        return Ok(());
    }

    // SAFETY: By this function's contract.
    let udata = unsafe { Udata::from_raw(udata) };

    udata.request_empty()?;
    udata.respond_empty()
}

/// Who called a verb.
pub enum Caller<'a, D: Operations> {
    /// A process, through uverbs.
    User {
        /// Private data of the call.
        udata: &'a Udata,
        /// The process's context on the device.
        ucontext: Pin<&'a Ucontext<D>>,
    },
    /// A kernel consumer.
    Kernel,
}

impl<D: Operations> Clone for Caller<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Operations> Copy for Caller<'_, D> {}

impl<'a, D: Operations> Caller<'a, D> {
    /// # Errors
    ///
    /// `EINVAL` for private data without a context.
    ///
    /// # Safety
    ///
    /// `udata` is null or the `driver_udata` of the bundle of a call on a device of `D`, valid
    /// during `'a`, whose context is finished.
    pub(crate) unsafe fn from_udata(udata: *mut bindings::ib_udata) -> Result<Self> {
        if udata.is_null() {
            return Ok(Self::Kernel);
        }

        // SAFETY: Embedded in a valid bundle by this function's contract.
        let ucontext = unsafe { bindings::rdma_rs_udata_to_ucontext(udata) };
        if ucontext.is_null() {
            // The core promises a context with every udata. A process must not pass for the kernel.
            return Err(EINVAL);
        }

        Ok(Self::User {
            // SAFETY: By this function's contract.
            udata: unsafe { Udata::from_raw(udata) },
            // SAFETY: The context of a call on a device of `D`, alive during the call.
            ucontext: unsafe { Ucontext::<D>::from_raw(ucontext) },
        })
    }

    /// The private data, if a process called.
    pub fn udata(&self) -> Option<&'a Udata> {
        match self {
            Self::User { udata, .. } => Some(udata),
            Self::Kernel => None,
        }
    }

    /// The process's context, if a process called.
    pub fn ucontext(&self) -> Option<Pin<&'a Ucontext<D>>> {
        match self {
            Self::User { ucontext, .. } => Some(*ucontext),
            Self::Kernel => None,
        }
    }

    /// Whether a process called.
    pub fn is_user(&self) -> bool {
        matches!(self, Self::User { .. })
    }
}
