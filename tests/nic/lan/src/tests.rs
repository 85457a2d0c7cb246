// SPDX-License-Identifier: GPL-2.0
//! The LAN half as a driver sees it: registers, rings and frames.

mod admin;
mod data;
mod driver;
mod resets;
