// SPDX-License-Identifier: GPL-2.0

//! Words of Intel's hardware as the kernel's own headers lay them out.
//!
//! Safe faces of `words.c`; the arguments are described in `words.h`. The driver's layouts are
//! written from the hardware contract and compared with these, so that a mistake in one of the two
//! shows. The last functions do the same for addresses.

use core::net::IpAddr;

use crate::bindings;

pub use bindings::{
    rdma_rs_aeqe_words as AeqeArgs,
    rdma_rs_ah_words as AhArgs,
    rdma_rs_arm_words as ArmArgs,
    rdma_rs_ccqe_words as CcqeArgs,
    rdma_rs_cq_words as CqArgs,
    rdma_rs_cqe_words as CqeArgs,
    rdma_rs_ext_words as ExtArgs,
    rdma_rs_group_words as GroupArgs,
    rdma_rs_name as Name,
    rdma_rs_node_words as NodeArgs,
    rdma_rs_op as Op,
    rdma_rs_page_size as PageSize,
    rdma_rs_qp_state as QpState,
    rdma_rs_qp_words as QpArgs,
    rdma_rs_qpc_words as QpcArgs,
    rdma_rs_sd_words as SdArgs,
    rdma_rs_send_words as SendArgs,
    rdma_rs_stag_words as StagArgs, //
};

/// Which of the operations on an object.
pub mod op {
    pub use crate::bindings::{
        rdma_rs_op_RDMA_RS_OP_CREATE as CREATE,
        rdma_rs_op_RDMA_RS_OP_DESTROY as DESTROY,
        rdma_rs_op_RDMA_RS_OP_MODIFY as MODIFY, //
    };
}

/// States of a queue pair.
pub mod qp_state {
    pub use crate::bindings::{
        rdma_rs_qp_state_RDMA_RS_QP_ERROR as ERROR,
        rdma_rs_qp_state_RDMA_RS_QP_IDLE as IDLE,
        rdma_rs_qp_state_RDMA_RS_QP_RTR as RTR,
        rdma_rs_qp_state_RDMA_RS_QP_RTS as RTS,
        rdma_rs_qp_state_RDMA_RS_QP_SQD as SQD,
        rdma_rs_qp_state_RDMA_RS_QP_TERMINATE as TERMINATE, //
    };
}

/// Sizes of the pages of a registration.
pub mod page_size {
    pub use crate::bindings::{
        rdma_rs_page_size_RDMA_RS_PAGE_1G as SIZE_1G,
        rdma_rs_page_size_RDMA_RS_PAGE_2M as SIZE_2M,
        rdma_rs_page_size_RDMA_RS_PAGE_4K as SIZE_4K, //
    };
}

/// Names of numbers, for [`number`].
pub mod name {
    pub use crate::bindings::{
        rdma_rs_name_RDMA_RS_ACCESS_LOCAL_READ as ACCESS_LOCAL_READ,
        rdma_rs_name_RDMA_RS_ACCESS_LOCAL_WRITE as ACCESS_LOCAL_WRITE,
        rdma_rs_name_RDMA_RS_ACCESS_REMOTE_READ as ACCESS_REMOTE_READ,
        rdma_rs_name_RDMA_RS_ACCESS_REMOTE_WRITE as ACCESS_REMOTE_WRITE,
        rdma_rs_name_RDMA_RS_AE_ADAPTER_CATASTROPHIC as AE_ADAPTER_CATASTROPHIC,
        rdma_rs_name_RDMA_RS_AE_CQ_OPERATION_ERROR as AE_CQ_OPERATION_ERROR,
        rdma_rs_name_RDMA_RS_AE_LCE_CQ_CATASTROPHIC as AE_LCE_CQ_CATASTROPHIC,
        rdma_rs_name_RDMA_RS_AE_LCE_FUNCTION_CATASTROPHIC as AE_LCE_FUNCTION_CATASTROPHIC,
        rdma_rs_name_RDMA_RS_AE_LLP_CONNECTION_ESTABLISHED as AE_LLP_CONNECTION_ESTABLISHED,
        rdma_rs_name_RDMA_RS_AE_LLP_DOUBT_REACHABILITY as AE_LLP_DOUBT_REACHABILITY,
        rdma_rs_name_RDMA_RS_AE_MCG_QP_PROTOCOL_MISMATCH as AE_MCG_QP_PROTOCOL_MISMATCH,
        rdma_rs_name_RDMA_RS_AE_QP_SUSPEND_COMPLETE as AE_QP_SUSPEND_COMPLETE,
        rdma_rs_name_RDMA_RS_AE_RESET_NOT_SENT as AE_RESET_NOT_SENT,
        rdma_rs_name_RDMA_RS_AE_RESOURCE_EXHAUSTION as AE_RESOURCE_EXHAUSTION,
        rdma_rs_name_RDMA_RS_AE_ROCE_BAD_MC_IP_ADDR as AE_ROCE_BAD_MC_IP_ADDR,
        rdma_rs_name_RDMA_RS_AE_ROCE_BAD_MC_QPID as AE_ROCE_BAD_MC_QPID,
        rdma_rs_name_RDMA_RS_AE_ROCE_EMPTY_MCG as AE_ROCE_EMPTY_MCG,
        rdma_rs_name_RDMA_RS_FLUSH_FATAL as FLUSH_FATAL,
        rdma_rs_name_RDMA_RS_FLUSH_GENERAL as FLUSH_GENERAL,
        rdma_rs_name_RDMA_RS_FLUSH_LOC_LEN as FLUSH_LOC_LEN,
        rdma_rs_name_RDMA_RS_FLUSH_LOC_QP_OP as FLUSH_LOC_QP_OP,
        rdma_rs_name_RDMA_RS_FLUSH_MAJOR as FLUSH_MAJOR,
        rdma_rs_name_RDMA_RS_FLUSH_MW_BIND as FLUSH_MW_BIND,
        rdma_rs_name_RDMA_RS_FLUSH_PROT as FLUSH_PROT,
        rdma_rs_name_RDMA_RS_FLUSH_REM_ACCESS as FLUSH_REM_ACCESS,
        rdma_rs_name_RDMA_RS_FLUSH_REM_INV_REQ as FLUSH_REM_INV_REQ,
        rdma_rs_name_RDMA_RS_FLUSH_REM_OP as FLUSH_REM_OP,
        rdma_rs_name_RDMA_RS_FLUSH_RETRY_EXC as FLUSH_RETRY_EXC,
        rdma_rs_name_RDMA_RS_FLUSH_RNR_RETRY_EXC as FLUSH_RNR_RETRY_EXC,
        rdma_rs_name_RDMA_RS_MAX_MCAST_GROUPS as MAX_MCAST_GROUPS,
        rdma_rs_name_RDMA_RS_MAX_MCAST_MEMBERS as MAX_MCAST_MEMBERS,
        rdma_rs_name_RDMA_RS_MAX_QUANTA_PER_WR as MAX_QUANTA_PER_WR,
        rdma_rs_name_RDMA_RS_MAX_WQ_QUANTA as MAX_WQ_QUANTA,
        rdma_rs_name_RDMA_RS_RQ_RESERVED as RQ_RESERVED,
        rdma_rs_name_RDMA_RS_SQ_BIND_MW as SQ_BIND_MW,
        rdma_rs_name_RDMA_RS_SQ_FAST_REGISTER as SQ_FAST_REGISTER,
        rdma_rs_name_RDMA_RS_SQ_LOCAL_INVALIDATE as SQ_LOCAL_INVALIDATE,
        rdma_rs_name_RDMA_RS_SQ_NOP as SQ_NOP,
        rdma_rs_name_RDMA_RS_SQ_RDMA_READ as SQ_RDMA_READ,
        rdma_rs_name_RDMA_RS_SQ_RDMA_READ_LOCAL_INV as SQ_RDMA_READ_LOCAL_INV,
        rdma_rs_name_RDMA_RS_SQ_RDMA_WRITE as SQ_RDMA_WRITE,
        rdma_rs_name_RDMA_RS_SQ_RDMA_WRITE_SOLICITED as SQ_RDMA_WRITE_SOLICITED,
        rdma_rs_name_RDMA_RS_SQ_RESERVED as SQ_RESERVED,
        rdma_rs_name_RDMA_RS_SQ_SEND as SQ_SEND,
        rdma_rs_name_RDMA_RS_SQ_SEND_INV as SQ_SEND_INV,
        rdma_rs_name_RDMA_RS_SQ_SEND_SOLICITED as SQ_SEND_SOLICITED,
        rdma_rs_name_RDMA_RS_SQ_SEND_SOLICITED_INV as SQ_SEND_SOLICITED_INV, //
    };
}

/// Words in a control WQE.
// CAST: A small constant.
pub const CQP_WORDS: usize = bindings::RDMA_RS_CQP_WORDS as usize;

/// Words in the context of a queue pair.
// CAST: A small constant.
pub const QPC_WORDS: usize = bindings::RDMA_RS_QPC_WORDS as usize;

/// An address as the arguments want it: whether it is IPv4, and four numbers.
pub fn ip(ip: IpAddr) -> (bool, [u32; 4]) {
    match ip {
        IpAddr::V4(ip) => (true, [u32::from_be_bytes(ip.octets()), 0, 0, 0]),
        IpAddr::V6(ip) => {
            let [a, b, c, d, e, f, g, h] = ip.segments();
            let join = |high: u16, low: u16| u32::from(high) << 16 | u32::from(low);

            (false, [join(a, b), join(c, d), join(e, f), join(g, h)])
        }
    }
}

/// The number with this name; `u32::MAX` if there is none.
pub fn number(name: Name) -> u32 {
    // SAFETY: Looks a constant up, and checks its argument.
    unsafe { bindings::rdma_rs_number(name) }
}

macro_rules! control {
    ($($(#[$doc:meta])* $name:ident = $c:ident($($arg:ident: $ty:ty),*);)*) => {$(
        $(#[$doc])*
        pub fn $name(valid: bool, $($arg: $ty),*) -> [u64; CQP_WORDS] {
            let mut words = [0; CQP_WORDS];

            // SAFETY: There is room for the words of a control WQE, and references are valid.
            unsafe { bindings::$c(words.as_mut_ptr(), valid, $($arg),*) };
            words
        }
    )*};
}

control! {
    /// The control WQE that creates, modifies or destroys a queue pair.
    qp = rdma_rs_words_qp(op: Op, qp: &QpArgs);
    /// The control WQE that creates or destroys a completion queue.
    cq = rdma_rs_words_cq(op: Op, cq: &CqArgs);
    /// The control WQE that creates or destroys a completion event queue.
    ceq = rdma_rs_words_ceq(op: Op, id: u32, entries: u32, ring: u64, vsi: u16);
    /// The control WQE that creates or destroys the asynchronous event queue.
    aeq = rdma_rs_words_aeq(op: Op, entries: u32, ring: u64);
    /// The control WQE that registers memory.
    reg_mr = rdma_rs_words_reg_mr(mr: &StagArgs);
    /// The control WQE that gives a steering tag back.
    dealloc_stag = rdma_rs_words_dealloc_stag(index: u32, pd: u32);
    /// The control WQE that asks for firmware version and features.
    query_features = rdma_rs_words_query_features(buffer: u64, size: u32);
    /// The control WQE that asks for limits and sizes.
    query_fpm = rdma_rs_words_query_fpm(function: u8, buffer: u64);
    /// The control WQE that commits object counts.
    commit_fpm = rdma_rs_words_commit_fpm(function: u8, buffer: u64, size: u32);
    /// The control WQE that says that all memory is in place.
    pages_allocated = rdma_rs_words_pages_allocated(function: u8);
    /// The control WQE that flushes queues; a code of zero leaves a queue alone.
    flush = rdma_rs_words_flush(qp: u32, sq_code: u16, rq_code: u16);
    /// The control WQE that has a queue pair stop sending.
    suspend = rdma_rs_words_suspend(qp: u32);
    /// The control WQE that has a queue pair go on.
    resume = rdma_rs_words_resume(qp: u32, qs_handle: u16);
    /// The control WQE that adds, changes or deletes a scheduler node.
    node = rdma_rs_words_node(node: &NodeArgs);
    /// The control WQE that creates, modifies or destroys an address handle.
    ah = rdma_rs_words_ah(op: Op, ah: &AhArgs);
    /// The control WQE that creates, modifies or destroys a multicast group.
    group = rdma_rs_words_group(op: Op, group: &GroupArgs);
}

/// The control WQE that writes (create, modify) or removes (destroy) a destination address.
pub fn arp(valid: bool, op: Op, index: u16, mac: [u8; 6]) -> [u64; CQP_WORDS] {
    let mut words = [0; CQP_WORDS];

    // SAFETY: There is room for the words of a control WQE, and the address has six octets.
    unsafe {
        bindings::rdma_rs_words_arp(words.as_mut_ptr(), valid, op, index, mac.as_ptr());
    }
    words
}

/// The control WQE that changes segment descriptors, of which the first three are taken.
pub fn update_sds(valid: bool, function: u8, sds: &[SdArgs]) -> [u64; CQP_WORDS] {
    let mut words = [0; CQP_WORDS];
    let count = u32::try_from(sds.len()).unwrap_or(0);

    // SAFETY: There is room for the words of a control WQE, and `count` descriptors are there.
    unsafe {
        bindings::rdma_rs_words_update_sds(
            words.as_mut_ptr(),
            valid,
            function,
            sds.as_ptr(),
            count,
        );
    }
    words
}

/// The word of a group context for the member `qp`.
pub fn member(qp: u32) -> u64 {
    // SAFETY: Computes with its argument alone.
    unsafe { bindings::rdma_rs_word_member(qp) }
}

/// The context of a queue pair.
pub fn qpc(qp: &QpcArgs) -> [u64; QPC_WORDS] {
    let mut words = [0; QPC_WORDS];

    // SAFETY: There is room for the words of a context.
    unsafe { bindings::rdma_rs_words_qpc(words.as_mut_ptr(), qp) };
    words
}

/// The header of a datagram's WQE.
pub fn send_header(send: &SendArgs) -> u64 {
    // SAFETY: Reads its argument alone.
    unsafe { bindings::rdma_rs_word_send_header(send) }
}

/// The header of a receive WQE.
pub fn recv_header(valid: bool, fragments: u8) -> u64 {
    // SAFETY: Computes with its arguments alone.
    unsafe { bindings::rdma_rs_word_recv_header(valid, fragments) }
}

/// The word of a datagram's WQE that says where it goes.
pub fn ud_destination(qpn: u32, qkey: u32) -> u64 {
    // SAFETY: Computes with its arguments alone.
    unsafe { bindings::rdma_rs_word_ud_destination(qpn, qkey) }
}

/// The second word of a fragment.
pub fn fragment(valid: bool, length: u32, stag: u32) -> u64 {
    // SAFETY: Computes with its arguments alone.
    unsafe { bindings::rdma_rs_word_fragment(valid, length, stag) }
}

/// An entry of a completion queue.
pub fn cqe(args: &CqeArgs) -> [u64; 4] {
    let mut words = [0; 4];

    // SAFETY: There is room for the four words of an entry.
    unsafe { bindings::rdma_rs_words_cqe(words.as_mut_ptr(), args) };
    words
}

/// The second entry of an extended completion.
pub fn ext(args: &ExtArgs) -> [u64; 4] {
    let mut words = [0; 4];

    // SAFETY: There is room for the four words of an entry.
    unsafe { bindings::rdma_rs_words_ext(words.as_mut_ptr(), args) };
    words
}

/// An entry of the completion queue of the control queue pair.
pub fn ccqe(args: &CcqeArgs) -> [u64; 4] {
    let mut words = [0; 4];

    // SAFETY: There is room for the four words of an entry.
    unsafe { bindings::rdma_rs_words_ccqe(words.as_mut_ptr(), args) };
    words
}

/// An entry of the asynchronous event queue.
pub fn aeqe(args: &AeqeArgs) -> [u64; 2] {
    let mut words = [0; 2];

    // SAFETY: There is room for the two words of an entry.
    unsafe { bindings::rdma_rs_words_aeqe(words.as_mut_ptr(), args) };
    words
}

/// The word of a shadow area that asks for an event.
pub fn arm(arm: &ArmArgs) -> u64 {
    // SAFETY: Reads its argument alone.
    unsafe { bindings::rdma_rs_word_arm(arm) }
}

/// The word of a shadow area that says how far the consumer is.
pub fn consumer(index: u32) -> u64 {
    // SAFETY: Computes with its argument alone.
    unsafe { bindings::rdma_rs_word_consumer(index) }
}

/// Whether the RDMA core takes the GID for a multicast one.
pub fn is_multicast(gid: [u8; 16]) -> bool {
    // SAFETY: A GID has 16 octets.
    unsafe { bindings::rdma_rs_is_multicast(gid.as_ptr()) }
}

/// The Ethernet address to which the network stack sends packets for the group `group`.
pub fn group_mac(group: IpAddr) -> [u8; 6] {
    let mut mac = [0; 6];
    let (ipv4, words) = ip(group);

    // SAFETY: Four numbers to read, and room for six octets.
    unsafe { bindings::rdma_rs_group_mac(ipv4, words.as_ptr(), mac.as_mut_ptr()) };
    mac
}
