// SPDX-License-Identifier: GPL-2.0

//! Interrupt vectors and what each of them serves.
//!
//! With one vector more than there are processors, the first serves the asynchronous event queue
//! alone; otherwise it serves that and the first completion event queue. Each further vector serves one
//! completion event queue.
//!
//! A vector fires once and stays quiet until the handler has enabled it again. If there is more to do
//! than a hard interrupt should ([`Budget`]), the thread of the interrupt does the rest, in pieces between
//! which others run, and enables the vector. Taking a vector down goes: stop the queue's cause, disable
//! the vector, free the interrupt (which waits for the handler and its thread), disable once more, since
//! they may just have enabled.

use super::{
    aeq::Aeq,
    ceq::Ceq,
    Budget, //
};
use crate::{
    dev::Dev,
    regs::*, //
};
use kernel::{
    impl_has_work,
    io::register::Array,
    new_spinlock_irq, new_work,
    prelude::*,
    sync::{
        Arc,
        SpinLockIrq, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
    workqueue::{
        Work,
        WorkItem, //
    },
};
use rdma::{
    iidc::VectorSet,
    sys::{
        irq::{
            Served,
            Vector,
            VectorHandler, //
        },
        workqueue::{
            cancel_work_sync,
            flush_work,
            OwnedQueue, //
        },
    },
};

/// How long the thread of an interrupt sleeps where it has much to do.
const BREATH: Delta = Delta::from_micros(50);

/// How the vectors are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The first vector serves the asynchronous and the first completion event queue.
    pub(crate) shared: bool,
    /// Completion event queues.
    pub(crate) ceqs: u32,
}

impl Plan {
    /// Shares `vectors` out on a machine with `cpus` processors, with a device of `max_ceqs` queues.
    pub(crate) fn new(vectors: usize, cpus: usize, max_ceqs: u32) -> Self {
        let shared = vectors <= cpus;
        let for_ceqs = if shared {
            vectors
        } else {
            vectors.saturating_sub(1)
        };
        Self {
            shared,
            ceqs: u32::try_from(for_ceqs).unwrap_or(u32::MAX).min(max_ceqs),
        }
    }

    /// Position of the vector of completion event queue `ceq`.
    pub(crate) fn vector_of(self, ceq: u32) -> usize {
        // CAST: at most the number of vectors.
        ceq as usize + usize::from(!self.shared)
    }
}

/// Drains the asynchronous event queue in process context.
#[pin_data]
pub(crate) struct AeqWork {
    dev: Arc<Dev>,
    aeq: Arc<Aeq>,
    queue: OwnedQueue,
    #[pin]
    work: Work<AeqWork>,
}

impl_has_work! {
    impl HasWork<Self> for AeqWork { self.work }
}

impl WorkItem for AeqWork {
    type Pointer = Arc<AeqWork>;

    fn run(this: Arc<AeqWork>) {
        if !this.aeq.drain(&this.dev) {
            // In a run of its own, so that who waits for one does not wait for events without end.
            Self::kick(&this);
        }
    }
}

impl AeqWork {
    pub(crate) fn new(dev: Arc<Dev>, aeq: Arc<Aeq>) -> Result<Arc<Self>> {
        let queue = OwnedQueue::ordered(c"irdma_rs_aeq")?;
        Arc::pin_init(
            pin_init!(Self {
                dev,
                aeq,
                queue,
                work <- new_work!("AeqWork::work"),
            }),
            GFP_KERNEL,
        )
    }

    /// Has the queue drained if there is something in it. Any context.
    fn kick(this: &Arc<Self>) {
        if this.aeq.has_event() {
            // Already queued will do.
            let _ = this.queue.queue().enqueue(this.clone());
        }
    }

    /// Waits for the work in progress; nobody kicks any more.
    pub(crate) fn stop(this: &Arc<Self>) {
        cancel_work_sync(this);
    }
}

/// Where others find the asynchronous event queue, while there is one.
#[pin_data]
pub(crate) struct AeqSlot {
    #[pin]
    work: SpinLockIrq<Option<Arc<AeqWork>>>,
}

impl AeqSlot {
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                work <- new_spinlock_irq!(None, "AeqSlot::work"),
            }),
            GFP_KERNEL,
        )
    }

    /// From now on others find `work`, or nothing; none still kicks what was there before.
    pub(crate) fn set(&self, work: Option<Arc<AeqWork>>) {
        let old = core::mem::replace(&mut *self.work.lock(), work);
        drop(old);
    }

    /// Has the queue drained if there is something in it. Any context.
    ///
    /// Runs under the lock, so that [`Self::set`] waits for it.
    pub(crate) fn kick(&self) {
        if let Some(work) = &*self.work.lock() {
            AeqWork::kick(work);
        }
    }

    /// Waits until all events have been handled that are there now. May sleep.
    pub(crate) fn settle(&self) {
        let work = self.work.lock().clone();

        if let Some(work) = work {
            AeqWork::kick(&work);
            // One taken off the queue may still be on its way to its object.
            flush_work(&work);
        }
    }
}

/// What one vector serves.
pub(crate) struct Handler {
    dev: Arc<Dev>,
    vector: u16,
    ceq: Option<Arc<Ceq>>,
    aeq: Option<Arc<AeqSlot>>,
}

impl Handler {
    /// Serves the queues of the vector within `budget`, and lets it fire again when that is done.
    fn serve(&self, mut budget: Budget) -> Served {
        if let Some(aeq) = &self.aeq {
            aeq.kick();
        }
        if let Some(ceq) = &self.ceq {
            if !ceq.drain(&self.dev, &mut budget) {
                return Served::Rest;
            }
        }
        enable(&self.dev, self.vector);
        Served::Done
    }
}

impl VectorHandler for Handler {
    fn interrupt(&self) -> Served {
        self.serve(Budget::hard())
    }

    fn thread(&self) {
        while let Served::Rest = self.serve(Budget::thread()) {
            // Only sleeping lets tasks of ordinary priority run.
            fsleep(BREATH);
        }
    }
}

/// Lets a vector fire.
fn enable(dev: &Dev, vector: u16) {
    if let Some(register) = GLINT_DYN_CTL::try_at(usize::from(vector)) {
        dev.port.write_at(
            register,
            GLINT_DYN_CTL::from(0)
                .with_const_clearpba::<1>()
                .with_const_intena::<1>(),
        );
    }
}

/// Keeps a vector from firing.
fn disable(dev: &Dev, vector: u16) {
    if let Some(register) = GLINT_DYN_CTL::try_at(usize::from(vector)) {
        dev.port.write_at(register, GLINT_DYN_CTL::from(0));
    }
}

/// A vector in use. Dropping it frees the interrupt, and waits for its handler and its thread.
pub(crate) struct Irq {
    dev: Arc<Dev>,
    vector: u16,
    requested: Option<Pin<KBox<Vector<Handler>>>>,
    // The vector is ours until it has been disabled for the last time.
    _set: Arc<VectorSet>,
}

impl Irq {
    /// Requests the interrupt at `position` of `set` and lets it fire.
    ///
    /// # Errors
    ///
    /// `EINVAL` when there is no such vector, and those of requesting an interrupt.
    pub(crate) fn request(
        dev: &Arc<Dev>,
        set: &Arc<VectorSet>,
        position: usize,
        name: &'static CStr,
        ceq: Option<Arc<Ceq>>,
        aeq: Option<Arc<AeqSlot>>,
    ) -> Result<Self> {
        let vector = set.device_index(position).ok_or(EINVAL)?;
        let handler = Handler {
            dev: dev.clone(),
            vector,
            ceq,
            aeq,
        };
        let requested = KBox::pin_init(
            Vector::request(set.clone(), position, name, Ok::<_, Error>(handler)),
            GFP_KERNEL,
        )
        .inspect_err(|error| {
            dev_err!(
                dev.port.log(),
                "vector {vector}: cannot request its interrupt, error {}\n",
                error.to_errno()
            );
        })?;
        Ok(Self {
            dev: dev.clone(),
            vector,
            requested: Some(requested),
            _set: set.clone(),
        })
    }

    /// The device's number of the vector.
    pub(crate) fn vector(&self) -> u16 {
        self.vector
    }

    /// Lets the vector fire; its queues are routed to it.
    pub(crate) fn enable(&self) {
        enable(&self.dev, self.vector);
    }
}

impl Drop for Irq {
    fn drop(&mut self) {
        disable(&self.dev, self.vector);
        self.requested = None;
        disable(&self.dev, self.vector);
    }
}

#[kunit_tests(irdma_rs_vectors)]
mod tests {
    use super::*;

    #[test]
    fn plans() {
        let plan = Plan::new(5, 4, 64);
        assert_eq!((plan.shared, plan.ceqs), (false, 4));
        assert_eq!((plan.vector_of(0), plan.vector_of(3)), (1, 4));
        let plan = Plan::new(4, 4, 64);
        assert_eq!((plan.shared, plan.ceqs), (true, 4));
        assert_eq!((plan.vector_of(0), plan.vector_of(3)), (0, 3));
        let plan = Plan::new(2, 1, 64);
        assert_eq!((plan.shared, plan.ceqs), (false, 1));
        let plan = Plan::new(9, 8, 3);
        assert_eq!((plan.shared, plan.ceqs), (false, 3));
    }
}
