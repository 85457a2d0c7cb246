// SPDX-License-Identifier: GPL-2.0
//! MANAGE_ARP: the table of destination MAC addresses.

use super::{Done, OpResult, Wqe};
use crate::bits::{bit, bits, low16, mac_from, Field};
use crate::config::Kind;
use crate::cqp::error::CqpError;
use crate::model::Model;

/// Word 2.
const MAC: Field = bits(47, 0);
/// Word 3.
const INDEX: Field = bits(11, 0);
const VALID: Field = bit(42);

impl Model {
    pub(super) fn op_manage_arp(&mut self, wqe: &Wqe) -> OpResult {
        let index = INDEX.get32(wqe[3]);
        self.in_range(Kind::Arp, "ARP entry", index)?;
        if index == 0 {
            self.violate(format_args!("the reserved ARP entry 0 is written"));
        }
        let key = low16(index.into());
        if VALID.is_set(wqe[3]) {
            self.arps.insert(key, mac_from(MAC.get(wqe[2])));
        } else if self.arps.remove(&key).is_none() {
            return Err(CqpError::unused("ARP entry", index));
        }
        Ok(Done::default())
    }
}
