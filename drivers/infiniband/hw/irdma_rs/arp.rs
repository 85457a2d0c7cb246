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
//! whether it really got there. An entry that the device refuses to delete, or that it could not be told
//! to, is left over; [`ArpTable::retry`] asks for it again.
//!
//! Lock order: the table's lock before that of what is left over, and before those of the control
//! queue. Usable in any context.

use crate::{
    cqp::{
        cmd,
        Cqp, //
    },
    ids::{
        IdSpace,
        LentId, //
    },
    stack::{
        Node,
        Stack, //
    },
};
use core::mem::MaybeUninit;
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

/// What is the device's as long as it has the entry.
struct Lent {
    index: u16,
    id: LentId,
    /// The device refused the entry. Certain once a later operation has completed.
    failed: Arc<AtomicFlag>,
}

/// An entry in the device's table.
struct Entry {
    lent: KBox<Node<Lent>>,
    users: u32,
}

/// An entry that is to go. Dropped before it is gone, it is left over.
struct Leaving {
    table: Arc<ArpTable>,
    lent: Option<KBox<Node<Lent>>>,
}

impl Leaving {
    /// The device has answered to the deletion. If it has let go of the entry, its number is free again.
    fn answered(mut self, deleted: bool) {
        // It does not delete what it never took. Nothing was known of that when the deletion was
        // posted, but by now it is: answers come in the order of the operations.
        let gone = |lent: &mut KBox<Node<Lent>>| deleted || lent.item().failed.load(Relaxed);
        if let Some(lent) = self.lent.take_if(gone) {
            Node::into_item(lent).id.release();
        }
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if let Some(lent) = self.lent.take() {
            self.table.left.lock().push(lent);
        }
    }
}

/// The table of one function.
#[pin_data]
pub(crate) struct ArpTable {
    cqp: Arc<Cqp>,
    indices: Arc<IdSpace>,
    #[pin]
    entries: SpinLockIrq<RBTree<Mac, Entry>>,
    /// Entries without a user that the device still has.
    #[pin]
    left: SpinLockIrq<Stack<Lent>>,
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
                left <- new_spinlock_irq!(Stack::new(), "ArpTable::left"),
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
        let lent = entry.lent.item();
        if lent.failed.load(Relaxed) {
            // It goes with the users that wait for it.
            return Some(Err(EIO));
        }
        entry.users = entry.users.saturating_add(1);
        Some(Ok(ArpRef {
            table: self.clone(),
            mac,
            index: lent.index,
            failed: lent.failed.clone(),
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
        let place = KBox::<Node<Lent>>::new_uninit(gfp)?;

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
        let id = id.lend();
        let lent = Lent {
            index,
            id,
            failed: failed.clone(),
        };
        let entry = Entry {
            lent: KBox::<MaybeUninit<_>>::write(place, Node::new(lent)),
            users: 1,
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
    fn put(self: &Arc<Self>, mac: &Mac) {
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
        if entry.lent.item().failed.load(Relaxed) {
            // The device does not have it.
            drop(entries);
            Node::into_item(entry.lent).id.release();
            return;
        }
        // Posted under the lock, so that a new entry for the address comes after it.
        self.forget(entry.lent);
    }

    /// Has the device delete an entry. Its number is free again when the device has let go of it, and
    /// only then.
    fn forget(self: &Arc<Self>, lent: KBox<Node<Lent>>) {
        let index = lent.item().index;
        let leaving = Leaving {
            table: self.clone(),
            lent: Some(lent),
        };

        // Whether it could be posted or not: the closure is dropped without having been called, or told.
        let _ = self.cqp.submit(
            cmd::DeleteArp { index },
            move |answer| leaving.answered(answer.is_ok()),
            GFP_ATOMIC,
        );
    }

    /// Has the device delete what it did not delete before. Any context.
    pub(crate) fn retry(self: &Arc<Self>) {
        let mut left = core::mem::replace(&mut *self.left.lock(), Stack::new());

        while let Some(lent) = left.pop() {
            self.forget(lent);
        }
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
