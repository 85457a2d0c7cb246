// SPDX-License-Identifier: GPL-2.0

//! Memory regions.
//!
//! The device knows a region by its steering tag (STag), which is also both of its keys. Its high 24
//! bits select an entry of the device's table by their low part; the rest of them and the low 8 bits
//! are a key that changes with each registration, so that an old STag does not reach a new region.

use kernel::{
    new_mutex,
    prelude::*,
    sizes::{
        SZ_2M,
        SZ_4K, //
    },
    sync::{
        Arc,
        Mutex, //
    },
};
use rdma::{
    details::Details,
    mr::{
        self,
        AccessRight,
        MrKeys,
        MrOps,
        UserRange, //
    },
    pd,
    udata::Caller,
    umem::{
        PageSize,
        Umem, //
    },
};

use super::{
    abi::MemRegReq,
    destroy,
    pages::Location,
    rings::{
        RingMemory,
        RingUse,
        Rings, //
    },
    Data,
    Irdma, //
};
use crate::{
    cqp::cmd::{
        Access,
        DeallocStag,
        HostPageSize,
        RegMr, //
    },
    dev::Dev,
    hmc::Levels,
    ids::Id, //
};

/// Bytes in a largest region.
pub(crate) const MAX_MR_SIZE: u64 = 0x2000_0000_0000;

// CAST: Widening of a constant.
const PAGE_4K: u64 = SZ_4K as u64;
// CAST: Widening of a constant.
const PAGE_2M: u64 = SZ_2M as u64;
const PAGE_1G: u64 = 1 << 30;

/// Page sizes of the device, as a bitmap.
pub(crate) const PAGE_SIZES: u64 = PAGE_4K | PAGE_2M | PAGE_1G;

/// Bits of the table index in a tag, at least.
const MIN_INDEX_BITS: u32 = 14;

/// Bits of a tag without its low octet.
const TAG_BITS: u32 = 24;

/// A steering tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stag(u32);

impl Stag {
    /// Makes the tag of the table entry `index` of `count`, with a key made of `generation`.
    fn new(index: u32, count: u32, generation: u32) -> Self {
        let index_bits = count
            .max(1)
            .next_power_of_two()
            .ilog2()
            .clamp(MIN_INDEX_BITS, TAG_BITS);
        // The low octet changes each time, the bits above the index with each of its rounds.
        let round = (generation >> u8::BITS) & ((1 << (TAG_BITS - index_bits)) - 1);
        Self((round << index_bits | index) << u8::BITS | (generation & 0xff))
    }

    /// Returns the high 24 bits, which commands take for the index.
    const fn index(self) -> u32 {
        self.0 >> u8::BITS
    }

    /// Returns the low octet, the consumer's key.
    const fn key(self) -> u8 {
        let [key, ..] = self.0.to_le_bytes();
        key
    }
}

/// Returns the rights of a region as the device codes them.
///
/// Remote atomics and windows are rights that nobody can use on this device; to ask for them has no
/// effect.
fn rights(access: mr::Access) -> Access {
    let remote_write = access.contains(AccessRight::RemoteWrite);

    Access::from_raw(0)
        .with_local_read(true)
        .with_local_write(access.contains(AccessRight::LocalWrite) || remote_write)
        .with_remote_read(access.contains(AccessRight::RemoteRead))
        .with_remote_write(remote_write)
}

/// What the device has of a region.
struct Registered {
    dev: Arc<Dev>,
    _id: Id,
    stag: Stag,
    pd: u32,
    location: Location,
    _umem: Option<Umem>,
}

/// Where a region lies in the address space of work requests.
struct Range {
    va_or_offset: u64,
    va_based: bool,
    length: u64,
    page_size: HostPageSize,
}

impl Registered {
    /// Has the device register memory.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if all regions are in use, and those of the command.
    fn new(
        data: &Data,
        pd: u32,
        access: mr::Access,
        range: &Range,
        location: Location,
        umem: Option<Umem>,
    ) -> Result<Self> {
        let dev = &data.dev;
        let id = dev.ids.mrs.alloc()?;
        let stag = Stag::new(id.get(), dev.limits.mrs, data.generation());
        let command = RegMr {
            stag_index: stag.index(),
            key: stag.key(),
            pd,
            access: rights(access),
            va_or_offset: range.va_or_offset,
            va_based: range.va_based,
            length: range.length,
            page_size: range.page_size,
            pages: location.mr_pages()?,
        };
        let registered = Self {
            dev: dev.clone(),
            _id: id,
            stag,
            pd,
            location,
            _umem: umem,
        };
        match dev.cqp.execute(&command) {
            Ok(()) => Ok(registered),
            Err(failure) => {
                if failure.in_flight() {
                    dev.keep(registered);
                }
                Err(failure.into())
            }
        }
    }

    /// Has the device forget the memory; what it does not let go of is kept.
    fn deregister(self) {
        let command = DeallocStag {
            stag_index: self.stag.index(),
            pd: self.pd,
        };
        if destroy(&self.dev, &command).is_err() {
            self.dev.clone().keep(self);
        }
    }
}

/// What a region is.
enum Kind {
    /// Memory for work requests, until it is deregistered.
    Memory(Option<Registered>),
    /// Memory of a user queue.
    Ring(Arc<Rings>, Arc<RingMemory>),
}

impl Kind {
    fn keys(&self) -> MrKeys {
        let key = match self {
            Kind::Memory(Some(registered)) => registered.stag.0,
            _ => 0,
        };
        MrKeys {
            lkey: key,
            rkey: key,
        }
    }
}

/// The driver's part of a memory region.
#[pin_data]
pub(crate) struct Mr {
    #[pin]
    kind: Mutex<Kind>,
    keys: MrKeys,
}

impl Mr {
    fn register(
        pd: Pin<&pd::Pd<Irdma>>,
        range: UserRange,
        access: mr::Access,
        caller: Caller<'_, Irdma>,
    ) -> Result<Kind> {
        let Caller::User { udata, ucontext } = caller else {
            return Err(EINVAL);
        };
        let request = udata.request::<MemRegReq>(MemRegReq::MIN)?;
        if range.len > MAX_MR_SIZE {
            return Err(EINVAL);
        }
        if access.contains(AccessRight::OnDemand) {
            return Err(EOPNOTSUPP);
        }

        let device = pd.device();
        let umem = Umem::pin(device, range.start, range.len, access)?;
        let available = umem.num_blocks(PageSize::BASE);
        if let Some(purpose) = RingUse::from_request(&request, available)? {
            let memory = RingMemory::new(range.start, purpose, umem)?;
            ucontext.rings.enter(memory.clone())?;
            return Ok(Kind::Ring(ucontext.rings.clone(), memory));
        }

        let data = device.data();
        let page_size = umem
            .best_page_size(PAGE_SIZES, range.iova)
            .ok_or(EOPNOTSUPP)?;
        let location = Location::new(&data.dev.hmc, page_size.get(), Levels::OneOrTwo, || {
            umem.blocks(page_size)
        })?;
        let va_based = !access.contains(AccessRight::ZeroBased);
        let range = Range {
            va_or_offset: if va_based {
                range.iova
            } else {
                page_size.offset_of(range.iova)
            },
            va_based,
            length: range.len,
            page_size: match page_size.get() {
                PAGE_4K => HostPageSize::Size4K,
                PAGE_2M => HostPageSize::Size2M,
                PAGE_1G => HostPageSize::Size1G,
                _ => return Err(EINVAL),
            },
        };
        let registered = Registered::new(data, pd.number(), access, &range, location, Some(umem))?;
        Ok(Kind::Memory(Some(registered)))
    }

    fn all_memory(pd: Pin<&pd::Pd<Irdma>>, access: mr::Access) -> Result<Kind> {
        // The device takes a length of zero for all there is.
        let range = Range {
            va_or_offset: 0,
            va_based: true,
            length: 0,
            page_size: HostPageSize::Size4K,
        };
        let registered = Registered::new(
            pd.device().data(),
            pd.number(),
            access,
            &range,
            Location::Direct(0),
            None,
        )?;
        Ok(Kind::Memory(Some(registered)))
    }
}

#[vtable]
impl MrOps<Irdma> for Mr {
    fn register_user<'a>(
        pd: Pin<&'a pd::Pd<Irdma>>,
        range: UserRange,
        access: mr::Access,
        caller: Caller<'a, Irdma>,
    ) -> impl PinInit<Self, Error> + 'a {
        try_pin_init!(Self {
            kind <- new_mutex!(
                Self::register(pd, range, access, caller)?,
                "irdma_rs::verbs::Mr"
            ),
            keys: kind.lock().keys(),
        })
    }

    fn dma(pd: Pin<&pd::Pd<Irdma>>, access: mr::Access) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            kind <- new_mutex!(Self::all_memory(pd, access)?, "irdma_rs::verbs::Mr"),
            keys: kind.lock().keys(),
        })
    }

    fn keys(&self) -> MrKeys {
        self.keys
    }

    fn details(this: Pin<&mr::Mr<Irdma>>, details: &mut Details<'_>) -> Result {
        match &*this.kind.lock() {
            Kind::Memory(Some(registered)) => {
                details.number(c"stag_index", registered.stag.index())?;
                let location = match registered.location {
                    Location::Direct(_) => "contiguous",
                    Location::List(_) => "listed",
                };
                details.text(fmt!("pages"), fmt!("{location}"))
            }
            Kind::Memory(None) => Ok(()),
            Kind::Ring(..) => details.text(fmt!("use"), fmt!("queue")),
        }
    }

    fn deregister(this: Pin<&mr::Mr<Irdma>>) -> Result {
        let mut kind = this.kind.lock();

        match &mut *kind {
            Kind::Memory(registered) => {
                if let Some(registered) = registered.take() {
                    registered.deregister();
                }
                Ok(())
            }
            Kind::Ring(rings, memory) => rings.remove(memory),
        }
    }
}

#[kernel::macros::kunit_tests(irdma_rs_mr)]
mod tests {
    use super::*;

    #[test]
    fn puts_index_and_key_where_the_device_looks() {
        let stag = Stag::new(5, 4096, 0x12);

        assert_eq!(stag.index(), 5);
        assert_eq!(stag.key(), 0x12);
        // 14 bits of index leave 10 bits for the round.
        assert_eq!(Stag::new(5, 4096, 0xffff_ff00).0, 0xffc0_0500);
        assert_eq!(Stag::new(5, 1 << 24, 0xffff_ff01).0, 0x0000_0501);
        assert_eq!(Stag::new(0xff_ffff, u32::MAX / 2, 0).index(), 0xff_ffff);
    }

    #[test]
    fn gives_no_tag_twice_in_a_row() {
        let mut last = Stag::new(5, 4096, u32::MAX);

        for generation in 0..1024 {
            let next = Stag::new(5, 4096, generation);
            assert!(next != last && next.0 != 0);
            last = next;
        }
    }
}
