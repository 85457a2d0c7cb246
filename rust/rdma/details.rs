// SPDX-License-Identifier: GPL-2.0

//! What a driver tells `rdma resource show ... -dd` about an object.
//!
//! C header: `include/rdma/restrack.h`. The core asks while it lists objects; it holds the object, and
//! no lock. What is told has to be short: a message of the core has room for some 3.5 KiB of all about
//! one object, and an object that does not even fit into a message alone is never listed. Details
//! that would come to more than [`Details::MAX`] are refused, so that a driver finds out.

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    error::{
        code,
        to_result, //
    },
    fmt,
    prelude::*,
    str::CString, //
};

use crate::bindings;

/// Octets of a netlink attribute's header.
const HEADER: usize = 4;

/// Takes the details of one object: names with values, in the order they are shown in.
pub struct Details<'a> {
    message: NonNull<kernel::bindings::sk_buff>,
    /// Octets the details may still take.
    left: usize,
    _message: PhantomData<&'a mut ()>,
}

impl Details<'_> {
    /// Octets that all details of an object may take in a message.
    pub const MAX: usize = 2048;

    /// A number, shown in decimal. A name is to be used once only.
    ///
    /// # Errors
    ///
    /// `EMSGSIZE` if the message is full, which the core deals with; `E2BIG` beyond
    /// [`Details::MAX`].
    pub fn number(&mut self, name: &'static CStr, value: u32) -> Result {
        self.take(name, size_of::<u32>())?;
        // SAFETY: The message of the call in progress, and a terminated string.
        to_result(unsafe {
            bindings::rdma_nl_put_driver_u32(self.message.as_ptr(), name.as_char_ptr(), value)
        })
    }

    /// A text, at a name that need not be constant.
    ///
    /// # Errors
    ///
    /// As [`Details::number`], and `ENOMEM`.
    pub fn text(&mut self, name: fmt::Arguments<'_>, value: fmt::Arguments<'_>) -> Result {
        let name = CString::try_from_fmt(name)?;
        let value = CString::try_from_fmt(value)?;

        self.take(&name, value.to_bytes_with_nul().len())?;
        // SAFETY: The message of the call in progress, and two terminated strings.
        to_result(unsafe {
            bindings::rdma_nl_put_driver_string(
                self.message.as_ptr(),
                name.as_char_ptr(),
                value.as_char_ptr(),
            )
        })
    }

    /// Whether there is room for a text of these lengths, without the terminators, within
    /// [`Details::MAX`].
    pub fn has_room(&self, name: usize, value: usize) -> bool {
        cost(name.saturating_add(1), value.saturating_add(1)) <= self.left
    }

    fn take(&mut self, name: &CStr, value: usize) -> Result {
        let cost = cost(name.to_bytes_with_nul().len(), value);

        self.left = self.left.checked_sub(cost).ok_or(code::E2BIG)?;
        Ok(())
    }
}

/// Returns what a name and a value take in a message.
fn cost(name: usize, value: usize) -> usize {
    let padded = |octets: usize| octets.saturating_add(HEADER).saturating_add(3) & !3;

    padded(name).saturating_add(padded(value))
}

/// Has `tell` put the details of an object into `message`, all of them or none.
///
/// # Safety
///
/// `message` is valid and nobody else uses it during the call.
pub(crate) unsafe fn fill(
    message: *mut kernel::bindings::sk_buff,
    tell: impl FnOnce(&mut Details<'_>) -> Result,
) -> Result<c_int> {
    let mut details = Details {
        message: NonNull::new(message).ok_or(EINVAL)?,
        left: Details::MAX,
        _message: PhantomData,
    };
    // SAFETY: By this function's contract.
    let start = unsafe { bindings::rdma_rs_nl_driver_start(message) };

    if start.is_null() {
        return Err(code::EMSGSIZE);
    }
    let told = tell(&mut details);
    // SAFETY: Started just now in this message, and not ended.
    unsafe {
        match told {
            Ok(()) => bindings::rdma_rs_nl_end(message, start),
            Err(_) => bindings::rdma_rs_nl_cancel(message, start),
        }
    };
    told.map(|()| 0)
}
