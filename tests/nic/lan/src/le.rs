// SPDX-License-Identifier: GPL-2.0
//! Little-endian fields in byte strings that the guest wrote or will read. Every access is checked:
//! lengths and offsets in such strings are the guest's choice.

/// An access past the end of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short;

/// Checked little-endian loads.
pub trait Load {
    /// `len` bytes from `at`.
    fn bytes_at(&self, at: usize, len: usize) -> Result<&[u8], Short>;

    /// `N` bytes from `at`.
    fn array_at<const N: usize>(&self, at: usize) -> Result<[u8; N], Short> {
        self.bytes_at(at, N)?.try_into().map_err(|_| Short)
    }

    /// One byte.
    fn u8_at(&self, at: usize) -> Result<u8, Short> {
        Ok(u8::from_le_bytes(self.array_at(at)?))
    }

    /// A 16-bit word.
    fn u16_at(&self, at: usize) -> Result<u16, Short> {
        Ok(u16::from_le_bytes(self.array_at(at)?))
    }

    /// A 32-bit word.
    fn u32_at(&self, at: usize) -> Result<u32, Short> {
        Ok(u32::from_le_bytes(self.array_at(at)?))
    }
}

impl Load for [u8] {
    fn bytes_at(&self, at: usize, len: usize) -> Result<&[u8], Short> {
        let end = at.checked_add(len).ok_or(Short)?;
        self.get(at..end).ok_or(Short)
    }
}

/// Checked little-endian stores.
pub trait Store {
    /// Copies `bytes` to `at`.
    fn put(&mut self, at: usize, bytes: &[u8]) -> Result<(), Short>;

    /// One byte.
    fn put_u8(&mut self, at: usize, value: u8) -> Result<(), Short> {
        self.put(at, &[value])
    }

    /// A 16-bit word.
    fn put_u16(&mut self, at: usize, value: u16) -> Result<(), Short> {
        self.put(at, &value.to_le_bytes())
    }

    /// A 32-bit word.
    fn put_u32(&mut self, at: usize, value: u32) -> Result<(), Short> {
        self.put(at, &value.to_le_bytes())
    }

    /// A 64-bit word.
    fn put_u64(&mut self, at: usize, value: u64) -> Result<(), Short> {
        self.put(at, &value.to_le_bytes())
    }
}

impl Store for [u8] {
    fn put(&mut self, at: usize, bytes: &[u8]) -> Result<(), Short> {
        let end = at.checked_add(bytes.len()).ok_or(Short)?;
        self.get_mut(at..end).ok_or(Short)?.copy_from_slice(bytes);
        Ok(())
    }
}

/// `width` bits (at most 64) from bit `lsb` of a context made of little-endian 32-bit words. Bits
/// past the end read 0.
pub fn field(words: &[u32], lsb: usize, width: usize) -> u64 {
    (0..width.min(64)).fold(0, |value, i| {
        let bit = lsb + i;
        let set = words
            .get(bit / 32)
            .is_some_and(|word| word >> (bit % 32) & 1 != 0);
        value | u64::from(set) << i
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_stop_at_the_end() {
        let bytes = [1u8, 2, 3, 4];
        assert_eq!(bytes.u32_at(0), Ok(0x0403_0201));
        assert_eq!(bytes.u16_at(2), Ok(0x0403));
        for at in [1, 4, usize::MAX] {
            assert_eq!(bytes.u32_at(at), Err(Short));
        }
    }

    #[test]
    fn stores_stop_at_the_end_and_touch_nothing() {
        let mut bytes = [0u8; 3];
        assert_eq!(bytes.put_u16(1, 0x0201), Ok(()));
        assert_eq!(bytes.put_u16(2, 0xffff), Err(Short));
        assert_eq!(bytes, [0, 1, 2]);
    }

    #[test]
    fn fields_cross_words() {
        let words = [0x8000_0000, 0x0000_0001];
        assert_eq!(field(&words, 31, 2), 3);
        assert_eq!(field(&words, 63, 4), 0);
    }
}
