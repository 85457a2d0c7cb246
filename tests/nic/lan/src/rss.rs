// SPDX-License-Identifier: GPL-2.0
//! Receive side scaling: the Toeplitz hash, keys and tables (section 6.7 of the hardware contract).

use std::collections::HashMap;

/// Bytes of a key that the hash uses; the driver's extended part only serves longer inputs.
pub const KEY: usize = 52;
/// Longest input: two IPv6 addresses and two ports.
const MAX_INPUT: usize = 36;
/// Tables kept at most: one a VSI, one of the function and the global ones.
const MAX_TABLES: usize = 128;

/// Which table a command or a VSI means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableId {
    /// A VSI's own.
    Vsi(u16),
    /// The function's.
    Function,
    /// A shared one.
    Global(u8),
}

/// Keys and tables.
#[derive(Default)]
pub struct Rss {
    keys: HashMap<u16, [u8; KEY]>,
    tables: HashMap<TableId, Vec<u8>>,
}

impl Rss {
    /// Sets a VSI's key.
    pub fn set_key(&mut self, vsi: u16, key: [u8; KEY]) {
        self.keys.insert(vsi, key);
    }

    /// A VSI's key, zero until set.
    pub fn key(&self, vsi: u16) -> [u8; KEY] {
        self.keys.get(&vsi).copied().unwrap_or([0; KEY])
    }

    /// Sets a table; `false` if there are too many.
    pub fn set_table(&mut self, id: TableId, table: Vec<u8>) -> bool {
        if self.tables.len() >= MAX_TABLES && !self.tables.contains_key(&id) {
            return false;
        }
        self.tables.insert(id, table);
        true
    }

    /// A table, empty until set.
    pub fn table(&self, id: TableId) -> &[u8] {
        self.tables.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Forgets a VSI's key and table.
    pub fn remove_vsi(&mut self, vsi: u16) {
        self.keys.remove(&vsi);
        self.tables.remove(&TableId::Vsi(vsi));
    }
}

/// The addresses and ports that one packet's hash covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    bytes: [u8; MAX_INPUT],
    len: usize,
}

impl Flow {
    /// A flow of equally long addresses, and ports if the packet has them. With `symmetric` both
    /// directions of a connection hash alike.
    pub fn new(source: &[u8], destination: &[u8], ports: Option<(u16, u16)>) -> Self {
        let mut bytes = [0; MAX_INPUT];
        let (from, to) = ports.unwrap_or_default();
        let ports = if ports.is_some() { 4 } else { 0 };
        let input = source
            .iter()
            .chain(destination)
            .copied()
            .chain([from.to_be_bytes(), to.to_be_bytes()].concat());
        for (byte, value) in bytes.iter_mut().zip(input) {
            *byte = value;
        }
        let len = (source.len() + destination.len() + ports).min(MAX_INPUT);
        Self { bytes, len }
    }

    /// The same for both directions: each field is replaced by its difference from its opposite.
    pub fn symmetric(&self) -> Self {
        let mut folded = *self;
        let ports = if self.len % 8 == 4 { 4 } else { 0 };
        let half = (self.len - ports) / 2;
        let fields = [(0, half, half), (2 * half, 2, ports / 2)];
        for (start, distance, len) in fields {
            for at in start..start + len {
                let value = self.byte(at) ^ self.byte(at + distance);
                for target in [at, at + distance] {
                    if let Some(byte) = folded.bytes.get_mut(target) {
                        *byte = value;
                    }
                }
            }
        }
        folded
    }

    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// The Toeplitz hash under `key`.
    pub fn hash(&self, key: &[u8; KEY]) -> u32 {
        let (first, rest) = key.split_at(4);
        let mut window = first
            .iter()
            .fold(0, |word, byte| word << 8 | u32::from(*byte));
        let mut hash = 0;
        for (byte, next) in self.bytes.iter().take(self.len).zip(rest) {
            for bit in (0..8).rev() {
                if byte >> bit & 1 != 0 {
                    hash ^= window;
                }
                window = window << 1 | u32::from(next >> bit & 1);
            }
        }
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key and inputs of the specification's verification suite.
    fn key() -> [u8; KEY] {
        let mut key = [0; KEY];
        key[..40].copy_from_slice(&[
            0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
            0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
            0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
        ]);
        key
    }

    #[test]
    fn hash_is_toeplitz() {
        let (source, destination) = ([66, 9, 149, 187], [161, 142, 100, 80]);
        let flow = Flow::new(&source, &destination, Some((2794, 1766)));
        assert_eq!(flow.hash(&key()), 0x51cc_c178);
        assert_eq!(
            Flow::new(&source, &destination, None).hash(&key()),
            0x323e_8fc2
        );
    }

    #[test]
    fn symmetric_hashes_both_directions_alike() {
        let (one, other) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let there = Flow::new(&one, &other, Some((1000, 80)));
        let back = Flow::new(&other, &one, Some((80, 1000)));
        assert_ne!(there.hash(&key()), back.hash(&key()));
        assert_eq!(
            there.symmetric().hash(&key()),
            back.symmetric().hash(&key())
        );
        let portless = Flow::new(&one, &other, None).symmetric();
        assert_eq!(portless, Flow::new(&other, &one, None).symmetric());
    }

    #[test]
    fn tables_are_bounded() {
        let mut rss = Rss::default();
        for vsi in 0..1024 {
            rss.set_table(TableId::Vsi(vsi), vec![0]);
        }
        assert_eq!(rss.tables.len(), MAX_TABLES);
        assert!(rss.set_table(TableId::Vsi(0), vec![1]));
        assert_eq!(rss.table(TableId::Vsi(0)), [1]);
    }
}
