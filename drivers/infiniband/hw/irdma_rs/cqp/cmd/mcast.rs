// SPDX-License-Identifier: GPL-2.0

//! Multicast group operations.

use super::super::{
    Command,
    Completed,
    Op,
    Wqe, //
};
use super::{
    ah::ip_words,
    mac_word, //
};
use core::net::IpAddr;
use kernel::{
    bitfield,
    dma::DmaAddress,
    prelude::*, //
};

bitfield! {
    struct GroupMac(u64) {
        47:0 macaddr;
    }
}

bitfield! {
    struct GroupFunction(u64) {
        5:0 hmc_fcn_id;
    }
}

bitfield! {
    struct GroupVlan(u64) {
        43:32 vlanid;
        9:0 qs_handle;
    }
}

bitfield! {
    struct GroupHeader(u64) {
        60:60 ipv4valid;
        59:59 vlanvalid;
        12:0 mgidx;
    }
}

/// VLAN id that stands for "none".
const NO_VLAN: u16 = 0xfff;

/// A multicast group as the device knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct McastGroup {
    /// Index of the group, 1 to 4095.
    pub(crate) index: u16,
    /// Group address.
    pub(crate) ip: IpAddr,
    /// Its MAC address.
    pub(crate) mac: [u8; 6],
    /// Match only datagrams of this VLAN.
    pub(crate) vlan: Option<u16>,
    /// Function id.
    pub(crate) function: u8,
    /// Handle of the queue set.
    pub(crate) qs_handle: u16,
    /// List of members: 64 bytes, read by the device during the operation.
    pub(crate) context: DmaAddress,
}

impl McastGroup {
    /// One more than the greatest index.
    pub(crate) const INDEX_LIMIT: u16 = 4096;

    fn wqe(&self) -> Result<Wqe> {
        if self.index >= Self::INDEX_LIMIT {
            return Err(EINVAL);
        }
        let (d32, d10) = ip_words(self.ip);
        Ok(Wqe::new()
            .with::<0>(GroupMac::from(0).with_macaddr(mac_word(self.mac)))
            .with::<1>(GroupFunction::from(0).try_with_hmc_fcn_id(self.function)?)
            .with::<2>(
                GroupVlan::from(0)
                    .try_with_qs_handle(self.qs_handle)?
                    .try_with_vlanid(self.vlan.unwrap_or(NO_VLAN))?,
            )
            .with::<3>(
                GroupHeader::from(0)
                    .try_with_mgidx(self.index)?
                    .with_vlanvalid(self.vlan.is_some())
                    .with_ipv4valid(self.ip.is_ipv4()),
            )
            .with::<4>(self.context)
            .with::<6>(d32)
            .with::<7>(d10))
    }
}

/// Creates a group with the members in its context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreateMcastGrp {
    /// The group.
    pub(crate) group: McastGroup,
}

impl Command for CreateMcastGrp {
    const OP: Op = Op::CreateMcastGrp;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        self.group.wqe()
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}

/// Replaces the members of a group by those in its context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModifyMcastGrp {
    /// The group.
    pub(crate) group: McastGroup,
}

impl Command for ModifyMcastGrp {
    const OP: Op = Op::ModifyMcastGrp;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        self.group.wqe()
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}

/// Destroys a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DestroyMcastGrp {
    /// The group.
    pub(crate) group: McastGroup,
}

impl Command for DestroyMcastGrp {
    const OP: Op = Op::DestroyMcastGrp;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        self.group.wqe()
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}
