// SPDX-License-Identifier: GPL-2.0

//! Counters of datagrams, per group and per sender.
//!
//! The receiver runs in one task at a time, readers in any. Locks: the table's, then a group's;
//! each is held for a lookup and an addition only. A group is in the table before its queue pair
//! joins and until after it left, so that no datagram of a member counts as stray.

use core::net::IpAddr;
use kernel::{
    new_mutex,
    prelude::*,
    rbtree::RBTree,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    }, //
};
use rdma::{
    client::{
        Datagram,
        DeviceName,
        Failure,
        Receiver, //
    },
    gid::Gid,
    lid::Lid,
    qp::QpNum, //
};

use crate::spec::GroupSpec;

/// Senders of a group that are counted apart; those beyond are counted together.
pub(crate) const MAX_SOURCES: u32 = 64;

/// Datagrams and octets of payload.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Tally {
    /// Datagrams.
    pub(crate) packets: u64,
    /// Octets of payload, without headers.
    pub(crate) bytes: u64,
}

impl Tally {
    fn add(&mut self, bytes: u64) {
        self.packets = self.packets.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Who sent a datagram.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Source {
    address: Gid,
    qp: QpNum,
}

impl Source {
    /// Its address.
    pub(crate) fn address(&self) -> IpAddr {
        self.address.ip()
    }

    /// Its queue pair.
    pub(crate) fn qp(&self) -> QpNum {
        self.qp
    }
}

/// The counters of one group.
pub(crate) struct Counts {
    /// All senders.
    pub(crate) total: Tally,
    /// Each of the first [`MAX_SOURCES`] senders.
    pub(crate) sources: RBTree<Source, Tally>,
    /// Senders for which there was no place.
    pub(crate) others: Tally,
    known: u32,
}

impl Counts {
    fn new() -> Self {
        Self {
            total: Tally::default(),
            sources: RBTree::new(),
            others: Tally::default(),
            known: 0,
        }
    }

    fn count(&mut self, source: Source, bytes: u64) {
        self.total.add(bytes);

        if let Some(tally) = self.sources.get_mut(&source) {
            return tally.add(bytes);
        }

        let mut tally = Tally::default();
        tally.add(bytes);
        if self.known < MAX_SOURCES
            && self
                .sources
                .try_create_and_insert(source, tally, GFP_KERNEL)
                .is_ok()
        {
            self.known += 1;
        } else {
            self.others.add(bytes);
        }
    }
}

/// A group that is watched.
#[pin_data]
pub(crate) struct Group {
    spec: GroupSpec,
    #[pin]
    counts: Mutex<Counts>,
}

impl Group {
    /// The group's address.
    pub(crate) fn address(&self) -> IpAddr {
        self.spec.gid.ip()
    }

    /// The LID it was joined with.
    pub(crate) fn lid(&self) -> Lid {
        self.spec.lid
    }

    /// Its counters.
    pub(crate) fn counts(&self) -> &Mutex<Counts> {
        &self.counts
    }
}

/// All counters of a device.
#[pin_data]
pub(crate) struct Table {
    device: DeviceName,
    #[pin]
    groups: Mutex<RBTree<Gid, Arc<Group>>>,
    #[pin]
    stray: Mutex<Tally>,
    lost: Atomic<u32>,
}

impl Table {
    /// A table without groups.
    pub(crate) fn new(device: DeviceName) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            device,
            groups <- new_mutex!(RBTree::new()),
            stray <- new_mutex!(Tally::default()),
            lost: Atomic::new(0),
        })
    }

    /// Counts for `spec` from now on. A group that is there starts again from zero.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn insert(&self, spec: GroupSpec) -> Result {
        let group = Arc::pin_init(
            pin_init!(Group {
                spec,
                counts <- new_mutex!(Counts::new()),
            }),
            GFP_KERNEL,
        )?;

        let old = self
            .groups
            .lock()
            .try_create_and_insert(spec.gid.gid(), group, GFP_KERNEL)?;
        // Freed without the lock.
        drop(old);
        Ok(())
    }

    /// Counts for the group no more.
    pub(crate) fn remove(&self, gid: Gid) {
        let old = self.groups.lock().remove(&gid);
        drop(old);
    }

    /// Calls `f` with every group in the order of addresses, until it fails.
    pub(crate) fn try_for_each<E>(
        &self,
        mut f: impl FnMut(&Group) -> Result<(), E>,
    ) -> Result<(), E> {
        self.groups.lock().values().try_for_each(|group| f(group))
    }

    /// Datagrams that came for no group of the table.
    pub(crate) fn stray(&self) -> Tally {
        *self.stray.lock()
    }

    /// Receive buffers that are out of use.
    pub(crate) fn lost(&self) -> u32 {
        self.lost.load(Relaxed)
    }

    fn group(&self, gid: Gid) -> Option<Arc<Group>> {
        self.groups.lock().get(&gid).cloned()
    }
}

/// The receiver of a device's queue pair: counts into a table.
pub(crate) struct Counter(pub(crate) Arc<Table>);

impl Receiver for Counter {
    fn receive(&self, datagram: &Datagram<'_>) {
        // CAST: A length fits into 64 bits.
        let bytes = datagram.payload().len() as u64;

        let group = datagram
            .header()
            .and_then(|header| Some((header, self.0.group(header.destination)?)));
        let Some((header, group)) = group else {
            return self.0.stray.lock().add(bytes);
        };

        let source = Source {
            address: header.source,
            qp: datagram.source_qp(),
        };
        group.counts.lock().count(source, bytes);
    }

    fn failed(&self, failure: Failure) {
        // One line is enough: the rest is in debugfs.
        if self.0.lost.fetch_add(1, Relaxed) == 0 {
            pr_err!("{}: a receive buffer is lost: {failure:?}\n", self.0.device);
        }
    }
}

#[kunit_tests(mcast_watch_tally)]
mod tests {
    use super::*;

    fn source(number: u32) -> Source {
        Source {
            address: Gid::new([0; 16]),
            qp: QpNum::new(number),
        }
    }

    #[test]
    fn sources_add_up() {
        let mut counts = Counts::new();
        for (qp, bytes) in [(1, 100), (2, 10), (1, 100), (2, 0)] {
            counts.count(source(qp), bytes);
        }

        let tally = |packets, bytes| Tally { packets, bytes };
        assert_eq!(counts.total, tally(4, 210));
        assert_eq!(counts.sources.get(&source(1)), Some(&tally(2, 200)));
        assert_eq!(counts.sources.get(&source(2)), Some(&tally(2, 10)));
        assert_eq!(counts.others, tally(0, 0));
    }

    #[test]
    fn sources_beyond_the_bound_are_counted_together() {
        let mut counts = Counts::new();
        for round in 0..2u64 {
            for qp in 0..MAX_SOURCES + 3 {
                counts.count(source(qp), round);
            }
        }

        assert_eq!(counts.sources.iter().count(), MAX_SOURCES as usize);
        assert_eq!(
            counts.others,
            Tally {
                packets: 6,
                bytes: 3
            }
        );
        let all = 2 * u64::from(MAX_SOURCES + 3);
        assert_eq!(
            counts.total,
            Tally {
                packets: all,
                bytes: all / 2
            }
        );
    }

    #[test]
    fn counters_do_not_wrap() {
        let mut tally = Tally {
            packets: u64::MAX,
            bytes: u64::MAX - 1,
        };
        tally.add(10);

        assert_eq!(
            tally,
            Tally {
                packets: u64::MAX,
                bytes: u64::MAX
            }
        );
    }
}
