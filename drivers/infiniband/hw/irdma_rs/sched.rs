// SPDX-License-Identifier: GPL-2.0

//! The work scheduler: which queue set a queue pair sends in.
//!
//! The device shares its bandwidth by a tree: a root, a node for the VSI, and a leaf per traffic
//! class. A leaf is a queue set, which the LAN driver has to add to its own scheduler before the leaf
//! may be enabled. Nodes exist while a queue pair, or a multicast group, uses them; whoever uses a leaf
//! holds a [`QueueSet`].
//!
//! The lock is held across control operations and calls of the LAN driver: process context only. It
//! is taken before all locks of the control queue and after all others of this driver.

use crate::{
    cqp::{
        cmd::{
            Node,
            NodeOp,
            WorkSchedNode, //
        },
        Cqp, //
    },
    lan::Port, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};
use rdma::iidc::Qset;

/// Node id of the root.
const ROOT: u16 = 0;

/// Node id of the VSI's node.
const VSI: u16 = 1;

/// Node id of the leaf of traffic class 0; the others follow.
const FIRST_LEAF: u16 = 2;

/// Traffic classes.
const CLASSES: usize = 8;

/// Most a handle may be: it has ten bits in queue pair contexts and multicast operations.
const MAX_HANDLE: u32 = 0x3ff;

struct Leaf {
    /// None if the device did not let it go.
    users: u32,
    handle: u16,
    /// The LAN driver's side of it.
    _qset: Qset,
}

struct Tree {
    /// Root and VSI node are in the device.
    trunk: bool,
    leaves: [Option<Leaf>; CLASSES],
}

/// The work scheduler of one function.
#[pin_data]
pub(crate) struct Scheduler {
    port: Arc<Port>,
    cqp: Arc<Cqp>,
    #[pin]
    tree: Mutex<Tree>,
}

impl Scheduler {
    /// A scheduler without any node.
    pub(crate) fn new(port: Arc<Port>, cqp: Arc<Cqp>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                port,
                cqp,
                tree <- new_mutex!(
                    Tree {
                        trunk: false,
                        leaves: [const { None }; CLASSES],
                    },
                    "Scheduler::tree"
                ),
            }),
            GFP_KERNEL,
        )
    }

    fn node(&self, id: u16, parent: u16) -> Node {
        Node {
            id,
            parent,
            leaf: false,
            enabled: true,
            weight: 1,
            traffic_class: 0,
            vsi: self.port.vsi(),
        }
    }

    fn leaf_node(&self, class: u8, enabled: bool) -> Node {
        Node {
            id: FIRST_LEAF + u16::from(class),
            parent: VSI,
            leaf: true,
            enabled,
            weight: self.port.class_weight(class),
            traffic_class: class,
            vsi: self.port.vsi(),
        }
    }

    fn order(&self, op: NodeOp, node: Node) -> Result<u32> {
        Ok(self.cqp.execute(&WorkSchedNode { op, node })?)
    }

    fn grow_trunk(&self, tree: &mut Tree) -> Result {
        if tree.trunk {
            return Ok(());
        }
        self.order(NodeOp::Add, self.node(ROOT, ROOT))?;
        if let Err(error) = self.order(NodeOp::Add, self.node(VSI, ROOT)) {
            let _ = self.order(NodeOp::Delete, self.node(ROOT, ROOT));
            return Err(error);
        }
        tree.trunk = true;
        Ok(())
    }

    fn cut_trunk(&self, tree: &mut Tree) {
        if !tree.trunk || tree.leaves.iter().any(Option::is_some) {
            return;
        }
        let _ = self.order(NodeOp::Delete, self.node(VSI, ROOT));
        let _ = self.order(NodeOp::Delete, self.node(ROOT, ROOT));
        tree.trunk = false;
    }

    fn grow_leaf(&self, class: u8) -> Result<Leaf> {
        let handle = self.order(NodeOp::Add, self.leaf_node(class, false))?;
        let grown = self.enable_leaf(class, handle);
        if grown.is_err() {
            let _ = self.order(NodeOp::Delete, self.leaf_node(class, false));
        }
        grown
    }

    fn enable_leaf(&self, class: u8, handle: u32) -> Result<Leaf> {
        if handle > MAX_HANDLE {
            dev_err!(
                self.port.log(),
                "WORK_SCHED_NODE: impossible queue set handle {handle:#x}\n"
            );
            return Err(EIO);
        }
        let handle = u16::try_from(handle)?;
        let qset = self.port.add_qset(handle, class).inspect_err(|error| {
            dev_err!(
                self.port.log(),
                "queue set of traffic class {class}: refused by the LAN driver, error {}\n",
                error.to_errno()
            );
        })?;
        // On failure the set is taken out of the LAN driver again by its destructor.
        self.order(NodeOp::Modify, self.leaf_node(class, true))?;
        Ok(Leaf {
            users: 0,
            handle,
            _qset: qset,
        })
    }

    /// Joins the queue set of `priority`, making it if nobody uses it yet. Process context.
    ///
    /// # Errors
    ///
    /// Those of the control operations and of the LAN driver.
    pub(crate) fn join(self: &Arc<Self>, priority: u8) -> Result<QueueSet> {
        let class = self.port.traffic_class(priority);
        let mut tree = self.tree.lock();
        let place = usize::from(class);
        if tree.leaves.get(place).ok_or(EINVAL)?.is_none() {
            self.grow_trunk(&mut tree)?;
            match self.grow_leaf(class) {
                Ok(leaf) => {
                    if let Some(place) = tree.leaves.get_mut(place) {
                        *place = Some(leaf);
                    }
                }
                Err(error) => {
                    self.cut_trunk(&mut tree);
                    return Err(error);
                }
            }
        }
        let leaf = tree
            .leaves
            .get_mut(place)
            .and_then(Option::as_mut)
            .ok_or(EINVAL)?;
        leaf.users = leaf.users.saturating_add(1);
        Ok(QueueSet {
            handle: leaf.handle,
            class,
            scheduler: self.clone(),
        })
    }

    fn leave(&self, class: u8) {
        let mut tree = self.tree.lock();
        let Some(place) = tree.leaves.get_mut(usize::from(class)) else {
            return;
        };
        let Some(leaf) = place.as_mut() else {
            return;
        };
        leaf.users = leaf.users.saturating_sub(1);
        if leaf.users != 0 {
            return;
        }
        let deleted = self.order(NodeOp::Delete, self.leaf_node(class, false));
        if deleted.is_err() && self.cqp.is_alive() {
            // The device still has it: it serves whoever joins next, and goes after that.
            return;
        }
        // Drops the LAN driver's side after the device's.
        drop(place.take());
        self.cut_trunk(&mut tree);
    }
}

/// A share in a queue set.
pub(crate) struct QueueSet {
    handle: u16,
    class: u8,
    scheduler: Arc<Scheduler>,
}

impl QueueSet {
    /// The handle, for queue pair contexts and multicast operations.
    pub(crate) fn handle(&self) -> u16 {
        self.handle
    }
}

impl Drop for QueueSet {
    fn drop(&mut self) {
        self.scheduler.leave(self.class);
    }
}
