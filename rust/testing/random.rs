// SPDX-License-Identifier: GPL-2.0

//! Numbers that look random and are the same in every run.
//!
//! The generator is splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
//! generators", 2014): one word of state, any seed is good.

/// A generator of numbers.
pub struct Random(u64);

impl Random {
    /// The generator with this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is not zero.
    pub fn below(&mut self, limit: u32) -> u32 {
        // CAST: Less than `limit`.
        (self.next() % u64::from(limit.max(1))) as u32
    }

    /// An index below `limit`, which is not zero.
    pub fn index(&mut self, limit: usize) -> usize {
        // CAST: 64 bits each way.
        (self.next() % limit.max(1) as u64) as usize
    }

    /// True `chances` times out of `of`.
    pub fn chance(&mut self, chances: u32, of: u32) -> bool {
        self.below(of) < chances
    }

    /// True every other time.
    pub fn flip(&mut self) -> bool {
        self.chance(1, 2)
    }

    /// A number of at most `bits` bits, between 1 and 64; often one at an edge of the range.
    pub fn bits(&mut self, bits: u32) -> u64 {
        let max = u64::MAX >> 64u32.saturating_sub(bits).min(63);
        match self.below(6) {
            0 => 0,
            1 => max,
            // A single bit.
            2 => 1 << self.below(bits.min(64)),
            _ => self.next() & max,
        }
    }

    /// The same of at most 32 bits.
    pub fn bits32(&mut self, bits: u32) -> u32 {
        // CAST: At most 32 bits.
        self.bits(bits.min(32)) as u32
    }

    /// The same of at most 16 bits.
    pub fn bits16(&mut self, bits: u32) -> u16 {
        // CAST: At most 16 bits.
        self.bits(bits.min(16)) as u16
    }

    /// The same of at most 8 bits.
    pub fn bits8(&mut self, bits: u32) -> u8 {
        // CAST: At most 8 bits.
        self.bits(bits.min(8)) as u8
    }

    /// `N` octets.
    pub fn octets<const N: usize>(&mut self) -> [u8; N] {
        core::array::from_fn(|_| self.bits8(8))
    }
}

#[kernel::prelude::kunit_tests(rdma_testing_random)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_sequence() {
        let (mut a, mut b, mut c) = (Random::new(7), Random::new(7), Random::new(8));
        let mut differ = false;

        for _ in 0..100 {
            let (x, y, z) = (a.next(), b.next(), c.next());
            assert_eq!(x, y);
            differ |= x != z;
        }
        assert!(differ);
    }

    #[test]
    fn numbers_keep_to_their_range_and_reach_its_ends() {
        let mut random = Random::new(1);

        for bits in [1, 5, 18, 24, 32, 48, 63, 64] {
            let max = u64::MAX >> (64 - bits);
            let (mut zero, mut full) = (false, false);

            for _ in 0..200 {
                let n = random.bits(bits);
                assert!(n <= max);
                zero |= n == 0;
                full |= n == max;
            }
            assert!(zero && full);
        }
        for limit in [1, 2, 7, u32::MAX] {
            for _ in 0..50 {
                assert!(random.below(limit) < limit);
            }
        }
    }
}
