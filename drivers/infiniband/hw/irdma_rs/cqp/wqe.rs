// SPDX-License-Identifier: GPL-2.0

//! The 64-byte entry of the control send queue.

use super::Op;
use kernel::bitfield;

/// 64-bit words in a control WQE.
pub(crate) const WORDS: usize = 8;

bitfield! {
    /// The parts of word 3 that every operation shares.
    pub(crate) struct Header(u64) {
        /// The ring's polarity: says that the entry is new.
        63:63 wqevalid;
        37:32 opcode ?=> Op;
    }
}

/// A control WQE in host byte order, without operation code and valid bit: both are the ring's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wqe([u64; WORDS]);

impl Wqe {
    /// An entry of zeroes.
    pub(crate) const fn new() -> Self {
        Self([0; WORDS])
    }

    /// The same entry with word `N` replaced.
    pub(crate) fn with<const N: usize>(mut self, word: impl Into<u64>) -> Self {
        const { assert!(N < WORDS) };
        self.0[N] = word.into();
        self
    }

    /// All words, the header completed for operation `op` and the given polarity.
    pub(super) fn finish(&self, op: Op, polarity: bool) -> [u64; WORDS] {
        let mut words = self.0;
        words[3] = Header::from(words[3])
            .with_opcode(op)
            .with_wqevalid(polarity)
            .into();
        words
    }
}
