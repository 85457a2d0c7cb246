// SPDX-License-Identifier: GPL-2.0
//! WORK_SCHED_NODE: the tree of work scheduler nodes. A leaf's handle is its node id.

use super::{Done, OpResult, Wqe};
use crate::bits::{bit, bits, low16, Field};
use crate::cqp::error::CqpError;
use crate::model::Model;
use crate::sched::Node;

/// Word 3.
const NODE: Field = bits(13, 0);
const PARENT: Field = bits(29, 16);
const OPERATION: Field = bits(55, 52);
const TRAFFIC_CLASS: Field = bits(58, 56);
const LEAF: Field = bit(61);
const ENABLE: Field = bit(62);
/// Word 4.
const WEIGHT: Field = bits(38, 32);
const VSI: Field = bits(63, 48);

/// Ids must fit the ten bits of a queue set handle.
const MAX_NODE: u32 = 0x3FF;

impl Model {
    pub(super) fn op_sched_node(&mut self, wqe: &Wqe) -> OpResult {
        let id = NODE.get32(wqe[3]);
        if id > MAX_NODE {
            return Err(CqpError::range("node", id, MAX_NODE + 1));
        }
        let key = low16(id.into());
        let node = Node {
            parent: PARENT.get16(wqe[3]),
            leaf: LEAF.is_set(wqe[3]),
            enabled: ENABLE.is_set(wqe[3]),
            traffic_class: crate::bits::low8(TRAFFIC_CLASS.get(wqe[3])),
            weight: crate::bits::low8(WEIGHT.get(wqe[4])),
            vsi: VSI.get16(wqe[4]),
        };
        match OPERATION.get(wqe[3]) {
            0 => self.sched_add(key, node)?,
            1 => match self.sched.get_mut(&key) {
                Some(old) if old.leaf == node.leaf => *old = node,
                Some(_) => return Err(CqpError::parameter("kind of node changes")),
                None => return Err(CqpError::unused("node", id)),
            },
            2 => self.sched_delete(key)?,
            n => return Err(CqpError::parameter(format_args!("node operation {n}"))),
        }
        Ok(Done {
            value: id,
            minor: 0,
        })
    }

    fn sched_add(&mut self, key: u16, node: Node) -> Result<(), CqpError> {
        if self.sched.contains_key(&key) {
            return Err(CqpError::in_use("node", key.into()));
        }
        // The root is its own parent.
        if node.parent != key && !self.sched.contains_key(&node.parent) {
            return Err(CqpError::unused("parent node", node.parent.into()));
        }
        self.sched.insert(key, node);
        Ok(())
    }

    fn sched_delete(&mut self, key: u16) -> Result<(), CqpError> {
        if self.sched.iter().any(|(&k, n)| k != key && n.parent == key) {
            return Err(CqpError::state(format_args!("node {key} has children")));
        }
        let Some(node) = self.sched.remove(&key) else {
            return Err(CqpError::unused("node", key.into()));
        };
        if node.leaf {
            let users: Vec<u32> = self
                .qps
                .iter()
                .filter(|(_, q)| q.context.queue_set == key && q.may_send())
                .map(|(&id, _)| id)
                .collect();
            for qp in users {
                self.violate(format_args!("node {key} deleted while QP {qp} sends on it"));
            }
        }
        Ok(())
    }
}
