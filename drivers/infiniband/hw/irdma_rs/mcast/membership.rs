// SPDX-License-Identifier: GPL-2.0

//! What one queue pair has attached.
//!
//! An attach may take several groups of the device, one for each VLAN (see [`super::vlan`]), and takes
//! all of them or none. Which ones it took is written down with the address, so that the detach gives
//! back exactly these, whatever became of the interfaces meanwhile. A second attach of the same
//! address, which the core makes possible by another MLID, is counted on the same record.
//!
//! # Locking
//!
//! The memberships of a queue pair are locked over the commands, outside all locks of [`super::list`].

use core::net::IpAddr;

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    }, //
};

use super::{
    group::{
        GroupKey,
        Number, //
    },
    hardware::Hardware,
    list::List,
    vlan::Vlans, //
};

/// An address that a queue pair is attached to.
pub(crate) struct Record {
    uses: u32,
    vlans: Vlans,
}

impl Record {
    /// Returns how many attaches have not been taken back.
    pub(crate) fn uses(&self) -> u32 {
        self.uses
    }

    /// Returns the keys of the groups of the device that were taken for `ip`.
    pub(crate) fn keys(&self, ip: IpAddr) -> impl Iterator<Item = GroupKey> + '_ {
        self.vlans.keys(ip)
    }

    /// Returns how many groups of the device were taken.
    pub(crate) fn groups(&self) -> u32 {
        // At most one for each of 4095 VLANs.
        u32::try_from(self.vlans.as_slice().len().max(1)).unwrap_or(u32::MAX)
    }
}

/// The memberships of one queue pair.
pub(crate) struct Memberships<N> {
    number: N,
    records: RBTree<IpAddr, Record>,
}

impl<N: Number + Unpin> Memberships<N> {
    /// The queue pair `number` is attached to nothing.
    pub(crate) fn new(number: N) -> Self {
        Self {
            number,
            records: RBTree::new(),
        }
    }

    /// Returns the record of an address.
    pub(crate) fn get(&self, ip: IpAddr) -> Option<&Record> {
        self.records.get(&ip)
    }

    /// Returns the records, by address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&IpAddr, &Record)> + '_ {
        self.records.iter()
    }

    /// Attaches the queue pair once more to `ip`; `vlans` is asked where, if it is not attached yet.
    ///
    /// # Errors
    ///
    /// Those of [`List::attach`] and of `vlans`, and `ENOMEM`; all is as before then.
    pub(crate) fn attach<H: Hardware>(
        &mut self,
        list: &List<N, H::Share>,
        hw: &H,
        ip: IpAddr,
        vlans: impl FnOnce() -> Result<Vlans>,
    ) -> Result {
        if let Some(record) = self.records.get_mut(&ip) {
            let uses = record.uses.checked_add(1).ok_or(ENOMEM)?;
            Self::enter(list, hw, ip, &record.vlans, &self.number)?;
            record.uses = uses;
            return Ok(());
        }
        // Before the device is told: nothing can fail after that.
        let room = RBTreeNodeReservation::new(GFP_KERNEL)?;
        let vlans = vlans()?;
        Self::enter(list, hw, ip, &vlans, &self.number)?;
        self.records
            .insert(room.into_node(ip, Record { uses: 1, vlans }));
        Ok(())
    }

    /// Attaches to all groups of `vlans`, or to none.
    fn enter<H: Hardware>(
        list: &List<N, H::Share>,
        hw: &H,
        ip: IpAddr,
        vlans: &Vlans,
        number: &N,
    ) -> Result {
        for (entered, key) in vlans.keys(ip).enumerate() {
            if let Err(error) = list.attach(hw, key, number) {
                for key in vlans.keys(ip).take(entered) {
                    // Attached just now, so it can be detached.
                    let _ = list.detach(hw, key, number.get());
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Takes one attach to `ip` back.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the queue pair is not attached to it; nothing has changed then.
    pub(crate) fn detach<H: Hardware>(
        &mut self,
        list: &List<N, H::Share>,
        hw: &H,
        ip: IpAddr,
    ) -> Result {
        let record = self.records.get_mut(&ip).ok_or(EINVAL)?;

        for key in record.vlans.keys(ip) {
            // By the record it is attached, and then a detach succeeds.
            let _ = list.detach(hw, key, self.number.get());
        }
        record.uses = record.uses.saturating_sub(1);
        if record.uses == 0 {
            drop(self.records.remove(&ip));
        }
        Ok(())
    }

    /// Takes all attaches back.
    pub(crate) fn detach_all<H: Hardware>(&mut self, list: &List<N, H::Share>, hw: &H) {
        loop {
            let first = self.records.keys().next().copied();
            let Some(ip) = first else {
                return;
            };
            // Each takes one use away, so this ends.
            let _ = self.detach(list, hw, ip);
        }
    }
}
