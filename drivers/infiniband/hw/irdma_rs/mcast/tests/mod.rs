// SPDX-License-Identifier: GPL-2.0

//! Tests of the multicast list and of its parts; KUnit kernels only.
//!
//! - `device`: a device that keeps groups as the contract says, fails as told, and notes whatever it
//!   should not have been asked;
//! - `view`: what the list holds, for comparing;
//! - `rig`: what every random test is made of;
//! - `sequences`: random operations on the list, one after the other, next to a plain reference model;
//! - `parallel`: the same from several threads;
//! - `records`: what queue pairs remember of their attaches;
//! - `parts`: addresses, indexes and contexts.

mod device;
mod parallel;
mod parts;
mod records;
mod rig;
mod sequences;
mod view;
