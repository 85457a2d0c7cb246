// SPDX-License-Identifier: GPL-2.0

//! Multicast groups: attaching queue pairs to them and detaching them.
//!
//! - `mac`: the Ethernet address of a group;
//! - `index`: the device's names of groups;
//! - `context`: the member list as the device reads it;
//! - `group`: who is attached to one group, and what the device was last told;
//! - `hardware`: what carries out their commands;
//! - `list`: all groups of a device;
//! - `vlan`: which VLANs' packets a group takes;
//! - `membership`: what one queue pair has attached;
//! - `groups`: the list with the device behind it;
//! - `view`: groups as they are shown.
//!
//! Words of the trade: a *group* is a set of UD queue pairs that each get their own copy of every
//! packet sent to the group's IP address; *MGID*, the group's address in the form of a GID; *MLID*, a
//! number that InfiniBand switches forward by and Ethernet has no use for; *MCG*, the device's entry
//! for a group.

pub(crate) mod context;
pub(crate) mod group;
pub(crate) mod groups;
pub(crate) mod hardware;
pub(crate) mod index;
pub(crate) mod list;
pub(crate) mod mac;
pub(crate) mod membership;
#[cfg(CONFIG_KUNIT = "y")]
mod tests;
pub(crate) mod view;
pub(crate) mod vlan;

pub(crate) use groups::{
    Groups,
    Interfaces,
    QpMemberships, //
};
