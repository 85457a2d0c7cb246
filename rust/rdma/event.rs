// SPDX-License-Identifier: GPL-2.0

//! Upcalls: from a driver's interrupt path into the consumer of a CQ, a QP or a device.
//!
//! An interrupt finds the shared half of an object in a table and may outlive the object itself.
//! So that half holds no pointer to the C structure but an [`Upcall`], which this layer empties
//! before the core frees the structure. An upcall runs under the slot's lock with interrupts off:
//! once the slot is empty, none is in progress and none will start.

use kernel::{
    prelude::*,
    sync::{
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    }, //
};

use crate::bindings;

/// A pointer to a C object that the core owns, or null.
struct Target<C>(*mut C);

// SAFETY: The pointer is followed only under the slot's lock, on any CPU.
unsafe impl<C> Send for Target<C> {}

/// The way from the shared half of an object to its consumer.
///
/// # Invariants
///
/// A target that is not null is a live object of the core: `close` empties the slot before the
/// core may free it.
#[pin_data]
pub struct Upcall<C> {
    #[pin]
    target: SpinLockIrq<Target<C>>,
}

/// The upcall of a CQ.
pub type CqUpcall = Upcall<bindings::ib_cq>;

/// The upcall of a QP.
pub type QpUpcall = Upcall<bindings::ib_qp>;

impl<C> Upcall<C> {
    /// Empties the slot, and so waits for an upcall in progress.
    pub(crate) fn close(&self) {
        self.target.lock().0 = core::ptr::null_mut();
    }

    /// Whether the object is gone.
    pub fn is_closed(&self) -> bool {
        self.target.lock().0.is_null()
    }

    /// Runs `f` with the object while it cannot go away; `None` if it is gone. `f` runs with
    /// interrupts off.
    pub(crate) fn with<R>(&self, f: impl FnOnce(*mut C) -> R) -> Option<R> {
        let target = self.target.lock();

        (!target.0.is_null()).then(|| f(target.0))
    }
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

    /// Tells the consumer that the CQ holds a completion it armed for. Any context but NMI.
    ///
    /// Must not be called with a lock held that the driver's poll or arm operation takes: a
    /// consumer may poll from here.
    pub fn completion(&self) {
        self.with(|cq| {
            // SAFETY: Live by the type invariant, kept so by the slot's lock.
            let (handler, context) = unsafe { ((*cq).comp_handler, (*cq).cq_context) };

            if let Some(handler) = handler {
                // SAFETY: The consumer's own function with its own argument.
                unsafe { handler(cq, context) };
            }
        });
    }

    /// Tells the consumer that the CQ failed and delivers nothing any more. Any context but NMI.
    pub fn error(&self) {
        self.with(|cq| {
            // SAFETY: Live by the type invariant, kept so by the slot's lock.
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
        });
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
}

impl QpUpcall {
    /// # Safety
    ///
    /// `qp` has its consumer set and stays valid until `close`.
    pub(crate) unsafe fn new(qp: *mut bindings::ib_qp) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                // INVARIANT: By this function's contract.
                target <- new_spinlock_irq!(Target(qp), "QpUpcall::target"),
            }),
            GFP_KERNEL,
        )
    }

    /// Tells the consumer of `event`. Any context but NMI.
    pub fn event(&self, event: QpEvent) {
        self.with(|qp| {
            // SAFETY: Live by the type invariant, kept so by the slot's lock.
            let (handler, context, device) =
                unsafe { ((*qp).event_handler, (*qp).qp_context, (*qp).device) };

            let mut event = bindings::ib_event {
                device,
                element: bindings::ib_event__bindgen_ty_1 { qp },
                event: event.to_raw(),
            };
            if let Some(handler) = handler {
                // SAFETY: The core's own function, an event that lives during the call.
                unsafe { handler(&mut event, context) };
            }
        });
    }
}

/// An event of a whole device or of one of its ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceEvent {
    /// The device failed and has to be reset.
    Fatal,
    /// The port became active.
    PortActive(crate::device::PortNum),
    /// The port became inactive.
    PortError(crate::device::PortNum),
    /// The port's GID table changed.
    GidChange(crate::device::PortNum),
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
