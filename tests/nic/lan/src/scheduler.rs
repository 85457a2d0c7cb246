// SPDX-License-Identifier: GPL-2.0
//! The transmit scheduler's tree (section 6.5 of the hardware contract). The model keeps it exactly
//! as the driver builds it and never schedules by it: the virtual port is never the bottleneck.

use crate::le::{Load, Store};
use std::collections::BTreeMap;

/// Bytes of an element.
pub const ELEMENT: usize = 24;
/// Parent of the root.
pub const NO_PARENT: u32 = u32::MAX;
/// Elements of the function at most.
const MAX_ELEMENTS: usize = 4096;

/// Element types.
const ROOT: u8 = 1;
const TRAFFIC_CLASS: u8 = 2;
const ENTRY_POINT: u8 = 4;
/// A queue or an RDMA queue set.
pub const LEAF: u8 = 5;

/// The element of traffic class 0 in the default tree.
pub const CLASS_0: u32 = 1;
/// Elements of the default tree, in order from the root.
pub const DEFAULT: [u32; 3] = [0, CLASS_0, 2];
/// First id for elements the driver adds.
const FIRST_ADDED: u32 = 16;

/// One element: parent, own id, and 16 bytes of type and bandwidth the driver reads back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// Id of the parent.
    pub parent: u32,
    /// Own id ("TEID").
    pub teid: u32,
    /// Type, valid sections, generic flags, rates.
    pub data: [u8; 16],
}

impl Element {
    /// The element as commands carry it.
    pub fn encode(&self) -> [u8; ELEMENT] {
        let mut bytes = [0; ELEMENT];
        let stored = bytes
            .put_u32(0, self.parent)
            .and_then(|()| bytes.put_u32(4, self.teid))
            .and_then(|()| bytes.put(8, &self.data));
        debug_assert!(stored.is_ok());
        bytes
    }
}

/// Why an element was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No such element.
    Missing,
    /// It has children, or would become its own ancestor.
    InUse,
    /// The tree is full.
    Full,
}

/// The tree, as a map by id.
pub struct Scheduler {
    elements: BTreeMap<u32, Element>,
    next: u32,
}

impl Scheduler {
    /// The tree after a reset: root, traffic class, entry point.
    pub fn new() -> Self {
        let mut parent = NO_PARENT;
        let mut elements = BTreeMap::new();
        for (teid, kind) in DEFAULT.into_iter().zip([ROOT, TRAFFIC_CLASS, ENTRY_POINT]) {
            let mut data = [0; 16];
            data[0] = kind;
            data[1] = 1; // the generic section is valid
            elements.insert(teid, Element { parent, teid, data });
            parent = teid;
        }
        Self {
            elements,
            next: FIRST_ADDED,
        }
    }

    /// An element by id.
    pub fn get(&self, teid: u32) -> Option<&Element> {
        self.elements.get(&teid)
    }

    /// Adds an element below `parent` under a new id.
    pub fn add(&mut self, parent: u32, data: [u8; 16]) -> Result<Element, Refused> {
        if !self.elements.contains_key(&parent) {
            return Err(Refused::Missing);
        }
        if self.elements.len() >= MAX_ELEMENTS {
            return Err(Refused::Full);
        }
        let teid = self.next;
        self.next = self.next.checked_add(1).ok_or(Refused::Full)?;
        let element = Element { parent, teid, data };
        self.elements.insert(teid, element);
        Ok(element)
    }

    /// Replaces type and rates.
    pub fn configure(&mut self, teid: u32, data: [u8; 16]) -> Result<(), Refused> {
        self.elements
            .get_mut(&teid)
            .map(|element| element.data = data)
            .ok_or(Refused::Missing)
    }

    /// Moves an element, with all below it, under another parent.
    pub fn move_to(&mut self, teid: u32, parent: u32) -> Result<(), Refused> {
        if !self.elements.contains_key(&parent) {
            return Err(Refused::Missing);
        }
        let mut ancestor = parent;
        // The tree has no cycle, so this ends at the root.
        while let Some(element) = self.elements.get(&ancestor) {
            if element.teid == teid {
                return Err(Refused::InUse);
            }
            ancestor = element.parent;
        }
        let element = self.elements.get_mut(&teid).ok_or(Refused::Missing)?;
        element.parent = parent;
        Ok(())
    }

    /// Removes an element without children.
    pub fn remove(&mut self, teid: u32) -> Result<(), Refused> {
        if self.elements.values().any(|element| element.parent == teid) {
            return Err(Refused::InUse);
        }
        self.elements
            .remove(&teid)
            .map(|_| ())
            .ok_or(Refused::Missing)
    }

    /// Removes a queue's leaf below `parent`, found by what the caller remembers.
    pub fn remove_leaf(&mut self, teid: u32) {
        self.elements.remove(&teid);
    }

    /// Elements in the tree.
    pub fn len(&self) -> usize {
        self.elements.len()
    }
}

/// Type and rates of an element in a request.
pub fn element_data(bytes: &[u8], at: usize) -> Result<[u8; 16], crate::le::Short> {
    bytes.array_at(at + 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_tree_is_a_chain() {
        let tree = Scheduler::new();
        assert_eq!(tree.get(0).unwrap().parent, NO_PARENT);
        assert_eq!(tree.get(1).unwrap().parent, 0);
        assert_eq!(tree.get(2).unwrap().data[0], ENTRY_POINT);
    }

    #[test]
    fn children_keep_their_parent() {
        let mut tree = Scheduler::new();
        let node = tree.add(CLASS_0, [3; 16]).unwrap();
        assert_eq!(node.teid, FIRST_ADDED);
        assert_eq!(tree.remove(CLASS_0), Err(Refused::InUse));
        assert_eq!(tree.remove(node.teid), Ok(()));
        assert_eq!(tree.remove(node.teid), Err(Refused::Missing));
        assert_eq!(tree.add(node.teid, [3; 16]), Err(Refused::Missing));
    }

    #[test]
    fn no_element_becomes_its_own_ancestor() {
        let mut tree = Scheduler::new();
        let upper = tree.add(CLASS_0, [3; 16]).unwrap().teid;
        let lower = tree.add(upper, [3; 16]).unwrap().teid;
        assert_eq!(tree.move_to(upper, lower), Err(Refused::InUse));
        assert_eq!(tree.move_to(upper, upper), Err(Refused::InUse));
        assert_eq!(tree.move_to(lower, CLASS_0), Ok(()));
        assert_eq!(tree.get(lower).unwrap().parent, CLASS_0);
    }

    #[test]
    fn tree_has_a_limit() {
        let mut tree = Scheduler::new();
        while tree.add(0, [3; 16]).is_ok() {}
        assert_eq!(tree.len(), MAX_ELEMENTS);
        assert_eq!(tree.add(0, [3; 16]), Err(Refused::Full));
    }
}
