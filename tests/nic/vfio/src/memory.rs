// SPDX-License-Identifier: GPL-2.0
//! Guest memory as the client maps it, and the device's only way to it.
//!
//! The client announces ranges of bus addresses with a file behind them; they are mapped shared and
//! touched on demand. Ranges without a file (ROM, other devices) are known and refused. Accesses
//! hold the map's read lock while they copy and the client's unmap takes the write lock, so that no
//! access is under way once the unmap is answered.
//!
//! Like a card, the function reaches memory only while its bus mastering is enabled.

use nic_bus::{Dma, DmaError};
use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

const MAP_READ: u32 = 1 << 0;
const MAP_WRITE: u32 = 1 << 1;
const UNMAP_ALL: u32 = 1 << 1;

/// A shared file mapping.
///
/// # Invariants
///
/// `base` is the start of `len` mapped bytes (readable; writable if the range is) that stay mapped
/// until drop.
struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: The mapping is plain memory that belongs to no thread.
unsafe impl Send for Mapping {}
// SAFETY: All access is by raw copies and atomics, which tolerate writers elsewhere (the guest).
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(fd: &OwnedFd, offset: u64, len: usize, writable: bool) -> Result<Self, Errno> {
        // A mapping past the end of its file would fault on access instead of failing here.
        let file_len = u64::try_from(fstat(fd)?.st_size).unwrap_or(0);
        let end = u64::try_from(len)
            .ok()
            .and_then(|len| offset.checked_add(len));
        if end.is_none_or(|end| end > file_len) {
            return Err(Errno::INVAL);
        }
        let prot = if writable {
            ProtFlags::READ | ProtFlags::WRITE
        } else {
            ProtFlags::READ
        };
        // SAFETY: The kernel chooses a free address, so no existing object is affected.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                len,
                prot,
                MapFlags::SHARED,
                fd,
                offset,
            )?
        };
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        // INVARIANT: `mmap` succeeded for `len` bytes.
        Ok(Self { base, len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: By the invariant this is exactly the range that `mmap` returned, and `&mut self`
        // shows that no access is under way.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// A range of bus addresses; its first is the key in the map.
struct Range {
    size: u64,
    readable: bool,
    writable: bool,
    mapping: Option<Mapping>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

#[derive(Default)]
struct Map(BTreeMap<u64, Range>);

impl Map {
    /// The host address of `addr` and how many bytes from there are in the same range.
    fn find(&self, addr: u64, access: Access) -> Option<(NonNull<u8>, usize)> {
        let (start, range) = self.0.range(..=addr).next_back()?;
        let offset = usize::try_from(addr.checked_sub(*start)?).ok()?;
        let mapping = range.mapping.as_ref()?;
        let allowed = match access {
            Access::Read => range.readable,
            Access::Write => range.writable,
        };
        let left = mapping
            .len
            .checked_sub(offset)
            .filter(|left| *left > 0 && allowed)?;
        // SAFETY: `offset` is less than the mapping's length.
        Some((unsafe { mapping.base.add(offset) }, left))
    }

    /// The pieces that `len` bytes at `addr` consist of, or nothing if any of them is not there.
    fn pieces(
        &self,
        addr: u64,
        len: usize,
        access: Access,
    ) -> Result<Vec<(NonNull<u8>, usize)>, DmaError> {
        let refused = DmaError { addr, len };
        let mut pieces = Vec::with_capacity(1);
        let mut done = 0;
        while done < len {
            let at = u64::try_from(done)
                .ok()
                .and_then(|done| addr.checked_add(done));
            let (base, left) = at.and_then(|at| self.find(at, access)).ok_or(refused)?;
            let n = left.min(len - done);
            pieces.push((base, n));
            done += n;
        }
        Ok(pieces)
    }

    /// The host address of `size` aligned bytes.
    fn word(&self, addr: u64, size: usize, access: Access) -> Result<NonNull<u8>, DmaError> {
        let refused = DmaError { addr, len: size };
        let (base, left) = self.find(addr, access).ok_or(refused)?;
        let misaligned = |number: usize| number & (size - 1) != 0;
        let bus = usize::try_from(addr).map_err(|_| refused)?;
        if left < size || misaligned(bus) || misaligned(base.as_ptr().addr()) {
            return Err(refused);
        }
        Ok(base)
    }
}

/// The memory of one guest.
#[derive(Default)]
pub struct GuestMemory {
    map: RwLock<Map>,
    bus_master: AtomicBool,
}

impl GuestMemory {
    /// No memory yet, bus mastering off.
    pub fn new() -> Self {
        Self::default()
    }

    fn map_mut(&self) -> RwLockWriteGuard<'_, Map> {
        self.map.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The map for one access, if the function is a bus master.
    fn access(&self, addr: u64, len: usize) -> Result<RwLockReadGuard<'_, Map>, DmaError> {
        if !self.bus_master.load(Ordering::Acquire) {
            return Err(DmaError { addr, len });
        }
        Ok(self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Follows the bus master bit of the command register.
    pub fn set_bus_master(&self, enabled: bool) {
        // The lock drains accesses under way before a disable is answered.
        let _map = self.map_mut();
        self.bus_master.store(enabled, Ordering::Release);
    }

    /// Adds a range. Without `fd` its addresses are taken but cannot be accessed.
    pub fn map(
        &self,
        flags: u32,
        fd: Option<&OwnedFd>,
        offset: u64,
        address: u64,
        size: u64,
    ) -> Result<(), Errno> {
        let last = size
            .checked_sub(1)
            .and_then(|last| address.checked_add(last));
        let last = last.ok_or(Errno::INVAL)?;
        let len = usize::try_from(size).map_err(|_| Errno::INVAL)?;
        let mut map = self.map_mut();
        let before = map.0.range(..=last).next_back();
        if before.is_some_and(|(start, range)| start.saturating_add(range.size - 1) >= address) {
            return Err(Errno::EXIST);
        }
        let writable = flags & MAP_WRITE != 0;
        let mapping = fd
            .map(|fd| Mapping::new(fd, offset, len, writable))
            .transpose()?;
        let readable = flags & MAP_READ != 0;
        map.0.insert(
            address,
            Range {
                size,
                readable,
                writable,
                mapping,
            },
        );
        Ok(())
    }

    /// Removes the ranges inside `address..address + size`, or all. Unknown ranges are no error: a
    /// client with a virtual IOMMU unmaps more than it mapped.
    pub fn unmap(&self, flags: u32, address: u64, size: u64) -> Result<(), Errno> {
        if flags & UNMAP_ALL != 0 {
            self.clear();
            return Ok(());
        }
        let last = size
            .checked_sub(1)
            .and_then(|last| address.checked_add(last));
        let last = last.ok_or(Errno::INVAL)?;
        let mut map = self.map_mut();
        map.0
            .retain(|start, range| *start < address || start.saturating_add(range.size - 1) > last);
        Ok(())
    }

    /// Forgets all memory.
    pub fn clear(&self) {
        self.map_mut().0.clear();
    }

    /// Whether memory was announced but none of it can be accessed, as from a client without a
    /// shared memory back end.
    pub fn is_unreachable(&self) -> bool {
        let map = self.map.read().unwrap_or_else(PoisonError::into_inner);
        !map.0.is_empty() && map.0.values().all(|range| range.mapping.is_none())
    }
}

impl Dma for GuestMemory {
    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), DmaError> {
        let map = self.access(addr, buf.len())?;
        let mut rest = buf;
        for (base, n) in map.pieces(addr, rest.len(), Access::Read)? {
            let (now, later) = rest.split_at_mut(n);
            // SAFETY: `base` has `n` mapped bytes while the lock is held and `now` is `n` bytes of
            // ours, so they cannot overlap. The guest may write meanwhile; any bytes will do.
            unsafe { std::ptr::copy_nonoverlapping(base.as_ptr(), now.as_mut_ptr(), n) };
            rest = later;
        }
        Ok(())
    }

    fn write(&self, addr: u64, data: &[u8]) -> Result<(), DmaError> {
        let map = self.access(addr, data.len())?;
        let mut rest = data;
        for (base, n) in map.pieces(addr, data.len(), Access::Write)? {
            let (now, later) = rest.split_at(n);
            // SAFETY: As in `read`; the range was found writable.
            unsafe { std::ptr::copy_nonoverlapping(now.as_ptr(), base.as_ptr(), n) };
            rest = later;
        }
        Ok(())
    }

    fn read_u32(&self, addr: u64) -> Result<u32, DmaError> {
        let map = self.access(addr, 4)?;
        let word = map.word(addr, 4, Access::Read)?;
        // SAFETY: Four mapped bytes, aligned, while the lock is held.
        let word = unsafe { AtomicU32::from_ptr(word.as_ptr().cast()) };
        Ok(u32::from_le(word.load(Ordering::Acquire)))
    }

    fn read_u64(&self, addr: u64) -> Result<u64, DmaError> {
        let map = self.access(addr, 8)?;
        let word = map.word(addr, 8, Access::Read)?;
        // SAFETY: Eight mapped bytes, aligned, while the lock is held.
        let word = unsafe { AtomicU64::from_ptr(word.as_ptr().cast()) };
        Ok(u64::from_le(word.load(Ordering::Acquire)))
    }

    fn write_u32(&self, addr: u64, value: u32) -> Result<(), DmaError> {
        let map = self.access(addr, 4)?;
        let word = map.word(addr, 4, Access::Write)?;
        // SAFETY: Four mapped, writable bytes, aligned, while the lock is held.
        let word = unsafe { AtomicU32::from_ptr(word.as_ptr().cast()) };
        word.store(value.to_le(), Ordering::Release);
        Ok(())
    }

    fn write_u64(&self, addr: u64, value: u64) -> Result<(), DmaError> {
        let map = self.access(addr, 8)?;
        let word = map.word(addr, 8, Access::Write)?;
        // SAFETY: Eight mapped, writable bytes, aligned, while the lock is held.
        let word = unsafe { AtomicU64::from_ptr(word.as_ptr().cast()) };
        word.store(value.to_le(), Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs::File;

    const RW: u32 = MAP_READ | MAP_WRITE;

    fn file(len: u64) -> OwnedFd {
        let file: File = tempfile::tempfile().unwrap();
        file.set_len(len).unwrap();
        file.into()
    }

    /// 0x1000..0x2000 and 0x2000..0x3000 writable, 0x3000..0x4000 read-only, 0x5000..0x6000 no file.
    fn memory() -> GuestMemory {
        let memory = GuestMemory::new();
        memory.set_bus_master(true);
        memory
            .map(RW, Some(&file(0x1000)), 0, 0x1000, 0x1000)
            .unwrap();
        memory
            .map(RW, Some(&file(0x2000)), 0x1000, 0x2000, 0x1000)
            .unwrap();
        memory
            .map(MAP_READ, Some(&file(0x1000)), 0, 0x3000, 0x1000)
            .unwrap();
        memory.map(RW, None, 0, 0x5000, 0x1000).unwrap();
        memory
    }

    #[test]
    fn accesses_may_cross_ranges() {
        let memory = memory();
        memory.write(0x1ffe, &[1, 2, 3, 4]).unwrap();
        let mut back = [0; 4];
        memory.read(0x1ffe, &mut back).unwrap();
        assert_eq!(back, [1, 2, 3, 4]);
        assert_eq!(memory.read_u32(0x2000).unwrap(), 0x0403);
    }

    #[test]
    fn a_refused_access_touches_nothing() {
        let memory = memory();
        assert!(
            memory.write(0x2ffe, &[9; 4]).is_err(),
            "ends in read-only memory"
        );
        let mut back = [7; 2];
        memory.read(0x2ffe, &mut back).unwrap();
        assert_eq!(back, [0, 0]);
        let mut buf = [7; 4];
        assert_eq!(
            memory.read(0x3ffe, &mut buf),
            Err(DmaError {
                addr: 0x3ffe,
                len: 4
            })
        );
        assert_eq!(buf, [7; 4]);
        for addr in [0, 0xffc, 0x4000, 0x5000, u64::MAX - 1] {
            assert!(memory.read(addr, &mut buf).is_err(), "{addr:#x}");
        }
    }

    #[test]
    fn words_are_little_endian_and_aligned() {
        let memory = memory();
        memory.write_u64(0x1008, 0x0102_0304_0506_0708).unwrap();
        let mut back = [0; 8];
        memory.read(0x1008, &mut back).unwrap();
        assert_eq!(back, [8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(memory.read_u32(0x100c).unwrap(), 0x0102_0304);
        assert!(memory.read_u64(0x100c).is_err());
        assert!(memory.write_u32(0x100e, 0).is_err());
        assert!(memory.write_u64(0x3000, 0).is_err());
    }

    #[test]
    fn overlaps_and_bad_ranges_are_refused() {
        let memory = memory();
        assert_eq!(memory.map(RW, None, 0, 0x1fff, 1), Err(Errno::EXIST));
        assert_eq!(memory.map(RW, None, 0, 0, 0x1001), Err(Errno::EXIST));
        assert_eq!(memory.map(RW, None, 0, 0x8000, 0), Err(Errno::INVAL));
        assert_eq!(memory.map(RW, None, 0, u64::MAX, 2), Err(Errno::INVAL));
        assert_eq!(
            memory.map(RW, Some(&file(16)), 0, 0x8000, 0x1000),
            Err(Errno::INVAL)
        );
        memory.map(RW, None, 0, 0, 0x1000).unwrap();
    }

    #[test]
    fn unmap_removes_whole_ranges() {
        let memory = memory();
        memory.unmap(0, 0x1000, 0x1000).unwrap();
        assert!(memory.read_u32(0x1000).is_err());
        assert!(memory.read_u32(0x2000).is_ok());
        memory.unmap(0, 0x9000, 0x1000).unwrap();
        memory.unmap(UNMAP_ALL, 0, 0).unwrap();
        assert!(memory.read_u32(0x2000).is_err());
    }

    #[test]
    fn no_access_without_bus_mastering() {
        let memory = memory();
        memory.set_bus_master(false);
        assert!(memory.read_u32(0x1000).is_err());
        memory.set_bus_master(true);
        assert!(memory.read_u32(0x1000).is_ok());
    }

    #[test]
    fn memory_without_files_is_noticed() {
        let memory = GuestMemory::new();
        assert!(!memory.is_unreachable());
        memory.map(RW, None, 0, 0, 0x1000).unwrap();
        assert!(memory.is_unreachable());
    }

    proptest! {
        #[test]
        fn any_address_is_answered(addr in prop_oneof![any::<u64>(), 0u64..0x7000], len in 0usize..0x2100) {
            let memory = memory();
            let mut buf = vec![0; len];
            let inside = addr >= 0x1000 && addr.checked_add(len as u64).is_some_and(|end| end <= 0x4000);
            prop_assert_eq!(memory.read(addr, &mut buf).is_ok(), len == 0 || inside);
            let writable = addr >= 0x1000 && addr.checked_add(len as u64).is_some_and(|end| end <= 0x3000);
            prop_assert_eq!(memory.write(addr, &buf).is_ok(), len == 0 || writable);
        }
    }
}
