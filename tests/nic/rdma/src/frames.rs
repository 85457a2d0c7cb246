// SPDX-License-Identifier: GPL-2.0
//! The last frames of the function, for the control command `frames`.

use serde_json::{json, Value};
use std::collections::VecDeque;

/// Frames kept.
const KEPT: usize = 64;

/// Way of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Rx,
    Tx,
}

/// A short history.
#[derive(Default)]
pub(crate) struct FrameLog {
    frames: VecDeque<(Direction, Vec<u8>)>,
}

impl FrameLog {
    pub(crate) fn add(&mut self, direction: Direction, frame: &[u8]) {
        if self.frames.len() >= KEPT {
            self.frames.pop_front();
        }
        self.frames.push_back((direction, frame.to_vec()));
    }

    /// The last `count` frames, oldest first.
    pub(crate) fn json(&self, count: usize) -> Value {
        let skip = self.frames.len().saturating_sub(count);
        self.frames
            .iter()
            .skip(skip)
            .map(|(direction, frame)| {
                let dir = match direction {
                    Direction::Rx => "rx",
                    Direction::Tx => "tx",
                };
                json!({"dir": dir, "hex": hex::encode(frame)})
            })
            .collect()
    }
}

/// The bytes of a hexadecimal text; blanks and colons between digits are skipped.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: String = text
        .chars()
        .filter(|c| !c.is_whitespace() && *c != ':')
        .collect();
    hex::decode(digits).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_text_may_be_spaced() {
        assert_eq!(unhex("00:aB 01"), Some(vec![0, 0xAB, 1]));
        assert_eq!(unhex("0"), None);
        assert_eq!(unhex("0g"), None);
    }
}
