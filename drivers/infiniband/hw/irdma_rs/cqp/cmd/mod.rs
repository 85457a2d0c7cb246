// SPDX-License-Identifier: GPL-2.0

//! The operations of the control queue pair, one type each, grouped by the object they act on.
//!
//! Layouts are those of the hardware contract (control queue pair, sections 7 to 13); the field
//! names are its macro names in lower case. A value that does not fit its field is refused with
//! `EOVERFLOW` before anything is sent.

mod aeq;
mod ah;
mod arp;
mod ceq;
mod cq;
mod flush;
mod hmc;
mod mcast;
mod probe;
mod qp;
mod sched;
mod stag;

pub(crate) use aeq::{
    CreateAeq,
    DestroyAeq, //
};
pub(crate) use ah::{
    AddressVector,
    CreateAh,
    DestroyAh,
    IpPair, //
};
pub(crate) use arp::{
    AddArp,
    DeleteArp, //
};
pub(crate) use ceq::{
    CreateCeq,
    DestroyCeq, //
};
pub(crate) use cq::{
    CqRing,
    CreateCq,
    DestroyCq, //
};
pub(crate) use flush::{
    FlushCode,
    FlushWqes, //
};
pub(crate) use hmc::{
    SdEntry,
    ShmcPagesAllocated,
    UpdatePeSds, //
};
pub(crate) use mcast::{
    CreateMcastGrp,
    DestroyMcastGrp,
    McastGroup,
    ModifyMcastGrp, //
};
pub(crate) use probe::{
    CommitFpmVal,
    QueryFpmVal,
    QueryRdmaFeatures, //
};
pub(crate) use qp::{
    CreateQp,
    DestroyQp,
    ModifyQp,
    QpRef,
    QpState,
    QpType, //
};
pub(crate) use sched::{
    Node,
    NodeOp,
    WorkSchedNode, //
};
pub(crate) use stag::{
    Access,
    DeallocStag,
    HostPageSize,
    MrPages,
    RegMr, //
};

use kernel::num::Bounded;

/// Six octets of a MAC address as the device holds them: the first octet is the most significant.
pub(crate) fn mac_word(mac: [u8; 6]) -> Bounded<u64, 48> {
    let [a, b, c, d, e, f] = mac;
    Bounded::<u64, 64>::from(u64::from_be_bytes([a, b, c, d, e, f, 0, 0])).shr::<16, 48>()
}
