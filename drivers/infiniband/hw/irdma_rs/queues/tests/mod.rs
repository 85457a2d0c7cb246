// SPDX-License-Identifier: GPL-2.0

//! Tests of the queues and their layouts; KUnit kernels only.
//!
//! - `layout`: words against those that C computes with the macros of the kernel's own headers;
//! - `rings`: long random runs of send, receive and completion queues next to plain models, with a
//!   device that makes things up;
//! - `sizes`: every size there is, by rules that do not share the code's shortcuts.

mod layout;
mod rings;
mod sizes;
