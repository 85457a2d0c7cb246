// SPDX-License-Identifier: GPL-2.0

//! Contexts of processes: the answer that tells the user library about the device, the page of
//! doorbells, and the memory that the process registered for its queues.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use rdma::{
    mmap::MmapEntry,
    ucontext::{
        UcontextInit,
        UcontextOps, //
    },
};

use super::{
    abi::{
        comp_mask,
        feature,
        AllocUcontextReq,
        AllocUcontextResp,
        ABI_VERSION,
        OLDEST_LIBRARY, //
    },
    rings::Rings,
    Irdma,
};
use crate::queues::{
    geometry,
    wqe, //
};

/// What the library takes the device to be; zero would make it drive another one.
const HW_REV: u8 = 2;

/// Smallest work queue in quanta.
const MIN_WQ_QUANTA: u16 = 8;

/// Smallest and largest number of entries of a completion ring, for the library's own checks; ours,
/// which are exact, follow when the queue is created.
const CQ_ENTRIES: (u32, u32) = (1, 1_048_575);

/// What `comp_mask` of a request may say.
const KNOWN_REQUEST: u64 = comp_mask::USE_RAW_ATTR | comp_mask::WQE_FORMAT_V2;

/// The driver's part of a process's context.
pub(crate) struct Ucontext {
    /// Memory for queues that the process registered.
    pub(crate) rings: Arc<Rings>,
    /// The page of doorbells can be mapped as long as this exists.
    _doorbells: MmapEntry,
}

impl Ucontext {
    /// Checks the request and answers it.
    fn new(init: &UcontextInit<'_, Irdma>) -> Result<Self> {
        let udata = init.udata();
        let request = udata.request::<AllocUcontextReq>(AllocUcontextReq::MIN)?;

        if !(OLDEST_LIBRARY..=ABI_VERSION).contains(&request.userspace_ver) {
            return Err(EINVAL);
        }
        if request.comp_mask & !KNOWN_REQUEST != 0 {
            return Err(EOPNOTSUPP);
        }
        match udata.response_len() {
            len if len < AllocUcontextResp::LEGACY => return Err(EINVAL),
            // The generation before this one, and libraries that choose queue sizes by themselves.
            AllocUcontextResp::LEGACY => return Err(EOPNOTSUPP),
            _ => {}
        }
        if request.comp_mask & comp_mask::USE_RAW_ATTR == 0 {
            return Err(EOPNOTSUPP);
        }

        let rings = Arc::pin_init(Rings::new(), GFP_KERNEL)?;
        let doorbells = init.insert_mmap(init.device().data().dev.port.doorbell_page()?)?;
        udata.respond(&AllocUcontextResp {
            kernel_ver: ABI_VERSION,
            feature_flags: feature::RTS_AE | feature::CQ_RESIZE,
            db_mmap_key: doorbells.key(),
            max_hw_wq_frags: geometry::MAX_SGE,
            max_hw_read_sges: geometry::MAX_SGE,
            max_hw_inline: geometry::MAX_INLINE,
            max_hw_rq_quanta: geometry::MAX_QUANTA,
            max_hw_wq_quanta: geometry::MAX_QUANTA,
            min_hw_cq_size: CQ_ENTRIES.0,
            max_hw_cq_size: CQ_ENTRIES.1,
            // CAST: A small constant.
            max_hw_sq_chunk: wqe::MAX_QUANTA as u16,
            hw_rev: HW_REV,
            comp_mask: comp_mask::USE_RAW_ATTR
                | comp_mask::MIN_HW_WQ_SIZE
                | comp_mask::MAX_HW_SRQ_QUANTA,
            min_hw_wq_size: MIN_WQ_QUANTA,
            max_hw_srq_quanta: 0,
            ..AllocUcontextResp::default()
        })?;
        Ok(Self {
            rings,
            _doorbells: doorbells,
        })
    }
}

impl UcontextOps<Irdma> for Ucontext {
    fn alloc<'a>(init: UcontextInit<'a, Irdma>) -> impl PinInit<Self, Error> + 'a {
        Self::new(&init)
    }
}
