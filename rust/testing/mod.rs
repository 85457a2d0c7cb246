// SPDX-License-Identifier: GPL-2.0

//! What unit tests of this crate and of drivers have in common. KUnit kernels only.
//!
//! - [`random`]: numbers that look random and are the same in every run;
//! - [`parallel`]: threads that do something at the same time;
//! - [`words`]: words of Intel's hardware as the kernel's own headers lay them out.

pub mod parallel;
pub mod random;
pub mod words;
