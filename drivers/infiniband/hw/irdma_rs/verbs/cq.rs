// SPDX-License-Identifier: GPL-2.0

//! Completion queues.
//!
//! A queue has two halves. [`Cq`] belongs to the core's object and owns what the device was given;
//! [`CqShared`] is what events and queue pairs hold on to.
//!
//! # Queues of the kernel
//!
//! Completions come from the ring and, once a queue pair is in error, are made in software for the
//! work requests that the device will not complete (see `queues::flush`). The ring comes first: the
//! device has written all it will write of a queue pair before that one is marked as flushed.
//!
//! # Locking
//!
//! [`CqShared::ring`] and [`CqShared::members`] are taken in any context, with interrupts off. The
//! locks of a queue pair's own queues nest in neither; no consumer is called with any of them held.

use kernel::{
    dma::DmaAddress,
    new_mutex, new_spinlock_irq,
    prelude::*,
    sync::{
        atomic::{
            AtomicFlag,
            Relaxed, //
        },
        Arc,
        Mutex,
        SpinLockIrq, //
    },
    workqueue::{
        impl_has_work,
        new_work,
        Work,
        WorkItem, //
    },
};
use rdma::{
    cq::{
        self,
        Completions,
        CqInit,
        CqOps,
        Notify, //
    },
    details::Details,
    device::Device,
    event::CqUpcall,
    sys::workqueue::cancel_work_sync,
    udata::Caller, //
};

use super::{
    abi::{
        CreateCqReq,
        CreateCqResp, //
    },
    destroy,
    pages::Location,
    qp::{
        QpShared,
        Side, //
    },
    rings::{
        RingUse,
        TakenRing,
        PAGE, //
    },
    Data,
    Irdma, //
};
use crate::{
    cqp::{
        cmd::{
            CqRing,
            CreateCq,
            DestroyCq, //
        },
        Failure, //
    },
    dev::Dev,
    events::CqEvents,
    hmc::Levels,
    ids::Id,
    mem::DmaWords,
    queues::{
        cq::{
            Armed,
            CompletionRing, //
        },
        cqe::{
            Cqe,
            ENTRY_SIZE,
            ENTRY_WORDS,
            SHADOW_SIZE, //
        },
        geometry, //
    },
};

/// Most completions that the device may write before it looks how far the consumer is.
const MAX_READ_THRESHOLD: u32 = 0x3_ffff;

/// The ring of a kernel queue, and what its consumer asked for.
struct KernelRing {
    ring: CompletionRing<Arc<DmaWords>>,
    /// The consumer was told of completions made in software since it last armed the queue.
    told: bool,
}

/// The half of a completion queue that events and queue pairs reach.
#[pin_data]
pub(crate) struct CqShared {
    dev: Arc<Dev>,
    number: u32,
    upcall: Arc<CqUpcall>,
    /// Of a kernel queue.
    #[pin]
    ring: SpinLockIrq<Option<KernelRing>>,
    /// Kernel queue pairs that complete here.
    #[pin]
    members: SpinLockIrq<KVec<Arc<QpShared>>>,
    /// Some queue pair among the members has been flushed.
    flushed: AtomicFlag,
    /// The device still has a queue pair that completes here and was destroyed.
    pinned: AtomicFlag,
    #[pin]
    notify: Work<Self>,
}

impl_has_work! {
    impl HasWork<Self> for CqShared { self.notify }
}

impl WorkItem for CqShared {
    type Pointer = Arc<Self>;

    /// Tells the consumer of completions made in software.
    fn run(this: Arc<Self>) {
        let tell = (*this.ring.lock()).as_mut().is_some_and(|kernel| {
            let tell = kernel.ring.armed() != Armed::No && !kernel.told;
            kernel.told |= tell;
            tell
        });
        if tell {
            this.upcall.completion();
        }
    }
}

impl CqShared {
    fn new(
        dev: Arc<Dev>,
        number: u32,
        upcall: Arc<CqUpcall>,
        ring: Option<KernelRing>,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                dev,
                number,
                upcall,
                ring <- new_spinlock_irq!(ring, "irdma_rs::verbs::CqShared::ring"),
                members <- new_spinlock_irq!(KVec::new(), "irdma_rs::verbs::CqShared::members"),
                flushed: AtomicFlag::new(false),
                pinned: AtomicFlag::new(false),
                notify <- new_work!("irdma_rs::verbs::CqShared::notify"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the number that the device knows the queue by.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Makes a kernel queue pair one whose completions come here.
    pub(crate) fn join(&self, qp: Arc<QpShared>) -> Result {
        self.members.lock().push(qp, GFP_ATOMIC)?;
        Ok(())
    }

    /// Undoes [`CqShared::join`] of the queue pair `qp`.
    pub(crate) fn leave(&self, qp: &QpShared) {
        let mut members = self.members.lock();
        let place = members.iter().position(|m| core::ptr::eq(&**m, qp));
        let member = place.map(|place| members.remove(place));
        drop(members);
        drop(member);
    }

    /// Notes that the device still has a queue pair that completes here: it must keep the queue too.
    pub(crate) fn pin(&self) {
        self.pinned.store(true, Relaxed);
    }

    /// Notes that a member has completions that the device will not write, and tells the consumer if
    /// it waits. Any context.
    pub(crate) fn flushed(self: &Arc<Self>) {
        self.flushed.store(true, Relaxed);
        // Not from here: the caller may hold whatever its consumer holds when it posts.
        let _ = self.dev.work.queue().enqueue(self.clone());
    }

    /// Takes the next entry of the ring.
    fn take(&self) -> Result<Option<Cqe>> {
        match (*self.ring.lock()).as_mut() {
            Some(kernel) => kernel.ring.take(),
            None => Err(EINVAL),
        }
    }

    /// Tells the device how far the ring has been read.
    fn release(&self) -> Result {
        match (*self.ring.lock()).as_mut() {
            Some(kernel) => kernel.ring.release(),
            None => Err(EINVAL),
        }
    }

    /// Returns a member with a flushed queue whose work requests wait for completion.
    fn next_flushed(&self) -> Option<(Arc<QpShared>, Side)> {
        if !self.flushed.load(Relaxed) {
            return None;
        }
        let mut i = 0;
        loop {
            let qp = self.members.lock().get(i)?.clone();
            if let Some(side) = qp.has_flushed(self) {
                return Some((qp, side));
            }
            i += 1;
        }
    }

    /// Moves completions to the consumer.
    fn poll(&self, data: &Data, out: &mut Completions<'_>) -> Result {
        let mut taken = false;

        while !out.is_full() {
            let Some(cqe) = self.take()? else {
                break;
            };
            taken = true;
            QpShared::complete(data, &cqe, out);
        }
        if taken {
            self.release()?;
        }
        while !out.is_full() {
            let Some((qp, side)) = self.next_flushed() else {
                break;
            };
            qp.flush_next(side, out);
        }
        Ok(())
    }

    fn arm(&self, notify: Notify) -> Result<bool> {
        let wanted = match notify {
            Notify::Any => Armed::Any,
            Notify::Solicited => Armed::Solicited,
        };
        let mut guard = self.ring.lock();
        let kernel = (*guard).as_mut().ok_or(EINVAL)?;

        kernel.told = false;
        if kernel.ring.arm(wanted)? {
            self.dev.ring_cq_arm(self.number);
        }
        // The device need not raise an event for what it wrote before it saw the arm.
        let missed = kernel.ring.has_next();
        drop(guard);
        Ok(missed || self.next_flushed().is_some())
    }
}

impl CqEvents for CqShared {
    fn completion(&self) {
        if let Some(kernel) = (*self.ring.lock()).as_mut() {
            kernel.ring.disarm();
            kernel.told = false;
        }
        self.upcall.completion();
    }

    fn error(&self) {
        self.upcall.error();
    }
}

/// The memory that the device was given.
enum Memory {
    /// Of a kernel queue: the ring, which [`CqShared`] has too while it is used, and its shadow area.
    Kernel {
        ring: Arc<DmaWords>,
        shadow: Arc<DmaWords>,
    },
    /// Of a process.
    User {
        location: Location,
        ring: TakenRing,
        shadow: TakenRing,
    },
}

/// What the device has of a queue.
struct Created {
    shared: Arc<CqShared>,
    _id: Id,
    memory: Memory,
    entries: u32,
    ceq: u32,
}

impl Created {
    /// Returns where the ring and the shadow area are.
    fn addresses(&self) -> Result<(CqRing, DmaAddress)> {
        Ok(match &self.memory {
            Memory::Kernel { ring, shadow } => {
                (CqRing::Contiguous(ring.address()), shadow.address())
            }
            Memory::User {
                location, shadow, ..
            } => {
                let ring = match location {
                    Location::Direct(address) => CqRing::Contiguous(*address),
                    Location::List(list) => CqRing::Paged(list.index()?),
                };
                let [page] = shadow.pages(0, 1)? else {
                    return Err(EINVAL);
                };
                (ring, *page)
            }
        })
    }

    fn create(&self) -> Result<(), Failure> {
        let dev = &self.shared.dev;
        let (ring, shadow) = self.addresses()?;

        dev.cqp.execute(&CreateCq {
            id: self.shared.number,
            ceq: self.ceq,
            entries: self.entries,
            ring,
            shadow,
            shadow_read_threshold: (self.entries / 2).min(MAX_READ_THRESHOLD),
            mask_events: true,
            vsi: dev.port.vsi(),
        })
    }

    /// Has the device forget the queue; what it does not let go of is kept.
    fn destroy(self) {
        let dev = self.shared.dev.clone();
        let gone = if self.shared.pinned.load(Relaxed) {
            // The device would not let go of a queue pair that completes here.
            Err(Failure::NotSent(EBUSY))
        } else {
            self.addresses()
                .map_err(Into::into)
                .and_then(|(ring, shadow)| {
                    let command = DestroyCq {
                        id: self.shared.number,
                        ceq: self.ceq,
                        entries: self.entries,
                        ring,
                        shadow,
                        mask_events: true,
                    };
                    destroy(&dev, &command)
                })
        };

        drop(dev.cqs.remove(self.shared.number));
        // No queue pair is left that could queue it again.
        cancel_work_sync(&self.shared);
        // Whoever still holds the shared half may do so where memory for DMA cannot be freed.
        let ring = self.shared.ring.lock().take();
        drop(ring);
        if gone.is_ok() {
            // The number is free after this.
            dev.aeq.settle();
        } else {
            self.keep(&dev);
        }
    }

    /// Keeps all that the device may still use; the process gets its memory back.
    fn keep(self, dev: &Dev) {
        match self.memory {
            Memory::Kernel { ring, shadow } => dev.keep((self._id, ring, shadow)),
            Memory::User {
                location,
                ring,
                shadow,
            } => dev.keep((self._id, location, ring.abandon(), shadow.abandon())),
        }
    }
}

/// The driver's part of a completion queue.
#[pin_data(PinnedDrop)]
pub(crate) struct Cq {
    shared: Arc<CqShared>,
    capacity: u32,
    /// Until it is destroyed.
    #[pin]
    created: Mutex<Option<Created>>,
}

#[pinned_drop]
impl PinnedDrop for Cq {
    fn drop(self: Pin<&mut Self>) {
        // Left over if creating failed late.
        self.destroy();
    }
}

impl Cq {
    /// Returns the half that queue pairs hold on to.
    pub(crate) fn shared(&self) -> &Arc<CqShared> {
        &self.shared
    }

    fn destroy(&self) {
        let created = self.created.lock().take();
        if let Some(created) = created {
            created.destroy();
        }
    }

    /// Takes the memory that the process registered for the queue.
    fn user_memory(
        dev: &Dev,
        entries: u32,
        request: &CreateCqReq,
        caller: &Caller<'_, Irdma>,
    ) -> Result<Memory> {
        let rings = &caller.ucontext().ok_or(EINVAL)?.rings;
        let take = |start| {
            rings
                .take(start)
                .map_err(|e| if e == ENOENT { EPROTO } else { e })
        };
        let ring = take(request.user_cq_buf)?;
        let shadow = take(request.user_shadow_area)?;

        let (RingUse::Cq { pages }, RingUse::Cq { .. }) = (ring.purpose(), shadow.purpose()) else {
            return Err(EINVAL);
        };
        // At most 2^21 entries of 32 bytes.
        let bytes = usize::try_from(entries * ENTRY_SIZE)?;
        if bytes > pages.checked_mul(PAGE).ok_or(EINVAL)? {
            return Err(EINVAL);
        }
        let needed = bytes.div_ceil(PAGE);
        let list = ring.pages(0, needed)?;
        // CAST: Widening.
        let location = Location::new(&dev.hmc, PAGE as u64, Levels::One, || list.iter().copied())?;
        Ok(Memory::User {
            location,
            ring,
            shadow,
        })
    }

    fn try_create(
        device: &Device<Irdma>,
        init: &CqInit<'_>,
        caller: &Caller<'_, Irdma>,
    ) -> Result<Created> {
        let dev = &device.data().dev;

        if init.flags() != 0 {
            return Err(EOPNOTSUPP);
        }
        if init.vector() >= dev.ceqs() {
            return Err(EINVAL);
        }
        let (entries, memory, ring) = match caller.udata() {
            Some(udata) => {
                if udata.response_len() < size_of::<CreateCqResp>() {
                    return Err(EINVAL);
                }
                let request = udata.request::<CreateCqReq>(CreateCqReq::MIN)?;
                let entries = geometry::user_cq_entries(init.entries())?;
                let memory = Self::user_memory(dev, entries, &request, caller)?;
                (entries, memory, None)
            }
            None => {
                let entries = geometry::kernel_cq_entries(init.entries())?;
                let words = usize::try_from(entries * ENTRY_WORDS)?;
                let ring = Arc::new(dev.port.alloc(words)?, GFP_KERNEL)?;
                // CAST: A small constant.
                let shadow_words = SHADOW_SIZE as usize / size_of::<u64>();
                let shadow = Arc::new(dev.port.alloc(shadow_words)?, GFP_KERNEL)?;
                let memory = Memory::Kernel {
                    ring: ring.clone(),
                    shadow: shadow.clone(),
                };
                let ring = KernelRing {
                    ring: CompletionRing::new(ring, shadow, entries)?,
                    told: false,
                };
                (entries, memory, Some(ring))
            }
        };

        let id = dev.ids.cqs.alloc()?;
        let shared = CqShared::new(dev.clone(), id.get(), init.upcall().clone(), ring)?;
        let created = Created {
            shared,
            _id: id,
            memory,
            entries,
            ceq: init.vector(),
        };
        if let Err(failure) = created.create() {
            if failure.in_flight() {
                created.keep(dev);
            }
            return Err(failure.into());
        }
        Ok(created)
    }

    /// Lets events find the queue and tells the process of it.
    fn publish(&self, caller: &Caller<'_, Irdma>) -> Result {
        let (number, entries) = {
            let guard = self.created.lock();
            let created = guard.as_ref().ok_or(EINVAL)?;
            (created.shared.number, created.entries)
        };
        self.shared.dev.cqs.insert(number, self.shared.clone())?;
        match caller.udata() {
            Some(udata) => udata.respond(&CreateCqResp {
                cq_id: number,
                cq_size: entries,
            }),
            None => Ok(()),
        }
    }
}

#[vtable]
impl CqOps<Irdma> for Cq {
    fn create<'a>(
        device: &'a Device<Irdma>,
        init: CqInit<'a>,
        caller: Caller<'a, Irdma>,
    ) -> impl PinInit<Self, Error> + 'a {
        let capacity = init.entries();

        try_pin_init!(Self {
            created <- new_mutex!(
                Some(Self::try_create(device, &init, &caller)?),
                "irdma_rs::verbs::Cq"
            ),
            shared: created.lock().as_ref().ok_or(EINVAL)?.shared.clone(),
            capacity,
        })
        .pin_chain(move |this| this.publish(&caller))
    }

    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn poll(this: Pin<&cq::Cq<Irdma>>, out: &mut Completions<'_>) -> Result {
        this.shared.poll(this.device().data(), out)
    }

    fn arm(this: Pin<&cq::Cq<Irdma>>, notify: Notify) -> Result<bool> {
        this.shared.arm(notify)
    }

    fn details(this: Pin<&cq::Cq<Irdma>>, details: &mut Details<'_>) -> Result {
        let guard = this.created.lock();
        let Some(created) = guard.as_ref() else {
            return Ok(());
        };
        details.number(c"hw_cqn", created.shared.number)?;
        details.number(c"entries", created.entries)?;
        details.number(c"ceq", created.ceq)
    }

    fn destroy(this: Pin<&cq::Cq<Irdma>>) -> Result {
        Cq::destroy(&this);
        Ok(())
    }
}
