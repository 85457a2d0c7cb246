// SPDX-License-Identifier: GPL-2.0

//! Module parameters that are text.
//!
//! The `module!` macro of the `kernel` crate knows numbers only. [`text_param!`](crate::text_param)
//! declares a parameter that takes a string and keeps it until the module goes; what the string
//! means is for the module's `init` to say, with an error that names the parameter.

use kernel::{
    bindings::{
        kernel_param,
        kernel_param_ops, //
    },
    error::from_result,
    prelude::*,
    sync::SetOnce, //
};

/// Octets that a value may have.
pub const MAX_LEN: usize = 1024;

#[derive(Clone, Copy)]
struct Text {
    octets: [u8; MAX_LEN],
    len: usize,
}

/// The value of a text parameter: empty if it was not given.
pub struct TextParam(SetOnce<Text>);

// SAFETY: Written once, before the module's `init` runs; `SetOnce` publishes it.
unsafe impl Sync for TextParam {}

impl TextParam {
    /// Operations for the kernel's parameter table.
    #[doc(hidden)]
    pub const OPS: kernel_param_ops = kernel_param_ops {
        flags: 0,
        set: Some(set),
        get: None,
        free: None,
    };

    /// A parameter without a value.
    pub const fn new() -> Self {
        Self(SetOnce::new())
    }

    /// The text.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is not UTF-8.
    pub fn text(&self) -> Result<&str> {
        let Some(text) = self.0.as_ref() else {
            return Ok("");
        };

        let octets = text.octets.get(..text.len).ok_or(EINVAL)?;
        core::str::from_utf8(octets).map_err(|_| EINVAL)
    }
}

impl Default for TextParam {
    fn default() -> Self {
        Self::new()
    }
}

/// # Safety
///
/// Called by the kernel with a string, or null, and a parameter whose `arg` is a `TextParam`.
unsafe extern "C" fn set(value: *const c_char, param: *const kernel_param) -> c_int {
    from_result(|| {
        if value.is_null() {
            return Err(EINVAL);
        }

        // SAFETY: A string that stays during the call.
        let value = unsafe { CStr::from_char_ptr(value) }.to_bytes();
        // SAFETY: By this function's contract.
        let arg = unsafe { (*param).__bindgen_anon_1.arg };
        // SAFETY: As above; it is a static of the module.
        let this = unsafe { &*arg.cast::<TextParam>() };

        let mut text = Text {
            octets: [0; MAX_LEN],
            len: value.len(),
        };
        // The kernel reports `ENOSPC` as a value that is too large.
        text.octets
            .get_mut(..value.len())
            .ok_or(ENOSPC)?
            .copy_from_slice(value);

        this.0.populate(text).then_some(0).ok_or(EEXIST)
    })
}

/// The octets of `text`, for [`text_param!`](crate::text_param).
#[doc(hidden)]
pub const fn octets<const N: usize>(text: &str) -> [u8; N] {
    let from = text.as_bytes();
    let mut to = [0; N];
    let mut at = 0;

    while at < N {
        to[at] = from[at];
        at += 1;
    }
    to
}

/// Declares a text parameter `$name` of a loadable module, as the static `$value`. It does not
/// appear in sysfs.
#[macro_export]
macro_rules! text_param {
    ($(#[$meta:meta])* static $value:ident = $name:literal, $description:literal;) => {
        $(#[$meta])*
        static $value: $crate::sys::param::TextParam = $crate::sys::param::TextParam::new();

        const _: () = {
            static OPS: ::kernel::bindings::kernel_param_ops =
                $crate::sys::param::TextParam::OPS;

            #[link_section = "__param"]
            #[used(compiler)]
            static PARAM: ::kernel::module_param::KernelParam =
                ::kernel::module_param::KernelParam::new(::kernel::bindings::kernel_param {
                    name: concat!($name, "\0").as_ptr().cast(),
                    // SAFETY: Only the address is taken; the loader defines the symbol.
                    mod_: unsafe {
                        ::core::ptr::from_ref(&::kernel::bindings::__this_module).cast_mut()
                    },
                    ops: ::core::ptr::from_ref(&OPS),
                    perm: 0,
                    level: -1,
                    flags: 0,
                    __bindgen_anon_1: ::kernel::bindings::kernel_param__bindgen_ty_1 {
                        arg: ::core::ptr::from_ref(&$value).cast_mut().cast(),
                    },
                });

            const TYPE: &str = concat!("parmtype=", $name, ":charp\0");
            #[link_section = ".modinfo"]
            #[used(compiler)]
            static TYPE_INFO: [u8; TYPE.len()] = $crate::sys::param::octets(TYPE);

            const ABOUT: &str = concat!("parm=", $name, ":", $description, "\0");
            #[link_section = ".modinfo"]
            #[used(compiler)]
            static ABOUT_INFO: [u8; ABOUT.len()] = $crate::sys::param::octets(ABOUT);
        };
    };
}
