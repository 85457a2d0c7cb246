// SPDX-License-Identifier: GPL-2.0

//! The asynchronous event queue (AEQ).
//!
//! The interrupt handler only looks whether there is something; a work item drains the queue in
//! process context, one event after the other, and tells the device now and then how many entries are
//! free again.

#[cfg(CONFIG_KUNIT = "y")]
mod words_test;

use crate::{
    cqp::{
        cmd,
        Cqp, //
    },
    dev::Dev,
    mem::DmaWords,
    regs::*, //
};
use kernel::{
    bitfield,
    fmt::{
        self,
        Display,
        Formatter, //
    },
    new_spinlock_irq,
    prelude::*,
    sync::{
        barrier::{
            dma_mb,
            Read, //
        },
        Arc,
        SpinLockIrq, //
    },
};
use rdma::sys::ratelimit::RateLimit;

/// Most entries the queue may have.
const MAX_ENTRIES: u32 = 524_287;

/// Words in an entry.
const WORDS: usize = 2;

/// Most entries that are given back to the device at once.
const PIECE: u32 = 16;

bitfield! {
    /// Word 1 of an entry.
    struct Aeqe(u64) {
        63:63 valid;
        53:50 aesrc;
        46:46 qpcqid_hi;
        45:34 aecode;
        33:33 overflow;
        17:0 qpcqid_low;
    }
}

/// What happened, by the device's number (`IRDMA_AE_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AeCode(pub(crate) u16);

impl AeCode {
    /// A completion queue overflowed or could not be written.
    pub(crate) const CQ_OPERATION_ERROR: Self = Self(0x0203);
    /// A multicast group without members was sent to.
    pub(crate) const ROCE_EMPTY_MCG: Self = Self(0x0380);
    /// The group's address does not fit the packet.
    pub(crate) const ROCE_BAD_MC_IP_ADDR: Self = Self(0x0381);
    /// A member of a group is not a queue pair.
    pub(crate) const ROCE_BAD_MC_QPID: Self = Self(0x0382);
    /// A member of a group has the wrong transport.
    pub(crate) const MCG_QP_PROTOCOL_MISMATCH: Self = Self(0x0383);
    /// The peer may be unreachable.
    pub(crate) const LLP_DOUBT_REACHABILITY: Self = Self(0x050c);
    /// A connection is up, of iWARP.
    pub(crate) const LLP_CONNECTION_ESTABLISHED: Self = Self(0x050e);
    /// The device runs short of something.
    pub(crate) const RESOURCE_EXHAUSTION: Self = Self(0x0520);
    /// A reset was not sent.
    pub(crate) const RESET_NOT_SENT: Self = Self(0x0603);
    /// The function is broken.
    pub(crate) const LCE_FUNCTION_CATASTROPHIC: Self = Self(0x0701);
    /// A completion queue is broken.
    pub(crate) const LCE_CQ_CATASTROPHIC: Self = Self(0x0702);
    /// A queue pair that was suspended, or moved to SQD, stands still.
    pub(crate) const QP_SUSPEND_COMPLETE: Self = Self(0x0900);
    /// The adapter is broken.
    pub(crate) const ADAPTER_CATASTROPHIC: Self = Self(0x0b0b);

    /// Whether the event concerns a multicast group rather than the queue pair it names.
    pub(crate) fn is_multicast(self) -> bool {
        matches!(
            self,
            Self::ROCE_EMPTY_MCG
                | Self::ROCE_BAD_MC_IP_ADDR
                | Self::ROCE_BAD_MC_QPID
                | Self::MCG_QP_PROTOCOL_MISMATCH
        )
    }

    /// Whether the event is no reason to do anything.
    fn is_harmless(self) -> bool {
        matches!(
            self,
            Self::LLP_DOUBT_REACHABILITY
                | Self::LLP_CONNECTION_ESTABLISHED
                | Self::RESOURCE_EXHAUSTION
                | Self::RESET_NOT_SENT
        )
    }

    /// Whether only a reset helps.
    fn is_fatal(self) -> bool {
        matches!(
            self,
            Self::LCE_FUNCTION_CATASTROPHIC | Self::ADAPTER_CATASTROPHIC
        )
    }
}

/// The part of the device an event comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Nothing is said.
    Unknown,
    /// A receive queue.
    Rq,
    /// A completion queue.
    Cq,
    /// A send queue.
    Sq,
    /// Another part of a queue pair.
    Qp,
}

impl From<u64> for Source {
    fn from(code: u64) -> Self {
        match code {
            0x1 | 0x3 => Self::Rq,
            0x2 | 0x6 | 0xa | 0xe => Self::Cq,
            0x5 | 0x7 => Self::Sq,
            0x9 | 0xb | 0xd | 0xf => Self::Qp,
            _ => Self::Unknown,
        }
    }
}

/// An asynchronous event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AsyncEvent {
    /// What happened.
    pub(crate) code: AeCode,
    /// Where.
    pub(crate) source: Source,
    /// Number of the queue pair or completion queue: any value the device can make up.
    pub(crate) number: u32,
    /// The queue itself overflowed: events were lost.
    pub(crate) overflow: bool,
}

impl From<Aeqe> for AsyncEvent {
    fn from(entry: Aeqe) -> Self {
        let number = entry.qpcqid_low().get() | entry.qpcqid_hi().get() << 18;
        Self {
            code: AeCode(entry.aecode().cast::<u16>().get()),
            source: entry.aesrc().get().into(),
            // CAST: 19 bits.
            number: number as u32,
            overflow: entry.overflow().into_bool(),
        }
    }
}

/// Entries taken and not yet given back.
struct Taken {
    count: u32,
    /// As many are given back together.
    piece: u32,
}

impl Taken {
    /// None, of a queue of `entries`.
    fn new(entries: u32) -> Self {
        Self {
            count: 0,
            piece: PIECE.min(entries / 2),
        }
    }

    /// One more is taken; how many to give back, if it is time.
    fn one(&mut self) -> Option<u32> {
        self.count = self.count.saturating_add(1);
        if self.count < self.piece {
            return None;
        }
        self.rest()
    }

    /// How many are left to give back, if any.
    fn rest(&mut self) -> Option<u32> {
        let count = core::mem::replace(&mut self.count, 0);

        (count != 0).then_some(count)
    }
}

/// What a message says of those like it that were left out.
struct LeftOut(u32);

impl Display for LeftOut {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            count => f.write_fmt(fmt!("; {count} like it left out")),
        }
    }
}

struct Consumer {
    ring: DmaWords,
    entries: u32,
    head: u32,
    /// Valid bit of the current pass.
    polarity: bool,
}

impl Consumer {
    fn peek(&self) -> Option<Aeqe> {
        // CAST: the head is below the number of entries.
        let entry = Aeqe::from(self.ring.read(self.head as usize * WORDS + 1).ok()?);
        (entry.valid().into_bool() == self.polarity).then_some(entry)
    }

    fn next(&mut self) -> Option<AsyncEvent> {
        let entry = self.peek()?;
        // What the event is about is read after the event.
        dma_mb(Read);
        self.head += 1;
        if self.head == self.entries {
            self.head = 0;
            self.polarity = !self.polarity;
        }
        Some(entry.into())
    }
}

/// The driver's side of the asynchronous event queue.
#[pin_data]
pub(crate) struct Aeq {
    #[pin]
    consumer: SpinLockIrq<Consumer>,
    /// Messages about multicast groups.
    #[pin]
    groups: RateLimit,
    /// Messages about completion queues.
    #[pin]
    cqs: RateLimit,
}

impl Aeq {
    /// Allocates the queue and has the device create it.
    ///
    /// # Errors
    ///
    /// Those of allocation and of the control operation; the device has no such queue then.
    pub(crate) fn create(dev: &Arc<Dev>) -> Result<Arc<Self>> {
        let entries = dev
            .limits
            .qps
            .saturating_add(dev.limits.cqs)
            .min(MAX_ENTRIES);
        // CAST: at most `MAX_ENTRIES`.
        let ring = dev.port.alloc(entries as usize * WORDS)?;
        let address = ring.address();
        let consumer = Consumer {
            ring,
            entries,
            head: 0,
            polarity: true,
        };
        let aeq = Arc::pin_init(
            pin_init!(Self {
                consumer <- new_spinlock_irq!(consumer, "Aeq::consumer"),
                groups <- RateLimit::new(),
                cqs <- RateLimit::new(),
            }),
            GFP_KERNEL,
        )?;
        // Last: nothing that the device knows is freed if a step before fails.
        let answer = dev.cqp.execute(&cmd::CreateAeq {
            entries,
            ring: address,
        });
        Ok(dev.cqp.reclaim(answer, aeq)?)
    }

    /// Routes the queue's events to the function's vector `vector`.
    ///
    /// # Errors
    ///
    /// `EOVERFLOW` when there is no such vector.
    pub(crate) fn route(&self, dev: &Dev, vector: u16) -> Result {
        dev.port.write_reg(
            PFINT_AEQCTL::from(0)
                .try_with_msix_indx(vector)?
                .with_const_itr_indx::<ITR_NONE>()
                .with_const_cause_ena::<1>(),
        );
        Ok(())
    }

    /// Stops the queue's events.
    pub(crate) fn unroute(&self, dev: &Dev) {
        dev.port.write_reg(PFINT_AEQCTL::from(0));
    }

    /// Whether there is an event. Any context.
    pub(crate) fn has_event(&self) -> bool {
        self.consumer.lock().peek().is_some()
    }

    /// Takes events that are there, as many as there can be at once. Process context, one caller at a
    /// time.
    ///
    /// Returns false if there may be more, written meanwhile.
    pub(crate) fn drain(&self, dev: &Dev) -> bool {
        let entries = self.consumer.lock().entries;
        let mut taken = Taken::new(entries);
        let mut empty = false;

        for _ in 0..entries {
            let Some(event) = self.consumer.lock().next() else {
                empty = true;
                break;
            };
            // Before the event is handled, which may take its time.
            if let Some(count) = taken.one() {
                dev.port.write_reg(PFPE_AEQALLOC::from(count));
            }
            self.handle(dev, &event);
        }
        if let Some(count) = taken.rest() {
            dev.port.write_reg(PFPE_AEQALLOC::from(count));
        }
        empty
    }

    /// Acts on an event.
    fn handle(&self, dev: &Dev, event: &AsyncEvent) {
        if event.overflow || event.code.is_fatal() {
            broken(dev, event);
            return;
        }
        if event.code.is_harmless() {
            return;
        }
        let for_cq = event.source == Source::Cq
            || event.code == AeCode::CQ_OPERATION_ERROR
            || event.code == AeCode::LCE_CQ_CATASTROPHIC;
        // A number without an object is not worth a word: the object may just have been destroyed.
        if for_cq {
            if let Some(cq) = dev.cqs.get(event.number) {
                if let Some(left_out) = self.cqs.allow() {
                    dev_err!(
                        dev.port.log(),
                        "completion queue {}: asynchronous event {:#06x}{}\n",
                        event.number,
                        event.code.0,
                        LeftOut(left_out)
                    );
                }
                cq.error();
            }
        } else if event.code.is_multicast() {
            if let Some(left_out) = self.groups.allow() {
                dev_warn!(
                    dev.port.log(),
                    "asynchronous event {:#06x} of a multicast group, queue pair {}{}\n",
                    event.code.0,
                    event.number,
                    LeftOut(left_out)
                );
            }
        } else if let Some(qp) = dev.qps.get(event.number) {
            qp.event(event);
        }
    }

    /// Has the device destroy the queue; no handler may use it any more.
    ///
    /// The memory of a queue the device does not let go of is kept.
    pub(crate) fn destroy(self: Arc<Self>, cqp: &Cqp) {
        let entries = self.consumer.lock().entries;
        if cqp.execute(&cmd::DestroyAeq { entries }).is_err() {
            cqp.keep(self);
        }
    }
}

/// Only a reset helps: says so once, and asks for it.
fn broken(dev: &Dev, event: &AsyncEvent) {
    if dev.cqp.is_alive() {
        if event.overflow {
            dev_err!(
                dev.port.log(),
                "asynchronous event queue: overflow, requesting a reset of the function\n"
            );
        } else {
            dev_err!(
                dev.port.log(),
                "asynchronous event {:#06x}: requesting a reset of the function\n",
                event.code.0
            );
        }
    }
    dev.cqp.reset();
}

#[kunit_tests(irdma_rs_aeq)]
mod tests {
    use super::*;

    /// Whatever the size of the queue: all are given back, and never more than half of it is not.
    #[test]
    fn entries_are_given_back_in_pieces() {
        for entries in 1..200 {
            for number in 0..2 * PIECE {
                let mut taken = Taken::new(entries);
                let mut back = 0;

                for one in 1..=number {
                    back += taken.one().unwrap_or(0);
                    assert!(one - back <= entries / 2 && one - back < PIECE);
                }
                back += taken.rest().unwrap_or(0);
                assert_eq!((back, taken.rest()), (number, None));
            }
        }
    }
}
