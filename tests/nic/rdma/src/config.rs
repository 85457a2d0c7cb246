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

/// Queue pairs of the default table.
const DEFAULT_QPS: u64 = 4096;

/// Kinds of which a device for more queue pairs has more.
const PER_QP: [Kind; 12] = [
    Kind::Qp,
    Kind::Cq,
    Kind::Hte,
    Kind::Mr,
    Kind::Xf,
    Kind::Xffl,
    Kind::Q1,
    Kind::Q1fl,
    Kind::Timer,
    Kind::Rrf,
    Kind::Rrffl,
    Kind::Hdr,
];

/// Kinds that a profile may set: name, kind, least and most. The bounds are those of the ids in
/// control operations and work requests, and of what drivers reserve for themselves.
const KINDS: [(&str, Kind, u32, u32); 7] = [
    ("qps", Kind::Qp, 4, 262_144),
    ("cqs", Kind::Cq, 4, 524_288),
    ("mrs", Kind::Mr, 2, 1 << 24),
    ("ahs", Kind::Fsiav, 2, 131_072),
    ("arps", Kind::Arp, 2, 4096),
    ("mcast", Kind::Fsimc, 0, 8192),
    ("pbles", Kind::Pble, 1024, 1 << 28),
];
/// Numbers of a profile that are no kinds.
const OTHERS: [(&str, u32, u32); 2] = [("sds", 1, 8191), ("ceqs", 1, 1023)];

/// One `name=value` of a profile.
struct Setting {
    name: &'static str,
    value: u32,
}

impl Setting {
    fn parse(text: &str) -> Result<Self, String> {
        let bounds = || {
            let kinds = KINDS
                .iter()
                .map(|(name, _, least, most)| (*name, *least, *most));
            kinds.chain(OTHERS)
        };
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| format!("{text}: not NAME=NUMBER"))?;
        let (name, least, most) = bounds().find(|(known, ..)| *known == name).ok_or_else(|| {
            let known: Vec<&str> = bounds().map(|(known, ..)| known).collect();
            format!("{name}: not one of {}", known.join(", "))
        })?;
        match value.parse() {
            Ok(value) if (least..=most).contains(&value) => Ok(Self { name, value }),
            _ => Err(format!("{name}={value}: a number from {least} to {most}")),
        }
    }
}

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

    /// A device whose numbers are changed by a text like `qps=65536,mcast=4096`. What follows from
    /// the number of queue pairs grows with it; the sizes of objects shrink instead, so that host
    /// memory for 65536 queue pairs is about what 4096 take.
    ///
    /// # Errors
    ///
    /// The part that is not understood or out of the bounds of the device's formats.
    pub fn profile(text: &str) -> Result<Self, String> {
        let parts = text
            .split(',')
            .filter(|part| !part.is_empty())
            .map(Setting::parse)
            .collect::<Result<Vec<_>, _>>()?;
        let mut config = Self::default();
        // What is named for itself binds, wherever it stands.
        for setting in parts.iter().filter(|s| s.name == "qps") {
            config = config.with_qps(setting.value);
        }
        for setting in &parts {
            config = match setting.name {
                "sds" => Self {
                    max_sds: setting.value,
                    ..config
                },
                "ceqs" => Self {
                    max_ceqs: setting.value,
                    ..config
                },
                name => match KINDS.iter().find(|(known, ..)| *known == name) {
                    Some((_, kind, ..)) => config.with(*kind, setting.value),
                    None => config,
                },
            };
        }
        Ok(config)
    }

    fn with_qps(mut self, qps: u32) -> Self {
        let scale = u64::from(qps)
            .next_power_of_two()
            .div_ceil(DEFAULT_QPS)
            .max(1);
        // At most 2^18 / 2^12, so both fit.
        let shift = u8::try_from(scale.ilog2()).unwrap_or(0);
        let factor = u32::try_from(scale).unwrap_or(1);
        for (kind, limit) in &mut self.objects {
            if PER_QP.contains(kind) {
                limit.max = limit.max.saturating_mul(factor);
                limit.log2 = limit.log2.saturating_sub(shift);
            }
        }
        self.with(Kind::Qp, qps)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn max(config: &Config, kind: Kind) -> u32 {
        config.of(kind).max
    }

    #[test]
    fn a_profile_changes_what_it_names() {
        let config = Config::profile("mcast=100,ceqs=2").unwrap_or_default();
        assert_eq!(max(&config, Kind::Fsimc), 100);
        assert_eq!(config.max_ceqs, 2);
        assert_eq!(config.of(Kind::Qp), Config::default().of(Kind::Qp));
        assert!(Config::profile("").is_ok());
    }

    #[test]
    fn more_queue_pairs_take_no_more_memory() {
        let bytes = |c: &Config| -> u64 {
            let kinds = PER_QP.iter().filter(|k| **k != Kind::Pble);
            kinds
                .map(|kind| u64::from(c.of(*kind).max) << c.of(*kind).log2)
                .sum()
        };
        let few = Config::default();
        let many = Config::profile("mrs=70000,qps=65536").unwrap_or_default();
        assert_eq!(max(&many, Kind::Qp), 65536);
        assert_eq!(max(&many, Kind::Q1), 1 << 24, "254 entries a queue pair");
        assert_eq!(max(&many, Kind::Mr), 70000, "the order does not matter");
        assert!(bytes(&many) < 3 * bytes(&few));
        assert_eq!(
            max(&Config::profile("qps=64").unwrap_or_default(), Kind::Qp),
            64
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "qps",
            "qps=",
            "qps=3",
            "qps=300000",
            "groups=5",
            "arps=1",
            "sds=0",
            "mcast=-1",
        ] {
            assert!(Config::profile(text).is_err(), "{text}");
        }
    }
}
