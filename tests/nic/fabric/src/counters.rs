// SPDX-License-Identifier: GPL-2.0
//! What a port counts.

use crate::impair::Action;
use std::sync::atomic::{AtomicU64, Ordering};

/// One counter.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Counts `n` more.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Frames and bytes of one direction.
#[derive(Default)]
pub struct Traffic {
    /// Frames that passed.
    pub frames: Counter,
    /// Their bytes without FCS.
    pub bytes: Counter,
    /// Frames lost because the link was down.
    pub link_down: Counter,
    /// Frames lost by order of an impairment.
    pub impaired: Counter,
    /// Frames that came twice, and so count twice as passed.
    pub duplicated: Counter,
    /// Frames that had to let others pass.
    pub held: Counter,
    /// Frames that came later.
    pub delayed: Counter,
    /// Frames that came with a bit changed.
    pub corrupted: Counter,
}

impl Traffic {
    /// Counts what an impairment did to a frame.
    pub fn acted(&self, action: Action) {
        let counter = match action {
            Action::Drop => &self.impaired,
            Action::Duplicate => &self.duplicated,
            Action::Hold(_) => &self.held,
            Action::Delay(_) => &self.delayed,
            Action::Corrupt(_) => &self.corrupted,
        };
        counter.add(1);
    }
}

/// All counters of a port.
#[derive(Default)]
pub struct Counters {
    /// From the device.
    pub transmit: Traffic,
    /// To the device.
    pub receive: Traffic,
    /// Frames for the device lost because its queue was full.
    pub overflow: Counter,
    /// Frames from the device that were no frames: too short or too long.
    pub malformed: Counter,
}

impl Counters {
    /// Name and value of each counter.
    pub fn list(&self) -> Vec<(&'static str, u64)> {
        let (tx, rx) = (&self.transmit, &self.receive);
        vec![
            ("tx_frames", tx.frames.get()),
            ("tx_bytes", tx.bytes.get()),
            ("tx_link_down", tx.link_down.get()),
            ("tx_impaired", tx.impaired.get()),
            ("tx_duplicated", tx.duplicated.get()),
            ("tx_held", tx.held.get()),
            ("tx_delayed", tx.delayed.get()),
            ("tx_corrupted", tx.corrupted.get()),
            ("tx_malformed", self.malformed.get()),
            ("rx_frames", rx.frames.get()),
            ("rx_bytes", rx.bytes.get()),
            ("rx_link_down", rx.link_down.get()),
            ("rx_impaired", rx.impaired.get()),
            ("rx_duplicated", rx.duplicated.get()),
            ("rx_held", rx.held.get()),
            ("rx_delayed", rx.delayed.get()),
            ("rx_corrupted", rx.corrupted.get()),
            ("rx_overflow", self.overflow.get()),
        ]
    }
}
