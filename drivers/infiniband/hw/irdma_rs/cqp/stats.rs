// SPDX-License-Identifier: GPL-2.0

//! What became of the control commands, by operation; and how often the log hears of it.

use super::{
    Code,
    Failure,
    Op,
    Outcome, //
};
use kernel::{
    device::Device,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    time::Delta, //
};
use pin_init::pin_init_array_from_fn;
use rdma::sys::ratelimit::RateLimit;

/// The commands of one operation.
#[pin_data]
struct OpStats {
    done: Atomic<u64>,
    refused: Atomic<u64>,
    timed_out: Atomic<u64>,
    not_sent: Atomic<u64>,
    /// Longest time from the doorbell to the answer, in microseconds.
    longest_us: Atomic<u64>,
    /// Messages about refusals of this operation: a flood of one does not hide another.
    #[pin]
    messages: RateLimit,
}

impl OpStats {
    fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            done: Atomic::new(0),
            refused: Atomic::new(0),
            timed_out: Atomic::new(0),
            not_sent: Atomic::new(0),
            longest_us: Atomic::new(0),
            messages <- RateLimit::new(),
        })
    }
}

/// Numbers of one operation at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpCounts {
    /// Carried out.
    pub(crate) done: u64,
    /// Answered with an error.
    pub(crate) refused: u64,
    /// Not answered in time.
    pub(crate) timed_out: u64,
    /// Never handed to the device.
    pub(crate) not_sent: u64,
    /// Longest time to an answer, in microseconds.
    pub(crate) longest_us: u64,
}

/// The commands of one control queue. Usable in any context, without a lock.
#[pin_data]
pub(super) struct Stats {
    #[pin]
    ops: [OpStats; Op::COUNT],
}

impl Stats {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            ops <- pin_init_array_from_fn(|_| OpStats::new()),
        })
    }

    fn of(&self, op: Op) -> Option<&OpStats> {
        self.ops.get(op.position())
    }

    /// Counts a command that ended after `duration`.
    pub(super) fn count(&self, op: Op, duration: Delta, outcome: Outcome) {
        let Some(stats) = self.of(op) else {
            return;
        };
        let counter = match outcome {
            Ok(_) => &stats.done,
            Err(Failure::Refused(_)) => &stats.refused,
            Err(Failure::TimedOut) => &stats.timed_out,
            Err(Failure::NotSent(_)) => &stats.not_sent,
        };
        counter.fetch_add(1, Relaxed);
        if !matches!(outcome, Ok(_) | Err(Failure::Refused(_))) {
            return;
        }
        let duration = u64::try_from(duration.as_micros_ceil()).unwrap_or(0);
        // Commands end in several contexts at once: a longer one may be lost to a shorter one of the
        // same moment, which is good enough for a maximum to look at.
        if duration > stats.longest_us.load(Relaxed) {
            stats.longest_us.store(duration, Relaxed);
        }
    }

    /// Tells the log that the device refused a command, unless it has heard of too many.
    pub(super) fn complain(&self, device: &Device, op: Op, code: Code) {
        let Some(left_out) = self.of(op).and_then(|stats| stats.messages.allow()) else {
            return;
        };
        if left_out == 0 {
            dev_err!(
                device,
                "{op}: refused by the device, code {code}, {}\n",
                code.meaning()
            );
        } else {
            dev_err!(
                device,
                "{op}: refused by the device, code {code}, {}; {left_out} like it left out\n",
                code.meaning()
            );
        }
    }

    /// Returns the numbers of an operation.
    pub(super) fn counts(&self, op: Op) -> OpCounts {
        self.of(op).map_or(
            OpCounts {
                done: 0,
                refused: 0,
                timed_out: 0,
                not_sent: 0,
                longest_us: 0,
            },
            |stats| OpCounts {
                done: stats.done.load(Relaxed),
                refused: stats.refused.load(Relaxed),
                timed_out: stats.timed_out.load(Relaxed),
                not_sent: stats.not_sent.load(Relaxed),
                longest_us: stats.longest_us.load(Relaxed),
            },
        )
    }
}

#[kunit_tests(irdma_rs_cqp_stats)]
mod tests {
    use super::{
        super::Completed,
        *, //
    };

    #[test]
    fn each_end_is_counted_where_it_belongs() -> Result {
        let stats = KBox::pin_init(Stats::new(), GFP_KERNEL)?;
        let done = Ok(Completed {
            return_value: 0,
            minor: 0,
        });

        stats.count(Op::CreateQp, Delta::from_micros(7), done);
        stats.count(Op::CreateQp, Delta::from_micros(5), done);
        stats.count(
            Op::CreateQp,
            Delta::from_micros(9),
            Err(Failure::Refused(Code::FATAL)),
        );
        stats.count(Op::CreateQp, Delta::from_secs(20), Err(Failure::TimedOut));
        stats.count(Op::CreateQp, Delta::ZERO, Err(Failure::NotSent(ETIMEDOUT)));
        assert_eq!(
            stats.counts(Op::CreateQp),
            OpCounts {
                done: 2,
                refused: 1,
                timed_out: 1,
                not_sent: 1,
                longest_us: 9,
            }
        );
        assert_eq!(stats.counts(Op::ModifyQp).done, 0);
        Ok(())
    }

    #[test]
    fn every_operation_has_a_place_of_its_own() {
        for (position, op) in Op::ALL.into_iter().enumerate() {
            assert_eq!(op.position(), position);
        }
    }
}
