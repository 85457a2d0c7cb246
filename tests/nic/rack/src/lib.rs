// SPDX-License-Identifier: GPL-2.0
//! The rack: virtual E810 cards, the fabric between them, and the channels that control both.
//!
//! - [`card`] puts a card together: LAN half, RDMA half, interrupt [`gates`], port;
//! - [`registers`] turns accesses to BAR 0 into register accesses;
//! - [`control`] answers commands from the host and from guests;
//! - [`rack`] makes all of it in a directory, [`socket`] by socket;
//! - [`log`] is where cards report what should not have happened.

pub mod absent;
pub mod card;
pub mod control;
pub mod gates;
pub mod log;
pub mod rack;
pub mod registers;
pub mod socket;
pub mod switches;
