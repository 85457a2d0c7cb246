// SPDX-License-Identifier: GPL-2.0

//! Upcalls: from a driver's interrupt path into the consumer of a CQ, a QP or a device.
//!
//! An interrupt finds the shared half of an object in a table and may outlive the object itself.
//! So that half holds no pointer to the C structure but an upcall, which this layer closes before
//! the core frees the structure: once it is closed, no call to the consumer is in progress and none
//! will start.
//!
//! A completion is announced where the interrupt is handled, under the upcall's lock and with
//! interrupts off. Events of a QP go through a work item: the core promises consumers process
//! context for them.

use kernel::{
    impl_has_work,
    new_work,
    prelude::*,
    sync::{
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use crate::{
    bindings,
    device::PortNum,
    sys::workqueue::{
        cancel_work_sync,
        system_percpu, //
    }, //
};

/// A pointer to a C object that the core owns, or null.
struct Target<C>(*mut C);

// SAFETY: The pointer is followed only while the upcall is open, on any CPU.
unsafe impl<C> Send for Target<C> {}

impl<C> Target<C> {
    /// The object, unless the upcall is closed.
    fn get(&self) -> Option<*mut C> {
        (!self.0.is_null()).then_some(self.0)
    }
}

/// The way from the shared half of a CQ to its consumer.
///
/// # Invariants
///
/// A target that is not null is a live CQ: `close` empties the slot before the core may free it.
#[pin_data]
pub struct CqUpcall {
    #[pin]
    target: SpinLockIrq<Target<bindings::ib_cq>>,
}

impl CqUpcall {
    /// # Safety
    ///
    /// `cq` has its consumer set and stays valid until `close`.
    pub(crate) unsafe fn new(cq: *mut bindings::ib_cq) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                // INVARIANT: By this function's contract.
                target <- new_spinlock_irq!(Target(cq), "CqUpcall::target"),
            }),
            GFP_KERNEL,
        )
    }

    /// Ends upcalls, and so waits for one in progress.
    pub(crate) fn close(&self) {
        self.target.lock().0 = core::ptr::null_mut();
    }

    /// Whether the CQ is gone.
    pub fn is_closed(&self) -> bool {
        self.target.lock().get().is_none()
    }

    /// Tells the consumer that the CQ holds a completion it armed for. Any context but NMI.
    ///
    /// Must not be called with a lock held that the driver's poll or arm operation takes: a
    /// consumer may poll from here.
    pub fn completion(&self) {
        let target = self.target.lock();
        let Some(cq) = target.get() else {
            return;
        };

        // SAFETY: Live by the type invariant, kept so by the lock.
        let (handler, context) = unsafe { ((*cq).comp_handler, (*cq).cq_context) };
        if let Some(handler) = handler {
            // SAFETY: The consumer's own function with its own argument.
            unsafe { handler(cq, context) };
        }
    }

    /// Tells the consumer that the CQ failed and delivers nothing any more. Any context but NMI.
    pub fn error(&self) {
        let target = self.target.lock();
        let Some(cq) = target.get() else {
            return;
        };

        // SAFETY: Live by the type invariant, kept so by the lock.
        let (handler, context, device) =
            unsafe { ((*cq).event_handler, (*cq).cq_context, (*cq).device) };
        let mut event = bindings::ib_event {
            device,
            element: bindings::ib_event__bindgen_ty_1 { cq },
            event: bindings::ib_event_type_IB_EVENT_CQ_ERR,
        };
        if let Some(handler) = handler {
            // SAFETY: The consumer's own function, an event that lives during the call.
            unsafe { handler(&mut event, context) };
        }
    }
}

/// An asynchronous event of a QP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QpEvent {
    /// The QP went to the error state by itself.
    Fatal,
    /// A request was invalid; the QP is in the error state.
    RequestError,
    /// A remote access was refused; the QP is in the error state.
    AccessError,
    /// The first packet arrived before the transition to RTS.
    CommunicationEstablished,
    /// The send queue is drained.
    SendQueueDrained,
    /// The last WQE of a QP on a shared receive queue was consumed.
    LastWqeReached,
}

impl QpEvent {
    /// All, in the order in which pending ones are delivered.
    const ALL: [Self; 6] = [
        Self::CommunicationEstablished,
        Self::SendQueueDrained,
        Self::RequestError,
        Self::AccessError,
        Self::Fatal,
        Self::LastWqeReached,
    ];

    fn to_raw(self) -> bindings::ib_event_type {
        match self {
            Self::Fatal => bindings::ib_event_type_IB_EVENT_QP_FATAL,
            Self::RequestError => bindings::ib_event_type_IB_EVENT_QP_REQ_ERR,
            Self::AccessError => bindings::ib_event_type_IB_EVENT_QP_ACCESS_ERR,
            Self::CommunicationEstablished => bindings::ib_event_type_IB_EVENT_COMM_EST,
            Self::SendQueueDrained => bindings::ib_event_type_IB_EVENT_SQ_DRAINED,
            Self::LastWqeReached => bindings::ib_event_type_IB_EVENT_QP_LAST_WQE_REACHED,
        }
    }

    /// The event's bit among pending ones.
    fn bit(self) -> u32 {
        // CAST: A discriminant below the number of events.
        1 << self as u32
    }
}

/// What the lock of a [`QpUpcall`] guards.
struct QpSlot {
    target: Target<bindings::ib_qp>,
    /// Events that wait for the work item, a bit each.
    pending: u32,
}

/// The way from the shared half of a QP to its consumer.
///
/// # Invariants
///
/// A target that is not null is a live QP: `close` empties the slot and waits for the work item
/// before the core may free it. The work item is queued only while the target is not null.
#[pin_data]
pub struct QpUpcall {
    #[pin]
    state: SpinLockIrq<QpSlot>,
    #[pin]
    work: Work<Self>,
}

impl_has_work! {
    impl HasWork<Self> for QpUpcall { self.work }
}

impl QpUpcall {
    /// # Safety
    ///
    /// `qp` has its consumer set and stays valid until `close`.
    pub(crate) unsafe fn new(qp: *mut bindings::ib_qp) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                // INVARIANT: By this function's contract.
                state <- new_spinlock_irq!(
                    QpSlot {
                        target: Target(qp),
                        pending: 0,
                    },
                    "QpUpcall::state"
                ),
                work <- new_work!("QpUpcall::work"),
            }),
            GFP_KERNEL,
        )
    }

    /// Ends upcalls, and waits for one in progress. Process context, not from an upcall.
    pub(crate) fn close(self: &Arc<Self>) {
        self.state.lock().target.0 = core::ptr::null_mut();
        cancel_work_sync(self);
    }

    /// Whether the QP is gone.
    pub fn is_closed(&self) -> bool {
        self.state.lock().target.get().is_none()
    }

    /// Runs `f` with the QP while it cannot go away; `None` if it is gone. `f` runs with
    /// interrupts off.
    pub(crate) fn with<R>(&self, f: impl FnOnce(*mut bindings::ib_qp) -> R) -> Option<R> {
        let slot = self.state.lock();

        slot.target.get().map(f)
    }

    /// Tells the consumer of `event`, soon and once, however often it is told before that. Any
    /// context but NMI.
    pub fn event(self: &Arc<Self>, event: QpEvent) {
        let mut slot = self.state.lock();
        if slot.target.get().is_none() {
            return;
        }

        slot.pending |= event.bit();
        // Under the lock, so that `close` finds either a queued item or none. If it is queued
        // already, it will see the new event.
        let _ = system_percpu().enqueue(self.clone());
    }
}

impl WorkItem for QpUpcall {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let (target, pending) = {
            let mut slot = this.state.lock();

            (slot.target.get(), core::mem::take(&mut slot.pending))
        };
        let Some(qp) = target else {
            return;
        };

        // SAFETY: Live by the type invariant; `close` waits for this function.
        let (handler, context, device) =
            unsafe { ((*qp).event_handler, (*qp).qp_context, (*qp).device) };
        let Some(handler) = handler else {
            return;
        };

        for event in QpEvent::ALL {
            if pending & event.bit() == 0 {
                continue;
            }

            let mut event = bindings::ib_event {
                device,
                element: bindings::ib_event__bindgen_ty_1 { qp },
                event: event.to_raw(),
            };
            // SAFETY: The core's own function, an event that lives during the call.
            unsafe { handler(&mut event, context) };
        }
    }
}

/// An event of a whole device or of one of its ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceEvent {
    /// The device failed and has to be reset.
    Fatal,
    /// The port became active.
    PortActive(PortNum),
    /// The port became inactive.
    PortError(PortNum),
    /// The port's GID table changed.
    GidChange(PortNum),
}

impl DeviceEvent {
    pub(crate) fn to_raw(self, device: *mut bindings::ib_device) -> bindings::ib_event {
        let (event, port) = match self {
            Self::Fatal => (bindings::ib_event_type_IB_EVENT_DEVICE_FATAL, None),
            Self::PortActive(port) => (bindings::ib_event_type_IB_EVENT_PORT_ACTIVE, Some(port)),
            Self::PortError(port) => (bindings::ib_event_type_IB_EVENT_PORT_ERR, Some(port)),
            Self::GidChange(port) => (bindings::ib_event_type_IB_EVENT_GID_CHANGE, Some(port)),
        };

        bindings::ib_event {
            device,
            element: bindings::ib_event__bindgen_ty_1 {
                port_num: port.map_or(0, |port| port.get()),
            },
            event,
        }
    }
}
