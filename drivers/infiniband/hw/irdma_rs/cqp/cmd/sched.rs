// SPDX-License-Identifier: GPL-2.0

//! Nodes of the work scheduler's tree.

use super::super::{
    Command,
    Completed,
    Op,
    Wqe, //
};
use kernel::{
    bitfield,
    num::Bounded,
    prelude::*, //
};

/// What to do with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeOp {
    /// Add it.
    Add,
    /// Change it.
    Modify,
    /// Delete it.
    Delete,
}

impl From<NodeOp> for Bounded<u64, 4> {
    fn from(op: NodeOp) -> Self {
        match op {
            NodeOp::Add => Self::new::<0>(),
            NodeOp::Modify => Self::new::<1>(),
            NodeOp::Delete => Self::new::<2>(),
        }
    }
}

impl TryFrom<Bounded<u64, 4>> for NodeOp {
    type Error = Error;

    fn try_from(code: Bounded<u64, 4>) -> Result<Self> {
        match code.get() {
            0 => Ok(Self::Add),
            1 => Ok(Self::Modify),
            2 => Ok(Self::Delete),
            _ => Err(EINVAL),
        }
    }
}

bitfield! {
    struct NodeHeader(u64) {
        62:62 enablenode;
        61:61 nodetype;
        60:59 priotype;
        58:56 tc;
        55:52 nodeop ?=> NodeOp;
        29:16 parentid;
        13:0 nodeid;
    }
}

bitfield! {
    struct NodeWeight(u64) {
        63:48 vsi;
        38:32 weight;
    }
}

/// A node of the tree root, VSI, leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// Node id.
    pub(crate) id: u16,
    /// Id of the parent.
    pub(crate) parent: u16,
    /// Leaf rather than inner node.
    pub(crate) leaf: bool,
    /// The node takes part in scheduling.
    pub(crate) enabled: bool,
    /// Weight among its siblings.
    pub(crate) weight: u8,
    /// Traffic class.
    pub(crate) traffic_class: u8,
    /// VSI of the function.
    pub(crate) vsi: u16,
}

/// Adds, changes or deletes a node. Adding a leaf answers with the handle of its queue set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkSchedNode {
    /// What to do.
    pub(crate) op: NodeOp,
    /// With which node.
    pub(crate) node: Node,
}

impl Command for WorkSchedNode {
    const OP: Op = Op::WorkSchedNode;
    type Answer = u32;

    fn wqe(&self) -> Result<Wqe> {
        let node = &self.node;
        Ok(Wqe::new()
            .with::<3>(
                NodeHeader::from(0)
                    .try_with_nodeid(node.id)?
                    .try_with_parentid(node.parent)?
                    .with_nodeop(self.op)
                    .try_with_tc(node.traffic_class)?
                    // Weighted round robin.
                    .with_const_priotype::<1>()
                    .with_nodetype(node.leaf)
                    .with_enablenode(node.enabled),
            )
            .with::<4>(
                NodeWeight::from(0)
                    .try_with_weight(node.weight)?
                    .with_vsi(node.vsi),
            ))
    }

    fn answer(&self, completed: Completed) -> Self::Answer {
        completed.return_value
    }
}
