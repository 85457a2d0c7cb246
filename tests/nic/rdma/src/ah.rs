// SPDX-License-Identifier: GPL-2.0
//! Address handles.

use crate::ip::Ip;

/// The path that a datagram takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ah {
    pub(crate) pd: u32,
    pub(crate) source_mac: [u8; 6],
    /// Entry of the table of destination MAC addresses.
    pub(crate) arp: u16,
    pub(crate) source: Ip,
    pub(crate) destination: Ip,
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: u8,
    pub(crate) flow_label: u32,
    /// Tag to insert.
    pub(crate) vlan: Option<u16>,
    /// Deliver to queue pairs of this function.
    pub(crate) loopback: bool,
}
