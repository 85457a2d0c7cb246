// SPDX-License-Identifier: GPL-2.0

//! Operations on the table of destination MAC addresses.

use super::super::{
    Command,
    Completed,
    Op,
    Wqe, //
};
use super::mac_word;
use kernel::{
    bitfield,
    prelude::*, //
};

bitfield! {
    struct ArpHeader(u64) {
        43:43 permanent;
        42:42 entryvalid;
        11:0 arpentryidx;
    }
}

bitfield! {
    struct ArpMac(u64) {
        47:0 macaddr;
    }
}

/// Writes an entry, new or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddArp {
    /// Index of the entry.
    pub(crate) index: u16,
    /// Destination address.
    pub(crate) mac: [u8; 6],
}

impl Command for AddArp {
    const OP: Op = Op::ManageArp;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        Ok(Wqe::new()
            .with::<2>(ArpMac::from(0).with_macaddr(mac_word(self.mac)))
            .with::<3>(
                ArpHeader::from(0)
                    .try_with_arpentryidx(self.index)?
                    .with_const_entryvalid::<1>()
                    .with_const_permanent::<1>(),
            ))
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}

/// Removes an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeleteArp {
    /// Index of the entry.
    pub(crate) index: u16,
}

impl Command for DeleteArp {
    const OP: Op = Op::ManageArp;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        Ok(Wqe::new().with::<3>(ArpHeader::from(0).try_with_arpentryidx(self.index)?))
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}
