// SPDX-License-Identifier: GPL-2.0

//! Net devices and the notifier chains around them.

pub mod device;
pub mod notifier;

pub use device::{
    MacAddress,
    NetDevice, //
};
