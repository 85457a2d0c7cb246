// SPDX-License-Identifier: GPL-2.0

//! The work scheduler: which queue set a queue pair sends in.
//!
//! The device shares its bandwidth by a tree: a root, a node for the VSI, and a leaf per traffic
//! class. A leaf is a queue set, which the LAN driver has to add to its own scheduler before the leaf
//! may be enabled. Nodes exist while a queue pair, or a multicast group, uses them; whoever uses a leaf
//! holds a [`QueueSet`].
//!
//! # When the traffic classes change
//!
//! The LAN driver rebuilds its own scheduler then, and the device's tree has to be taken down before
//! and made again after: [`Scheduler::freeze`], [`Scheduler::uproot`], [`Scheduler::thaw`]. A
//! [`QueueSet`] from before is not current any more ([`QueueSet::is_current`]); who holds it takes a new
//! one and tells the device. Who wants to join meanwhile waits.
//!
//! # Locking
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
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
    time::Msecs,
};
use rdma::{
    iidc::{
        QosParams,
        Qset, //
    },
    sys::completion::Completion,
};

/// Node id of the root.
const ROOT: u16 = 0;

/// Node id of the VSI's node.
const VSI: u16 = 1;

/// Node id of the leaf of traffic class 0; the others follow.
const FIRST_LEAF: u16 = 2;

/// Traffic classes.
const CLASSES: usize = 8;

/// How long to wait for the end of a change of the traffic classes.
const CHANGE_TIMEOUT: Msecs = 5000;

/// Most a handle may be: it has ten bits in queue pair contexts and multicast operations.
const MAX_HANDLE: u32 = 0x3ff;

struct Leaf {
    /// Zero if the device did not let it go.
    users: u32,
    handle: u16,
    /// The LAN driver's side of it.
    _qset: Qset,
}

struct Tree {
    /// The device has the root.
    root: bool,
    /// The device has the VSI's node.
    vsi: bool,
    leaves: [Option<Leaf>; CLASSES],
    /// The device has a leaf that could not be used and that it refused to delete.
    litter: [bool; CLASSES],
    qos: QosParams,
    /// The traffic classes are about to change: nobody may join.
    frozen: bool,
}

impl Tree {
    /// Traffic class of a user priority.
    fn traffic_class(&self, priority: u8) -> u8 {
        let class = self
            .qos
            .up2tc
            .get(usize::from(priority))
            .copied()
            .unwrap_or(0);
        if class < self.qos.num_tc {
            class
        } else {
            0
        }
    }

    /// Weight of a traffic class among the others.
    fn weight(&self, class: u8) -> u8 {
        self.qos
            .tc
            .get(usize::from(class))
            .map_or(1, |class| class.rel_bw.max(1))
    }
}

/// The work scheduler of one function.
#[pin_data]
pub(crate) struct Scheduler {
    port: Arc<Port>,
    cqp: Arc<Cqp>,
    #[pin]
    tree: Mutex<Tree>,
    /// Times that the tree was taken down. Changes under the lock.
    generation: Atomic<u32>,
    /// Complete while nobody has to wait.
    #[pin]
    thawed: Completion,
}

impl Scheduler {
    /// A scheduler without any node.
    pub(crate) fn new(port: Arc<Port>, cqp: Arc<Cqp>) -> Result<Arc<Self>> {
        let qos = port.qos()?;
        let scheduler = Arc::pin_init(
            pin_init!(Self {
                port,
                cqp,
                generation: Atomic::new(0),
                thawed <- Completion::new(),
                tree <- new_mutex!(
                    Tree {
                        root: false,
                        vsi: false,
                        leaves: [const { None }; CLASSES],
                        litter: [false; CLASSES],
                        qos,
                        frozen: false,
                    },
                    "Scheduler::tree"
                ),
            }),
            GFP_KERNEL,
        )?;
        scheduler.thawed.complete_all();
        Ok(scheduler)
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

    fn leaf_node(&self, tree: &Tree, class: u8, enabled: bool) -> Node {
        Node {
            id: FIRST_LEAF + u16::from(class),
            parent: VSI,
            leaf: true,
            enabled,
            weight: tree.weight(class),
            traffic_class: class,
            vsi: self.port.vsi(),
        }
    }

    fn order(&self, op: NodeOp, node: Node) -> Result<u32> {
        Ok(self.cqp.execute(&WorkSchedNode { op, node })?)
    }

    /// Has the device delete a node. Returns whether it is gone.
    fn delete(&self, node: Node) -> bool {
        // With a device that takes no commands any more everything goes.
        self.order(NodeOp::Delete, node).is_ok() || !self.cqp.is_alive()
    }

    fn grow_trunk(&self, tree: &mut Tree) -> Result {
        if !tree.root {
            self.order(NodeOp::Add, self.node(ROOT, ROOT))?;
            tree.root = true;
        }
        if !tree.vsi {
            if let Err(error) = self.order(NodeOp::Add, self.node(VSI, ROOT)) {
                self.cut_trunk(tree);
                return Err(error);
            }
            tree.vsi = true;
        }
        Ok(())
    }

    fn cut_trunk(&self, tree: &mut Tree) {
        if tree.leaves.iter().any(Option::is_some) || tree.litter.contains(&true) {
            return;
        }
        tree.vsi = tree.vsi && !self.delete(self.node(VSI, ROOT));
        tree.root = tree.root && (tree.vsi || !self.delete(self.node(ROOT, ROOT)));
    }

    fn grow_leaf(&self, tree: &mut Tree, class: u8) -> Result<Leaf> {
        self.clear_litter(tree, class)?;
        let handle = self.order(NodeOp::Add, self.leaf_node(tree, class, false))?;
        let grown = self.enable_leaf(tree, class, handle);
        if grown.is_err() {
            if let Some(litter) = tree.litter.get_mut(usize::from(class)) {
                *litter = true;
            }
            // What is left is cleared another time.
            let _ = self.clear_litter(tree, class);
        }
        grown
    }

    /// Has the device delete a leaf that could not be used.
    ///
    /// # Errors
    ///
    /// `EBUSY` if it still does not.
    fn clear_litter(&self, tree: &mut Tree, class: u8) -> Result {
        let node = self.leaf_node(tree, class, false);

        match tree.litter.get_mut(usize::from(class)) {
            Some(litter) if *litter => {
                *litter = !self.delete(node);
                if *litter {
                    Err(EBUSY)
                } else {
                    Ok(())
                }
            }
            _ => Ok(()),
        }
    }

    fn enable_leaf(&self, tree: &Tree, class: u8, handle: u32) -> Result<Leaf> {
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
        self.order(NodeOp::Modify, self.leaf_node(tree, class, true))?;
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
    /// Those of the control operations and of the LAN driver; `EBUSY` if the traffic classes are being
    /// changed and that does not end.
    pub(crate) fn join(self: &Arc<Self>, priority: u8) -> Result<QueueSet> {
        let mut tree = self.tree.lock();
        if tree.frozen {
            drop(tree);
            // Whether it was in time or not, only the lock tells how things are.
            let _ = self.thawed.wait_timeout(CHANGE_TIMEOUT);
            tree = self.tree.lock();
            if tree.frozen {
                return Err(EBUSY);
            }
        }
        let class = tree.traffic_class(priority);
        let place = usize::from(class);
        if tree.leaves.get(place).ok_or(EINVAL)?.is_none() {
            self.grow_trunk(&mut tree)?;
            match self.grow_leaf(&mut tree, class) {
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
            generation: self.generation.load(Relaxed),
            scheduler: self.clone(),
        })
    }

    fn leave(&self, class: u8, generation: u32) {
        let mut tree = self.tree.lock();
        if self.generation.load(Relaxed) != generation {
            // It has been taken down.
            return;
        }
        let leaf = tree
            .leaves
            .get_mut(usize::from(class))
            .and_then(Option::as_mut);
        let Some(leaf) = leaf else {
            return;
        };
        leaf.users = leaf.users.saturating_sub(1);
        if leaf.users == 0 {
            self.cut_leaf(&mut tree, class);
            self.cut_trunk(&mut tree);
        }
    }

    /// Takes a leaf down that nobody uses, or that nobody is to use any more.
    fn cut_leaf(&self, tree: &mut Tree, class: u8) {
        let deleted = self.delete(self.leaf_node(tree, class, false));
        let Some(place) = tree.leaves.get_mut(usize::from(class)) else {
            return;
        };
        if deleted {
            // Drops the LAN driver's side after the device's.
            drop(place.take());
        } else if let Some(leaf) = place {
            // The device still has it: it serves whoever joins next, and goes after that.
            leaf.users = 0;
        }
    }

    /// Takes down what nobody uses and the device refused to delete before. Process context.
    pub(crate) fn retry(&self) {
        let mut tree = self.tree.lock();

        if tree.frozen {
            // It is being taken down as a whole.
            return;
        }
        // CAST: Eight.
        for class in 0..CLASSES as u8 {
            let unused = tree
                .leaves
                .get(usize::from(class))
                .is_some_and(|leaf| leaf.as_ref().is_some_and(|leaf| leaf.users == 0));
            if unused {
                self.cut_leaf(&mut tree, class);
            }
            let _ = self.clear_litter(&mut tree, class);
        }
        self.cut_trunk(&mut tree);
    }

    /// From here on nobody can join: the traffic classes are about to change. Process context.
    pub(crate) fn freeze(&self) {
        let mut tree = self.tree.lock();

        if !tree.frozen {
            tree.frozen = true;
            // Whoever waited for the end of an earlier change may go on waiting, for no longer than he
            // would have anyway.
            self.thawed.reinit();
        }
    }

    /// Takes the whole tree down, whoever uses it: no queue pair sends any more. Process context.
    pub(crate) fn uproot(&self) {
        let mut tree = self.tree.lock();

        self.generation.fetch_add(1, Relaxed);
        for class in 0..CLASSES {
            // CAST: Less than eight.
            let number = class as u8;
            if matches!(tree.leaves.get(class), Some(Some(_))) {
                self.cut_leaf(&mut tree, number);
            }
            let _ = self.clear_litter(&mut tree, number);
        }
        self.cut_trunk(&mut tree);
    }

    /// The traffic classes have changed to `qos`: everybody may join again. Process context.
    pub(crate) fn thaw(&self, qos: QosParams) {
        let mut tree = self.tree.lock();

        tree.qos = qos;
        tree.frozen = false;
        self.thawed.complete_all();
    }
}

/// A share in a queue set.
pub(crate) struct QueueSet {
    handle: u16,
    class: u8,
    generation: u32,
    scheduler: Arc<Scheduler>,
}

impl QueueSet {
    /// The handle, for queue pair contexts and multicast operations.
    pub(crate) fn handle(&self) -> u16 {
        self.handle
    }

    /// Whether the device still has it. Not for good: the traffic classes may change.
    pub(crate) fn is_current(&self) -> bool {
        self.scheduler.generation.load(Relaxed) == self.generation
    }
}

impl Drop for QueueSet {
    fn drop(&mut self) {
        self.scheduler.leave(self.class, self.generation);
    }
}
