// SPDX-License-Identifier: GPL-2.0
//! Gathering one frame from its descriptors. A frame may end in a later doorbell than it began.

use super::descriptor::{Context, Data, Descriptor};
use nic_bus::Dma;

/// Bytes of a frame before segmentation at most: 18 bits of payload and its headers.
const MAX_LEN: usize = (1 << 18) + 512;

/// A gathered frame and what is to be done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The frame as the driver built it.
    pub frame: Vec<u8>,
    /// Its first data descriptor, which describes all of it.
    pub first: Data,
    /// Its context descriptor, if there was one.
    pub context: Context,
}

/// What a descriptor did.
#[derive(Debug)]
pub enum Step {
    /// The frame goes on.
    More,
    /// The frame is complete, or none comes of it.
    Finished {
        /// The frame, unless it only programmed a filter.
        job: Option<Job>,
        /// The driver wants to know.
        report: bool,
    },
    /// The frame is lost.
    Malformed {
        /// Why.
        reason: String,
        /// The driver wants to know.
        report: bool,
    },
}

/// The frame under way.
#[derive(Debug, Default)]
pub struct Assembly {
    frame: Vec<u8>,
    first: Option<Data>,
    context: Context,
    /// The frame programs a filter and is not sent.
    filter: bool,
    /// The frame is damaged; its other descriptors are skipped.
    damaged: Option<String>,
}

impl Assembly {
    /// Takes one descriptor.
    pub fn take(&mut self, dma: &dyn Dma, descriptor: Descriptor) -> Step {
        match descriptor {
            Descriptor::Context(context) => {
                self.context = context;
                Step::More
            }
            Descriptor::Filter => {
                self.filter = true;
                Step::More
            }
            Descriptor::Unknown(kind) => {
                self.damage(format!("descriptor type {kind} is not known"));
                Step::More
            }
            Descriptor::Data(data) => self.data(dma, data),
        }
    }

    fn damage(&mut self, reason: String) {
        self.damaged.get_or_insert(reason);
    }

    fn data(&mut self, dma: &dyn Dma, data: Data) -> Step {
        let first = *self.first.get_or_insert(data);
        let start = self.frame.len();
        if start + data.len > MAX_LEN {
            self.damage(format!("frame is longer than {MAX_LEN} bytes"));
        } else if self.damaged.is_none() {
            self.frame.resize(start + data.len, 0);
            let piece = self.frame.get_mut(start..).unwrap_or_default();
            if let Err(error) = dma.read(data.address, piece) {
                self.damage(error.to_string());
            }
        }
        if !data.end {
            return Step::More;
        }
        let done = std::mem::take(self);
        let report = data.report;
        if let Some(reason) = done.damaged {
            return Step::Malformed { reason, report };
        }
        let job = (!done.filter && !first.dummy).then_some(Job {
            frame: done.frame,
            first,
            context: done.context,
        });
        Step::Finished { job, report }
    }
}
