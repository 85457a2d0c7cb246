// SPDX-License-Identifier: GPL-2.0
//! Bit ranges of registers and of the 64-bit words of queue entries, written as in the hardware
//! contract (`hi:lo`), and the few narrowing conversions the layouts need.

/// The bit range `hi:lo` of a 64-bit word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    hi: u8,
    lo: u8,
}

/// The range `hi:lo`, both ends included.
pub(crate) const fn bits(hi: u8, lo: u8) -> Field {
    assert!(hi < 64 && lo <= hi);
    Field { hi, lo }
}

/// The single bit `n`.
pub(crate) const fn bit(n: u8) -> Field {
    bits(n, n)
}

impl Field {
    const fn mask(self) -> u64 {
        (u64::MAX >> (63 - (self.hi - self.lo))) << self.lo
    }

    /// The field's value in `word`.
    pub(crate) const fn get(self, word: u64) -> u64 {
        (word & self.mask()) >> self.lo
    }

    /// The field's value, for fields of at most 32 bits.
    pub(crate) const fn get32(self, word: u64) -> u32 {
        low32(self.get(word))
    }

    /// The field's value, for fields of at most 16 bits.
    pub(crate) const fn get16(self, word: u64) -> u16 {
        low16(self.get(word))
    }

    /// Whether any bit of the field is set.
    pub(crate) const fn is_set(self, word: u64) -> bool {
        word & self.mask() != 0
    }

    /// A word with the field holding `value`, everything else zero. Excess bits are cut off.
    pub(crate) const fn put(self, value: u64) -> u64 {
        (value << self.lo) & self.mask()
    }

    /// A word with all bits of the field set if `value`.
    pub(crate) const fn flag(self, value: bool) -> u64 {
        if value {
            self.mask()
        } else {
            0
        }
    }
}

/// The low 32 bits.
pub(crate) const fn low32(word: u64) -> u32 {
    // CAST: cutting to the low half is what the name says.
    (word & 0xFFFF_FFFF) as u32
}

/// The low 16 bits.
pub(crate) const fn low16(word: u64) -> u16 {
    // CAST: cutting to the low 16 bits is what the name says.
    (word & 0xFFFF) as u16
}

/// The low 8 bits.
pub(crate) const fn low8(word: u64) -> u8 {
    // CAST: cutting to the low octet is what the name says.
    (word & 0xFF) as u8
}

/// A 32-bit count as a size of memory of this machine.
pub(crate) const fn size(count: u32) -> usize {
    // CAST: this program is only built for machines whose `usize` has at least 32 bits.
    count as usize
}

/// The length of a buffer as a 64-bit number.
pub(crate) const fn len64(len: usize) -> u64 {
    // CAST: `usize` has at most 64 bits.
    len as u64
}

/// The 64-bit little-endian words of an entry. Missing bytes read as zero.
pub(crate) fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut out = [0; N];
    for (word, chunk) in out.iter_mut().zip(bytes.chunks(8)) {
        let mut le = [0; 8];
        for (to, from) in le.iter_mut().zip(chunk) {
            *to = *from;
        }
        *word = u64::from_le_bytes(le);
    }
    out
}

/// The bytes of 64-bit little-endian words.
pub(crate) fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// A MAC address from a 48-bit field whose most significant octet comes first on the wire.
pub(crate) fn mac_from(field: u64) -> [u8; 6] {
    let [_, _, a, b, c, d, e, f] = field.to_be_bytes();
    [a, b, c, d, e, f]
}

/// The reverse of [`mac_from`].
pub(crate) fn mac_to(mac: [u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = mac;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_cut_out_and_put_back() {
        for (hi, lo) in [(0, 0), (63, 63), (63, 0), (37, 32), (17, 4)] {
            let f = bits(hi, lo);
            assert_eq!(f.get(u64::MAX), u64::MAX >> (63 - (hi - lo)));
            assert_eq!(f.get(f.put(1)), 1);
            assert_eq!(f.put(u64::MAX), f.flag(true));
            assert!(!f.is_set(!f.flag(true)));
        }
    }

    #[test]
    fn macs_have_their_first_octet_on_top() {
        assert_eq!(mac_from(0x0200_0000_0001), [2, 0, 0, 0, 0, 1]);
        assert_eq!(mac_to([2, 0, 0, 0, 0, 1]), 0x0200_0000_0001);
    }

    #[test]
    fn short_entries_read_as_zero() {
        assert_eq!(words::<2>(&[1, 2]), [0x0201, 0]);
        assert_eq!(bytes(&[0x0201]), [1, 2, 0, 0, 0, 0, 0, 0]);
    }
}
