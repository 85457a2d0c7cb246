// SPDX-License-Identifier: GPL-2.0

//! A completion event queue (CEQ).
//!
//! The ring has room for one event of every completion queue. As a queue has at most one event
//! outstanding, the device needs no word from the driver about how far it has read.
//!
//! Entries are drained in the hard interrupt, a few at a time, and if there are more in the
//! interrupt's thread: once `free_irq()` has returned nothing of this runs any more, and the ring can
//! go.

use super::{
    table::Table,
    Budget,
    CqEvents, //
};
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
    io::register::Array,
    new_spinlock_irq,
    prelude::*,
    sync::{
        atomic::{
            AtomicFlag,
            Relaxed, //
        },
        barrier::{
            dma_mb,
            Read, //
        },
        Arc,
        SpinLockIrq, //
    },
};

/// Most entries a queue may have.
const MAX_ENTRIES: u32 = 262_143;

/// Number of the control completion queue.
const CCQ: u32 = 0;

bitfield! {
    /// The only word of an entry.
    struct Ceqe(u64) {
        63:63 valid;
        31:0 cq_id;
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
    /// Takes the next event.
    fn next(&mut self) -> Option<u32> {
        // CAST: the head is below the number of entries.
        let entry = Ceqe::from(self.ring.read(self.head as usize).ok()?);
        if entry.valid().into_bool() != self.polarity {
            return None;
        }
        // What the event announces is read after the event.
        dma_mb(Read);
        self.head += 1;
        if self.head == self.entries {
            self.head = 0;
            self.polarity = !self.polarity;
        }
        Some(entry.cq_id().cast::<u32>().get())
    }
}

/// The driver's side of a completion event queue.
#[pin_data]
pub(crate) struct Ceq {
    id: u32,
    #[pin]
    consumer: SpinLockIrq<Consumer>,
    /// An event of the CCQ was taken, and not yet all completions that it told of.
    ccq_left: AtomicFlag,
}

impl Ceq {
    /// Allocates the queue and has the device create it.
    ///
    /// # Errors
    ///
    /// Those of allocation and of the control operation; the device has no such queue then.
    pub(crate) fn create(dev: &Arc<Dev>, id: u32) -> Result<Arc<Self>> {
        let entries = dev.limits.cqs.min(MAX_ENTRIES);
        // CAST: at most `MAX_ENTRIES`.
        let ring = dev.port.alloc(entries as usize)?;
        let address = ring.address();
        let consumer = Consumer {
            ring,
            entries,
            head: 0,
            polarity: true,
        };
        let ceq = Arc::pin_init(
            pin_init!(Self {
                id,
                consumer <- new_spinlock_irq!(consumer, "Ceq::consumer"),
                ccq_left: AtomicFlag::new(false),
            }),
            GFP_KERNEL,
        )?;
        // Last: nothing that the device knows is freed if a step before fails.
        let answer = dev.cqp.execute(&cmd::CreateCeq {
            id,
            entries,
            ring: address,
            vsi: dev.port.vsi(),
        });
        Ok(dev.cqp.reclaim(answer, ceq)?)
    }

    /// Routes the queue's events to the function's vector `vector`.
    ///
    /// # Errors
    ///
    /// `EINVAL` when there is no such queue or vector in the register file.
    pub(crate) fn route(&self, dev: &Dev, vector: u16) -> Result {
        // CAST: a small number.
        let register = GLINT_CEQCTL::try_at(self.id as usize).ok_or(EINVAL)?;
        dev.port.write_at(
            register,
            GLINT_CEQCTL::from(0)
                .try_with_msix_indx(vector)?
                .with_const_itr_indx::<ITR_NONE>()
                .with_const_cause_ena::<1>(),
        );
        Ok(())
    }

    /// Stops the queue's events.
    pub(crate) fn unroute(&self, dev: &Dev) {
        // CAST: a small number.
        if let Some(register) = GLINT_CEQCTL::try_at(self.id as usize) {
            dev.port.write_at(
                register,
                GLINT_CEQCTL::from(0).with_const_itr_indx::<ITR_NONE>(),
            );
        }
    }

    /// Takes the events that are there. Hard interrupt or process context.
    ///
    /// Returns false if `budget` ended before; the caller comes back then.
    pub(crate) fn drain(&self, dev: &Dev, budget: &mut Budget) -> bool {
        loop {
            if self.ccq_left.xchg(false, Relaxed) && !dev.cqp.after_event(budget) {
                self.ccq_left.store(true, Relaxed);
                return false;
            }
            if budget.is_spent() {
                return false;
            }
            let Some(number) = self.consumer.lock().next() else {
                return true;
            };
            budget.spend();
            if number == CCQ {
                dev.cqp.event();
                self.ccq_left.store(true, Relaxed);
            } else {
                dispatch(dev, &dev.cqs, number);
            }
        }
    }

    /// Has the device destroy the queue; no handler may use it any more.
    ///
    /// The memory of a queue the device does not let go of is kept.
    pub(crate) fn destroy(self: Arc<Self>, cqp: &Cqp) {
        let entries = self.consumer.lock().entries;
        let destroyed = cqp.execute(&cmd::DestroyCeq {
            id: self.id,
            entries,
        });
        if destroyed.is_err() {
            cqp.keep(self);
        }
    }
}

/// Tells the completion queue `number`, if there is one. The number is the device's word.
fn dispatch(dev: &Dev, cqs: &Table<dyn CqEvents>, number: u32) {
    let Some(cq) = cqs.get(number) else {
        // A queue just destroyed may have had an event on its way.
        return;
    };
    dev.port.write_reg(PFPE_CQACK::from(number));
    cq.completion();
}
