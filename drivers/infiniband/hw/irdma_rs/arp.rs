// SPDX-License-Identifier: GPL-2.0

//! The device's table of destination MAC addresses, which it calls ARP table.
//!
//! Address handles and connections name their destination's MAC address by an index into this table.
//! The device knows MAC addresses only; which IP address is behind one is the business of whoever
//! made the address handle. So an entry here is a MAC address with a count of users: it never changes
//! while it is used, equal destinations share one, and it goes when its last user goes.
//!
//! Operations on the table are not waited for: the control queue keeps their order, so an entry is in
//! the device before any operation posted later can look at it. [`ArpRef::check`] tells afterwards
//! whether it really got there.
//!
//! Lock order: the table's lock before those of the control queue. Usable in any context.

use crate::{
    cqp::{
        cmd,
        Cqp, //
    },
    ids::{
        IdSpace,
        LentId, //
    },
};
use kernel::{
    alloc::Flags,
    new_spinlock_irq,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        atomic::{
            AtomicFlag,
            Relaxed, //
        },
        Arc,
        SpinLockIrq, //
    },
};

/// A destination address.
type Mac = [u8; 6];

/// An entry in the device's table.
struct Entry {
    index: u16,
    id: LentId,
    users: u32,
    /// The device refused the entry.
    failed: Arc<AtomicFlag>,
}

/// The table of one function.
#[pin_data]
pub(crate) struct ArpTable {
    cqp: Arc<Cqp>,
    indices: Arc<IdSpace>,
    #[pin]
    entries: SpinLockIrq<RBTree<Mac, Entry>>,
}

impl ArpTable {
    /// An empty table for `count` entries, of which the first is not used.
    pub(crate) fn new(cqp: Arc<Cqp>, count: u32) -> Result<Arc<Self>> {
        let indices = IdSpace::new(1, count)?;
        Arc::pin_init(
            pin_init!(Self {
                cqp,
                indices,
                entries <- new_spinlock_irq!(RBTree::new(), "ArpTable::entries"),
            }),
            GFP_KERNEL,
        )
    }

    /// Adds a user to the entry of `mac`, if there is one.
    fn share(
        self: &Arc<Self>,
        entries: &mut RBTree<Mac, Entry>,
        mac: Mac,
    ) -> Option<Result<ArpRef>> {
        let entry = entries.get_mut(&mac)?;
        if entry.failed.load(Relaxed) {
            // It goes with the users that wait for it.
            return Some(Err(EIO));
        }
        entry.users = entry.users.saturating_add(1);
        Some(Ok(ArpRef {
            table: self.clone(),
            mac,
            index: entry.index,
            failed: entry.failed.clone(),
        }))
    }

    /// Makes sure that the device has, or is about to get, an entry for `mac`.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: the table is full or memory is short.
    /// - `EIO`: the device has just refused this very entry.
    /// - The control queue's reason when nothing can be posted.
    pub(crate) fn get(self: &Arc<Self>, mac: Mac, gfp: Flags) -> Result<ArpRef> {
        let shared = self.share(&mut self.entries.lock(), mac);
        if let Some(shared) = shared {
            return shared;
        }

        let id = self.indices.alloc()?;
        let index = u16::try_from(id.get())?;
        let failed = Arc::new(AtomicFlag::new(false), gfp)?;
        let room = RBTreeNodeReservation::new(gfp)?;

        let mut entries = self.entries.lock();
        // Look again: somebody may have been faster.
        if let Some(shared) = self.share(&mut entries, mac) {
            return shared;
        }
        let verdict = failed.clone();
        let posted = self.cqp.submit(
            cmd::AddArp { index, mac },
            move |answer| {
                if answer.is_err() {
                    verdict.store(true, Relaxed);
                }
            },
            GFP_ATOMIC,
        );
        posted?;
        // The device is about to know the number.
        let entry = Entry {
            index,
            id: id.lend(),
            users: 1,
            failed: failed.clone(),
        };
        entries.insert(room.into_node(mac, entry));
        Ok(ArpRef {
            table: self.clone(),
            mac,
            index,
            failed,
        })
    }

    /// A user of `mac` has gone.
    fn put(&self, mac: &Mac) {
        let mut entries = self.entries.lock();
        let Some(entry) = entries.get_mut(mac) else {
            return;
        };
        entry.users = entry.users.saturating_sub(1);
        if entry.users != 0 {
            return;
        }
        let Some(node) = entries.remove_node(mac) else {
            return;
        };
        let (_, entry) = node.to_key_value();
        if entry.failed.load(Relaxed) {
            // The device does not have it.
            drop(entries);
            entry.id.release();
            return;
        }
        let id = entry.id;
        // Posted under the lock, so that a new entry for the address comes after it. The number is
        // free again when the device has let go of it, and only then.
        let _ = self.cqp.submit(
            cmd::DeleteArp { index: entry.index },
            move |answer| {
                if answer.is_ok() {
                    id.release();
                }
            },
            GFP_ATOMIC,
        );
    }
}

/// A user's share of an entry of the table.
pub(crate) struct ArpRef {
    table: Arc<ArpTable>,
    mac: Mac,
    index: u16,
    failed: Arc<AtomicFlag>,
}

impl ArpRef {
    /// Index of the entry.
    pub(crate) fn index(&self) -> u16 {
        self.index
    }

    /// Whether the device accepted the entry. Certain once an operation posted after
    /// [`ArpTable::get`] has completed.
    ///
    /// # Errors
    ///
    /// `EIO` when it did not.
    pub(crate) fn check(&self) -> Result {
        if self.failed.load(Relaxed) {
            Err(EIO)
        } else {
            Ok(())
        }
    }
}

impl Drop for ArpRef {
    fn drop(&mut self) {
        self.table.put(&self.mac);
    }
}
