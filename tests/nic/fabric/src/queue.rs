// SPDX-License-Identifier: GPL-2.0
//! The bounded queue in front of a port.

use crate::frame::Frame;
use crate::lock;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

/// Frames a port holds for its device before it drops, as a switch does.
pub const CAPACITY: usize = 8192;

/// A frame and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It has yet to pass the link.
    Fresh(Frame),
    /// It was delayed on the link.
    Late(Frame),
}

/// Frames on their way to a device.
#[derive(Default)]
pub struct Queue {
    frames: Mutex<VecDeque<Entry>>,
    arrived: Condvar,
}

impl Queue {
    /// Appends a frame; `false` if there is no room.
    pub fn push(&self, frame: Frame) -> bool {
        self.append(Entry::Fresh(frame))
    }

    /// The same for a frame that was delayed.
    pub fn push_past(&self, frame: Frame) -> bool {
        self.append(Entry::Late(frame))
    }

    fn append(&self, entry: Entry) -> bool {
        let mut frames = lock(&self.frames);
        if frames.len() >= CAPACITY {
            return false;
        }
        frames.push_back(entry);
        self.arrived.notify_one();
        true
    }

    /// Waits until there are frames and takes them all.
    pub fn take(&self) -> VecDeque<Entry> {
        let frames = lock(&self.frames);
        let waited = self.arrived.wait_while(frames, |frames| frames.is_empty());
        std::mem::take(&mut *waited.unwrap_or_else(PoisonError::into_inner))
    }

    /// Frames waiting.
    pub fn len(&self) -> usize {
        lock(&self.frames).len()
    }

    /// Whether no frame waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_and_in_order() {
        let queue = Queue::default();
        for n in 0..CAPACITY {
            assert!(queue.push(vec![(n % 251) as u8].into()));
        }
        assert!(!queue.push(vec![0].into()));
        let taken = queue.take();
        assert_eq!(taken.len(), CAPACITY);
        assert!(taken
            .iter()
            .enumerate()
            .all(|(n, entry)| *entry == Entry::Fresh(vec![(n % 251) as u8].into())));
        assert!(queue.is_empty());
    }
}
