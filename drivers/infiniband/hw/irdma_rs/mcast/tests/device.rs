// SPDX-License-Identifier: GPL-2.0

//! A device for the list to talk to.
//!
//! It holds groups by index, as the contract describes them, and obeys or fails as its [`Temper`]
//! says, by seed and so the same in every run. A command that no correct driver sends is a
//! *violation*; the first one is remembered, and ends the test.

use core::net::{
    IpAddr,
    Ipv4Addr,
    Ipv6Addr, //
};

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};
use rdma::testing::random::Random;

use crate::mcast::{
    context::{
        McgMember,
        MAX_MEMBERS, //
    },
    group::{
        GroupKey,
        Number, //
    },
    hardware::{
        Command,
        Failure,
        Hardware, //
    },
    index::GroupIndex,
};

/// How often commands fail, in permille.
#[derive(Clone, Copy)]
pub(super) struct Temper {
    /// Refused; nothing changes.
    pub(super) refuse: u32,
    /// Not answered, and the device is dead from then on. Whether the command is carried out, and
    /// when, is open.
    pub(super) swallow: u32,
    /// The share of a group cannot be had.
    pub(super) no_share: u32,
    /// Commands take a while, in which others get their turn.
    pub(super) slow: bool,
}

impl Temper {
    /// Does as it is told.
    pub(super) const OBEDIENT: Self = Self {
        refuse: 0,
        swallow: 0,
        no_share: 0,
        slow: false,
    };
}

/// A group in the device.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    key: GroupKey,
    words: [u64; MAX_MEMBERS],
    /// Of the share that the device was told of.
    generation: u32,
}

impl Entry {
    /// The members.
    pub(super) fn members(&self) -> impl Iterator<Item = u32> + '_ {
        self.words
            .iter()
            .map(|word| McgMember::from_raw(*word))
            .filter(|word| word.valid().into_bool())
            // CAST: 18 bits.
            .map(|word| word.qp_id().get() as u32)
    }
}

/// A command without an answer, which may still be carried out.
#[derive(Clone, Copy)]
struct Late {
    command: Command,
    index: usize,
    entry: Entry,
}

struct Inner {
    random: Random,
    temper: Temper,
    entries: KVec<Option<Entry>>,
    /// By index: a command is under way.
    busy: KVec<bool>,
    late: Option<Late>,
    dead: bool,
    commands: u64,
    /// The errors of the commands that failed since [`Device::forget_errors`], as far as there is
    /// room.
    errors: [Option<Error>; 4],
    shares: i64,
    /// Shares of another generation are no more.
    generation: u32,
    violation: Option<&'static str>,
}

impl Inner {
    fn blame(&mut self, what: &'static str) {
        self.violation.get_or_insert(what);
    }

    fn note(&mut self, error: Error) {
        if let Some(place) = self.errors.iter_mut().find(|place| place.is_none()) {
            *place = Some(error);
        }
    }

    /// Checks that `words` is a list of members as the device wants it.
    fn check_words(&mut self, command: Command, words: &[u64; MAX_MEMBERS]) {
        let entry = Entry {
            key: key(0),
            words: *words,
            generation: 0,
        };
        let count = entry.members().count();

        if words.iter().take(count).any(|word| word >> 31 & 1 == 0)
            || words.iter().skip(count).any(|word| *word != 0)
        {
            self.blame("members are not packed from the first word on");
        }
        for (i, a) in entry.members().enumerate() {
            if entry.members().skip(i + 1).any(|b| a == b) {
                self.blame("a queue pair is in a member list twice");
            }
        }
        if (command == Command::Destroy) != (count == 0) {
            self.blame("the number of members does not fit the command");
        }
    }

    /// Carries a command out.
    fn apply(&mut self, command: Command, index: usize, entry: Entry) {
        let key_in_use = self
            .entries
            .iter()
            .enumerate()
            .any(|(i, other)| i != index && other.is_some_and(|other| other.key == entry.key));
        let Some(place) = self.entries.get_mut(index) else {
            return self.blame("the index is out of range");
        };
        let violation = match (command, &place) {
            (Command::Create, Some(_)) => Some("an index in use was created again"),
            (Command::Create, None) if key_in_use => Some("two groups with one key"),
            (Command::Create, None) => {
                *place = Some(entry);
                None
            }
            (_, None) => Some("a group that the device does not have was changed"),
            (_, Some(old)) if old.key != entry.key => Some("a group changed its key"),
            (Command::Modify, Some(_)) => {
                *place = Some(entry);
                None
            }
            (Command::Destroy, Some(_)) => {
                *place = None;
                None
            }
        };
        if let Some(what) = violation {
            self.blame(what);
        }
    }

    /// What becomes of the next command.
    fn outcome(&mut self, command: Command, index: usize, entry: Entry) -> Result<(), Failure> {
        if self.dead {
            return Err(Failure::Gone(ETIMEDOUT));
        }
        if self.random.chance(self.temper.refuse, 1000) {
            let error = if self.random.flip() { EIO } else { EBUSY };
            return Err(Failure::Refused(error));
        }
        if self.random.chance(self.temper.swallow, 1000) {
            self.dead = true;
            self.late = Some(Late {
                command,
                index,
                entry,
            });
            if self.random.flip() {
                self.wake();
            }
            return Err(Failure::Unanswered(ETIMEDOUT));
        }
        self.apply(command, index, entry);
        Ok(())
    }

    /// Carries the unanswered command out.
    fn wake(&mut self) {
        if let Some(late) = self.late.take() {
            self.apply(late.command, late.index, late.entry);
        }
    }
}

/// The device.
#[pin_data]
pub(super) struct Device {
    #[pin]
    inner: SpinLock<Inner>,
}

/// The group's share in a resource: counts itself.
pub(super) struct Share {
    device: Arc<Device>,
    generation: u32,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.device.inner.lock().shares -= 1;
    }
}

impl Device {
    /// A device with room for indexes below `limit`.
    pub(super) fn new(limit: u16, seed: u64, temper: Temper) -> Result<Arc<Self>> {
        let inner = Inner {
            random: Random::new(seed),
            temper,
            entries: KVec::from_elem(None, usize::from(limit), GFP_KERNEL)?,
            busy: KVec::from_elem(false, usize::from(limit), GFP_KERNEL)?,
            late: None,
            dead: false,
            commands: 0,
            errors: [None; 4],
            shares: 0,
            generation: 0,
            violation: None,
        };
        Arc::pin_init(
            pin_init!(Self {
                inner <- new_spinlock!(inner, "mcast::tests::Device"),
            }),
            GFP_KERNEL,
        )
    }

    /// How the device behaves from now on.
    pub(super) fn set_temper(&self, temper: Temper) {
        self.inner.lock().temper = temper;
    }

    /// Carries out what was not answered, if it was not yet.
    pub(super) fn wake(&self) {
        self.inner.lock().wake();
    }

    /// Whether a command was swallowed.
    pub(super) fn is_dead(&self) -> bool {
        self.inner.lock().dead
    }

    /// Commands so far.
    pub(super) fn commands(&self) -> u64 {
        self.inner.lock().commands
    }

    /// Shares that are held.
    pub(super) fn shares(&self) -> i64 {
        self.inner.lock().shares
    }

    /// All shares so far are no more, as when the traffic classes change.
    pub(super) fn renew_shares(&self) {
        self.inner.lock().generation += 1;
    }

    /// Whether the device was told of the share that `entry` should have now.
    pub(super) fn is_renewed(&self, entry: &Entry) -> bool {
        self.inner.lock().generation == entry.generation
    }

    /// Forgets which commands failed.
    pub(super) fn forget_errors(&self) {
        self.inner.lock().errors = [None; 4];
    }

    /// Whether something failed with `error` since [`Self::forget_errors`].
    pub(super) fn failed_with(&self, error: Error) -> bool {
        self.inner.lock().errors.contains(&Some(error))
    }

    /// The group at `index`.
    pub(super) fn entry(&self, index: u16) -> Option<Entry> {
        self.inner
            .lock()
            .entries
            .get(usize::from(index))
            .copied()
            .flatten()
    }

    /// How many groups there are.
    pub(super) fn groups(&self) -> usize {
        self.inner.lock().entries.iter().flatten().count()
    }

    /// Whether a group with `key` exists.
    pub(super) fn has(&self, key: &GroupKey) -> bool {
        let inner = self.inner.lock();
        inner.entries.iter().flatten().any(|e| e.key == *key)
    }

    /// Whether packets of some group go to `qp`.
    pub(super) fn serves(&self, qp: u32) -> bool {
        let inner = self.inner.lock();
        inner
            .entries
            .iter()
            .flatten()
            .any(|entry| entry.members().any(|member| member == qp))
    }

    /// Notes that something was done that must not be.
    pub(super) fn blame(&self, what: &'static str) {
        self.inner.lock().blame(what);
    }

    /// The first violation.
    pub(super) fn violation(&self) -> Option<&'static str> {
        self.inner.lock().violation
    }
}

impl Hardware for Arc<Device> {
    type Share = Share;

    fn share(&self) -> Result<Share> {
        let mut inner = self.inner.lock();
        let chances = inner.temper.no_share;

        if inner.random.chance(chances, 1000) {
            inner.note(ENOSPC);
            return Err(ENOSPC);
        }
        inner.shares += 1;
        Ok(Share {
            device: self.clone(),
            generation: inner.generation,
        })
    }

    fn is_current(&self, share: &Share) -> bool {
        self.inner.lock().generation == share.generation
    }

    fn execute(
        &self,
        command: Command,
        key: &GroupKey,
        index: GroupIndex,
        share: &Share,
        members: &[u64; MAX_MEMBERS],
    ) -> Result<(), Failure> {
        let index = usize::from(index.get());
        let entry = Entry {
            key: *key,
            words: *members,
            generation: share.generation,
        };

        let mut inner = self.inner.lock();
        inner.commands += 1;
        inner.check_words(command, members);
        if index == 0 {
            inner.blame("index 0 is reserved");
        }
        match inner.busy.get_mut(index) {
            Some(busy) if !*busy => *busy = true,
            _ => inner.blame("two commands on one group at a time"),
        }
        if inner.temper.slow {
            drop(inner);
            fsleep(Delta::from_micros(20));
            inner = self.inner.lock();
        }
        let outcome = inner.outcome(command, index, entry);
        if let Some(busy) = inner.busy.get_mut(index) {
            *busy = false;
        }
        if let Err(failure) = outcome {
            inner.note(failure.into());
        }
        outcome
    }
}

/// The number of a queue pair. When the last clone goes the number is free for another one.
pub(super) struct Held {
    qp: u32,
    free: Arc<Atomic<bool>>,
    device: Arc<Device>,
}

impl Held {
    /// Takes the number `qp`; `free` says when it is free again.
    pub(super) fn new(
        qp: u32,
        free: &Arc<Atomic<bool>>,
        device: &Arc<Device>,
    ) -> Result<Arc<Self>> {
        let held = Self {
            qp,
            free: free.clone(),
            device: device.clone(),
        };
        held.free.store(false, Relaxed);
        Ok(Arc::new(held, GFP_KERNEL)?)
    }
}

impl Number for Arc<Held> {
    fn get(&self) -> u32 {
        self.qp
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Nothing is promised of a dead device: its reset comes before anything is used again.
        if self.device.serves(self.qp) && !self.device.is_dead() {
            self.device
                .blame("the number of a queue pair is free while packets still go to it");
        }
        self.free.store(true, Relaxed);
    }
}

/// The `n`-th of the groups that tests use: both families, with and without VLAN, and neighbours that
/// differ in one of the three alone.
pub(super) fn key(n: u32) -> GroupKey {
    // CAST: Eight bits are cut out on purpose.
    let (a, b) = ((n / 4) as u8, (n / 1024) as u8);
    let v4 = IpAddr::V4(Ipv4Addr::new(239, 1, b, a));
    let v6 = IpAddr::V6(Ipv6Addr::new(
        0xff0e,
        0,
        0,
        0,
        0,
        0,
        u16::from(b),
        u16::from(a),
    ));

    match n % 4 {
        0 => GroupKey { ip: v4, vlan: None },
        1 => GroupKey {
            ip: v4,
            vlan: Some(7),
        },
        2 => GroupKey { ip: v6, vlan: None },
        _ => GroupKey {
            ip: v6,
            vlan: Some(4094),
        },
    }
}
