// SPDX-License-Identifier: GPL-2.0

//! Queue pairs.

use core::marker::PhantomData;
use kernel::{
    error::from_result,
    prelude::*,
    sync::Arc, //
};

use crate::{
    ah::PathView,
    bindings,
    cq::Cq,
    details::{
        self,
        Details, //
    },
    device::{
        Mtu,
        PortNum, //
    },
    event::QpUpcall,
    gid::{
        Gid,
        MulticastGid, //
    },
    lid::Lid,
    mr::Access,
    object::Object,
    ops::Operations,
    pd::Pd,
    udata::{
        self,
        Caller, //
    },
    wr::{
        RecvList,
        SendList, //
    }, //
};

/// A queue pair with the driver's part of it.
pub type Qp<D> = Object<D, bindings::ib_qp>;

/// A QP number: 24 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct QpNum(u32);

impl QpNum {
    /// The QP with this number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// A QP type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QpType {
    /// The general services QP, number 1, of the MAD layer.
    Gsi,
    /// Reliable connected.
    Rc,
    /// Unreliable datagram.
    Ud,
    /// Anything else, in the core's coding.
    Other(u32),
}

impl QpType {
    fn from_raw(raw: bindings::ib_qp_type) -> Self {
        match raw {
            bindings::ib_qp_type_IB_QPT_GSI => Self::Gsi,
            bindings::ib_qp_type_IB_QPT_RC => Self::Rc,
            bindings::ib_qp_type_IB_QPT_UD => Self::Ud,
            other => Self::Other(other),
        }
    }

    fn to_raw(self) -> bindings::ib_qp_type {
        match self {
            Self::Gsi => bindings::ib_qp_type_IB_QPT_GSI,
            Self::Rc => bindings::ib_qp_type_IB_QPT_RC,
            Self::Ud => bindings::ib_qp_type_IB_QPT_UD,
            Self::Other(other) => other,
        }
    }

    /// Whether the QP sends datagrams.
    pub fn is_datagram(self) -> bool {
        matches!(self, Self::Gsi | Self::Ud)
    }
}

/// A QP state of the IBA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are the IBA's")]
pub enum QpState {
    Reset,
    Init,
    Rtr,
    Rts,
    Sqd,
    Sqe,
    Err,
}

impl QpState {
    fn from_raw(raw: bindings::ib_qp_state) -> Option<Self> {
        Some(match raw {
            bindings::ib_qp_state_IB_QPS_RESET => Self::Reset,
            bindings::ib_qp_state_IB_QPS_INIT => Self::Init,
            bindings::ib_qp_state_IB_QPS_RTR => Self::Rtr,
            bindings::ib_qp_state_IB_QPS_RTS => Self::Rts,
            bindings::ib_qp_state_IB_QPS_SQD => Self::Sqd,
            bindings::ib_qp_state_IB_QPS_SQE => Self::Sqe,
            bindings::ib_qp_state_IB_QPS_ERR => Self::Err,
            _ => return None,
        })
    }

    fn to_raw(self) -> bindings::ib_qp_state {
        match self {
            Self::Reset => bindings::ib_qp_state_IB_QPS_RESET,
            Self::Init => bindings::ib_qp_state_IB_QPS_INIT,
            Self::Rtr => bindings::ib_qp_state_IB_QPS_RTR,
            Self::Rts => bindings::ib_qp_state_IB_QPS_RTS,
            Self::Sqd => bindings::ib_qp_state_IB_QPS_SQD,
            Self::Sqe => bindings::ib_qp_state_IB_QPS_SQE,
            Self::Err => bindings::ib_qp_state_IB_QPS_ERR,
        }
    }
}

/// Capacities of a QP.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the fields are those of `struct ib_qp_cap`")]
pub struct QpCaps {
    pub max_send_wr: u32,
    pub max_recv_wr: u32,
    pub max_send_sge: u32,
    pub max_recv_sge: u32,
    pub max_inline_data: u32,
}

impl QpCaps {
    fn from_raw(raw: &bindings::ib_qp_cap) -> Self {
        Self {
            max_send_wr: raw.max_send_wr,
            max_recv_wr: raw.max_recv_wr,
            max_send_sge: raw.max_send_sge,
            max_recv_sge: raw.max_recv_sge,
            max_inline_data: raw.max_inline_data,
        }
    }

    fn fill(self, raw: &mut bindings::ib_qp_cap) {
        raw.max_send_wr = self.max_send_wr;
        raw.max_recv_wr = self.max_recv_wr;
        raw.max_send_sge = self.max_send_sge;
        raw.max_recv_sge = self.max_recv_sge;
        raw.max_inline_data = self.max_inline_data;
    }
}

impl<D: Operations> Qp<D> {
    /// The way to the consumer, for the part that interrupts find.
    pub fn upcall(&self) -> &Arc<QpUpcall> {
        self.link()
    }

    /// The type.
    pub fn qp_type(&self) -> QpType {
        // SAFETY: Valid by the invariant of `Object`; set before creation, constant.
        QpType::from_raw(unsafe { (*self.as_raw()).qp_type })
    }

    /// Whether a process owns the QP.
    pub fn is_user(&self) -> bool {
        // SAFETY: As in `qp_type`.
        unsafe { !(*self.as_raw()).uobject.is_null() }
    }

    /// The protection domain.
    pub fn pd(&self) -> Pin<&Pd<D>> {
        // SAFETY: As in `qp_type`; the domain outlives its QPs.
        unsafe { Pd::<D>::from_raw((*self.as_raw()).pd) }
    }
}

/// What the consumer asks for.
pub struct QpInit<'a, D: Operations> {
    attr: &'a bindings::ib_qp_init_attr,
    upcall: &'a Arc<QpUpcall>,
    _driver: PhantomData<fn(D)>,
}

impl<'a, D: Operations> QpInit<'a, D> {
    /// The type.
    pub fn qp_type(&self) -> QpType {
        QpType::from_raw(self.attr.qp_type)
    }

    /// Least capacities.
    pub fn caps(&self) -> QpCaps {
        QpCaps::from_raw(&self.attr.cap)
    }

    /// Creation flags as the core codes them; zero for an ordinary QP.
    pub fn create_flags(&self) -> u32 {
        self.attr.create_flags
    }

    /// Whether every send request completes, signaled or not.
    pub fn signal_all(&self) -> bool {
        self.attr.sq_sig_type == bindings::ib_sig_type_IB_SIGNAL_ALL_WR
    }

    /// Whether a shared receive queue is asked for.
    pub fn has_srq(&self) -> bool {
        !self.attr.srq.is_null()
    }

    /// The port of a special QP.
    pub fn port(&self) -> PortNum {
        PortNum::new(self.attr.port_num)
    }

    /// The completion queue of the send queue.
    pub fn send_cq(&self) -> Option<Pin<&'a Cq<D>>> {
        // SAFETY: Of a device of `D` if it is there; the core keeps it as long as the QP.
        (!self.attr.send_cq.is_null()).then(|| unsafe { Cq::<D>::from_raw(self.attr.send_cq) })
    }

    /// The completion queue of the receive queue.
    pub fn recv_cq(&self) -> Option<Pin<&'a Cq<D>>> {
        // SAFETY: As in `send_cq`.
        (!self.attr.recv_cq.is_null()).then(|| unsafe { Cq::<D>::from_raw(self.attr.recv_cq) })
    }

    /// The way to the consumer, for the part that interrupts find.
    pub fn upcall(&self) -> &'a Arc<QpUpcall> {
        self.upcall
    }
}

/// A change to a QP: what is `None` stays as it is.
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the fields are those of `struct ib_qp_attr`")]
pub struct QpChange<'a> {
    mask: bindings::ib_qp_attr_mask,
    pub state: Option<QpState>,
    pub cur_state: Option<QpState>,
    pub access: Option<Access>,
    pub pkey_index: Option<u16>,
    pub port: Option<PortNum>,
    pub qkey: Option<u32>,
    pub path: Option<PathView<'a>>,
    pub path_mtu: Option<Mtu>,
    pub timeout: Option<u8>,
    pub retry_cnt: Option<u8>,
    pub rnr_retry: Option<u8>,
    pub rq_psn: Option<u32>,
    pub sq_psn: Option<u32>,
    pub max_rd_atomic: Option<u8>,
    pub max_dest_rd_atomic: Option<u8>,
    pub min_rnr_timer: Option<u8>,
    pub dest_qp: Option<QpNum>,
    pub caps: Option<QpCaps>,
    /// Whether an alternate path or a migration state is given.
    pub migration: bool,
}

impl<'a> QpChange<'a> {
    /// # Errors
    ///
    /// `EOPNOTSUPP` for an attribute that is not in the standard, `EINVAL` for a value that is not.
    fn from_raw(attr: &'a bindings::ib_qp_attr, mask: bindings::ib_qp_attr_mask) -> Result<Self> {
        use bindings::*;

        if mask & !ib_qp_attr_mask_IB_QP_ATTR_STANDARD_BITS != 0 {
            return Err(EOPNOTSUPP);
        }

        let has = |bit: ib_qp_attr_mask| mask & bit != 0;
        let state = |bit, raw| {
            has(bit)
                .then(|| QpState::from_raw(raw).ok_or(EINVAL))
                .transpose()
        };

        Ok(Self {
            mask,
            state: state(ib_qp_attr_mask_IB_QP_STATE, attr.qp_state)?,
            cur_state: state(ib_qp_attr_mask_IB_QP_CUR_STATE, attr.cur_qp_state)?,
            access: has(ib_qp_attr_mask_IB_QP_ACCESS_FLAGS)
                .then(|| Access::from_raw(attr.qp_access_flags)),
            pkey_index: has(ib_qp_attr_mask_IB_QP_PKEY_INDEX).then_some(attr.pkey_index),
            port: has(ib_qp_attr_mask_IB_QP_PORT).then(|| PortNum::new(attr.port_num)),
            qkey: has(ib_qp_attr_mask_IB_QP_QKEY).then_some(attr.qkey),
            path: has(ib_qp_attr_mask_IB_QP_AV).then(|| PathView::new(&attr.ah_attr)),
            path_mtu: has(ib_qp_attr_mask_IB_QP_PATH_MTU)
                .then(|| Mtu::from_raw(attr.path_mtu).ok_or(EINVAL))
                .transpose()?,
            timeout: has(ib_qp_attr_mask_IB_QP_TIMEOUT).then_some(attr.timeout),
            retry_cnt: has(ib_qp_attr_mask_IB_QP_RETRY_CNT).then_some(attr.retry_cnt),
            rnr_retry: has(ib_qp_attr_mask_IB_QP_RNR_RETRY).then_some(attr.rnr_retry),
            rq_psn: has(ib_qp_attr_mask_IB_QP_RQ_PSN).then_some(attr.rq_psn),
            sq_psn: has(ib_qp_attr_mask_IB_QP_SQ_PSN).then_some(attr.sq_psn),
            max_rd_atomic: has(ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC)
                .then_some(attr.max_rd_atomic),
            max_dest_rd_atomic: has(ib_qp_attr_mask_IB_QP_MAX_DEST_RD_ATOMIC)
                .then_some(attr.max_dest_rd_atomic),
            min_rnr_timer: has(ib_qp_attr_mask_IB_QP_MIN_RNR_TIMER).then_some(attr.min_rnr_timer),
            dest_qp: has(ib_qp_attr_mask_IB_QP_DEST_QPN).then(|| QpNum::new(attr.dest_qp_num)),
            caps: has(ib_qp_attr_mask_IB_QP_CAP).then(|| QpCaps::from_raw(&attr.cap)),
            migration: has(ib_qp_attr_mask_IB_QP_ALT_PATH)
                || has(ib_qp_attr_mask_IB_QP_PATH_MIG_STATE),
        })
    }

    /// Whether a QP of `qp_type` may go from `current` to `next` with these attributes, by the
    /// table of the IBA.
    pub fn is_allowed(&self, current: QpState, next: QpState, qp_type: QpType) -> bool {
        // SAFETY: A pure function of its arguments.
        unsafe {
            bindings::ib_modify_qp_is_ok(
                current.to_raw(),
                next.to_raw(),
                qp_type.to_raw(),
                self.mask,
            )
        }
    }
}

/// The attributes of a QP, as far as the driver keeps them.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields are those of `struct ib_qp_attr`")]
pub struct QpAttrs {
    pub state: QpState,
    pub caps: QpCaps,
    pub access: Access,
    pub pkey_index: u16,
    pub port: PortNum,
    pub qkey: u32,
    pub path_mtu: Option<Mtu>,
    pub retry_cnt: u8,
    pub rnr_retry: u8,
    pub rq_psn: u32,
    pub sq_psn: u32,
    pub max_rd_atomic: u8,
    pub max_dest_rd_atomic: u8,
    pub min_rnr_timer: u8,
    pub dest_qp: QpNum,
    pub signal_all: bool,
}

/// The driver's part of a queue pair.
#[vtable]
pub trait QpOps<D: Operations>: Send + Sync + Sized {
    /// Makes a QP in the reset state. Process context.
    fn create<'a>(
        pd: Pin<&'a Pd<D>>,
        init: QpInit<'a, D>,
        caller: Caller<'a, D>,
    ) -> impl PinInit<Self, Error> + 'a;

    /// The number.
    fn number(&self) -> QpNum;

    /// The capacities, at least those asked for.
    fn caps(&self) -> QpCaps;

    /// Changes the QP. Process context.
    fn modify(this: Pin<&Qp<D>>, change: QpChange<'_>, caller: Caller<'_, D>) -> Result;

    /// The attributes. Process context.
    fn query(_this: Pin<&Qp<D>>) -> Result<QpAttrs> {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Posts the requests of `list` in order. On an error the request it took last is the one
    /// that failed; those before it are posted. Any context; kernel consumers only.
    fn post_send(_this: Pin<&Qp<D>>, _list: &mut SendList<'_, D>) -> Result {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Posts the buffers of `list` in order, as `post_send` does requests.
    fn post_recv(_this: Pin<&Qp<D>>, _list: &mut RecvList<'_>) -> Result {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Attaches the QP to a group. Process context; the core has checked that it is a UD QP, and
    /// counts each success.
    fn attach_mcast(_this: Pin<&Qp<D>>, _gid: MulticastGid, _lid: Lid) -> Result {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Takes one attach back. Process context. While it fails the QP cannot be destroyed.
    fn detach_mcast(_this: Pin<&Qp<D>>, _gid: MulticastGid, _lid: Lid) -> Result {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Tells what an operator may want to know beside what the core knows. Process context.
    fn details(_this: Pin<&Qp<D>>, _details: &mut Details<'_>) -> Result {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Takes the QP away from the device. Process context. If it fails, the QP goes on and the
    /// core asks again.
    fn destroy(this: Pin<&Qp<D>>) -> Result;
}

/// # Safety
///
/// Called by the core with a fresh QP of a device of `D`, its attributes, and null or the udata of
/// the call.
pub(crate) unsafe extern "C" fn create<D: Operations>(
    raw: *mut bindings::ib_qp,
    attr: *mut bindings::ib_qp_init_attr,
    udata: *mut bindings::ib_udata,
) -> c_int {
    from_result(|| {
        // SAFETY: The core set the domain, which outlives its QPs.
        let pd = unsafe { Pd::<D>::from_raw((*raw).pd) };
        // SAFETY: By this function's contract.
        let caller = unsafe { Caller::from_udata(udata) }?;
        // SAFETY: The core set the consumer; the slot is closed on failure and on destroy.
        let upcall = unsafe { QpUpcall::new(raw) }?;
        let init = QpInit {
            // SAFETY: Valid during the call, and not written before the initializer is done.
            attr: unsafe { &*attr },
            upcall: &upcall,
            _driver: PhantomData,
        };

        // SAFETY: The core allocated `size_ib_qp` zeroed octets.
        let created =
            unsafe { Qp::<D>::create(raw, upcall.clone(), D::Qp::create(pd, init, caller)) };
        if let Err(error) = created {
            upcall.close();
            return Err(error);
        }

        // SAFETY: Finished just now.
        let this = unsafe { Qp::<D>::from_raw(raw) };
        // SAFETY: The QP is not visible to anybody yet.
        unsafe { (*raw).qp_num = this.number().get() };
        // SAFETY: By this function's contract; nothing else refers to the attributes now.
        this.caps().fill(unsafe { &mut (*attr).cap });
        Ok(0)
    })
}

/// # Safety
///
/// Called by the core with a live QP, attributes, and null or the udata of the call.
pub(crate) unsafe extern "C" fn modify<D: Operations>(
    raw: *mut bindings::ib_qp,
    attr: *mut bindings::ib_qp_attr,
    mask: c_int,
    udata: *mut bindings::ib_udata,
) -> c_int {
    from_result(|| {
        let mask = bindings::ib_qp_attr_mask::try_from(mask).map_err(|_| EINVAL)?;
        // SAFETY: By this function's contract.
        let this = unsafe { Qp::<D>::from_raw(raw) };
        // SAFETY: By this function's contract.
        let change = QpChange::from_raw(unsafe { &*attr }, mask)?;
        // SAFETY: By this function's contract.
        let caller = unsafe { Caller::from_udata(udata) }?;

        D::Qp::modify(this, change, caller).map(|()| 0)
    })
}

/// # Safety
///
/// Called by the core with a live QP and room for both attributes.
pub(crate) unsafe extern "C" fn query<D: Operations>(
    raw: *mut bindings::ib_qp,
    attr: *mut bindings::ib_qp_attr,
    _mask: c_int,
    init: *mut bindings::ib_qp_init_attr,
) -> c_int {
    from_result(|| {
        // SAFETY: By this function's contract.
        let this = unsafe { Qp::<D>::from_raw(raw) };
        let attrs = D::Qp::query(this)?;
        // SAFETY: By this function's contract.
        let (attr, init) = unsafe { (&mut *attr, &mut *init) };

        attr.qp_state = attrs.state.to_raw();
        attr.cur_qp_state = attr.qp_state;
        attrs.caps.fill(&mut attr.cap);
        // CAST: The core keeps the same bits in an `int`.
        attr.qp_access_flags = attrs.access.bits() as c_int;
        attr.pkey_index = attrs.pkey_index;
        attr.port_num = attrs.port.get();
        attr.qkey = attrs.qkey;
        attr.path_mtu = attrs.path_mtu.map_or(0, Mtu::to_raw);
        attr.retry_cnt = attrs.retry_cnt;
        attr.rnr_retry = attrs.rnr_retry;
        attr.rq_psn = attrs.rq_psn;
        attr.sq_psn = attrs.sq_psn;
        attr.max_rd_atomic = attrs.max_rd_atomic;
        attr.max_dest_rd_atomic = attrs.max_dest_rd_atomic;
        attr.min_rnr_timer = attrs.min_rnr_timer;
        attr.dest_qp_num = attrs.dest_qp.get();

        // SAFETY: A live QP, whose links are constant.
        unsafe {
            init.event_handler = (*raw).event_handler;
            init.qp_context = (*raw).qp_context;
            init.send_cq = (*raw).send_cq;
            init.recv_cq = (*raw).recv_cq;
            init.srq = (*raw).srq;
            init.qp_type = (*raw).qp_type;
        }
        init.cap = attr.cap;
        init.port_num = attrs.port.get();
        init.sq_sig_type = if attrs.signal_all {
            bindings::ib_sig_type_IB_SIGNAL_ALL_WR
        } else {
            bindings::ib_sig_type_IB_SIGNAL_REQ_WR
        };
        Ok(0)
    })
}

/// # Safety
///
/// Called by the core with a QP that `create` finished and nobody uses, and null or the udata of
/// the call.
pub(crate) unsafe extern "C" fn destroy<D: Operations>(
    raw: *mut bindings::ib_qp,
    udata: *mut bindings::ib_udata,
) -> c_int {
    from_result(|| {
        // SAFETY: By this function's contract.
        unsafe { udata::no_io(udata) }?;

        // SAFETY: By this function's contract.
        let this = unsafe { Qp::<D>::from_raw(raw) };
        D::Qp::destroy(this)?;
        this.upcall().close();

        // SAFETY: By this function's contract; the core frees the memory after this success.
        unsafe { Qp::<D>::destroy(raw) };
        Ok(0)
    })
}

/// # Safety
///
/// Called by a consumer with its live QP, a list of valid requests, and room for a pointer.
pub(crate) unsafe extern "C" fn post_send<D: Operations>(
    raw: *mut bindings::ib_qp,
    list: *const bindings::ib_send_wr,
    bad: *mut *const bindings::ib_send_wr,
) -> c_int {
    from_result(|| {
        // SAFETY: By this function's contract.
        let this = unsafe { Qp::<D>::from_raw(raw) };
        // SAFETY: By this function's contract.
        let mut list = unsafe { SendList::<D>::new(list, this.qp_type()) };
        let posted = D::Qp::post_send(this, &mut list);

        if posted.is_err() {
            // SAFETY: By this function's contract.
            unsafe { *bad = list.failed() };
        }
        posted.map(|()| 0)
    })
}

/// # Safety
///
/// Called by a consumer with its live QP, a list of valid requests, and room for a pointer.
pub(crate) unsafe extern "C" fn post_recv<D: Operations>(
    raw: *mut bindings::ib_qp,
    list: *const bindings::ib_recv_wr,
    bad: *mut *const bindings::ib_recv_wr,
) -> c_int {
    from_result(|| {
        // SAFETY: By this function's contract.
        let this = unsafe { Qp::<D>::from_raw(raw) };
        // SAFETY: By this function's contract.
        let mut list = unsafe { RecvList::new(list) };
        let posted = D::Qp::post_recv(this, &mut list);

        if posted.is_err() {
            // SAFETY: By this function's contract.
            unsafe { *bad = list.failed() };
        }
        posted.map(|()| 0)
    })
}

/// The arguments of both multicast operations, in types.
///
/// # Safety
///
/// `gid` is valid.
unsafe fn group(gid: *mut bindings::ib_gid, lid: u16) -> Result<(MulticastGid, Lid)> {
    // SAFETY: By this function's contract.
    let gid = Gid::from_raw(unsafe { *gid });

    // The core passes the LID in host order: it compares it with host constants before.
    Ok((MulticastGid::new(gid).ok_or(EINVAL)?, Lid::from_host(lid)))
}

/// # Safety
///
/// Called by the core with a live QP and a valid GID.
pub(crate) unsafe extern "C" fn attach_mcast<D: Operations>(
    raw: *mut bindings::ib_qp,
    gid: *mut bindings::ib_gid,
    lid: u16,
) -> c_int {
    from_result(|| {
        // SAFETY: By this function's contract.
        let (this, (gid, lid)) = unsafe { (Qp::<D>::from_raw(raw), group(gid, lid)?) };

        D::Qp::attach_mcast(this, gid, lid).map(|()| 0)
    })
}

/// # Safety
///
/// Called by the core with a live QP and a valid GID.
pub(crate) unsafe extern "C" fn detach_mcast<D: Operations>(
    raw: *mut bindings::ib_qp,
    gid: *mut bindings::ib_gid,
    lid: u16,
) -> c_int {
    from_result(|| {
        // SAFETY: By this function's contract.
        let (this, (gid, lid)) = unsafe { (Qp::<D>::from_raw(raw), group(gid, lid)?) };

        D::Qp::detach_mcast(this, gid, lid).map(|()| 0)
    })
}

/// # Safety
///
/// Called by the core with a message it is filling and a live QP.
pub(crate) unsafe extern "C" fn details<D: Operations>(
    message: *mut kernel::bindings::sk_buff,
    raw: *mut bindings::ib_qp,
) -> c_int {
    // SAFETY: By this function's contract; the core holds the QP during the call.
    let this = unsafe { Qp::<D>::from_raw(raw) };

    // SAFETY: By this function's contract.
    from_result(|| unsafe { details::fill(message, |details| D::Qp::details(this, details)) })
}
