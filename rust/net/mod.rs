// SPDX-License-Identifier: GPL-2.0

//! Net devices, the notifier chains around them and their multicast memberships.

pub mod device;
pub mod membership;
pub mod notifier;

pub use device::{
    MacAddress,
    NetDevice, //
};
