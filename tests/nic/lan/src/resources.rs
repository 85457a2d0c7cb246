// SPDX-License-Identifier: GPL-2.0
//! Ids of switch and classifier resources (section 6.2 of the hardware contract).

use std::collections::{BTreeSet, HashMap};

/// Replication list of VSIs.
pub const VSI_LIST_REPLICATE: u16 = 0x03;
/// Prune list of VSIs.
pub const VSI_LIST_PRUNE: u16 = 0x04;
/// Resource type in the type word; the other bits say how to search.
const TYPE: u16 = 0x7f;

/// First and first-not id of a type.
fn range(kind: u16) -> std::ops::Range<u16> {
    match kind {
        VSI_LIST_REPLICATE | VSI_LIST_PRUNE => 1..1024,
        0x58 | 0x60 => 0..128, // Flow Director and RSS profiles
        0x59 | 0x61 => 0..512, // their TCAM entries
        _ => 0..4096,
    }
}

/// Ids in use, by type.
#[derive(Default)]
pub struct Resources {
    used: HashMap<u16, BTreeSet<u16>>,
}

impl Resources {
    /// The type in a request's type word.
    pub fn kind(word: u16) -> u16 {
        word & TYPE
    }

    /// Takes `count` ids, or none if fewer are left.
    pub fn allocate(&mut self, kind: u16, count: usize) -> Option<Vec<u16>> {
        let used = self.used.entry(kind).or_default();
        let ids: Vec<u16> = range(kind)
            .filter(|id| !used.contains(id))
            .take(count)
            .collect();
        if ids.len() < count {
            return None;
        }
        used.extend(&ids);
        Some(ids)
    }

    /// Gives an id back; `false` if it was not in use.
    pub fn free(&mut self, kind: u16, id: u16) -> bool {
        self.used
            .get_mut(&kind)
            .is_some_and(|used| used.remove(&id))
    }

    /// Ids in use.
    pub fn count(&self) -> usize {
        self.used.values().map(BTreeSet::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_distinct_and_come_back() {
        let mut resources = Resources::default();
        assert_eq!(resources.allocate(0x61, 2), Some(vec![0, 1]));
        assert_eq!(resources.allocate(0x60, 1), Some(vec![0]));
        assert!(resources.free(0x61, 0));
        assert!(!resources.free(0x61, 0));
        assert_eq!(resources.allocate(0x61, 1), Some(vec![0]));
    }

    #[test]
    fn last_id_is_the_last() {
        let mut resources = Resources::default();
        assert_eq!(
            resources.allocate(0x60, 128).map(|ids| ids.len()),
            Some(128)
        );
        assert_eq!(resources.allocate(0x60, 1), None);
        assert_eq!(resources.count(), 128);
    }

    #[test]
    fn lists_start_at_one() {
        assert_eq!(
            Resources::default().allocate(VSI_LIST_PRUNE, 1),
            Some(vec![1])
        );
    }
}
