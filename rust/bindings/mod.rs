// SPDX-License-Identifier: GPL-2.0

//! Raw declarations of the RDMA core, the LAN driver's interface and net devices.
//!
//! Generated at build time from `headers.h`. Types that `kernel::bindings` defines are that
//! crate's; only what it lacks is generated here. Private to the wrapper layer: drivers use the
//! modules beside this one.

#![allow(
    clippy::all,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    unsafe_op_in_unsafe_fn,
    unused_imports
)]

use kernel::{
    bindings::*,
    ffi, //
};
use pin_init::{
    MaybeZeroable,
    Zeroable, //
};

// bindgen leaves these to us: see the kernel's `bindgen_parameters`.
type __kernel_size_t = usize;
type __kernel_ssize_t = isize;
type __kernel_ptrdiff_t = isize;

// SAFETY: The unit is an array of the storage type, all zeroes are valid if they are for that.
unsafe impl<S> Zeroable for __BindgenBitfieldUnit<S> where S: Zeroable {}

include!(env!("RDMA_BINDINGS"));
