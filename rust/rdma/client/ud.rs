// SPDX-License-Identifier: GPL-2.0

//! UD queue pairs that receive.
//!
//! A [`UdQp`] owns its receive buffers and keeps them posted: for each datagram it calls its
//! [`Receiver`] and gives the buffer back to the device. Nobody else sees the buffers, so nothing
//! can be freed, or read, while the device writes to it.
//!
//! Teardown does not trust the device to complete what is posted (a dead one never does). It is
//! done in an order after which no completion can be on its way:
//!
//! 1. no buffer is posted any more;
//! 2. the queue pair is destroyed, after which the device uses neither its buffers nor its
//!    completion queue for it;
//! 3. the completion queue, which is the queue pair's own, is freed: that waits for completions
//!    being processed;
//! 4. buffers are unmapped and freed.

use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kernel::{
    container_of,
    error::{
        from_err_ptr,
        to_result, //
    },
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    },
    types::Opaque, //
};

use crate::{
    bindings,
    client::{
        buffer::RecvBuffer,
        Cq,
        Device,
        IpHeader,
        Pd,
        HEADER_LEN, //
    },
    device::PortNum,
    qp::QpNum, //
};

/// A Q_Key: datagrams with another one are dropped by the receiving device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Qkey(u32);

impl Qkey {
    /// The Q_Key with this value.
    pub const fn new(value: u32) -> Self {
        Self(value)
    }

    /// The value.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// What a queue pair is to be like.
#[derive(Clone, Copy, Debug)]
pub struct UdAttrs {
    /// The port it receives on.
    pub port: PortNum,
    /// Its Q_Key.
    pub qkey: Qkey,
    /// How many datagrams can wait for the receiver; from 1.
    pub depth: u32,
    /// The largest payload in octets. A larger datagram puts the queue pair into error.
    pub max_payload: u32,
    /// Who it belongs to in `rdma resource`.
    pub owner: &'static CStr,
}

/// A received datagram. Lives as long as the call it is passed to.
pub struct Datagram<'a> {
    header: Option<IpHeader>,
    payload: &'a [u8],
    source_qp: QpNum,
}

impl Datagram<'_> {
    /// Sender and destination, if the buffer starts with a header that says so.
    pub fn header(&self) -> Option<IpHeader> {
        self.header
    }

    /// What was sent.
    pub fn payload(&self) -> &[u8] {
        self.payload
    }

    /// The queue pair that sent it.
    pub fn source_qp(&self) -> QpNum {
        self.source_qp
    }
}

/// Why a buffer is out of use.
#[derive(Clone, Copy, Debug)]
pub enum Failure {
    /// The device completed the request with an error.
    Completion(&'static CStr),
    /// The device refused the request.
    Post(Error),
}

/// Who takes the datagrams of a queue pair.
///
/// Called in process context, from the workqueue of the completion queue, one call after the
/// other. Calls must not drop the queue pair: that would wait for themselves.
pub trait Receiver: Send + Sync + 'static {
    /// A datagram has come.
    fn receive(&self, datagram: &Datagram<'_>);

    /// A buffer is lost to the queue pair; not called for those that teardown flushes.
    fn failed(&self, failure: Failure) {
        let _ = failure;
    }
}

/// One receive request and its buffer.
#[repr(C)]
struct RecvSlot {
    cqe: Opaque<bindings::ib_cqe>,
    buffer: RecvBuffer,
}

/// The parts of a queue pair, where the device and the core find them.
///
/// # Invariants
///
/// `qp` is owned, was made in `pd` on `cq`, and `cq` is used by nothing else; the context of `cq`
/// is the ring itself. `slots` does not change in length.
#[pin_data]
struct Ring<R: Receiver> {
    qp: NonNull<bindings::ib_qp>,
    // Buffers are unmapped after the queues are gone, so they come after them.
    cq: Cq,
    slots: KVec<RecvSlot>,
    pd: Arc<Pd>,
    /// Whether requests may be posted.
    #[pin]
    open: SpinLock<bool>,
    receiver: R,
}

/// A UD queue pair that is ready to receive. Dropping it destroys it. May sleep.
///
/// If the device refuses to destroy it, which a driver that fails to detach it from a group causes,
/// all parts stay for good, and with them the device.
pub struct UdQp<R: Receiver>(ManuallyDrop<Pin<KBox<Ring<R>>>>);

impl<R: Receiver> UdQp<R> {
    /// How many entries a completion queue needs for a queue pair of this depth.
    pub const fn completions(depth: u32) -> u32 {
        // The core does not create queue pairs without a send queue on every device.
        depth.saturating_add(1)
    }

    /// Creates a queue pair, posts all its buffers and makes it ready. Process context.
    ///
    /// `cq` needs [`UdQp::completions`] entries.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `pd` and `cq` are of different devices, depth or payload are out of range.
    /// - `ENOMEM`, and those of the driver.
    pub fn new(pd: Arc<Pd>, cq: Cq, attrs: UdAttrs, receiver: R) -> Result<Self> {
        if !pd.device().is(cq.device()) || attrs.depth == 0 {
            return Err(EINVAL);
        }

        // The last step that can fail is the first that would have to be undone.
        let ring = KBox::pin_init(
            try_pin_init!(Ring {
                slots: slots::<R>(pd.device(), &attrs)?,
                open <- new_spinlock!(true),
                receiver,
                qp: create(&pd, &cq, &attrs)?,
                cq,
                pd,
            }),
            GFP_KERNEL,
        )?;

        // SAFETY: A queue nobody else uses; nothing is posted, so no completion reads this.
        unsafe { (*ring.cq.as_raw()).cq_context = core::ptr::from_ref(&*ring).cast_mut().cast() };

        // INVARIANT: All parts belong together. If what follows fails, dropping undoes it.
        let this = Self(ManuallyDrop::new(ring));
        this.start(&attrs)?;
        Ok(this)
    }

    /// Takes the queue pair to RTS with all its buffers posted.
    fn start(&self, attrs: &UdAttrs) -> Result {
        let ring = &**self.0;

        let mut attr = bindings::ib_qp_attr {
            qp_state: bindings::ib_qp_state_IB_QPS_INIT,
            port_num: attrs.port.get(),
            qkey: attrs.qkey.get(),
            ..pin_init::zeroed()
        };
        ring.modify(
            &mut attr,
            bindings::ib_qp_attr_mask_IB_QP_STATE
                | bindings::ib_qp_attr_mask_IB_QP_PKEY_INDEX
                | bindings::ib_qp_attr_mask_IB_QP_PORT
                | bindings::ib_qp_attr_mask_IB_QP_QKEY,
        )?;

        for slot in &ring.slots {
            ring.post(slot)?;
        }

        attr.qp_state = bindings::ib_qp_state_IB_QPS_RTR;
        ring.modify(&mut attr, bindings::ib_qp_attr_mask_IB_QP_STATE)?;

        attr.qp_state = bindings::ib_qp_state_IB_QPS_RTS;
        ring.modify(
            &mut attr,
            bindings::ib_qp_attr_mask_IB_QP_STATE | bindings::ib_qp_attr_mask_IB_QP_SQ_PSN,
        )
    }

    /// The queue pair's number.
    pub fn number(&self) -> QpNum {
        // SAFETY: Owned by the invariant of `Ring`; constant.
        QpNum::new(unsafe { (*self.as_raw()).qp_num })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.0.pd.device()
    }

    /// Who takes the datagrams.
    pub fn receiver(&self) -> &R {
        &self.0.receiver
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::ib_qp {
        self.0.qp.as_ptr()
    }
}

impl<R: Receiver> Ring<R> {
    fn modify(&self, attr: &mut bindings::ib_qp_attr, mask: bindings::ib_qp_attr_mask) -> Result {
        let mask = c_int::try_from(mask).map_err(|_| EINVAL)?;

        // SAFETY: An owned queue pair and attributes that the mask says are set.
        to_result(unsafe { bindings::ib_modify_qp(self.qp.as_ptr(), attr, mask) })
    }

    /// Gives a slot to the device, if the ring is open.
    fn post(&self, slot: &RecvSlot) -> Result {
        let mut sge = slot.buffer.sge(self.pd.local_dma_lkey());
        let request = bindings::ib_recv_wr {
            next: core::ptr::null_mut(),
            __bindgen_anon_1: bindings::ib_recv_wr__bindgen_ty_1 {
                wr_cqe: slot.cqe.get(),
            },
            sg_list: &mut sge,
            num_sge: 1,
        };

        let open = self.open.lock();
        if !*open {
            return Ok(());
        }

        slot.buffer.give();
        // SAFETY: The queue pair lives as long as the ring is open, and a slot as long as the
        // queue pair; the list is read during the call only.
        to_result(unsafe { bindings::rdma_rs_post_recv(self.qp.as_ptr(), &request) })
    }

    /// A slot has completed.
    fn done(&self, slot: &RecvSlot, wc: &bindings::ib_wc) {
        match wc.status {
            bindings::ib_wc_status_IB_WC_SUCCESS => {}
            bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR => return,
            status => {
                // SAFETY: A pure function that returns a static string for any status.
                let text = unsafe { CStr::from_char_ptr(bindings::ib_wc_status_msg(status)) };
                return self.receiver.failed(Failure::Completion(text));
            }
        }

        // SAFETY: Completed, and given again only below.
        let octets = unsafe { slot.buffer.take(wc.byte_len) };
        // A completion that tells of fewer octets than the header has is the device's fault.
        if let Some((header, payload)) = octets.split_first_chunk::<HEADER_LEN>() {
            self.receiver.receive(&Datagram {
                header: IpHeader::parse(header),
                payload,
                source_qp: QpNum::new(wc.src_qp),
            });
        }

        if let Err(error) = self.post(slot) {
            self.receiver.failed(Failure::Post(error));
        }
    }
}

/// Buffers for a queue pair.
fn slots<R: Receiver>(device: &Device, attrs: &UdAttrs) -> Result<KVec<RecvSlot>> {
    // CAST: 40.
    let len = attrs
        .max_payload
        .checked_add(HEADER_LEN as u32)
        .ok_or(EINVAL)?;
    let depth = usize::try_from(attrs.depth).map_err(|_| EINVAL)?;

    let mut slots = KVec::with_capacity(depth, GFP_KERNEL)?;
    for _ in 0..depth {
        let slot = RecvSlot {
            cqe: Opaque::new(bindings::ib_cqe {
                done: Some(done::<R>),
            }),
            buffer: RecvBuffer::new(device, len)?,
        };
        slots.push(slot, GFP_KERNEL)?;
    }

    Ok(slots)
}

fn create(pd: &Pd, cq: &Cq, attrs: &UdAttrs) -> Result<NonNull<bindings::ib_qp>> {
    let mut init = bindings::ib_qp_init_attr {
        send_cq: cq.as_raw(),
        recv_cq: cq.as_raw(),
        cap: bindings::ib_qp_cap {
            max_send_wr: 1,
            max_recv_wr: attrs.depth,
            max_send_sge: 1,
            max_recv_sge: 1,
            ..pin_init::zeroed()
        },
        sq_sig_type: bindings::ib_sig_type_IB_SIGNAL_REQ_WR,
        qp_type: bindings::ib_qp_type_IB_QPT_UD,
        ..pin_init::zeroed()
    };

    // SAFETY: An owned domain, and attributes that name an owned queue of the same device.
    let qp = from_err_ptr(unsafe {
        bindings::ib_create_qp_kernel(pd.as_raw(), &mut init, attrs.owner.as_char_ptr())
    })?;

    NonNull::new(qp).ok_or(ENOMEM)
}

/// Destroys a queue pair that the caller owns, and uses no more if this succeeds.
fn destroy(qp: NonNull<bindings::ib_qp>) -> Result {
    // SAFETY: Owned by the caller.
    to_result(unsafe { bindings::ib_destroy_qp_user(qp.as_ptr(), core::ptr::null_mut()) })
}

/// # Safety
///
/// Called by the core from the workqueue of the queue `cq`, which a `Ring<R>` owns, with a
/// completion of one of its slots.
unsafe extern "C" fn done<R: Receiver>(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: Set before the first request was posted; the ring is freed after the queue, which
    // waits for this call.
    let ring = unsafe { &*(*cq).cq_context.cast::<Ring<R>>() };
    // SAFETY: The core passes a completion that stays during the call.
    let wc = unsafe { &*wc };
    // SAFETY: Requests of this queue were posted with a `wr_cqe`.
    let cqe = unsafe { wc.__bindgen_anon_1.wr_cqe };
    // SAFETY: It is the one in a slot, which lives as long as the ring. `Opaque` is transparent.
    let slot = unsafe { &*container_of!(cqe.cast::<Opaque<bindings::ib_cqe>>(), RecvSlot, cqe) };

    ring.done(slot, wc);
}

impl<R: Receiver> Drop for UdQp<R> {
    fn drop(&mut self) {
        let ring = &**self.0;

        *ring.open.lock() = false;
        if let Err(error) = destroy(ring.qp) {
            dev_err!(
                ring.pd.device().as_ref(),
                "QP {} cannot be destroyed and stays: {error:?}\n",
                self.number().get()
            );
            return;
        }

        // SAFETY: Not used after this. The ring, whose drop frees the queue first, is complete.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

// SAFETY: The core lets any task modify and destroy a queue pair; the other parts are `Send`.
unsafe impl<R: Receiver> Send for Ring<R> {}

// SAFETY: Shared references reach the queue pair through functions that synchronise; the other
// parts are `Sync`.
unsafe impl<R: Receiver> Sync for Ring<R> {}
