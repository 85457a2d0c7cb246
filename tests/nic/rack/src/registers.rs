// SPDX-License-Identifier: GPL-2.0
//! Accesses to BAR 0 as register accesses.
//!
//! Registers are 32 bits wide. They are written whole; statistics are also read in pairs. Narrower
//! or crooked reads get the bytes of the registers they touch, such writes are refused.

/// The registers of a card.
pub trait Registers {
    /// Reads one register.
    fn read32(&self, offset: u32) -> u32;

    /// Reads a pair at once.
    fn read64(&self, offset: u32) -> u64;

    /// Writes one register.
    fn write32(&self, offset: u32, value: u32);
}

/// Fills `data` with what is at `offset`.
pub fn read(registers: &dyn Registers, offset: u64, data: &mut [u8]) {
    let Ok(offset) = u32::try_from(offset) else {
        return;
    };
    if offset % 4 == 0 && data.len() == 8 {
        data.copy_from_slice(&registers.read64(offset).to_le_bytes());
        return;
    }
    let mut skip = usize::try_from(offset % 4).unwrap_or(0);
    let mut at = offset - offset % 4;
    let mut rest = data;
    while !rest.is_empty() {
        let word = registers.read32(at).to_le_bytes();
        let bytes = word.get(skip..).unwrap_or_default();
        let (now, later) = rest.split_at_mut(bytes.len().min(rest.len()));
        now.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        rest = later;
        skip = 0;
        at = at.wrapping_add(4);
    }
}

/// Writes `data` at `offset`; `false` if it is not whole registers.
pub fn write(registers: &dyn Registers, offset: u64, data: &[u8]) -> bool {
    let Ok(offset) = u32::try_from(offset) else {
        return false;
    };
    if offset % 4 != 0 || data.len() % 4 != 0 || data.is_empty() {
        return false;
    }
    let mut at = offset;
    for chunk in data.chunks_exact(4) {
        if let Ok(word) = chunk.try_into() {
            registers.write32(at, u32::from_le_bytes(word));
        }
        at = at.wrapping_add(4);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::RefCell;

    /// Registers whose bytes are their addresses.
    #[derive(Default)]
    struct Bytes(RefCell<Vec<(u32, u32)>>);

    fn byte(at: u64) -> u8 {
        (at % 251) as u8
    }

    impl Registers for Bytes {
        fn read32(&self, offset: u32) -> u32 {
            assert_eq!(offset % 4, 0);
            u32::from_le_bytes([0, 1, 2, 3].map(|n| byte(u64::from(offset) + n)))
        }
        fn read64(&self, offset: u32) -> u64 {
            u64::from(self.read32(offset)) | u64::from(self.read32(offset + 4)) << 32
        }
        fn write32(&self, offset: u32, value: u32) {
            self.0.borrow_mut().push((offset, value));
        }
    }

    #[test]
    fn writes_are_whole_registers() {
        let registers = Bytes::default();
        assert!(write(&registers, 8, &[1, 0, 0, 0, 2, 0, 0, 0]));
        assert_eq!(*registers.0.borrow(), [(8, 1), (12, 2)]);
        for (offset, len) in [(8, 1), (8, 2), (9, 4), (8, 6), (8, 0), (1 << 32, 4)] {
            assert!(!write(&registers, offset, &[0; 8][..len]), "{offset} {len}");
        }
    }

    proptest! {
        #[test]
        fn reads_get_the_bytes_of_the_registers(offset in 0u64..64, len in 0usize..24) {
            let mut data = vec![0; len];
            read(&Bytes::default(), offset, &mut data);
            let expected: Vec<u8> = (offset..).take(len).map(byte).collect();
            prop_assert_eq!(data, expected);
        }
    }
}
