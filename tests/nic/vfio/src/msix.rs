// SPDX-License-Identifier: GPL-2.0
//! MSI-X vectors as the client connects them: one event descriptor each.
//!
//! The table with addresses, data and masks lives in the client, which takes the descriptor of a
//! vector away while the guest masks it. An interrupt of that time is pending, as in the pending bit
//! array of a card, and is sent when the vector is connected.

use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const DATA_NONE: u32 = 1 << 0;
const DATA_EVENTFD: u32 = 1 << 2;
const ACTION_TRIGGER: u32 = 1 << 5;

/// One vector.
#[derive(Default)]
struct Vector {
    fd: Option<OwnedFd>,
    pending: bool,
}

impl Vector {
    /// Sends the interrupt, or keeps it in mind; whether it was sent.
    fn raise(&mut self) -> bool {
        let sent = self
            .fd
            .as_ref()
            .is_some_and(|fd| rustix::io::write(fd, &1u64.to_ne_bytes()).is_ok());
        self.pending = !sent;
        sent
    }

    fn connect(&mut self, fd: Option<OwnedFd>) {
        self.fd = fd;
        if self.pending && self.fd.is_some() {
            self.raise();
        }
    }
}

/// The vectors of one function.
pub struct Msix {
    vectors: Mutex<Vec<Vector>>,
    raised: AtomicU64,
    unconnected: AtomicU64,
}

impl Msix {
    /// `count` vectors, none connected.
    pub fn new(count: u16) -> Self {
        Self {
            vectors: Mutex::new((0..count).map(|_| Vector::default()).collect()),
            raised: AtomicU64::new(0),
            unconnected: AtomicU64::new(0),
        }
    }

    /// Number of vectors.
    pub fn count(&self) -> usize {
        self.vectors().len()
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
        let sent = self
            .vectors()
            .get_mut(usize::from(vector))
            .is_some_and(Vector::raise);
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
        let mut vectors = self.vectors();
        let end = start.checked_add(count).ok_or(Errno::INVAL)?;
        let chosen = vectors.get_mut(start..end).ok_or(Errno::INVAL)?;
        if flags & DATA_EVENTFD != 0 {
            let mut fds = fds.into_iter();
            // A vector for which no descriptor came loses the one it had.
            chosen
                .iter_mut()
                .for_each(|vector| vector.connect(fds.next()));
        } else if flags & (DATA_NONE | ACTION_TRIGGER) == DATA_NONE | ACTION_TRIGGER && count == 0 {
            vectors.iter_mut().for_each(|vector| vector.connect(None));
        }
        Ok(())
    }

    /// Disconnects all vectors and forgets what is pending.
    pub fn clear(&self) {
        self.vectors()
            .iter_mut()
            .for_each(|vector| *vector = Vector::default());
    }

    /// Forgets pending interrupts, as a reset does.
    pub fn forget_pending(&self) {
        self.vectors()
            .iter_mut()
            .for_each(|vector| vector.pending = false);
    }

    fn vectors(&self) -> MutexGuard<'_, Vec<Vector>> {
        self.vectors.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn an_interrupt_of_a_masked_vector_is_pending() {
        let msix = Msix::new(2);
        let (zero, fd) = pair();
        let again = fd.try_clone().unwrap();
        msix.set(CONNECT, 0, 1, vec![fd]).unwrap();
        msix.set(CONNECT, 0, 1, vec![]).unwrap();
        msix.raise(0);
        msix.raise(0);
        assert_eq!(events(&zero), 0);
        msix.set(CONNECT, 0, 1, vec![again.try_clone().unwrap()])
            .unwrap();
        assert_eq!(events(&zero), 1);
        msix.set(CONNECT, 0, 1, vec![]).unwrap();
        msix.raise(0);
        msix.forget_pending();
        msix.set(CONNECT, 0, 1, vec![again]).unwrap();
        assert_eq!(events(&zero), 0);
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
