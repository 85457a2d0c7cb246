// SPDX-License-Identifier: GPL-2.0
//! The switch's clock and what waits for it: frames that an impairment delays.

use crate::forward::PortId;
use crate::frame::Frame;
use crate::Direction;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// Frames that may be on their way late; more are lost.
pub const CAPACITY: usize = 65536;

/// Time since the switch was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Default for Clock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock {
    /// The time.
    pub fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A frame that goes on later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late {
    /// The port that it passes.
    pub port: PortId,
    /// In which direction.
    pub direction: Direction,
    /// The frame.
    pub frame: Frame,
}

/// Delayed frames, in the order of their time and, at the same time, of their coming.
#[derive(Default)]
pub struct Delayed {
    heap: BinaryHeap<Reverse<Entry>>,
    number: u64,
}

struct Entry {
    key: (Duration, u64),
    late: Late,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl Delayed {
    /// Keeps a frame until `due`; `false` if there is no room.
    pub fn push(&mut self, due: Duration, late: Late) -> bool {
        if self.heap.len() >= CAPACITY {
            return false;
        }
        let key = (due, self.number);
        self.number += 1;
        self.heap.push(Reverse(Entry { key, late }));
        true
    }

    /// When the next frame goes on.
    pub fn next(&self) -> Option<Duration> {
        self.heap.peek().map(|Reverse(entry)| entry.key.0)
    }

    /// The next frame that is due.
    pub fn pop(&mut self, now: Duration) -> Option<Late> {
        self.next().filter(|due| *due <= now)?;
        self.heap.pop().map(|Reverse(entry)| entry.late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_go_on_in_the_order_of_their_time() {
        let mut delayed = Delayed::default();
        let late = |n: u8| Late {
            port: 0,
            direction: Direction::Receive,
            frame: vec![n].into(),
        };
        for (due, n) in [(5, 1), (3, 2), (5, 3), (4, 4)] {
            assert!(delayed.push(Duration::from_secs(due), late(n)));
        }
        assert_eq!(delayed.pop(Duration::from_secs(2)), None);
        let now = Duration::from_secs(5);
        let order: Vec<u8> = std::iter::from_fn(|| delayed.pop(now))
            .map(|late| late.frame[0])
            .collect();
        assert_eq!(order, [2, 4, 1, 3]);
        assert_eq!(delayed.next(), None);
    }
}
