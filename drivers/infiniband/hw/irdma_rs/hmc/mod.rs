// SPDX-License-Identifier: GPL-2.0

//! Host memory cache (HMC): the memory in which the device keeps its objects.
//!
//! The function has an address space of its own, in segments of 2 MiB. A segment descriptor (SD)
//! says where a segment's memory is: one block, or 512 pages listed in a page of descriptors. The
//! driver asks what the device offers, chooses counts ([`sizing`]), commits them, learns where each
//! array lies ([`fpm`]), and announces memory for all of them but the page buffer lists, which grow
//! when they are used ([`pble`]).
//!
//! Memory is freed when [`Hmc`] is dropped, which is after the control queue pair is gone: until
//! then the device may touch it, whatever became of the operations that took it away.

pub(crate) mod fpm;
pub(crate) mod objects;
mod pble;
mod segment;
pub(crate) mod sizing;

pub(crate) use pble::{
    Levels,
    Pbles, //
};

use crate::{
    cqp::{
        cmd,
        Cqp,
        Failure, //
    },
    lan::Port, //
};
use fpm::{
    Extent,
    Offer,
    SEGMENT, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};
use objects::{
    Object,
    PerObject, //
};
use segment::Segment;

/// What changes after bring-up.
struct State {
    /// By index; as many as the committed arrays need.
    segments: KVec<Segment>,
    pbles: pble::Allocator,
}

/// The host memory of one function.
#[pin_data]
pub(crate) struct Hmc {
    port: Arc<Port>,
    cqp: Arc<Cqp>,
    max_ceqs: u32,
    extents: PerObject<Extent>,
    /// Taken before any lock of the control queue pair; held across its operations.
    #[pin]
    state: Mutex<State>,
}

impl Hmc {
    /// Asks, commits and plans; no memory is announced yet.
    ///
    /// # Errors
    ///
    /// - `EIO`: the device offers or places something impossible.
    /// - `ENOSPC`: the device has no room for the fewest queue pairs.
    /// - those of the control operations and of allocation.
    pub(crate) fn negotiate(port: Arc<Port>, cqp: Arc<Cqp>, wanted_qps: u64) -> Result<Arc<Self>> {
        let function = port.pf_id();
        let query = port.alloc(fpm::QUERY_WORDS)?;
        let answer = cqp.execute(&cmd::QueryFpmVal {
            function,
            buffer: query.address(),
        });
        let query = cqp.reclaim(answer, query)?;
        let offer = Offer::parse(&query)
            .inspect_err(|_| dev_err!(port.log(), "QUERY_FPM_VAL: impossible answer\n"))?;

        let counts = sizing::choose(&offer, wanted_qps).inspect_err(|_| {
            dev_err!(
                port.log(),
                "host memory: no room for the fewest queue pairs\n"
            )
        })?;
        let commit = port.alloc(fpm::COMMIT_WORDS)?;
        fpm::write_commit(&commit, &counts)?;
        let answer = cqp.execute(&cmd::CommitFpmVal {
            function,
            buffer: commit.address(),
            size: fpm::COMMIT_BYTES,
        });
        let commit = cqp.reclaim(answer, commit)?;
        let extents = fpm::parse_commit(&commit, &offer, &counts)
            .inspect_err(|_| dev_err!(port.log(), "COMMIT_FPM_VAL: impossible answer\n"))?;

        let mut table_len = 0u64;
        for object in Object::ALL {
            table_len = table_len.max(extents.get(object).segments()?.end);
        }
        let table_len = usize::try_from(table_len)?;
        let mut segments = KVec::with_capacity(table_len, GFP_KERNEL)?;
        for _ in 0..table_len {
            segments.push(Segment::Absent, GFP_KERNEL)?;
        }
        let state = State {
            segments,
            pbles: pble::Allocator::new(&extents.get(Object::Pble))?,
        };
        Arc::pin_init(
            pin_init!(Self {
                port,
                cqp,
                max_ceqs: offer.max_ceqs,
                extents,
                state <- new_mutex!(state, "Hmc::state"),
            }),
            GFP_KERNEL,
        )
    }

    /// Greatest number of completion event queues.
    pub(crate) fn max_ceqs(&self) -> u32 {
        self.max_ceqs
    }

    /// Number of objects of a kind that the device granted.
    pub(crate) fn count(&self, object: Object) -> u32 {
        // Counts are 32-bit words of the commit buffer.
        u32::try_from(self.extents.get(object).count).unwrap_or(u32::MAX)
    }

    /// Announces memory for all arrays but the page buffer lists, and says so.
    ///
    /// # Errors
    ///
    /// Those of allocation and of the control operations. [`Self::withdraw`] has to follow.
    pub(crate) fn announce(&self) -> Result {
        let mut state = self.state.lock();
        let mut batch = segment::Batch::new(self.port.pf_id());
        let announced = self.announce_static(&mut state, &mut batch);
        if announced.is_err() {
            // What the device was not told of need not be taken away from it.
            for index in batch.unsent() {
                // CAST: Widening.
                if let Some(place) = state.segments.get_mut(index as usize) {
                    *place = Segment::Absent;
                }
            }
        }
        drop(state);
        announced?;
        self.cqp.execute(&cmd::ShmcPagesAllocated {
            function: self.port.pf_id(),
        })?;
        Ok(())
    }

    fn announce_static(&self, state: &mut State, batch: &mut segment::Batch) -> Result {
        for object in Object::ALL {
            if object == Object::Pble {
                continue;
            }
            for index in self.extents.get(object).segments()? {
                let index = u32::try_from(index)?;
                // CAST: Widening.
                let place = state.segments.get_mut(index as usize).ok_or(EIO)?;
                if !matches!(place, Segment::Absent) {
                    continue;
                }
                *place = Segment::direct(&self.port).inspect_err(|_| {
                    dev_err!(
                        self.port.log(),
                        "host memory: no block of {SEGMENT} bytes for segment {index}\n"
                    )
                })?;
                batch.push(&self.cqp, place.entry(index))?;
            }
        }
        Ok(batch.flush(&self.cqp)?)
    }

    /// Makes the device forget all memory. Stops quietly where the control queue does.
    pub(crate) fn withdraw(&self) {
        let state = self.state.lock();
        let mut batch = segment::Batch::new(self.port.pf_id());
        for (index, segment) in (0u32..).zip(state.segments.iter()) {
            let Some(entry) = segment.clear_entry(index) else {
                continue;
            };
            if batch.push(&self.cqp, Some(entry)).is_err() {
                return;
            }
        }
        let _: Result<(), Failure> = batch.flush(&self.cqp);
    }

    /// Gives all memory up: the device did not confirm that it let go of it.
    pub(crate) fn leak(&self) {
        let segments = core::mem::take(&mut self.state.lock().segments);
        core::mem::forget(segments);
    }
}
