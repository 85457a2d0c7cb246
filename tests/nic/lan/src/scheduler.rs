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
/// The root.
const DEFAULT_ROOT: u32 = 0;
/// Elements of the default tree, in order from the root.
pub const DEFAULT: [u32; 3] = [DEFAULT_ROOT, CLASS_0, 2];
/// Traffic classes at most.
pub const CLASSES: usize = 8;
/// The element of traffic class 1, followed by those of the others.
const CLASS_1: u32 = 3;
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
    /// Traffic classes in use, as a bit map.
    classes: u8,
}

impl Scheduler {
    /// The tree after a reset: root, traffic class, entry point.
    pub fn new() -> Self {
        let mut parent = NO_PARENT;
        let mut elements = BTreeMap::new();
        for (teid, kind) in DEFAULT.into_iter().zip([ROOT, TRAFFIC_CLASS, ENTRY_POINT]) {
            elements.insert(teid, fresh(parent, teid, kind));
            parent = teid;
        }
        Self {
            elements,
            next: FIRST_ADDED,
            classes: 1,
        }
    }

    /// Takes traffic classes into use, as a bit map; others are out of use, and what the driver has
    /// below them stays until it removes it.
    pub fn set_classes(&mut self, classes: u8) -> Result<(), Refused> {
        if classes & 1 == 0 {
            return Err(Refused::Missing);
        }
        self.classes = classes;
        for teid in self.classes().into_iter().flatten() {
            self.elements
                .entry(teid)
                .or_insert_with(|| fresh(DEFAULT_ROOT, teid, TRAFFIC_CLASS));
        }
        Ok(())
    }

    /// The element of each traffic class, if it is in use.
    pub fn classes(&self) -> [Option<u32>; CLASSES] {
        let mut teids = [None; CLASSES];
        let all = std::iter::once(CLASS_0).chain(CLASS_1..);
        for (class, (slot, teid)) in teids.iter_mut().zip(all).enumerate() {
            *slot = (self.classes >> class & 1 == 1).then_some(teid);
        }
        teids
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

/// An element of the default tree.
fn fresh(parent: u32, teid: u32, kind: u8) -> Element {
    let mut data = [0; 16];
    data[0] = kind;
    data[1] = 1; // the generic section is valid
    Element { parent, teid, data }
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
    fn each_class_in_use_has_a_branch() {
        let mut tree = Scheduler::new();
        assert_eq!(tree.classes()[..2], [Some(CLASS_0), None]);
        assert_eq!(tree.set_classes(0b1000_0101), Ok(()));
        let teids = tree.classes();
        let in_use: Vec<usize> = (0..CLASSES).filter(|c| teids[*c].is_some()).collect();
        assert_eq!(in_use, [0, 2, 7]);
        let last = teids[7].unwrap();
        assert!(last < FIRST_ADDED);
        assert_eq!(tree.get(last).unwrap().parent, DEFAULT_ROOT);
        let node = tree.add(last, [3; 16]).unwrap();
        assert_eq!(tree.set_classes(1), Ok(()));
        assert_eq!(tree.classes()[7], None);
        assert_eq!(tree.remove(node.teid), Ok(()));
        assert_eq!(tree.set_classes(2), Err(Refused::Missing));
    }

    #[test]
    fn tree_has_a_limit() {
        let mut tree = Scheduler::new();
        while tree.add(0, [3; 16]).is_ok() {}
        assert_eq!(tree.len(), MAX_ELEMENTS);
        assert_eq!(tree.add(0, [3; 16]), Err(Refused::Full));
    }
}
