// SPDX-License-Identifier: GPL-2.0
//! One entry of a control queue.

use crate::le::{Load, Store};

/// Bytes of an entry.
pub const LEN: usize = 32;

/// Descriptor done.
const DD: u16 = 1 << 0;
/// Completed.
const CMP: u16 = 1 << 1;
/// Completed with an error.
const ERR: u16 = 1 << 2;
/// An external buffer is used.
const BUF: u16 = 1 << 12;

/// A decoded entry. Fields the device does not interpret are kept as they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    flags: u16,
    /// Command or event.
    pub opcode: u16,
    /// Bytes of the buffer, or of it in use.
    pub data_len: u16,
    /// 0 or an error code.
    pub result: u16,
    cookies: [u8; 8],
    /// Parameters; of an indirect command the last eight bytes are the buffer's address.
    pub params: [u8; 16],
}

impl Descriptor {
    /// Decodes an entry; every bit pattern is one.
    pub fn decode(bytes: &[u8; LEN]) -> Self {
        let word = |at: usize| bytes.u16_at(at).unwrap_or(0);
        Self {
            flags: word(0),
            opcode: word(2),
            data_len: word(4),
            result: word(6),
            cookies: bytes.array_at(8).unwrap_or_default(),
            params: bytes.array_at(16).unwrap_or_default(),
        }
    }

    /// The entry as it lies in memory.
    pub fn encode(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let words = [self.flags, self.opcode, self.data_len, self.result];
        for (chunk, word) in bytes.chunks_exact_mut(2).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        // Both ranges lie inside the array, so neither store can fail.
        let _ = bytes.put(8, &self.cookies);
        let _ = bytes.put(16, &self.params);
        bytes
    }

    /// Whether the command has a buffer.
    pub fn has_buffer(&self) -> bool {
        self.flags & BUF != 0
    }

    /// Address of the buffer.
    pub fn buffer(&self) -> u64 {
        let high = self.params.u32_at(8).unwrap_or(0);
        let low = self.params.u32_at(12).unwrap_or(0);
        u64::from(high) << 32 | u64::from(low)
    }

    /// Marks a command as carried out, with 0 or an error code.
    pub fn complete(&mut self, result: u16) {
        self.result = result;
        self.flags = self.flags & !ERR | DD | CMP;
        if result != 0 {
            self.flags |= ERR;
        }
    }

    /// Turns a posted entry into an event with `data_len` bytes in its buffer.
    pub fn make_event(&mut self, opcode: u16, params: [u8; 8], data_len: u16) {
        self.flags = DD | CMP | BUF;
        self.opcode = opcode;
        self.data_len = data_len;
        self.result = 0;
        let _ = self.params.put(0, &params);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_lie_where_the_contract_says() {
        let mut bytes = [0u8; LEN];
        bytes[0..2].copy_from_slice(&0x3600u16.to_le_bytes());
        bytes[2..4].copy_from_slice(&0x0701u16.to_le_bytes());
        bytes[4..6].copy_from_slice(&0x1000u16.to_le_bytes());
        bytes[24..28].copy_from_slice(&0x1u32.to_le_bytes());
        bytes[28..32].copy_from_slice(&0x8000_0000u32.to_le_bytes());
        let mut descriptor = Descriptor::decode(&bytes);
        assert!(descriptor.has_buffer());
        assert_eq!((descriptor.opcode, descriptor.data_len), (0x0701, 0x1000));
        assert_eq!(descriptor.buffer(), 0x1_8000_0000);
        descriptor.complete(14);
        let done = descriptor.encode();
        assert_eq!(done[0..2], 0x3607u16.to_le_bytes());
        assert_eq!(done[6..8], 14u16.to_le_bytes());
        assert_eq!(done[24..32], bytes[24..32]);
    }

    proptest! {
        #[test]
        fn encode_undoes_decode(bytes: [u8; LEN]) {
            prop_assert_eq!(Descriptor::decode(&bytes).encode(), bytes);
        }
    }
}
