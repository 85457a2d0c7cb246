// SPDX-License-Identifier: GPL-2.0

//! A device without hardware, driven through the RDMA core's own functions.
//!
//! It shows that objects live and die as `object.rs` says: every part made is dropped once,
//! whatever fails. The suite runs in KUnit kernels only.

use core::net::Ipv4Addr;
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use crate::{
    ah::{
        Ah,
        AhInit,
        AhOps,
        Context, //
    },
    bindings,
    cq::{
        Completion,
        Completions,
        Cq,
        CqInit,
        CqOps,
        Notify,
        WcOpcode,
        WcStatus, //
    },
    device::{
        Device,
        DeviceAttrs,
        DriverId,
        EthSpeed,
        Mtu,
        PortAttrs,
        PortCaps,
        PortImmutable,
        PortNum,
        UnregisteredDevice, //
    },
    event::QpEvent,
    gid::MulticastGid,
    lid::Lid,
    mr::{
        Access,
        Mr,
        MrKeys,
        MrOps,
        UserRange, //
    },
    ops::{
        Operations,
        Table, //
    },
    pd::{
        Pd,
        PdOps, //
    },
    qp::{
        Qp,
        QpAttrs,
        QpCaps,
        QpChange,
        QpInit,
        QpNum,
        QpOps,
        QpState, //
    },
    ucontext::{
        UcontextInit,
        UcontextOps, //
    },
    udata::Caller,
    wr::{
        RecvList,
        SendList,
        SendOpcode, //
    }, //
};

/// Parts of objects that exist.
static ALIVE: Atomic<i32> = Atomic::new(0);

/// Counts itself.
struct Counted;

impl Counted {
    fn new() -> Self {
        ALIVE.fetch_add(1, Relaxed);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Relaxed);
    }
}

fn alive() -> i32 {
    ALIVE.load(Relaxed)
}

/// What the test makes go wrong.
struct Faults {
    create_qp: Atomic<bool>,
    destroy_qp: Atomic<bool>,
    attach: Atomic<bool>,
}

struct Data {
    faults: Faults,
    attached: Atomic<i32>,
    _counted: Counted,
}

impl Data {
    fn new() -> Self {
        Self {
            faults: Faults {
                create_qp: Atomic::new(false),
                destroy_qp: Atomic::new(false),
                attach: Atomic::new(false),
            },
            attached: Atomic::new(0),
            _counted: Counted::new(),
        }
    }
}

struct Fake;

#[vtable]
impl Operations for Fake {
    type Data = Data;
    type Ucontext = FakeUcontext;
    type Pd = FakePd;
    type Cq = FakeCq;
    type Qp = FakeQp;
    type Mr = FakeMr;
    type Ah = FakeAh;

    const DRIVER_ID: DriverId = DriverId::IRDMA;
    const ABI_VERSION: u32 = 1;

    fn query_device(_dev: &Device<Self>) -> Result<DeviceAttrs> {
        Ok(DeviceAttrs {
            max_qp: 8,
            max_cqe: 16,
            ..DeviceAttrs::default()
        })
    }

    fn query_port(dev: &Device<Self>, port: PortNum) -> Result<PortAttrs> {
        Ok(PortAttrs {
            active: true,
            max_mtu: Mtu::Mtu4096,
            active_mtu: Mtu::Mtu1024,
            gid_tbl_len: 4,
            pkey_tbl_len: 1,
            port_cap_flags: PortCaps::CM_SUP,
            max_msg_sz: 4096,
            lid: 1,
            speed: dev.eth_speed(port).unwrap_or(EthSpeed::UNKNOWN),
        })
    }

    fn port_immutable(_dev: &Device<Self>, _port: PortNum) -> Result<PortImmutable> {
        Ok(PortImmutable {
            pkey_tbl_len: 1,
            gid_tbl_len: 4,
            max_mad_size: 256,
        })
    }

    fn query_pkey(_dev: &Device<Self>, _port: PortNum, index: u16) -> Result<u16> {
        (index == 0).then_some(0xffff).ok_or(EINVAL)
    }

    fn fw_version(_dev: &Device<Self>) -> (u32, u32) {
        (1, 2)
    }
}

struct FakeUcontext;

impl UcontextOps<Fake> for FakeUcontext {
    fn alloc<'a>(_init: UcontextInit<'a, Fake>) -> impl PinInit<Self, Error> + 'a {
        Ok::<_, Error>(Self)
    }
}

struct FakePd(#[allow(dead_code, reason = "counts")] Counted);

impl PdOps<Fake> for FakePd {
    fn alloc<'a>(
        _dev: &'a Device<Fake>,
        _caller: Caller<'a, Fake>,
    ) -> impl PinInit<Self, Error> + 'a {
        Ok::<_, Error>(Self(Counted::new()))
    }
}

struct FakeMr(#[allow(dead_code, reason = "counts")] Counted);

#[vtable]
impl MrOps<Fake> for FakeMr {
    fn register_user<'a>(
        _pd: Pin<&'a Pd<Fake>>,
        _range: UserRange,
        _access: Access,
        _caller: Caller<'a, Fake>,
    ) -> impl PinInit<Self, Error> + 'a {
        Err::<Self, Error>(EOPNOTSUPP)
    }

    fn dma(_pd: Pin<&Pd<Fake>>, _access: Access) -> impl PinInit<Self, Error> {
        Ok::<_, Error>(Self(Counted::new()))
    }

    fn keys(&self) -> MrKeys {
        MrKeys { lkey: 7, rkey: 9 }
    }

    fn deregister(_this: Pin<&Mr<Fake>>) -> Result {
        Ok(())
    }
}

struct FakeAh(#[allow(dead_code, reason = "counts")] Counted);

#[vtable]
impl AhOps<Fake> for FakeAh {
    fn create<'a>(
        _pd: Pin<&'a Pd<Fake>>,
        _init: AhInit<'a>,
        _caller: Caller<'a, Fake>,
    ) -> impl PinInit<Self, Error> + 'a {
        Ok::<_, Error>(Self(Counted::new()))
    }

    fn destroy(_this: Pin<&Ah<Fake>>, _context: Context) -> Result {
        Ok(())
    }
}

struct FakeCq {
    entries: u32,
    _counted: Counted,
}

#[vtable]
impl CqOps<Fake> for FakeCq {
    fn create<'a>(
        _dev: &'a Device<Fake>,
        init: CqInit<'a>,
        _caller: Caller<'a, Fake>,
    ) -> impl PinInit<Self, Error> + 'a {
        let entries = init.entries();

        Ok::<_, Error>(Self {
            entries,
            _counted: Counted::new(),
        })
    }

    fn capacity(&self) -> u32 {
        self.entries.saturating_add(1)
    }

    fn poll(_this: Pin<&Cq<Fake>>, _out: &mut Completions<'_>) -> Result {
        Ok(())
    }

    fn arm(_this: Pin<&Cq<Fake>>, notify: Notify) -> Result<bool> {
        Ok(notify == Notify::Any)
    }

    fn destroy(_this: Pin<&Cq<Fake>>) -> Result {
        Ok(())
    }
}

#[pin_data]
struct FakeQp {
    caps: QpCaps,
    #[pin]
    state: Mutex<QpState>,
    sent: Atomic<u32>,
    _counted: Counted,
}

#[vtable]
impl QpOps<Fake> for FakeQp {
    fn create<'a>(
        pd: Pin<&'a Pd<Fake>>,
        init: QpInit<'a, Fake>,
        _caller: Caller<'a, Fake>,
    ) -> impl PinInit<Self, Error> + 'a {
        let fail = pd.device().data().faults.create_qp.load(Relaxed);
        let counted = Counted::new();

        // Takes a part before it fails, which must not stay behind.
        try_pin_init!(Self {
            _counted: counted,
            caps: init.caps(),
            state <- new_mutex!(QpState::Reset, "FakeQp::state"),
            sent: if fail {
                return Err(ENOSPC);
            } else {
                Atomic::new(0)
            },
        })
    }

    fn number(&self) -> QpNum {
        QpNum::new(42)
    }

    fn caps(&self) -> QpCaps {
        QpCaps {
            max_send_wr: 64,
            ..self.caps
        }
    }

    fn modify(this: Pin<&Qp<Fake>>, change: QpChange<'_>, _caller: Caller<'_, Fake>) -> Result {
        let mut state = this.state.lock();
        let next = change.state.unwrap_or(*state);

        if !change.is_allowed(*state, next, this.qp_type()) {
            return Err(EINVAL);
        }
        *state = next;
        Ok(())
    }

    fn query(this: Pin<&Qp<Fake>>) -> Result<QpAttrs> {
        Ok(QpAttrs {
            state: *this.state.lock(),
            caps: this.caps(),
            access: Access::default(),
            pkey_index: 0,
            port: PortNum::new(1),
            qkey: 5,
            path_mtu: Some(Mtu::Mtu1024),
            retry_cnt: 0,
            rnr_retry: 0,
            rq_psn: 0,
            sq_psn: 0,
            max_rd_atomic: 0,
            max_dest_rd_atomic: 0,
            min_rnr_timer: 0,
            dest_qp: QpNum::new(0),
            signal_all: true,
        })
    }

    fn post_send(this: Pin<&Qp<Fake>>, list: &mut SendList<'_, Fake>) -> Result {
        for request in list {
            if request.opcode() != SendOpcode::Send || !request.sges().is_empty() {
                return Err(EINVAL);
            }
            if request.datagram().is_some() {
                return Err(EIO);
            }
            this.sent.fetch_add(1, Relaxed);
        }
        Ok(())
    }

    fn post_recv(_this: Pin<&Qp<Fake>>, list: &mut RecvList<'_>) -> Result {
        for request in list {
            if request.wr_id() == 2 {
                return Err(ENOMEM);
            }
        }
        Ok(())
    }

    fn attach_mcast(this: Pin<&Qp<Fake>>, _gid: MulticastGid, lid: Lid) -> Result {
        let data = this.device().data();

        if data.faults.attach.load(Relaxed) {
            return Err(EIO);
        }
        if lid != Lid::MULTICAST_BASE {
            return Err(EINVAL);
        }
        data.attached.fetch_add(1, Relaxed);
        Ok(())
    }

    fn detach_mcast(this: Pin<&Qp<Fake>>, _gid: MulticastGid, _lid: Lid) -> Result {
        this.device().data().attached.fetch_sub(1, Relaxed);
        Ok(())
    }

    fn destroy(this: Pin<&Qp<Fake>>) -> Result {
        if this.device().data().faults.destroy_qp.load(Relaxed) {
            return Err(EBUSY);
        }
        Ok(())
    }
}

/// Fails the test, and says where.
macro_rules! check {
    ($condition:expr) => {
        if !$condition {
            pr_err!("line {}: {}\n", line!(), stringify!($condition));
            return Err(EINVAL);
        }
    };
}

/// A registered device, and the consumer's objects on it.
struct Bench {
    ibdev: *mut bindings::ib_device,
    pd: *mut bindings::ib_pd,
    cq: *mut bindings::ib_cq,
}

impl Bench {
    fn new() -> Result<Self> {
        let unregistered = UnregisteredDevice::<Fake>::new(Ok::<_, Error>(Data::new()))?;
        let ibdev = unregistered.device().as_raw();

        // SAFETY: Not registered yet. A device without DMA, as the core knows them.
        unsafe {
            (*ibdev).phys_port_cnt = 1;
            (*ibdev).num_comp_vectors = 1;
            // CAST: 1.
            (*ibdev).node_type = bindings::RDMA_NODE_IB_CA as u8;
        }
        // SAFETY: Prepared above.
        to_result(unsafe {
            bindings::ib_register_device(ibdev, c"fake%d".as_char_ptr(), core::ptr::null_mut())
        })?;
        // The registration owns it from here on.
        core::mem::forget(unregistered);

        let mut bench = Self {
            ibdev,
            pd: core::ptr::null_mut(),
            cq: core::ptr::null_mut(),
        };
        // SAFETY: A registered device.
        bench.pd = from_err_ptr(unsafe {
            bindings::__ib_alloc_pd(ibdev, 0, c"rdma_tests".as_char_ptr())
        })?;

        let attr = bindings::ib_cq_init_attr {
            cqe: 7,
            comp_vector: 0,
            flags: 0,
        };
        // SAFETY: A registered device; the context is a counter that outlives the queue.
        bench.cq = from_err_ptr(unsafe {
            bindings::__ib_create_cq(
                ibdev,
                Some(count_completion),
                None,
                (&raw const COMPLETIONS).cast_mut().cast(),
                &attr,
                c"rdma_tests".as_char_ptr(),
            )
        })?;
        Ok(bench)
    }

    fn data(&self) -> &Data {
        // SAFETY: A registered device of `Fake`.
        unsafe { Device::<Fake>::from_raw(self.ibdev) }.data()
    }

    fn create_qp(&self) -> Result<*mut bindings::ib_qp> {
        let mut attr: bindings::ib_qp_init_attr = pin_init::zeroed();
        attr.send_cq = self.cq;
        attr.recv_cq = self.cq;
        attr.qp_type = bindings::ib_qp_type_IB_QPT_UD;
        attr.cap.max_send_wr = 3;
        attr.cap.max_recv_wr = 3;
        attr.cap.max_send_sge = 1;
        attr.cap.max_recv_sge = 1;
        attr.event_handler = Some(count_event);

        // SAFETY: Objects of one live device.
        let qp = from_err_ptr(unsafe {
            bindings::ib_create_qp_kernel(self.pd, &mut attr, c"rdma_tests".as_char_ptr())
        })?;
        check!(attr.cap.max_send_wr == 64);
        Ok(qp)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if !self.cq.is_null() {
            // SAFETY: Made above, and unused now.
            let code = unsafe { bindings::ib_destroy_cq_user(self.cq, core::ptr::null_mut()) };
            if code != 0 {
                pr_err!("ib_destroy_cq: {}\n", code);
            }
        }
        if !self.pd.is_null() {
            // SAFETY: As above.
            let code = unsafe { bindings::ib_dealloc_pd_user(self.pd, core::ptr::null_mut()) };
            if code != 0 {
                pr_err!("ib_dealloc_pd: {}\n", code);
            }
        }
        // SAFETY: Registered above; deallocates too.
        unsafe { bindings::ib_unregister_device(self.ibdev) };
    }
}

static COMPLETIONS: Atomic<i32> = Atomic::new(0);
static EVENTS: Atomic<i32> = Atomic::new(0);

unsafe extern "C" fn count_completion(_cq: *mut bindings::ib_cq, context: *mut c_void) {
    // SAFETY: The context given to `__ib_create_cq()`.
    unsafe { &*context.cast::<Atomic<i32>>() }.fetch_add(1, Relaxed);
}

unsafe extern "C" fn count_event(event: *mut bindings::ib_event, _context: *mut c_void) {
    // SAFETY: Valid during the call.
    if unsafe { (*event).event } == bindings::ib_event_type_IB_EVENT_QP_FATAL {
        EVENTS.fetch_add(1, Relaxed);
    }
}

/// A device that is never registered is dropped whole.
fn unregistered_device_is_dropped() -> Result {
    let before = alive();

    drop(UnregisteredDevice::<Fake>::new(
        Ok::<_, Error>(Data::new()),
    )?);
    check!(alive() == before);

    let failed = UnregisteredDevice::<Fake>::new(Err::<Data, Error>(ENOSPC));
    check!(matches!(failed, Err(error) if error == ENOSPC));
    check!(alive() == before);
    Ok(())
}

/// Every part is dropped once, whatever fails.
fn objects_are_dropped_once() -> Result {
    let before = alive();
    let bench = Bench::new()?;
    // At least the device, a domain with its DMA region, and a queue; the MAD layer has its own.
    let base = alive();
    check!(base >= before + 4);
    // SAFETY: Live objects.
    unsafe {
        check!((*bench.cq).cqe == 8);
        check!((*bench.pd).local_dma_lkey == 7);
    }

    bench.data().faults.create_qp.store(true, Relaxed);
    check!(matches!(bench.create_qp(), Err(error) if error == ENOSPC));
    check!(alive() == base);
    bench.data().faults.create_qp.store(false, Relaxed);

    let qp = bench.create_qp()?;
    check!(alive() == base + 1);
    // SAFETY: A live QP.
    unsafe { check!((*qp).qp_num == 42) };

    bench.data().faults.destroy_qp.store(true, Relaxed);
    // SAFETY: A live QP, which stays live as destroying it fails.
    let code = unsafe { bindings::ib_destroy_qp_user(qp, core::ptr::null_mut()) };
    check!(code == EBUSY.to_errno());
    check!(alive() == base + 1);
    bench.data().faults.destroy_qp.store(false, Relaxed);

    // SAFETY: A live QP, gone afterwards.
    let code = unsafe { bindings::ib_destroy_qp_user(qp, core::ptr::null_mut()) };
    check!(code == 0);
    check!(alive() == base);

    drop(bench);
    check!(alive() == before);
    Ok(())
}

/// Attach and detach reach the driver in types, and failures reach the caller.
fn multicast_reaches_the_driver() -> Result {
    let bench = Bench::new()?;
    let qp = bench.create_qp()?;
    let mut gid = bindings::ib_gid {
        raw: Ipv4Addr::new(239, 1, 2, 3).to_ipv6_mapped().octets(),
    };
    let mut attach = |lid: u16| {
        // SAFETY: A live QP.
        unsafe { bindings::ib_attach_mcast(qp, &mut gid, lid) }
    };

    check!(attach(0xc000) == 0);
    check!(attach(0xc001) == EINVAL.to_errno());
    bench.data().faults.attach.store(true, Relaxed);
    check!(attach(0xc000) == EIO.to_errno());
    check!(bench.data().attached.load(Relaxed) == 1);

    // The core does not let an attached QP go.
    // SAFETY: A live QP, which stays live as destroying it fails.
    let code = unsafe { bindings::ib_destroy_qp_user(qp, core::ptr::null_mut()) };
    check!(code == EBUSY.to_errno());

    // SAFETY: A live QP that is attached.
    check!(unsafe { bindings::ib_detach_mcast(qp, &mut gid, 0xc000) } == 0);
    check!(bench.data().attached.load(Relaxed) == 0);

    // SAFETY: A live QP, gone afterwards.
    check!(unsafe { bindings::ib_destroy_qp_user(qp, core::ptr::null_mut()) } == 0);
    Ok(())
}

/// Lists of requests stop at the one that failed, and say which.
fn posting_names_the_failed_request() -> Result {
    let bench = Bench::new()?;
    let qp = bench.create_qp()?;

    let mut second: bindings::ib_ud_wr = pin_init::zeroed();
    second.wr.opcode = bindings::ib_wr_opcode_IB_WR_RDMA_READ;
    let mut first: bindings::ib_ud_wr = pin_init::zeroed();
    first.wr.opcode = bindings::ib_wr_opcode_IB_WR_SEND;
    first.wr.next = &mut second.wr;

    let mut bad = core::ptr::null();
    // SAFETY: A live QP and a list that lives during the call.
    let (code, sent) = unsafe {
        let post = (*(*qp).device).ops.post_send.ok_or(EINVAL)?;
        let code = post(qp, &first.wr, &mut bad);

        (code, Qp::<Fake>::from_raw(qp).sent.load(Relaxed))
    };
    check!(code == EINVAL.to_errno());
    check!(core::ptr::eq(bad, &second.wr));
    check!(sent == 1);

    let mut two: bindings::ib_recv_wr = pin_init::zeroed();
    two.__bindgen_anon_1.wr_id = 2;
    let mut one: bindings::ib_recv_wr = pin_init::zeroed();
    one.__bindgen_anon_1.wr_id = 1;
    one.next = &mut two;

    let mut bad = core::ptr::null();
    // SAFETY: As above.
    let code = unsafe {
        let post = (*(*qp).device).ops.post_recv.ok_or(EINVAL)?;

        post(qp, &one, &mut bad)
    };
    check!(code == ENOMEM.to_errno());
    check!(core::ptr::eq(bad, &two));

    // SAFETY: A live QP, gone afterwards.
    check!(unsafe { bindings::ib_destroy_qp_user(qp, core::ptr::null_mut()) } == 0);
    Ok(())
}

/// Upcalls reach the consumer while the object lives, and nobody afterwards.
fn upcalls_end_with_their_object() -> Result {
    let bench = Bench::new()?;
    let qp = bench.create_qp()?;
    let completions = COMPLETIONS.load(Relaxed);
    let events = EVENTS.load(Relaxed);

    // SAFETY: Live objects.
    let (cq_upcall, qp_upcall) = unsafe {
        (
            Cq::<Fake>::from_raw(bench.cq).upcall().clone(),
            Qp::<Fake>::from_raw(qp).upcall().clone(),
        )
    };
    cq_upcall.completion();
    check!(COMPLETIONS.load(Relaxed) == completions + 1);
    qp_upcall.event(QpEvent::Fatal);
    // Delivered by a work item.
    for _ in 0..1000 {
        if EVENTS.load(Relaxed) != events {
            break;
        }
        fsleep(Delta::from_millis(1));
    }
    check!(EVENTS.load(Relaxed) == events + 1);

    let mut room: [bindings::ib_wc; 2] = [pin_init::zeroed(), pin_init::zeroed()];
    // SAFETY: Room for two.
    let mut out = unsafe { Completions::new(room.as_mut_ptr(), 2) };
    let done = Completion::new(5, WcOpcode::Send, WcStatus::Success);
    check!(out.push(&qp_upcall, done));

    // SAFETY: A live QP, gone afterwards.
    check!(unsafe { bindings::ib_destroy_qp_user(qp, core::ptr::null_mut()) } == 0);
    check!(qp_upcall.is_closed());
    qp_upcall.event(QpEvent::Fatal);
    check!(EVENTS.load(Relaxed) == events + 1);
    check!(!out.push(&qp_upcall, done));
    check!(out.room_left() == 1);

    drop(bench);
    check!(cq_upcall.is_closed());
    cq_upcall.completion();
    check!(COMPLETIONS.load(Relaxed) == completions + 1);
    Ok(())
}

/// States and attributes are checked and converted on the way.
fn modify_and_query_convert() -> Result {
    let bench = Bench::new()?;
    let qp = bench.create_qp()?;
    // SAFETY: A live QP.
    let modify = unsafe { (*(*qp).device).ops.modify_qp }.ok_or(EINVAL)?;
    let mut attr: bindings::ib_qp_attr = pin_init::zeroed();
    let mut call = |state: u32, mask: u32| {
        attr.qp_state = state;
        // CAST: Flags of the C enumeration.
        // SAFETY: A live QP.
        unsafe { modify(qp, &mut attr, mask as c_int, core::ptr::null_mut()) }
    };
    let to_init = bindings::ib_qp_attr_mask_IB_QP_STATE
        | bindings::ib_qp_attr_mask_IB_QP_PKEY_INDEX
        | bindings::ib_qp_attr_mask_IB_QP_PORT
        | bindings::ib_qp_attr_mask_IB_QP_QKEY;

    // Without a Q_Key.
    check!(
        call(
            bindings::ib_qp_state_IB_QPS_INIT,
            to_init & !bindings::ib_qp_attr_mask_IB_QP_QKEY
        ) == EINVAL.to_errno()
    );
    check!(call(bindings::ib_qp_state_IB_QPS_INIT, to_init) == 0);
    // No such state, and no such attribute.
    check!(call(17, to_init) == EINVAL.to_errno());
    check!(
        call(
            bindings::ib_qp_state_IB_QPS_INIT,
            to_init | bindings::ib_qp_attr_mask_IB_QP_RATE_LIMIT
        ) == EOPNOTSUPP.to_errno()
    );

    let mut attr: bindings::ib_qp_attr = pin_init::zeroed();
    let mut init: bindings::ib_qp_init_attr = pin_init::zeroed();
    // SAFETY: A live QP, and room for both.
    let code = unsafe { bindings::ib_query_qp(qp, &mut attr, 0, &mut init) };
    check!(code == 0);
    check!(attr.qp_state == bindings::ib_qp_state_IB_QPS_INIT);
    check!(attr.cap.max_send_wr == 64 && attr.qkey == 5);
    check!(attr.path_mtu == bindings::ib_mtu_IB_MTU_1024);
    check!(init.sq_sig_type == bindings::ib_sig_type_IB_SIGNAL_ALL_WR);

    // SAFETY: A live QP, gone afterwards.
    check!(unsafe { bindings::ib_destroy_qp_user(qp, core::ptr::null_mut()) } == 0);
    Ok(())
}

/// The bit-fields of the table are where bindgen's own accessors say.
fn table_declares_robust_udata() -> Result {
    let ops = Table::<Fake>::OPS;

    check!(ops.uverbs_robust_udata() == 1);
    check!(ops.uverbs_no_driver_id_binding() == 0);
    check!(ops.resize_user_cq.is_none());
    check!(ops.attach_mcast.is_some());
    Ok(())
}

#[kunit_tests(rdma_objects)]
mod suite {
    #[test]
    fn unregistered_device_is_dropped() -> kernel::error::Result {
        super::unregistered_device_is_dropped()
    }

    #[test]
    fn objects_are_dropped_once() -> kernel::error::Result {
        super::objects_are_dropped_once()
    }

    #[test]
    fn multicast_reaches_the_driver() -> kernel::error::Result {
        super::multicast_reaches_the_driver()
    }

    #[test]
    fn posting_names_the_failed_request() -> kernel::error::Result {
        super::posting_names_the_failed_request()
    }

    #[test]
    fn upcalls_end_with_their_object() -> kernel::error::Result {
        super::upcalls_end_with_their_object()
    }

    #[test]
    fn modify_and_query_convert() -> kernel::error::Result {
        super::modify_and_query_convert()
    }

    #[test]
    fn table_declares_robust_udata() -> kernel::error::Result {
        super::table_declares_robust_udata()
    }
}
