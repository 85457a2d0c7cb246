// SPDX-License-Identifier: GPL-2.0

//! Memory shared with the device, as little-endian 64-bit words.
//!
//! Rings, contexts and lists of the hardware are all made of such words. Byte order is converted
//! here and nowhere else; every access is checked against the block's length and is volatile, since
//! the device may be on the other side. Ordering between accesses is the caller's, with
//! [`kernel::sync::barrier`].

use kernel::{
    device::{
        Bound,
        Device, //
    },
    dma::{
        Coherent,
        DmaAddress, //
    },
    io::{
        io_read,
        io_write, //
    },
    prelude::*,
    sizes::SZ_4K, //
};

/// A zeroed block of coherent memory.
///
/// The allocator aligns a block to the next power of two of its size, at most to a page: more than
/// any object of the device needs.
pub(crate) struct DmaWords(Coherent<[u64]>);

impl DmaWords {
    /// Allocates `count` words.
    pub(crate) fn new(dev: &Device<Bound>, count: usize) -> Result<Self> {
        // Whole pages, so that no allocator below page size decides the alignment.
        let per_page = SZ_4K / size_of::<u64>();
        let count = count.checked_next_multiple_of(per_page).ok_or(EINVAL)?;
        Ok(Self(Coherent::zeroed_slice(dev, count, GFP_KERNEL)?))
    }

    /// Address of the block for the device.
    pub(crate) fn address(&self) -> DmaAddress {
        self.0.dma_address()
    }

    /// Address of word `index` for the device.
    ///
    /// # Errors
    ///
    /// `ERANGE` when there is no such word.
    pub(crate) fn address_of(&self, index: usize) -> Result<DmaAddress> {
        if index >= self.0.len() {
            return Err(ERANGE);
        }
        // In bounds of an allocation, hence no overflow. CAST: Widening.
        Ok(self
            .address()
            .wrapping_add(index.wrapping_mul(size_of::<u64>()) as DmaAddress))
    }

    /// Word `index`.
    ///
    /// # Errors
    ///
    /// `ERANGE` when there is no such word.
    pub(crate) fn read(&self, index: usize) -> Result<u64> {
        let mem = &self.0;
        Ok(u64::from_le(io_read!(mem, [try: index])))
    }

    /// Stores word `index`.
    ///
    /// # Errors
    ///
    /// `ERANGE` when there is no such word.
    pub(crate) fn write(&self, index: usize, value: u64) -> Result {
        let mem = &self.0;
        io_write!(mem, [try: index], value.to_le());
        Ok(())
    }
}
