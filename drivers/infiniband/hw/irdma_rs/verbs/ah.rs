// SPDX-License-Identifier: GPL-2.0

//! Address handles: where a datagram goes.
//!
//! The device keeps a table of them and a work request names one by its number. It is a scarce thing,
//! and programs make thousands of equal ones, so equal handles of processes share an entry: see
//! [`Handles`]. Those of the kernel do not, as they may be made where nothing can sleep.
//!
//! # Context
//!
//! Handles of the kernel may be made and destroyed in atomic context. A handle that could not be
//! waited for is destroyed without waiting: its number is free again when the device has answered.

use core::{
    mem::MaybeUninit,
    net::IpAddr, //
};

use kernel::{
    new_mutex, new_spinlock_irq,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        Arc,
        Mutex,
        SpinLockIrq, //
    },
};
use rdma::{
    ah::{
        self,
        AhInit,
        AhOps,
        Context,
        Path,
        PathView, //
    },
    gid::GidKind,
    pd::Pd,
    udata::Caller,
};

use super::{
    abi::CreateAhResp,
    destroy,
    Data,
    Irdma, //
};
use crate::{
    arp::ArpRef,
    cqp::cmd::{
        AddressVector,
        CreateAh,
        DestroyAh,
        IpPair, //
    },
    dev::Dev,
    ids::Id,
    mcast::mac::{
        group_mac,
        Mac, //
    },
    stack::{
        Node,
        Stack, //
    },
};

/// Where a VLAN tag has the priority.
const VLAN_PRIORITY_SHIFT: u32 = 13;

/// Bits of a flow label.
const FLOW_LABEL: u32 = 0xfffff;

/// The flow label that packets to `destination` have if a program asks for `label`.
///
/// A program's label has 32 bits, of which the field in a packet takes the lower 20, and IPv4 none.
fn flow_label(destination: IpAddr, label: u32) -> u32 {
    match destination {
        IpAddr::V4(_) => 0,
        IpAddr::V6(_) => label & FLOW_LABEL,
    }
}

/// Everything that makes one handle different from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    pd: u32,
    source_mac: Mac,
    destination_mac: Mac,
    source: IpAddr,
    destination: IpAddr,
    vlan: Option<u16>,
    traffic_class: u8,
    hop_limit: u8,
    flow_label: u32,
}

impl Key {
    /// Works out the way that `view` describes.
    ///
    /// # Errors
    ///
    /// `EINVAL` if source and destination are of different families, or the source is not one for
    /// RoCEv2; `ENODEV` if the source's net device is gone.
    fn new(pd: u32, view: &PathView<'_>) -> Result<Self> {
        let path = view.path()?;
        let source = view.source()?;

        if source.kind()? != GidKind::RoceV2 {
            return Err(EINVAL);
        }
        let l2 = source.l2_fields()?;
        let destination = path.dgid.ip();
        let source = source.gid().ip();
        if destination.is_ipv4() != source.is_ipv4() {
            return Err(EINVAL);
        }
        Ok(Self {
            pd,
            source_mac: l2.smac.octets(),
            destination_mac: if destination.is_multicast() {
                group_mac(destination)
            } else {
                path.dmac.octets()
            },
            source,
            destination,
            // The service level is the priority on Ethernet.
            vlan: l2
                .vlan
                .map(|vlan| vlan | u16::from(path.sl & 7) << VLAN_PRIORITY_SHIFT),
            traffic_class: path.traffic_class,
            hop_limit: path.hop_limit,
            flow_label: flow_label(destination, path.flow_label),
        })
    }

    /// Returns whether the device has to deliver to queue pairs of its own.
    fn is_loopback(&self) -> bool {
        self.destination.is_loopback()
            || self.destination == self.source
            || self.destination.is_multicast()
    }

    fn ip_pair(&self) -> Result<IpPair> {
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Ok(IpPair::V4 {
                source,
                destination,
            }),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Ok(IpPair::V6 {
                source,
                destination,
            }),
            _ => Err(EINVAL),
        }
    }
}

/// An entry in the device's table.
struct Entry {
    id: Id,
    av: AddressVector,
    arp: ArpRef,
}

impl Entry {
    /// Has the device make an entry.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the table is full or memory is short, and those of the command.
    fn new(dev: &Arc<Dev>, key: &Key, context: Context) -> Result<KBox<Node<Self>>> {
        let gfp = match context {
            Context::MaySleep => GFP_KERNEL,
            Context::Atomic => GFP_ATOMIC,
        };
        let place = KBox::<Node<Self>>::new_uninit(gfp)?;
        let id = dev.ids.ahs.alloc()?;
        let arp = dev.arp.get(key.destination_mac, gfp)?;
        let av = AddressVector {
            index: id.get(),
            pd: key.pd,
            source_mac: key.source_mac,
            arp_index: arp.index(),
            ip: key.ip_pair()?,
            traffic_class: key.traffic_class,
            hop_limit: key.hop_limit,
            flow_label: key.flow_label,
            vlan: key.vlan,
            loopback: key.is_loopback(),
        };
        let node = Node::new(Self { id, av, arp });
        let entry = KBox::<MaybeUninit<_>>::write(place, node);

        let command = CreateAh { av };
        let created = match context {
            Context::MaySleep => dev.cqp.execute(&command),
            Context::Atomic => dev.cqp.execute_atomic(&command),
        };
        if let Err(failure) = created {
            if failure.in_flight() {
                dev.keep(entry);
            }
            return Err(failure.into());
        }
        // The command came after the one that made the destination's entry.
        if let Err(error) = entry.item().arp.check() {
            Self::destroy(entry, dev, context);
            return Err(error);
        }
        Ok(entry)
    }

    fn number(&self) -> u32 {
        self.id.get()
    }

    /// Has the device forget the entry; what it does not let go of is left over.
    fn destroy(entry: KBox<Node<Self>>, dev: &Arc<Dev>, context: Context) {
        let command = DestroyAh {
            av: entry.item().av,
        };
        let held = Held {
            dev: dev.clone(),
            entry: Some(entry),
        };

        match context {
            Context::MaySleep => {
                if destroy(dev, &command).is_ok() {
                    held.release();
                }
            }
            Context::Atomic => {
                // Whether it could be posted or not: the closure is dropped without having been called,
                // or told.
                let _ = dev.cqp.submit(
                    command,
                    move |answer| {
                        if answer.is_ok() {
                            held.release();
                        }
                    },
                    GFP_ATOMIC,
                );
            }
        }
    }
}

/// An entry that the device has until [`Held::release`]; one that is dropped is left over.
struct Held {
    dev: Arc<Dev>,
    entry: Option<KBox<Node<Entry>>>,
}

impl Held {
    /// Frees the entry's number: the device has let go of it.
    fn release(mut self) {
        drop(self.entry.take());
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.dev.left_ahs.entries.lock().push(entry);
        }
    }
}

/// Entries without a handle that the device still has.
#[pin_data]
pub(crate) struct LeftOver {
    #[pin]
    entries: SpinLockIrq<Stack<Entry>>,
}

impl LeftOver {
    /// No entries.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            entries <- new_spinlock_irq!(Stack::new(), "irdma_rs::verbs::ah::LeftOver"),
        })
    }

    /// Has the device destroy what it did not destroy before. Any context.
    pub(crate) fn retry(dev: &Arc<Dev>) {
        let mut left = core::mem::replace(&mut *dev.left_ahs.entries.lock(), Stack::new());

        while let Some(entry) = left.pop() {
            Entry::destroy(entry, dev, Context::Atomic);
        }
    }
}

/// An entry that handles share.
struct Shared {
    entry: KBox<Node<Entry>>,
    users: u32,
}

/// The entries that handles of processes share.
#[pin_data]
pub(crate) struct Handles {
    #[pin]
    by_key: Mutex<RBTree<Key, Shared>>,
}

impl Handles {
    /// Makes an empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            by_key <- new_mutex!(RBTree::new(), "irdma_rs::verbs::Handles"),
        })
    }

    /// Counts one more user of the entry for `key`, if there is one, and returns its number.
    fn find(by_key: &mut RBTree<Key, Shared>, key: &Key) -> Option<u32> {
        let shared = by_key.get_mut(key)?;

        shared.users = shared.users.checked_add(1)?;
        Some(shared.entry.item().number())
    }

    /// Returns the number of an entry for `key`, which is made if there is none.
    fn get(&self, dev: &Arc<Dev>, key: &Key) -> Result<u32> {
        if let Some(number) = Self::find(&mut self.by_key.lock(), key) {
            return Ok(number);
        }
        // The table is not locked over the command: others have nothing to do with it.
        let room = RBTreeNodeReservation::new(GFP_KERNEL)?;
        let entry = Entry::new(dev, key, Context::MaySleep)?;
        let number = entry.item().number();

        let mut by_key = self.by_key.lock();
        // Somebody may have made the same meanwhile: then theirs is used and ours goes.
        if let Some(number) = Self::find(&mut by_key, key) {
            drop(by_key);
            Entry::destroy(entry, dev, Context::MaySleep);
            return Ok(number);
        }
        let node = room.into_node(*key, Shared { entry, users: 1 });
        let replaced = by_key.insert(node);
        drop(by_key);
        // Only one that has more users than can be counted.
        drop(replaced);
        Ok(number)
    }

    /// Counts one user less; the entry goes with the last one.
    fn put(&self, dev: &Arc<Dev>, key: &Key) {
        let mut by_key = self.by_key.lock();
        let Some(shared) = by_key.get_mut(key) else {
            return;
        };
        if shared.users > 1 {
            shared.users -= 1;
            return;
        }
        let last = by_key.remove(key);
        drop(by_key);
        if let Some(last) = last {
            Entry::destroy(last.entry, dev, Context::MaySleep);
        }
    }
}

/// Whom the entry of a handle belongs to.
enum Owned {
    /// The handle alone.
    Alone(KBox<Node<Entry>>),
    /// All handles with this key.
    Shared(Key),
}

/// What the device has of a handle.
struct Created {
    number: u32,
    owned: Owned,
}

impl Created {
    fn new(data: &Data, pd: u32, init: &AhInit<'_>, caller: &Caller<'_, Irdma>) -> Result<Self> {
        let key = Key::new(pd, &init.path())?;
        let Some(udata) = caller.udata() else {
            let entry = Entry::new(&data.dev, &key, init.context())?;
            return Ok(Self {
                number: entry.item().number(),
                owned: Owned::Alone(entry),
            });
        };

        if udata.response_len() < size_of::<CreateAhResp>() {
            return Err(EINVAL);
        }
        udata.request_empty()?;
        let number = data.handles.get(&data.dev, &key)?;
        let response = CreateAhResp {
            ah_id: number,
            ..CreateAhResp::default()
        };
        if let Err(error) = udata.respond(&response) {
            data.handles.put(&data.dev, &key);
            return Err(error);
        }
        Ok(Self {
            number,
            owned: Owned::Shared(key),
        })
    }

    fn destroy(self, data: &Data, context: Context) {
        match self.owned {
            Owned::Alone(entry) => Entry::destroy(entry, &data.dev, context),
            // Processes can always sleep.
            Owned::Shared(key) => data.handles.put(&data.dev, &key),
        }
    }
}

/// The driver's part of an address handle.
#[pin_data]
pub(crate) struct Ah {
    number: u32,
    path: Path,
    /// Until it is destroyed.
    #[pin]
    created: SpinLockIrq<Option<Created>>,
}

impl Ah {
    /// Returns the number that work requests name the handle by.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}

#[vtable]
impl AhOps<Irdma> for Ah {
    fn create<'a>(
        pd: Pin<&'a Pd<Irdma>>,
        init: AhInit<'a>,
        caller: Caller<'a, Irdma>,
    ) -> impl PinInit<Self, Error> + 'a {
        try_pin_init!(Self {
            path: init.path().path()?,
            created <- new_spinlock_irq!(
                Some(Created::new(pd.device().data(), pd.number(), &init, &caller)?),
                "irdma_rs::verbs::Ah"
            ),
            number: created.lock().as_ref().map_or(0, |created| created.number),
        })
    }

    fn query(this: Pin<&ah::Ah<Irdma>>) -> Result<Path> {
        Ok(this.path)
    }

    fn destroy(this: Pin<&ah::Ah<Irdma>>, context: Context) -> Result {
        let created = this.created.lock().take();
        if let Some(created) = created {
            created.destroy(this.device().data(), context);
        }
        Ok(())
    }
}

#[kernel::macros::kunit_tests(irdma_rs_ah)]
mod tests {
    use super::*;
    use core::net::{
        Ipv4Addr,
        Ipv6Addr, //
    };

    fn key(source: IpAddr, destination: IpAddr) -> Key {
        Key {
            pd: 3,
            source_mac: [2, 0, 0, 0, 0, 1],
            destination_mac: [2, 0, 0, 0, 0, 2],
            source,
            destination,
            vlan: None,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        }
    }

    #[test]
    fn loops_back_what_local_queue_pairs_may_want() {
        let v4 = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        let group = IpAddr::V4(Ipv4Addr::new(239, 1, 2, 3));
        let group6 = IpAddr::V6(Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, 1));
        let own6 = IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1));

        for (source, destination, loopback) in [
            (v4(1), v4(2), false),
            (v4(1), v4(1), true),
            (v4(1), group, true),
            (own6, group6, true),
            (own6, IpAddr::V6(Ipv6Addr::LOCALHOST), true),
        ] {
            assert_eq!(key(source, destination).is_loopback(), loopback);
        }
        assert_eq!(flow_label(group6, 0xabc1_2345), 0x1_2345);
        assert_eq!(flow_label(group, 0x1_2345), 0);
        assert!(key(v4(1), group6).ip_pair().is_err());
        assert!(key(v4(1), group).ip_pair().is_ok());
    }
}
