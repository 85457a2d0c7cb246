// SPDX-License-Identifier: GPL-2.0

//! Tracepoints of one's own.
//!
//! The `kernel` crate's `declare_trace!` finds tracepoints only among the kernel's own. A module has
//! its events in a C header of the usual form, and one C file that includes it with
//! `CREATE_TRACE_POINTS` and `CREATE_RUST_TRACE_POINTS` defined.

/// Declares safe functions that pass tracepoints of the same names and arguments, and for each one that
/// tells whether it is on, for arguments that are dear.
///
/// A tracepoint that is off costs a jump that is not taken. Arguments are numbers, and references
/// where the C prototype has pointers to read from: what they refer to outlives the call, and the
/// event copies what it keeps.
#[macro_export]
macro_rules! declare_trace {
    ($($(#[$attr:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?);)*) => {
        ::kernel::macros::paste! {$(
            /// Whether the tracepoint is on.
            #[inline(always)]
            #[allow(dead_code, reason = "few arguments are dear")]
            $vis fn [<$name _enabled>]() -> bool {
                #[cfg(CONFIG_TRACEPOINTS)]
                {
                    unsafe extern "C" {
                        static [<__tracepoint_ $name>]: ::kernel::bindings::tracepoint;
                    }

                    // SAFETY: The key of a tracepoint that C defines, which may be asked at any time.
                    unsafe {
                        ::kernel::jump_label::static_branch_unlikely!(
                            [<__tracepoint_ $name>],
                            ::kernel::bindings::tracepoint,
                            key
                        )
                    }
                }
                #[cfg(not(CONFIG_TRACEPOINTS))]
                false
            }

            $(#[$attr])*
            #[inline(always)]
            $vis fn $name($($arg: $type),*) {
                #[cfg(CONFIG_TRACEPOINTS)]
                {
                    #[allow(improper_ctypes, reason = "references are pointers to C")]
                    unsafe extern "C" {
                        safe fn [<rust_do_trace_ $name>]($($arg: $type),*);
                    }

                    if [<$name _enabled>]() {
                        [<rust_do_trace_ $name>]($($arg),*);
                    }
                }
                #[cfg(not(CONFIG_TRACEPOINTS))]
                {
                    $(let _ = $arg;)*
                }
            }
        )*}
    };
}

pub use crate::declare_trace;
