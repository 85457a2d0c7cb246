// SPDX-License-Identifier: GPL-2.0
//! MSI-X vectors as the client connects them: one event descriptor each.
//!
//! The table with addresses, data and masks lives in the client. A vector without a descriptor is
//! not in use; raising it is counted and does nothing, as an unprogrammed vector of a card.

use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

const DATA_NONE: u32 = 1 << 0;
const DATA_EVENTFD: u32 = 1 << 2;
const ACTION_TRIGGER: u32 = 1 << 5;

/// The vectors of one function.
pub struct Msix {
    vectors: RwLock<Vec<Option<OwnedFd>>>,
    raised: AtomicU64,
    unconnected: AtomicU64,
}

impl Msix {
    /// `count` vectors, none connected.
    pub fn new(count: u16) -> Self {
        let vectors = RwLock::new((0..count).map(|_| None).collect());
        Self {
            vectors,
            raised: AtomicU64::new(0),
            unconnected: AtomicU64::new(0),
        }
    }

    /// Number of vectors.
    pub fn count(&self) -> usize {
        self.vectors
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// Interrupts raised, and those raised on unconnected vectors.
    pub fn counters(&self) -> (u64, u64) {
        (
            self.raised.load(Ordering::Relaxed),
            self.unconnected.load(Ordering::Relaxed),
        )
    }

    /// Sends the interrupt of `vector`.
    pub fn raise(&self, vector: u16) {
        let vectors = self.vectors.read().unwrap_or_else(PoisonError::into_inner);
        let fd = vectors.get(usize::from(vector)).and_then(Option::as_ref);
        let sent = fd.is_some_and(|fd| rustix::io::write(fd, &1u64.to_ne_bytes()).is_ok());
        let counter = if sent {
            &self.raised
        } else {
            &self.unconnected
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Carries out the client's order for vectors `start..start + count`.
    ///
    /// # Errors
    ///
    /// `EINVAL` for vectors that do not exist.
    pub fn set(&self, flags: u32, start: u32, count: u32, fds: Vec<OwnedFd>) -> Result<(), Errno> {
        let (start, count) = (usize::try_from(start), usize::try_from(count));
        let (start, count) = (
            start.map_err(|_| Errno::INVAL)?,
            count.map_err(|_| Errno::INVAL)?,
        );
        let mut vectors = self.vectors.write().unwrap_or_else(PoisonError::into_inner);
        let end = start.checked_add(count).ok_or(Errno::INVAL)?;
        let chosen = vectors.get_mut(start..end).ok_or(Errno::INVAL)?;
        if flags & DATA_EVENTFD != 0 {
            let mut fds = fds.into_iter();
            // A vector for which no descriptor came loses the one it had.
            chosen.iter_mut().for_each(|vector| *vector = fds.next());
        } else if flags & (DATA_NONE | ACTION_TRIGGER) == DATA_NONE | ACTION_TRIGGER && count == 0 {
            vectors.iter_mut().for_each(|vector| *vector = None);
        }
        Ok(())
    }

    /// Disconnects all vectors.
    pub fn clear(&self) {
        let mut vectors = self.vectors.write().unwrap_or_else(PoisonError::into_inner);
        vectors.iter_mut().for_each(|vector| *vector = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    const CONNECT: u32 = DATA_EVENTFD | ACTION_TRIGGER;

    fn pair() -> (UnixStream, OwnedFd) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (ours, theirs.into())
    }

    fn events(mut fd: &UnixStream) -> usize {
        let mut buf = [0; 64];
        fd.read(&mut buf).map_or(0, |n| n / 8)
    }

    #[test]
    fn vectors_are_connected_one_by_one() {
        let msix = Msix::new(4);
        let (one, fd) = pair();
        msix.set(CONNECT, 1, 1, vec![fd]).unwrap();
        let (three, fd) = pair();
        msix.set(CONNECT, 3, 1, vec![fd]).unwrap();
        msix.raise(1);
        msix.raise(3);
        msix.raise(3);
        msix.raise(0);
        msix.raise(4);
        assert_eq!((events(&one), events(&three)), (1, 2));
        assert_eq!(msix.counters(), (3, 2));
    }

    #[test]
    fn disconnecting() {
        let msix = Msix::new(2);
        let (zero, fd0) = pair();
        let (one, fd1) = pair();
        msix.set(CONNECT, 0, 2, vec![fd0, fd1]).unwrap();
        msix.set(CONNECT, 0, 1, vec![]).unwrap();
        msix.raise(0);
        msix.raise(1);
        msix.set(DATA_NONE | ACTION_TRIGGER, 0, 0, vec![]).unwrap();
        msix.raise(1);
        assert_eq!((events(&zero), events(&one)), (0, 1));
    }

    #[test]
    fn vectors_out_of_range_are_refused() {
        let msix = Msix::new(2);
        assert_eq!(msix.set(CONNECT, 1, 2, vec![]), Err(Errno::INVAL));
        assert_eq!(
            msix.set(CONNECT, u32::MAX, u32::MAX, vec![]),
            Err(Errno::INVAL)
        );
    }
}
