// SPDX-License-Identifier: GPL-2.0
//! The last frames of a port, for a look from a test or a prompt.

use crate::frame::Frame;
use crate::Direction;
use std::collections::VecDeque;

/// Frames remembered.
pub const CAPACITY: usize = 64;

/// The last frames in the order they passed.
#[derive(Default)]
pub struct Recent {
    frames: VecDeque<(u64, Direction, Frame)>,
    next: u64,
}

impl Recent {
    /// Remembers a frame, forgetting the oldest if need be.
    pub fn push(&mut self, direction: Direction, frame: &Frame) {
        if self.frames.len() == CAPACITY {
            self.frames.pop_front();
        }
        self.frames.push_back((self.next, direction, frame.clone()));
        self.next += 1;
    }

    /// Number since start, direction and bytes of each remembered frame, oldest first.
    pub fn list(&self) -> Vec<(u64, Direction, Frame)> {
        self.frames.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first() {
        let mut recent = Recent::default();
        for n in 0..70u8 {
            recent.push(Direction::Receive, &vec![n].into());
        }
        let list = recent.list();
        assert_eq!(list.len(), CAPACITY);
        assert_eq!((list[0].0, list[0].2[0]), (6, 6));
        assert_eq!(list[63].0, 69);
    }
}
