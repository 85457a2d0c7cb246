// SPDX-License-Identifier: GPL-2.0
//! The control queues: rings of 32-byte descriptors in guest memory (section 3 of the hardware
//! contract). [`send`] carries out commands, [`receive`] posts events; [`descriptor`] is the entry
//! both use. What the commands mean is [`crate::command`]'s.

pub mod descriptor;
pub mod receive;
pub mod ring;
pub mod send;
