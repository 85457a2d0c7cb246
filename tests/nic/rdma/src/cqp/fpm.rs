// SPDX-License-Identifier: GPL-2.0
//! QUERY_FPM_VAL, COMMIT_FPM_VAL and SHMC_PAGES_ALLOCATED: what the device offers, what the driver
//! takes, and where the objects then lie.

use super::{Done, OpResult, Wqe};
use crate::bits::{bits, bytes, low32, size, words, Field};
use crate::config::Kind;
use crate::cqp::error::CqpError;
use crate::hmc::{Extent, BASE_UNIT};
use crate::model::Model;
use std::collections::BTreeMap;

/// Words of the answer to a query.
const QUERY_WORDS: usize = 25;
/// Words of the commit buffer.
const COMMIT_WORDS: usize = 26;

/// Word 0 of the query: number of segments.
const MAX_SDS: Field = bits(44, 32);
/// Word 15: limits that are no objects.
const MAX_CEQS: Field = bits(9, 0);
const HT_MULTIPLIER: Field = bits(19, 16);
const TIMER_BUCKETS: Field = bits(47, 32);
/// Every other word: maximum and, by kind, log2 of the size or objects per free list entry.
const MAX: Field = bits(31, 0);
const UPPER: Field = bits(63, 32);

/// Word 3 of the commit WQE: bytes of the buffer.
const BUFFER_LEN: Field = bits(31, 0);
/// A word of the commit answer.
const COUNT: Field = bits(31, 0);
const BASE: Field = bits(63, 32);

/// What the upper half of a query word says.
enum Upper {
    Log2,
    Block,
    Nothing,
}

/// Word of the query answer, kind, meaning of the upper half.
const QUERY: [(usize, Kind, Upper); 18] = [
    (1, Kind::Qp, Upper::Log2),
    (2, Kind::Cq, Upper::Log2),
    (3, Kind::Srq, Upper::Log2),
    (4, Kind::Hte, Upper::Log2),
    (5, Kind::Arp, Upper::Log2),
    (6, Kind::Mr, Upper::Log2),
    (7, Kind::Xf, Upper::Log2),
    (8, Kind::Xffl, Upper::Block),
    (9, Kind::Q1, Upper::Log2),
    (10, Kind::Q1fl, Upper::Block),
    (11, Kind::Timer, Upper::Log2),
    (12, Kind::Fsimc, Upper::Log2),
    (13, Kind::Fsiav, Upper::Log2),
    (14, Kind::Pble, Upper::Nothing),
    (16, Kind::Rrf, Upper::Log2),
    (17, Kind::Rrffl, Upper::Block),
    (18, Kind::Hdr, Upper::Log2),
    (19, Kind::Md, Upper::Log2),
];

/// Word of the commit buffer and kind.
const COMMIT: [(usize, Kind); 19] = [
    (0, Kind::Qp),
    (1, Kind::Cq),
    (2, Kind::Srq),
    (3, Kind::Hte),
    (4, Kind::Arp),
    (5, Kind::Apbvt),
    (6, Kind::Mr),
    (7, Kind::Xf),
    (8, Kind::Xffl),
    (9, Kind::Q1),
    (10, Kind::Q1fl),
    (11, Kind::Timer),
    (12, Kind::Fsimc),
    (13, Kind::Fsiav),
    (14, Kind::Pble),
    (16, Kind::Rrf),
    (17, Kind::Rrffl),
    (18, Kind::Hdr),
    (19, Kind::Md),
];

/// Kinds whose maximum binds the driver; the others follow from these by its own formulas.
const BINDING: [Kind; 8] = [
    Kind::Qp,
    Kind::Cq,
    Kind::Arp,
    Kind::Mr,
    Kind::Fsimc,
    Kind::Fsiav,
    Kind::Pble,
    Kind::Md,
];

impl Model {
    pub(super) fn op_query_fpm(&mut self, wqe: &Wqe) -> OpResult {
        self.own_function(wqe[2])?;
        let config = &self.config;
        let mut answer = [0; QUERY_WORDS];
        answer[0] = MAX_SDS.put(config.max_sds.into());
        answer[15] = MAX_CEQS.put(config.max_ceqs.into())
            | HT_MULTIPLIER.put(config.hash_multiplier.into())
            | TIMER_BUCKETS.put(config.timer_buckets.into());
        for (index, kind, upper) in QUERY {
            let limit = config.of(kind);
            let upper = match upper {
                Upper::Log2 => limit.log2.into(),
                Upper::Block => config.block.into(),
                Upper::Nothing => 0,
            };
            if let Some(word) = answer.get_mut(index) {
                *word = MAX.put(limit.max.into()) | UPPER.put(upper);
            }
        }
        self.host.dma.write(wqe[4], &bytes(&answer))?;
        Ok(Done::default())
    }

    pub(super) fn op_commit_fpm(&mut self, wqe: &Wqe) -> OpResult {
        self.own_function(wqe[2])?;
        let len = BUFFER_LEN.get32(wqe[3]);
        if size(len) < COMMIT_WORDS * 8 {
            return Err(CqpError::parameter(format_args!("buffer of {len} bytes")));
        }
        if self.hmc.pages_allocated {
            self.violate(format_args!("layout committed twice"));
        }
        let mut buf = [0; COMMIT_WORDS * 8];
        self.host.dma.read(wqe[4], &mut buf)?;
        let mut asked: [u64; COMMIT_WORDS] = words(&buf);
        let mut counts = BTreeMap::new();
        for (index, kind) in COMMIT {
            let word = asked.get(index).copied().unwrap_or(0);
            let count = match kind {
                Kind::Apbvt => 1,
                _ => COUNT.get32(word),
            };
            let max = self.config.of(kind).max;
            if BINDING.contains(&kind) && count > max {
                return Err(CqpError::parameter(format_args!(
                    "{kind:?} {count} of {max}"
                )));
            }
            counts.insert(kind, count);
        }
        let extents = self
            .hmc
            .commit(&self.config, &counts)
            .map_err(|needed| CqpError::parameter(format_args!("{needed} segments needed")))?;
        for (index, kind) in COMMIT {
            if let (Some(word), Some(extent)) = (asked.get_mut(index), extents.get(&kind)) {
                *word = answer(*extent);
            }
        }
        self.host.dma.write(wqe[4], &bytes(&asked))?;
        Ok(Done::default())
    }

    pub(super) fn op_pages_allocated(&mut self, wqe: &Wqe) -> OpResult {
        self.own_function(wqe[2])?;
        if self.hmc.count(Kind::Qp) == 0 {
            return Err(CqpError::state("no layout committed"));
        }
        self.hmc.pages_allocated = true;
        Ok(Done::default())
    }
}

fn answer(extent: Extent) -> u64 {
    COUNT.put(extent.count.into()) | BASE.put(u64::from(low32(extent.base / BASE_UNIT)))
}
