// SPDX-License-Identifier: GPL-2.0

//! Files below `/sys/kernel/debug` that show the state of a driver, or take orders.
//!
//! The files of the `kernel` crate's `debugfs` have no owner and yet a release function of the module:
//! if one is open while its module is unloaded, closing it runs into memory that is gone. Here the C
//! side calls a module for reading and writing and for nothing else, and only until the file is removed:
//! an open file holds up neither removal nor unloading, and gives `EIO` from then on.
//!
//! A file to read is a sequence of records, normally lines, with ascending numbers. Each record is made when it
//! is read: it is right in itself, and a file that is read while things change shows each record at
//! some moment of the reading. The position in the file says which record is next, so that nothing is
//! shown twice or left out if records come and go; it is not an offset in a text, and files cannot be
//! sought in.
//!
//! Making files never fails: as usual with debugfs, whoever cannot have one goes without.

use core::{
    marker::PhantomData,
    mem::MaybeUninit, //
};
use kernel::{
    bindings,
    fmt::{
        self,
        Write, //
    },
    prelude::*,
    sync::Arc,
    uaccess::{
        UserPtr,
        UserSlice,
        UserSliceReader, //
    }, //
};

use crate::bindings::{
    rdma_rs_debugfs_dir,
    rdma_rs_debugfs_file,
    rdma_rs_debugfs_order,
    rdma_rs_debugfs_subdir, //
};

/// Most octets of one read.
const MAX_READ: usize = 64 << 10;

/// Bits of the position that count octets of a record read in parts.
const OFFSET_BITS: u32 = 16;

/// What a file shows of a `T`.
pub trait View<T>: 'static {
    /// Name of the file.
    const NAME: &'static CStr;

    /// Hands the records with numbers from `from` on to `out`, in ascending order, until it takes no
    /// more. Process context; may sleep.
    ///
    /// # Errors
    ///
    /// Those of making records; the reader gets them, unless there is something to read already.
    fn show(data: &T, from: u32, out: &mut Records<'_>) -> Result;
}

/// What a file takes from those who write to it, for a `T`.
pub trait Order<T>: 'static {
    /// Name of the file.
    const NAME: &'static CStr;

    /// Obeys what was written at once. Process context; may sleep.
    ///
    /// # Errors
    ///
    /// Any; the writer gets it.
    fn obey(data: &T, input: &mut UserSliceReader) -> Result;
}

/// A directory at the top of debugfs, for those of a driver's devices. Dropping it removes it with all
/// that is left in it. May sleep.
///
/// # Invariants
///
/// The pointer is what debugfs gave, which is a directory or an error.
pub struct Root(*mut bindings::dentry);

impl Root {
    /// Makes the directory. Process context.
    pub fn new(name: &'static CStr) -> Self {
        // SAFETY: A terminated string.
        Self(unsafe { rdma_rs_debugfs_dir(name.as_char_ptr()) })
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        // SAFETY: Made in `new` and not removed yet; errors are let pass.
        unsafe { bindings::debugfs_remove(self.0) };
    }
}

// SAFETY: The C functions may be called by any task.
unsafe impl Send for Root {}

// SAFETY: As above.
unsafe impl Sync for Root {}

/// The directory of a device, with files that show `T`. Dropping it removes them, and waits for those
/// who are reading. May sleep.
///
/// # Invariants
///
/// `dir` is what debugfs gave, which is a directory or an error. Its files refer to what `data` refers
/// to.
pub struct Folder<T: Send + Sync + 'static> {
    dir: *mut bindings::dentry,
    data: Arc<T>,
}

impl<T: Send + Sync + 'static> Folder<T> {
    /// Makes the directory `name` in the [`Root`] of the name `root`. Process context.
    pub fn new(root: &'static CStr, name: &CStr, data: Arc<T>) -> Self {
        // SAFETY: Two terminated strings.
        let dir = unsafe { rdma_rs_debugfs_subdir(root.as_char_ptr(), name.as_char_ptr()) };

        // INVARIANT: There are no files yet.
        Self { dir, data }
    }

    /// Adds the file of a view. Process context.
    pub fn add<V: View<T>>(self) -> Self {
        let data = Arc::as_ptr(&self.data).cast_mut();

        // SAFETY: A terminated string, a directory or an error, and operations that expect a `T`
        // there: it stays until `drop` has removed the file.
        unsafe {
            rdma_rs_debugfs_file(
                V::NAME.as_char_ptr(),
                self.dir,
                data.cast(),
                &Operations::<T, V>::TABLE,
            )
        };
        self
    }

    /// Adds the file of an order, for root. Process context.
    pub fn add_order<O: Order<T>>(self) -> Self {
        let data = Arc::as_ptr(&self.data).cast_mut();

        // SAFETY: As in `add`.
        unsafe {
            rdma_rs_debugfs_order(
                O::NAME.as_char_ptr(),
                self.dir,
                data.cast(),
                &Orders::<T, O>::TABLE,
            )
        };
        self
    }
}

impl<T: Send + Sync + 'static> Drop for Folder<T> {
    fn drop(&mut self) {
        // SAFETY: Made in `new` and not removed yet; errors are let pass. This waits for readers, so
        // `data` is dropped when nobody uses it.
        unsafe { bindings::debugfs_remove(self.dir) };
    }
}

// SAFETY: The C functions may be called by any task, and the data goes along.
unsafe impl<T: Send + Sync + 'static> Send for Folder<T> {}

// SAFETY: As above.
unsafe impl<T: Send + Sync + 'static> Sync for Folder<T> {}

/// The operations of a file.
struct Operations<T, V>(PhantomData<(T, V)>);

impl<T: Send + Sync + 'static, V: View<T>> Operations<T, V> {
    const TABLE: bindings::debugfs_short_fops = bindings::debugfs_short_fops {
        read: Some(Self::read),
        ..pin_init::zeroed()
    };

    /// # Safety
    ///
    /// Called by debugfs with an open file that is not removed before this returns, a buffer of `len`
    /// octets of the calling process, and the position.
    unsafe extern "C" fn read(
        file: *mut bindings::file,
        buffer: *mut c_char,
        len: usize,
        position: *mut bindings::loff_t,
    ) -> isize {
        // SAFETY: `simple_open()` put the file's data there: a `T`, valid until the file is removed.
        let data = unsafe { &*(*file).private_data.cast::<T>() };
        // SAFETY: By this function's contract; nobody else has it during the call.
        let position = unsafe { &mut *position };
        let user = UserSlice::new(UserPtr::from_ptr(buffer.cast()), len);

        match Self::fill(data, user, len, *position) {
            Ok((read, next)) => {
                *position = next;
                // CAST: At most `MAX_READ`.
                read as isize
            }
            // CAST: An error number.
            Err(error) => error.to_errno() as isize,
        }
    }

    /// Returns the octets read and the next position.
    fn fill(data: &T, user: UserSlice, len: usize, position: i64) -> Result<(usize, i64)> {
        let len = len.min(MAX_READ);
        let mut text = KVVec::with_capacity(len, GFP_KERNEL)?;
        let buffer = text.spare_capacity_mut().get_mut(..len).ok_or(ENOMEM)?;
        let mut records = Records::new(buffer, position)?;
        let shown = V::show(data, records.from, &mut records);
        let (read, next) = (records.used, records.position);

        if read == 0 {
            shown?;
        }
        // SAFETY: `Records` wrote that much.
        unsafe { text.inc_len(read) };
        user.writer().write_slice(&text)?;
        Ok((read, next))
    }
}

/// The operations of a file that takes orders.
struct Orders<T, O>(PhantomData<(T, O)>);

impl<T: Send + Sync + 'static, O: Order<T>> Orders<T, O> {
    const TABLE: bindings::debugfs_short_fops = bindings::debugfs_short_fops {
        write: Some(Self::write),
        ..pin_init::zeroed()
    };

    /// # Safety
    ///
    /// Called by debugfs with an open file that is not removed before this returns, and a buffer of
    /// `len` octets of the calling process.
    unsafe extern "C" fn write(
        file: *mut bindings::file,
        buffer: *const c_char,
        len: usize,
        _position: *mut bindings::loff_t,
    ) -> isize {
        // SAFETY: `simple_open()` put the file's data there: a `T`, valid until the file is removed.
        let data = unsafe { &*(*file).private_data.cast::<T>() };
        let mut input = UserSlice::new(UserPtr::from_ptr(buffer.cast_mut().cast()), len).reader();

        match O::obey(data, &mut input) {
            // CAST: The kernel lets nobody write more at once.
            Ok(()) => len as isize,
            // CAST: An error number.
            Err(error) => error.to_errno() as isize,
        }
    }
}

/// Takes the records of a file for one read.
///
/// # Invariants
///
/// The first `used` octets of `buffer` are initialised.
pub struct Records<'a> {
    buffer: &'a mut [MaybeUninit<u8>],
    used: usize,
    /// Number of the first record asked for.
    from: u32,
    /// Octets of record `from` that have been read before.
    skip: usize,
    position: i64,
}

impl<'a> Records<'a> {
    fn new(buffer: &'a mut [MaybeUninit<u8>], position: i64) -> Result<Self> {
        let whole = u64::try_from(position).map_err(|_| EINVAL)?;

        // INVARIANT: Nothing is used yet.
        Ok(Self {
            buffer,
            used: 0,
            from: u32::try_from(whole >> OFFSET_BITS).map_err(|_| EINVAL)?,
            // CAST: 16 bits.
            skip: (whole & ((1 << OFFSET_BITS) - 1)) as usize,
            position,
        })
    }

    /// Adds the record `number`, longer than nothing and shorter than 64 KiB. Returns whether there is
    /// room for more.
    pub fn push(&mut self, number: u32, text: fmt::Arguments<'_>) -> bool {
        let before = self.used;
        let mut sink = Sink {
            skip: if number == self.from { self.skip } else { 0 },
            records: self,
            whole: true,
        };
        // The sink takes everything.
        let _ = sink.write_fmt(text);
        let whole = sink.whole;

        if whole {
            self.position = i64::from(number).saturating_add(1) << OFFSET_BITS;
            return self.used < self.buffer.len();
        }
        if before > 0 {
            // Begins the next read.
            self.used = before;
            self.position = i64::from(number) << OFFSET_BITS;
        } else {
            // Longer than the reader's buffer: in parts.
            let skipped = if number == self.from { self.skip } else { 0 };
            let offset = skipped.saturating_add(self.used);
            // CAST: At most the length of a record.
            self.position = i64::from(number) << OFFSET_BITS | offset as i64;
        }
        false
    }
}

/// Writes one record, without its beginning and as far as there is room.
struct Sink<'a, 'b> {
    records: &'a mut Records<'b>,
    skip: usize,
    /// All of it found room so far.
    whole: bool,
}

impl Write for Sink<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for &octet in text.as_bytes() {
            if self.skip > 0 {
                self.skip -= 1;
            } else if let Some(place) = self.records.buffer.get_mut(self.records.used) {
                place.write(octet);
                // INVARIANT: Initialised just now.
                self.records.used += 1;
            } else {
                self.whole = false;
                break;
            }
        }
        Ok(())
    }
}

#[kunit_tests(rdma_rs_debugfs)]
mod tests {
    use super::*;

    /// Reads records `0..count` in reads of `size` octets; record `n` is `n` in decimal and a newline.
    fn read_all(count: u32, size: usize) -> Result<KVec<u8>> {
        let mut all = KVec::new();
        let mut position = 0;

        loop {
            let mut buffer = [MaybeUninit::uninit(); 64];
            let buffer = buffer.get_mut(..size).ok_or(EINVAL)?;
            let mut records = Records::new(buffer, position)?;
            for number in records.from..count {
                if !records.push(number, fmt!("{number}\n")) {
                    break;
                }
            }
            let used = records.used;
            position = records.position;
            if used == 0 {
                return Ok(all);
            }
            for octet in buffer.iter().take(used) {
                // SAFETY: The invariant of `Records`.
                all.push(unsafe { octet.assume_init() }, GFP_KERNEL)?;
            }
        }
    }

    #[test]
    fn any_size_of_reads_gives_the_same_text() -> Result {
        let whole = read_all(12, 64)?;
        assert_eq!(&whole[..], b"0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n");
        for size in 1..64 {
            assert_eq!(&read_all(12, size)?[..], &whole[..]);
        }
        Ok(())
    }

    #[test]
    fn positions_that_nobody_was_given_are_refused_or_past_the_end() -> Result {
        assert!(Records::new(&mut [], -1).is_err());
        assert!(Records::new(&mut [], i64::MAX).is_err());
        assert_eq!(Records::new(&mut [], 7 << OFFSET_BITS)?.from, 7);
        Ok(())
    }
}
