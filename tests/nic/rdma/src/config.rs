// SPDX-License-Identifier: GPL-2.0
//! What the device offers: how many objects of each kind, and how much host memory each takes.
//!
//! The numbers are one table ([`DEFAULT`]), those of a card in its profile for 4096 queue pairs, with all of
//! the 4095 group indices that a command can name. With more queue pairs than groups the stock
//! driver hands out group indices that no command can name, and attaches fail for reasons of its
//! own. The stock driver takes memory for every object that is offered: some 20 MiB here. The model
//! keeps its state outside the host memory it asks for, so the object sizes are free.

use std::collections::BTreeMap;

/// The kinds of objects kept in host memory (HMC objects), in the order in which they are laid out.
/// PBLE is last so that its end is the end of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Queue pairs.
    Qp,
    /// Completion queues.
    Cq,
    /// Shared receive queues: none.
    Srq,
    /// Hash table entries.
    Hte,
    /// Destination MAC addresses.
    Arp,
    /// The port bit map of iWARP.
    Apbvt,
    /// Memory regions.
    Mr,
    /// Transmit FIFO.
    Xf,
    /// Its free list.
    Xffl,
    /// Inbound read queue.
    Q1,
    /// Its free list.
    Q1fl,
    /// Timers.
    Timer,
    /// Multicast groups.
    Fsimc,
    /// Address handles.
    Fsiav,
    /// Read request FIFO.
    Rrf,
    /// Its free list.
    Rrffl,
    /// Headers.
    Hdr,
    /// Message descriptors.
    Md,
    /// Page addresses (physical buffer list entries).
    Pble,
}

/// How many objects of a kind there can be and the binary logarithm of the bytes each takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectLimit {
    /// Most objects.
    pub max: u32,
    /// log2 of the size in bytes.
    pub log2: u8,
}

/// Kind, maximum, log2 of the size. The free lists and page addresses have fixed sizes (4 and 8
/// bytes), and there is one APBVT of 8 KiB.
const DEFAULT: [(Kind, u32, u8); 19] = [
    (Kind::Qp, 4096, 9),
    (Kind::Cq, 8192, 6),
    (Kind::Srq, 0, 0),
    (Kind::Hte, 16384, 5),
    (Kind::Arp, 4096, 6),
    (Kind::Apbvt, 1, 13),
    (Kind::Mr, 65536, 6),
    (Kind::Xf, 262_144, 2),
    (Kind::Xffl, 16384, 2),
    (Kind::Q1, 1_048_576, 2),
    (Kind::Q1fl, 65536, 2),
    (Kind::Timer, 1024, 5),
    (Kind::Fsimc, 4096, 6),
    (Kind::Fsiav, 131_072, 5),
    (Kind::Rrf, 131_072, 2),
    (Kind::Rrffl, 8192, 2),
    (Kind::Hdr, 4096, 5),
    (Kind::Md, 4096, 5),
    (Kind::Pble, 1_048_576, 3),
];

/// What one device offers.
#[derive(Clone, Debug)]
pub struct Config {
    objects: BTreeMap<Kind, ObjectLimit>,
    /// Most segment descriptors of 2 MiB each.
    pub max_sds: u32,
    /// Most completion event queues.
    pub max_ceqs: u32,
    /// Hash table entries per queue pair or group.
    pub hash_multiplier: u8,
    /// Timer objects per 512 queue pairs.
    pub timer_buckets: u16,
    /// Objects per entry of the XF, Q1 and RRF free lists.
    pub block: u32,
    /// Firmware version, major and minor.
    pub firmware: (u16, u16),
}

impl Default for Config {
    fn default() -> Self {
        Self {
            objects: DEFAULT
                .into_iter()
                .map(|(kind, max, log2)| (kind, ObjectLimit { max, log2 }))
                .collect(),
            max_sds: 512,
            max_ceqs: 64,
            hash_multiplier: 1,
            timer_buckets: 64,
            block: 16,
            firmware: (1, 70),
        }
    }
}

impl Config {
    /// The limit of one kind.
    pub fn of(&self, kind: Kind) -> ObjectLimit {
        self.objects
            .get(&kind)
            .copied()
            .unwrap_or(ObjectLimit { max: 0, log2: 0 })
    }

    /// The same device with another maximum of one kind.
    #[must_use]
    pub fn with(mut self, kind: Kind, max: u32) -> Self {
        self.objects
            .entry(kind)
            .or_insert(ObjectLimit { max: 0, log2: 0 })
            .max = max;
        self
    }
}
