// SPDX-License-Identifier: GPL-2.0

//! The user ABI: what the user library sends along with system calls and gets back.
//!
//! The structures are those of `include/uapi/rdma/irdma-abi.h`, of which every octet is a field; sizes
//! and offsets are asserted. A request says in `MIN` how much of it the oldest library sends.

use core::mem::{
    offset_of,
    size_of, //
};

use kernel::prelude::*;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes, //
};

/// Version of the ABI; the library tells its own in [`AllocUcontextReq::userspace_ver`].
pub(crate) const ABI_VERSION: u8 = 5;

/// Oldest version of the library that is served.
pub(crate) const OLDEST_LIBRARY: u8 = 4;

/// Bits of `comp_mask` in [`AllocUcontextReq`] and [`AllocUcontextResp`].
pub(crate) mod comp_mask {
    /// `IRDMA_ALLOC_UCTX_USE_RAW_ATTR`: queues are created with the numbers the application gave.
    pub(crate) const USE_RAW_ATTR: u64 = 1 << 0;
    /// `IRDMA_ALLOC_UCTX_MIN_HW_WQ_SIZE`: the field is there.
    pub(crate) const MIN_HW_WQ_SIZE: u64 = 1 << 1;
    /// `IRDMA_ALLOC_UCTX_MAX_HW_SRQ_QUANTA`: the field is there.
    pub(crate) const MAX_HW_SRQ_QUANTA: u64 = 1 << 2;
    /// `IRDMA_SUPPORT_WQE_FORMAT_V2`: the library knows the other form of WQEs, which this device
    /// does not have.
    pub(crate) const WQE_FORMAT_V2: u64 = 1 << 3;
}

/// Bits of [`AllocUcontextResp::feature_flags`].
pub(crate) mod feature {
    /// Completions may come before the transition to RTS.
    pub(crate) const RTS_AE: u64 = 1 << 0;
    /// The shadow area of a completion queue is registered by itself.
    pub(crate) const CQ_RESIZE: u64 = 1 << 1;
}

/// Bits of [`CreateQpResp::qp_caps`].
pub(crate) mod qp_caps {
    /// Writes can carry an immediate.
    pub(crate) const WRITE_WITH_IMM: u32 = 1 << 0;
    /// Sends can carry an immediate.
    pub(crate) const SEND_WITH_IMM: u32 = 1 << 1;
    /// The transport is RoCE.
    pub(crate) const ROCE: u32 = 1 << 2;
    /// The library may ask for a page to push work into. It gets none, but takes this bit as leave to
    /// send its request for a flush along with a modification.
    pub(crate) const PUSH_MODE: u32 = 1 << 3;
}

/// `struct irdma_alloc_ucontext_req`
#[derive(Clone, Copy, Debug, FromBytes)]
#[repr(C)]
pub(crate) struct AllocUcontextReq {
    pub(crate) rsvd32: u32,
    pub(crate) userspace_ver: u8,
    pub(crate) rsvd8: [u8; 3],
    pub(crate) comp_mask: u64,
}

impl AllocUcontextReq {
    /// Up to, not including, `comp_mask`.
    pub(crate) const MIN: usize = 8;
}

/// `struct irdma_alloc_ucontext_resp`
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct AllocUcontextResp {
    pub(crate) max_pds: u32,
    pub(crate) max_qps: u32,
    pub(crate) wq_size: u32,
    pub(crate) kernel_ver: u8,
    pub(crate) rsvd: [u8; 3],
    pub(crate) feature_flags: u64,
    pub(crate) db_mmap_key: u64,
    pub(crate) max_hw_wq_frags: u32,
    pub(crate) max_hw_read_sges: u32,
    pub(crate) max_hw_inline: u32,
    pub(crate) max_hw_rq_quanta: u32,
    pub(crate) max_hw_wq_quanta: u32,
    pub(crate) min_hw_cq_size: u32,
    pub(crate) max_hw_cq_size: u32,
    pub(crate) max_hw_sq_chunk: u16,
    pub(crate) hw_rev: u8,
    pub(crate) rsvd2: u8,
    pub(crate) comp_mask: u64,
    pub(crate) min_hw_wq_size: u16,
    pub(crate) rsvd3: [u8; 2],
    pub(crate) max_hw_srq_quanta: u32,
}

impl AllocUcontextResp {
    /// The response of the generation before this one; its library cannot drive this device.
    pub(crate) const LEGACY: usize = 16;
}

/// `struct irdma_alloc_pd_resp`
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct AllocPdResp {
    pub(crate) pd_id: u32,
    pub(crate) rsvd: [u8; 4],
}

/// `struct irdma_create_cq_req`
#[derive(Clone, Copy, Debug, FromBytes)]
#[repr(C)]
pub(crate) struct CreateCqReq {
    pub(crate) user_cq_buf: u64,
    pub(crate) user_shadow_area: u64,
}

impl CreateCqReq {
    /// All of it.
    pub(crate) const MIN: usize = size_of::<Self>();
}

/// `struct irdma_create_cq_resp`
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct CreateCqResp {
    pub(crate) cq_id: u32,
    pub(crate) cq_size: u32,
}

/// `struct irdma_create_qp_req`
#[derive(Clone, Copy, Debug, FromBytes)]
#[repr(C)]
pub(crate) struct CreateQpReq {
    pub(crate) user_wqe_bufs: u64,
    pub(crate) user_compl_ctx: u64,
    pub(crate) legacy_dontuse: [u64; 2],
}

impl CreateQpReq {
    /// Up to, not including, the unused tail.
    pub(crate) const MIN: usize = 16;
}

/// `struct irdma_create_qp_resp`
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct CreateQpResp {
    pub(crate) qp_id: u32,
    pub(crate) actual_sq_size: u32,
    pub(crate) actual_rq_size: u32,
    pub(crate) irdma_drv_opt: u32,
    pub(crate) push_idx: u16,
    pub(crate) lsmm: u8,
    pub(crate) rsvd: u8,
    pub(crate) qp_caps: u32,
}

impl CreateQpResp {
    /// Up to, not including, `qp_caps`.
    pub(crate) const MIN: usize = 20;
}

/// `struct irdma_modify_qp_req`
#[derive(Clone, Copy, Debug, FromBytes)]
#[repr(C)]
pub(crate) struct ModifyQpReq {
    pub(crate) sq_flush: u8,
    pub(crate) rq_flush: u8,
    pub(crate) rsvd: [u8; 6],
}

/// `struct irdma_modify_qp_resp`
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct ModifyQpResp {
    pub(crate) push_wqe_mmap_key: u64,
    pub(crate) push_db_mmap_key: u64,
    pub(crate) push_offset: u16,
    pub(crate) push_valid: u8,
    pub(crate) rsvd: [u8; 5],
}

impl ModifyQpResp {
    /// Up to and including `push_valid`; a caller may also have no room at all.
    pub(crate) const MIN: usize = 19;
}

/// What a memory region is registered for (`enum irdma_memreg_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemRegType {
    /// Memory for work requests.
    Mem,
    /// The rings of a queue pair.
    Qp,
    /// The ring of a completion queue, or its shadow area.
    Cq,
}

impl TryFrom<u16> for MemRegType {
    type Error = Error;

    /// # Errors
    ///
    /// `EOPNOTSUPP` for a shared receive queue, which the device does not have, `EINVAL` for what no
    /// library sends.
    fn try_from(value: u16) -> Result<Self> {
        match value {
            0 => Ok(MemRegType::Mem),
            1 => Ok(MemRegType::Qp),
            2 => Ok(MemRegType::Cq),
            3 => Err(EOPNOTSUPP),
            _ => Err(EINVAL),
        }
    }
}

/// `struct irdma_mem_reg_req`
#[derive(Clone, Copy, Debug, FromBytes)]
#[repr(C)]
pub(crate) struct MemRegReq {
    pub(crate) reg_type: u16,
    pub(crate) cq_pages: u16,
    pub(crate) rq_pages: u16,
    pub(crate) sq_pages: u16,
}

impl MemRegReq {
    /// All of it; the page counts have a meaning for rings only.
    pub(crate) const MIN: usize = size_of::<Self>();
}

/// `struct irdma_create_ah_resp`
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct CreateAhResp {
    pub(crate) ah_id: u32,
    pub(crate) rsvd: [u8; 4],
}

// The layout of the C structures.
const _: () = {
    assert!(size_of::<AllocUcontextReq>() == 16);
    assert!(offset_of!(AllocUcontextReq, comp_mask) == 8);
    assert!(size_of::<AllocUcontextResp>() == 80);
    assert!(offset_of!(AllocUcontextResp, feature_flags) == 16);
    assert!(offset_of!(AllocUcontextResp, db_mmap_key) == 24);
    assert!(offset_of!(AllocUcontextResp, max_hw_cq_size) == 56);
    assert!(offset_of!(AllocUcontextResp, max_hw_sq_chunk) == 60);
    assert!(offset_of!(AllocUcontextResp, hw_rev) == 62);
    assert!(offset_of!(AllocUcontextResp, comp_mask) == 64);
    assert!(offset_of!(AllocUcontextResp, min_hw_wq_size) == 72);
    assert!(offset_of!(AllocUcontextResp, max_hw_srq_quanta) == 76);
    assert!(size_of::<AllocPdResp>() == 8);
    assert!(size_of::<CreateCqReq>() == 16);
    assert!(size_of::<CreateCqResp>() == 8);
    assert!(size_of::<CreateQpReq>() == 32);
    assert!(offset_of!(CreateQpReq, legacy_dontuse) == CreateQpReq::MIN);
    assert!(size_of::<CreateQpResp>() == 24);
    assert!(offset_of!(CreateQpResp, push_idx) == 16);
    assert!(offset_of!(CreateQpResp, qp_caps) == CreateQpResp::MIN);
    assert!(size_of::<ModifyQpReq>() == 8);
    assert!(size_of::<ModifyQpResp>() == 24);
    assert!(offset_of!(ModifyQpResp, push_valid) + 1 == ModifyQpResp::MIN);
    assert!(size_of::<MemRegReq>() == 8);
    assert!(offset_of!(MemRegReq, sq_pages) == 6);
    assert!(size_of::<CreateAhResp>() == 8);
};
