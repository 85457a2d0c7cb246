// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use core::marker::PhantomData;
use kernel::{
    error::from_result,
    prelude::*,
    sync::Arc, //
};

use crate::{
    bindings,
    details::{
        self,
        Details, //
    },
    device::Device,
    event::{
        CqUpcall,
        QpUpcall, //
    },
    net::MacAddress,
    object::Object,
    ops::Operations,
    qp::QpNum,
    udata::{
        self,
        Caller,
        Udata, //
    }, //
};

/// A completion queue with the driver's part of it.
pub type Cq<D> = Object<D, bindings::ib_cq>;

impl<D: Operations> Cq<D> {
    /// The way to the consumer, for the part that interrupts find.
    pub fn upcall(&self) -> &Arc<CqUpcall> {
        self.link()
    }

    /// Whether a process owns the queue.
    pub fn is_user(&self) -> bool {
        // SAFETY: Valid by the invariant of `Object`; set before creation, constant.
        unsafe { !(*self.as_raw()).uobject.is_null() }
    }
}

/// What the consumer asks for.
pub struct CqInit<'a> {
    attr: &'a bindings::ib_cq_init_attr,
    upcall: &'a Arc<CqUpcall>,
}

impl<'a> CqInit<'a> {
    /// Least number of completions the queue must hold; for processes the provider library may
    /// mean more than that. Not zero.
    pub fn entries(&self) -> u32 {
        self.attr.cqe
    }

    /// Completion vector, below the device's number of them.
    pub fn vector(&self) -> u32 {
        self.attr.comp_vector
    }

    /// Creation flags of the user ABI; zero for an ordinary queue.
    pub fn flags(&self) -> u32 {
        self.attr.flags
    }

    /// The way to the consumer, for the part that interrupts find.
    pub fn upcall(&self) -> &'a Arc<CqUpcall> {
        self.upcall
    }
}

/// How a work request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
#[allow(missing_docs, reason = "the names are those of `enum ib_wc_status`")]
pub enum WcStatus {
    Success = bindings::ib_wc_status_IB_WC_SUCCESS,
    LocLenErr = bindings::ib_wc_status_IB_WC_LOC_LEN_ERR,
    LocQpOpErr = bindings::ib_wc_status_IB_WC_LOC_QP_OP_ERR,
    LocProtErr = bindings::ib_wc_status_IB_WC_LOC_PROT_ERR,
    WrFlushErr = bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR,
    MwBindErr = bindings::ib_wc_status_IB_WC_MW_BIND_ERR,
    BadRespErr = bindings::ib_wc_status_IB_WC_BAD_RESP_ERR,
    LocAccessErr = bindings::ib_wc_status_IB_WC_LOC_ACCESS_ERR,
    RemInvReqErr = bindings::ib_wc_status_IB_WC_REM_INV_REQ_ERR,
    RemAccessErr = bindings::ib_wc_status_IB_WC_REM_ACCESS_ERR,
    RemOpErr = bindings::ib_wc_status_IB_WC_REM_OP_ERR,
    RetryExcErr = bindings::ib_wc_status_IB_WC_RETRY_EXC_ERR,
    RnrRetryExcErr = bindings::ib_wc_status_IB_WC_RNR_RETRY_EXC_ERR,
    RemAbortErr = bindings::ib_wc_status_IB_WC_REM_ABORT_ERR,
    FatalErr = bindings::ib_wc_status_IB_WC_FATAL_ERR,
    RespTimeoutErr = bindings::ib_wc_status_IB_WC_RESP_TIMEOUT_ERR,
    GeneralErr = bindings::ib_wc_status_IB_WC_GENERAL_ERR,
}

/// What kind of work request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
#[allow(missing_docs, reason = "the names are those of `enum ib_wc_opcode`")]
pub enum WcOpcode {
    Send = bindings::ib_wc_opcode_IB_WC_SEND,
    RdmaWrite = bindings::ib_wc_opcode_IB_WC_RDMA_WRITE,
    RdmaRead = bindings::ib_wc_opcode_IB_WC_RDMA_READ,
    LocalInv = bindings::ib_wc_opcode_IB_WC_LOCAL_INV,
    RegMr = bindings::ib_wc_opcode_IB_WC_REG_MR,
    Recv = bindings::ib_wc_opcode_IB_WC_RECV,
    RecvRdmaWithImm = bindings::ib_wc_opcode_IB_WC_RECV_RDMA_WITH_IMM,
}

/// The network header that a received packet had, and what stands in the 40 octets before its
/// payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NetworkHeader {
    /// IPv4, in the last 20 octets.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// A finished work request.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// The consumer's cookie.
    pub wr_id: u64,
    /// How it ended.
    pub status: WcStatus,
    /// What it was.
    pub opcode: WcOpcode,
    /// The device's own code of an error.
    pub vendor_err: u32,
    /// Octets received.
    pub byte_len: u32,
    /// Immediate data, octets in wire order.
    pub imm: Option<[u8; 4]>,
    /// Sender's QP, of a datagram.
    pub src_qp: QpNum,
    /// Whether the first 40 octets of the buffer hold the network header.
    pub grh: bool,
    /// Kind of that header.
    pub network_header: Option<NetworkHeader>,
    /// Source MAC of a datagram.
    pub smac: Option<MacAddress>,
    /// VLAN tag of a datagram.
    pub vlan: Option<u16>,
    /// Index of the P_Key.
    pub pkey_index: u16,
    /// Service level.
    pub sl: u8,
}

impl Completion {
    /// A completion of `opcode` with `status` and nothing else to tell.
    pub const fn new(wr_id: u64, opcode: WcOpcode, status: WcStatus) -> Self {
        Self {
            wr_id,
            status,
            opcode,
            vendor_err: 0,
            byte_len: 0,
            imm: None,
            src_qp: QpNum::new(0),
            grh: false,
            network_header: None,
            smac: None,
            vlan: None,
            pkey_index: 0,
            sl: 0,
        }
    }

    fn to_raw(self, qp: *mut bindings::ib_qp) -> bindings::ib_wc {
        let mut flags = 0;
        let mut wc: bindings::ib_wc = pin_init::zeroed();

        wc.__bindgen_anon_1 = bindings::ib_wc__bindgen_ty_1 { wr_id: self.wr_id };
        // CAST: The discriminants are the C constants.
        wc.status = self.status as bindings::ib_wc_status;
        // CAST: As above.
        wc.opcode = self.opcode as bindings::ib_wc_opcode;
        wc.vendor_err = self.vendor_err;
        wc.byte_len = self.byte_len;
        wc.qp = qp;
        wc.src_qp = self.src_qp.get();
        wc.pkey_index = self.pkey_index;
        wc.sl = self.sl;

        if self.grh {
            flags |= bindings::ib_wc_flags_IB_WC_GRH;
        }
        if let Some(imm) = self.imm {
            wc.ex.imm_data = u32::from_ne_bytes(imm);
            flags |= bindings::ib_wc_flags_IB_WC_WITH_IMM;
        }
        if let Some(header) = self.network_header {
            // CAST: Values of the C enumeration, below 4.
            wc.network_hdr_type = match header {
                NetworkHeader::Ipv4 => bindings::rdma_network_type_RDMA_NETWORK_IPV4 as u8,
                NetworkHeader::Ipv6 => bindings::rdma_network_type_RDMA_NETWORK_IPV6 as u8,
            };
            flags |= bindings::ib_wc_flags_IB_WC_WITH_NETWORK_HDR_TYPE;
        }
        if let Some(smac) = self.smac {
            wc.smac = smac.octets();
            flags |= bindings::ib_wc_flags_IB_WC_WITH_SMAC;
        }
        if let Some(vlan) = self.vlan {
            wc.vlan_id = vlan;
            flags |= bindings::ib_wc_flags_IB_WC_WITH_VLAN;
        }
        // CAST: Seven one-bit flags.
        wc.wc_flags = flags as c_int;

        wc
    }
}

/// Room for completions that a consumer polls.
///
/// # Invariants
///
/// `room` is writable for `len` elements, of which the first `used` are written.
pub struct Completions<'a> {
    room: *mut bindings::ib_wc,
    len: usize,
    used: usize,
    _borrow: PhantomData<&'a mut bindings::ib_wc>,
}

impl Completions<'_> {
    /// # Safety
    ///
    /// `room` is writable for `len` elements as long as the value exists.
    pub(crate) unsafe fn new(room: *mut bindings::ib_wc, len: usize) -> Self {
        // INVARIANT: By this function's contract; nothing is written yet.
        Self {
            room,
            len,
            used: 0,
            _borrow: PhantomData,
        }
    }

    /// Whether there is no room left.
    pub fn is_full(&self) -> bool {
        self.used == self.len
    }

    /// How many more completions the consumer wants.
    pub fn room_left(&self) -> usize {
        self.len.saturating_sub(self.used)
    }

    /// Adds a completion of the QP behind `qp`. Returns whether it was added: it is not if there
    /// is no room, or if the QP is gone and so nobody waits for it.
    pub fn push(&mut self, qp: &QpUpcall, completion: Completion) -> bool {
        if self.is_full() {
            return false;
        }

        let Some(wc) = qp.with(|qp| completion.to_raw(qp)) else {
            return false;
        };

        // SAFETY: `used` is below `len` by the check above.
        unsafe { self.room.add(self.used).write(wc) };
        self.used = self.used.saturating_add(1);
        true
    }
}

/// What an armed queue is to report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notify {
    /// The next completion.
    Any,
    /// The next completion of a solicited message, or with an error.
    Solicited,
}

/// The driver's part of a completion queue.
#[vtable]
pub trait CqOps<D: Operations>: Send + Sync + Sized {
    /// Makes a queue. Process context.
    fn create<'a>(
        dev: &'a Device<D>,
        init: CqInit<'a>,
        caller: Caller<'a, D>,
    ) -> impl PinInit<Self, Error> + 'a;

    /// Completions the queue holds, at least as many as asked for.
    fn capacity(&self) -> u32;

    /// Takes completions out of the queue until `out` is full or the queue is empty. Any context;
    /// kernel consumers only.
    fn poll(_this: Pin<&Cq<D>>, _out: &mut Completions<'_>) -> Result {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Arms the queue for one upcall. Returns whether completions may have arrived unnoticed
    /// before, as far as that is known. Any context; kernel consumers only.
    fn arm(_this: Pin<&Cq<D>>, _notify: Notify) -> Result<bool> {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Gives a process's queue a new ring of `entries`. Process context.
    fn resize(_this: Pin<&Cq<D>>, _entries: u32, _udata: &Udata) -> Result {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Tells what an operator may want to know beside what the core knows. Process context.
    fn details(_this: Pin<&Cq<D>>, _details: &mut Details<'_>) -> Result {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Takes the queue away from the device. Process context. If it fails, the queue goes on and
    /// the core asks again.
    fn destroy(this: Pin<&Cq<D>>) -> Result;
}

/// # Safety
///
/// Called by the core with a fresh queue of a device of `D`, its attributes, and null or the
/// bundle of the call.
pub(crate) unsafe extern "C" fn create<D: Operations>(
    raw: *mut bindings::ib_cq,
    attr: *const bindings::ib_cq_init_attr,
    bundle: *mut bindings::uverbs_attr_bundle,
) -> c_int {
    from_result(|| {
        // SAFETY: The core set the device, which outlives its objects.
        let dev = unsafe { Device::<D>::from_raw((*raw).device) };
        let udata = if bundle.is_null() {
            core::ptr::null_mut()
        } else {
            // SAFETY: A valid bundle by this function's contract.
            unsafe { &raw mut (*bundle).__bindgen_anon_1.__bindgen_anon_1.driver_udata }
        };
        // SAFETY: By this function's contract.
        let caller = unsafe { Caller::from_udata(udata) }?;
        // SAFETY: The core set the consumer; the slot is closed on failure and on destroy.
        let upcall = unsafe { CqUpcall::new(raw) }?;
        let init = CqInit {
            // SAFETY: Valid during the call.
            attr: unsafe { &*attr },
            upcall: &upcall,
        };

        // SAFETY: The core allocated `size_ib_cq` zeroed octets.
        let created =
            unsafe { Cq::<D>::create(raw, upcall.clone(), D::Cq::create(dev, init, caller)) };
        if let Err(error) = created {
            upcall.close();
            return Err(error);
        }

        // SAFETY: Finished just now.
        let capacity = unsafe { Cq::<D>::from_raw(raw) }.capacity();
        // SAFETY: The queue is not visible to anybody yet.
        unsafe { (*raw).cqe = c_int::try_from(capacity).unwrap_or(c_int::MAX) };
        Ok(0)
    })
}

/// Ends upcalls before the core waits for the work that they queue, and then frees it.
///
/// # Safety
///
/// Called by the core with a queue that `create` finished and that is destroyed next.
pub(crate) unsafe extern "C" fn pre_destroy<D: Operations>(raw: *mut bindings::ib_cq) -> c_int {
    // SAFETY: By this function's contract.
    unsafe { Cq::<D>::from_raw(raw) }.upcall().close();
    0
}

/// # Safety
///
/// Called by the core with a queue that `create` finished and no QP uses, and null or the udata of
/// the call.
pub(crate) unsafe extern "C" fn destroy<D: Operations>(
    raw: *mut bindings::ib_cq,
    udata: *mut bindings::ib_udata,
) -> c_int {
    from_result(|| {
        // SAFETY: By this function's contract.
        unsafe { udata::no_io(udata) }?;

        // SAFETY: By this function's contract.
        let this = unsafe { Cq::<D>::from_raw(raw) };
        D::Cq::destroy(this)?;
        this.upcall().close();

        // SAFETY: By this function's contract; the core frees the memory after this success.
        unsafe { Cq::<D>::destroy(raw) };
        Ok(0)
    })
}

/// # Safety
///
/// Called by a consumer with its live queue and room for `len` completions.
pub(crate) unsafe extern "C" fn poll<D: Operations>(
    raw: *mut bindings::ib_cq,
    len: c_int,
    room: *mut bindings::ib_wc,
) -> c_int {
    from_result(|| {
        // SAFETY: By this function's contract.
        let this = unsafe { Cq::<D>::from_raw(raw) };
        let room_len = usize::try_from(len).map_err(|_| EINVAL)?;
        // SAFETY: By this function's contract.
        let mut out = unsafe { Completions::new(room, room_len) };

        match D::Cq::poll(this, &mut out) {
            // What was taken out of the queue has to reach the consumer.
            Err(error) if out.used == 0 => Err(error),
            _ => Ok(c_int::try_from(out.used).unwrap_or(len)),
        }
    })
}

/// # Safety
///
/// Called by a consumer with its live queue.
pub(crate) unsafe extern "C" fn arm<D: Operations>(
    raw: *mut bindings::ib_cq,
    flags: bindings::ib_cq_notify_flags,
) -> c_int {
    from_result(|| {
        // SAFETY: By this function's contract.
        let this = unsafe { Cq::<D>::from_raw(raw) };
        let solicited = flags & bindings::ib_cq_notify_flags_IB_CQ_SOLICITED_MASK
            == bindings::ib_cq_notify_flags_IB_CQ_SOLICITED;
        let notify = if solicited {
            Notify::Solicited
        } else {
            Notify::Any
        };

        let missed = D::Cq::arm(this, notify)?;
        let asked = flags & bindings::ib_cq_notify_flags_IB_CQ_REPORT_MISSED_EVENTS != 0;

        Ok(c_int::from(asked && missed))
    })
}

/// # Safety
///
/// Called by the core with a live queue of a process and the udata of the call.
pub(crate) unsafe extern "C" fn resize<D: Operations>(
    raw: *mut bindings::ib_cq,
    entries: c_uint,
    udata: *mut bindings::ib_udata,
) -> c_int {
    from_result(|| {
        if udata.is_null() {
            return Err(EOPNOTSUPP);
        }

        // SAFETY: By this function's contract.
        let this = unsafe { Cq::<D>::from_raw(raw) };
        // SAFETY: By this function's contract.
        let udata = unsafe { Udata::from_raw(udata) };
        D::Cq::resize(this, entries, udata)?;

        // SAFETY: The core serialises resizing with the other writers of the member.
        unsafe { (*raw).cqe = c_int::try_from(this.capacity()).unwrap_or(c_int::MAX) };
        Ok(0)
    })
}

/// # Safety
///
/// Called by the core with a message it is filling and a live queue.
pub(crate) unsafe extern "C" fn details<D: Operations>(
    message: *mut kernel::bindings::sk_buff,
    raw: *mut bindings::ib_cq,
) -> c_int {
    // SAFETY: By this function's contract; the core holds the queue during the call.
    let this = unsafe { Cq::<D>::from_raw(raw) };

    // SAFETY: By this function's contract.
    from_result(|| unsafe { details::fill(message, |details| D::Cq::details(this, details)) })
}
