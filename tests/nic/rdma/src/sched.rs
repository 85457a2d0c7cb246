// SPDX-License-Identifier: GPL-2.0
//! Nodes of the work scheduler.

/// One node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) parent: u16,
    pub(crate) leaf: bool,
    pub(crate) enabled: bool,
    pub(crate) traffic_class: u8,
    pub(crate) weight: u8,
    pub(crate) vsi: u16,
}
