// SPDX-License-Identifier: GPL-2.0
//! UPDATE_PE_SDS: segment descriptors are set and cleared.

use super::{Done, OpResult, Wqe};
use crate::bits::{bit, bits, size, words, Field};
use crate::config::Kind;
use crate::cqp::error::CqpError;
use crate::hmc::Segment;
use crate::model::Model;

/// Word 2: address of further entries.
const OVERFLOW_ADDR: Field = bits(63, 7);
/// Word 3: number of further entries.
const OVERFLOW_COUNT: Field = bits(3, 0);
const MAX_OVERFLOW: u64 = 8;
/// Words 4 and 6: the entry there is meant.
const ENTRY_VALID: Field = bit(63);

/// The command word of an entry.
const INDEX: Field = bits(14, 0);
const WRITE: Field = bit(31);
/// The data word of an entry.
const VALID: Field = bit(0);
const DIRECT: Field = bit(1);
const ADDR: Field = bits(63, 12);

impl Model {
    pub(super) fn op_update_sds(&mut self, wqe: &Wqe) -> OpResult {
        self.own_function(wqe[2])?;
        let mut entries = vec![(wqe[0], wqe[1])];
        for (cmd, data) in [(wqe[4], wqe[5]), (wqe[6], wqe[7])] {
            if ENTRY_VALID.is_set(cmd) {
                entries.push((cmd, data));
            }
        }
        let more = OVERFLOW_COUNT.get(wqe[3]);
        if more > MAX_OVERFLOW {
            return Err(CqpError::parameter(format_args!("{more} further entries")));
        }
        if more > 0 {
            let mut buf = vec![0; size(OVERFLOW_COUNT.get32(wqe[3])) * 16];
            self.host
                .dma
                .read(OVERFLOW_ADDR.put(OVERFLOW_ADDR.get(wqe[2])), &mut buf)?;
            entries.extend(buf.chunks(16).map(|e| {
                let [cmd, data] = words::<2>(e);
                (cmd, data)
            }));
        }
        for &(cmd, _) in &entries {
            let index = INDEX.get32(cmd);
            if index >= self.config.max_sds {
                return Err(CqpError::range("segment", index, self.config.max_sds));
            }
            if !WRITE.is_set(cmd) {
                return Err(CqpError::parameter(format_args!("command {cmd:#x}")));
            }
        }
        for (cmd, data) in entries {
            self.set_segment(INDEX.get32(cmd), data);
        }
        Ok(Done::default())
    }

    fn set_segment(&mut self, index: u32, data: u64) {
        let addr = ADDR.put(ADDR.get(data));
        let segment = match (VALID.is_set(data), DIRECT.is_set(data)) {
            (true, true) => Some(Segment::Direct(addr)),
            (true, false) => Some(Segment::Paged(addr)),
            (false, _) => None,
        };
        let old = self.hmc.set_segment(index, segment);
        match (old, segment) {
            (None, None) => self.violate(format_args!("segment {index} cleared but not valid")),
            (Some(old), Some(new)) if old != new => {
                self.violate(format_args!("segment {index} replaced while valid"));
            }
            (Some(_), None) => self.check_backing(index),
            _ => {}
        }
    }

    /// Records a violation for every live object that just lost its memory. MAC table entries and
    /// address handles are left out: drivers leave those to the end of the control queue.
    fn check_backing(&mut self, index: u32) {
        let lost: Vec<String> = [
            (Kind::Qp, "QP", self.qps.keys().copied().collect::<Vec<_>>()),
            (Kind::Cq, "CQ", self.cqs.keys().copied().collect()),
            (Kind::Mr, "MR", self.stags.indices().collect()),
            (Kind::Fsimc, "group", self.groups.indices().collect()),
        ]
        .into_iter()
        .flat_map(|(kind, name, ids)| {
            ids.into_iter()
                .filter(|&id| self.hmc.lies_in(kind, id, index))
                .map(|id| format!("segment {index} cleared under {name} {id}"))
                .collect::<Vec<_>>()
        })
        .collect();
        for text in lost {
            self.violate(format_args!("{text}"));
        }
    }
}
