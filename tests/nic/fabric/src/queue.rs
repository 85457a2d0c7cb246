// SPDX-License-Identifier: GPL-2.0
//! The bounded queue in front of a port.

use crate::frame::Frame;
use crate::lock;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

/// Frames a port holds for its device before it drops, as a switch does.
pub const CAPACITY: usize = 8192;

/// Frames on their way to a device.
#[derive(Default)]
pub struct Queue {
    frames: Mutex<VecDeque<Frame>>,
    arrived: Condvar,
}

impl Queue {
    /// Appends a frame; `false` if there is no room.
    pub fn push(&self, frame: Frame) -> bool {
        let mut frames = lock(&self.frames);
        if frames.len() >= CAPACITY {
            return false;
        }
        frames.push_back(frame);
        self.arrived.notify_one();
        true
    }

    /// Waits until there are frames and takes them all.
    pub fn take(&self) -> VecDeque<Frame> {
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
            .all(|(n, frame)| frame[0] == (n % 251) as u8));
        assert!(queue.is_empty());
    }
}
