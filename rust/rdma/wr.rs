// SPDX-License-Identifier: GPL-2.0

//! Work requests of kernel consumers, as typed views over their lists.

use core::marker::PhantomData;
use kernel::prelude::*;

use crate::{
    ah::Ah,
    bindings,
    ops::Operations,
    qp::{
        QpNum,
        QpType, //
    }, //
};

/// A piece of memory that a request names. Mirrors `struct ib_sge`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sge {
    /// Address in the region.
    pub addr: u64,
    /// Octets.
    pub length: u32,
    /// Key of the region.
    pub lkey: u32,
}

static_assert!(size_of::<Sge>() == size_of::<bindings::ib_sge>());
static_assert!(core::mem::offset_of!(Sge, addr) == core::mem::offset_of!(bindings::ib_sge, addr));
static_assert!(
    core::mem::offset_of!(Sge, length) == core::mem::offset_of!(bindings::ib_sge, length)
);
static_assert!(core::mem::offset_of!(Sge, lkey) == core::mem::offset_of!(bindings::ib_sge, lkey));

/// # Safety
///
/// `list` is valid for `len` elements during `'a` if `len` is positive.
unsafe fn sges<'a>(list: *const bindings::ib_sge, len: c_int) -> &'a [Sge] {
    match usize::try_from(len) {
        Ok(len) if len > 0 && !list.is_null() => {
            // SAFETY: By this function's contract; `Sge` mirrors `ib_sge`, asserted above.
            unsafe { core::slice::from_raw_parts(list.cast::<Sge>(), len) }
        }
        _ => &[],
    }
}

/// What a send request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendOpcode {
    /// Sends a message.
    Send,
    /// Sends a message with immediate data, octets in wire order.
    SendWithImm([u8; 4]),
    /// Anything else, in the core's coding.
    Other(u32),
}

/// A send request.
pub struct SendRequest<'a, D: Operations> {
    wr: &'a bindings::ib_send_wr,
    qp_type: QpType,
    _driver: PhantomData<fn(D)>,
}

impl<'a, D: Operations> SendRequest<'a, D> {
    fn flag(&self, flag: bindings::ib_send_flags) -> bool {
        self.wr.send_flags & flag != 0
    }

    /// The consumer's cookie.
    pub fn wr_id(&self) -> u64 {
        // SAFETY: Both members of the union are 64 bits wide.
        unsafe { self.wr.__bindgen_anon_1.wr_id }
    }

    /// What it does.
    pub fn opcode(&self) -> SendOpcode {
        match self.wr.opcode {
            bindings::ib_wr_opcode_IB_WR_SEND => SendOpcode::Send,
            bindings::ib_wr_opcode_IB_WR_SEND_WITH_IMM => {
                // SAFETY: Any value is a `u32`, and the opcode says that this member is set.
                SendOpcode::SendWithImm(unsafe { self.wr.ex.imm_data }.to_ne_bytes())
            }
            other => SendOpcode::Other(other),
        }
    }

    /// Whether it is to complete even if it succeeds.
    pub fn is_signaled(&self) -> bool {
        self.flag(bindings::ib_send_flags_IB_SEND_SIGNALED)
    }

    /// Whether the receiver is to be notified.
    pub fn is_solicited(&self) -> bool {
        self.flag(bindings::ib_send_flags_IB_SEND_SOLICITED)
    }

    /// Whether it waits for earlier reads.
    pub fn is_fenced(&self) -> bool {
        self.flag(bindings::ib_send_flags_IB_SEND_FENCE)
    }

    /// Whether the memory is read at posting; its addresses are then virtual.
    pub fn is_inline(&self) -> bool {
        self.flag(bindings::ib_send_flags_IB_SEND_INLINE)
    }

    /// Copies the memory of an inline request into `out` and returns the octets used. `None` if
    /// the request is not inline or does not fit.
    pub fn copy_inline(&self, out: &mut [u8]) -> Option<usize> {
        if !self.is_inline() {
            return None;
        }

        let mut used = 0usize;
        for sge in self.sges() {
            let len = usize::try_from(sge.length).ok()?;
            let end = used.checked_add(len)?;
            let room = out.get_mut(used..end)?;

            // CAST: The consumer gives kernel virtual addresses in inline requests.
            let from = sge.addr as usize as *const u8;
            // SAFETY: The consumer promises memory of this length for the time of the call; `room`
            // is a distinct buffer of the same length.
            unsafe { core::ptr::copy_nonoverlapping(from, room.as_mut_ptr(), len) };
            used = end;
        }

        Some(used)
    }

    /// The memory.
    pub fn sges(&self) -> &'a [Sge] {
        // SAFETY: The consumer's list is valid during the call.
        unsafe { sges(self.wr.sg_list, self.wr.num_sge) }
    }

    /// Where a datagram goes. `None` if the QP sends none or no handle is given.
    pub fn datagram(&self) -> Option<Datagram<'a, D>> {
        if !self.qp_type.is_datagram() {
            return None;
        }

        // SAFETY: Requests to such QPs are embedded at the start of an `ib_ud_wr`.
        let wr = unsafe { &*core::ptr::from_ref(self.wr).cast::<bindings::ib_ud_wr>() };
        if wr.ah.is_null() {
            return None;
        }

        Some(Datagram {
            // SAFETY: A live handle of the same device, by the contract of `ib_post_send()`.
            ah: unsafe { Ah::<D>::from_raw(wr.ah) },
            remote_qp: QpNum::new(wr.remote_qpn),
            remote_qkey: wr.remote_qkey,
            pkey_index: wr.pkey_index,
        })
    }
}

/// Where a datagram goes.
pub struct Datagram<'a, D: Operations> {
    /// The way.
    pub ah: Pin<&'a Ah<D>>,
    /// The QP.
    pub remote_qp: QpNum,
    /// Its key.
    pub remote_qkey: u32,
    /// Index of the P_Key, on the GSI.
    pub pkey_index: u16,
}

/// A list of send requests, taken in order.
///
/// # Invariants
///
/// `next` is null or a valid list.
pub struct SendList<'a, D: Operations> {
    last: *const bindings::ib_send_wr,
    next: *const bindings::ib_send_wr,
    qp_type: QpType,
    _borrow: PhantomData<&'a bindings::ib_send_wr>,
    _driver: PhantomData<fn(D)>,
}

impl<'a, D: Operations> SendList<'a, D> {
    /// # Safety
    ///
    /// `list` is null or a list for a QP of `qp_type` that is valid during `'a`.
    pub(crate) unsafe fn new(list: *const bindings::ib_send_wr, qp_type: QpType) -> Self {
        // INVARIANT: By this function's contract.
        Self {
            last: list,
            next: list,
            qp_type,
            _borrow: PhantomData,
            _driver: PhantomData,
        }
    }

    /// The request taken last, or the first one.
    pub(crate) fn failed(&self) -> *const bindings::ib_send_wr {
        self.last
    }
}

impl<'a, D: Operations> Iterator for SendList<'a, D> {
    type Item = SendRequest<'a, D>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next.is_null() {
            return None;
        }

        self.last = self.next;
        // SAFETY: Valid by the type invariant.
        let wr = unsafe { &*self.next };
        // INVARIANT: The rest of a valid list is one.
        self.next = wr.next;

        Some(SendRequest {
            wr,
            qp_type: self.qp_type,
            _driver: PhantomData,
        })
    }
}

/// A receive request.
pub struct RecvRequest<'a>(&'a bindings::ib_recv_wr);

impl<'a> RecvRequest<'a> {
    /// The consumer's cookie.
    pub fn wr_id(&self) -> u64 {
        // SAFETY: Both members of the union are 64 bits wide.
        unsafe { self.0.__bindgen_anon_1.wr_id }
    }

    /// The memory.
    pub fn sges(&self) -> &'a [Sge] {
        // SAFETY: The consumer's list is valid during the call.
        unsafe { sges(self.0.sg_list, self.0.num_sge) }
    }
}

/// A list of receive requests, taken in order.
///
/// # Invariants
///
/// `next` is null or a valid list.
pub struct RecvList<'a> {
    last: *const bindings::ib_recv_wr,
    next: *const bindings::ib_recv_wr,
    _borrow: PhantomData<&'a bindings::ib_recv_wr>,
}

impl RecvList<'_> {
    /// # Safety
    ///
    /// `list` is null or a list that is valid as long as the result.
    pub(crate) unsafe fn new(list: *const bindings::ib_recv_wr) -> Self {
        // INVARIANT: By this function's contract.
        Self {
            last: list,
            next: list,
            _borrow: PhantomData,
        }
    }

    /// The request taken last, or the first one.
    pub(crate) fn failed(&self) -> *const bindings::ib_recv_wr {
        self.last
    }
}

impl<'a> Iterator for RecvList<'a> {
    type Item = RecvRequest<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next.is_null() {
            return None;
        }

        self.last = self.next;
        // SAFETY: Valid by the type invariant.
        let wr = unsafe { &*self.next };
        // INVARIANT: The rest of a valid list is one.
        self.next = wr.next;

        Some(RecvRequest(wr))
    }
}
