// SPDX-License-Identifier: GPL-2.0
//! CREATE_ADDR_HANDLE and DESTROY_ADDR_HANDLE.

use super::{ip_words, Done, OpResult, Wqe};
use crate::ah::Ah;
use crate::bits::{bit, bits, mac_from, Field};
use crate::config::Kind;
use crate::cqp::error::CqpError;
use crate::ip::Ip;
use crate::model::Model;

/// Word 0.
const SOURCE_MAC: Field = bits(63, 16);
/// Word 1.
const VLAN_TAG: Field = bits(15, 0);
const TRAFFIC_CLASS: Field = bits(39, 32);
const PD_LOW: Field = bits(63, 48);
/// Word 2.
const FLOW_LABEL: Field = bits(19, 0);
const PD_HIGH: Field = bits(27, 20);
const HOP_LIMIT: Field = bits(39, 32);
const ARP_INDEX: Field = bits(63, 48);
/// Word 3.
const INDEX: Field = bits(23, 0);
const IPV4: Field = bit(59);
const INSERT_VLAN: Field = bit(60);
const LOOPBACK: Field = bit(62);

impl Model {
    pub(super) fn op_create_ah(&mut self, wqe: &Wqe) -> OpResult {
        let index = INDEX.get32(wqe[3]);
        self.in_range(Kind::Fsiav, "AH", index)?;
        if index == 0 {
            return Err(CqpError::parameter("AH 0 is reserved"));
        }
        if self.ahs.contains_key(&index) {
            return Err(CqpError::in_use("AH", index));
        }
        let ipv4 = IPV4.is_set(wqe[3]);
        let ah = Ah {
            pd: PD_HIGH.get32(wqe[2]) << 16 | PD_LOW.get32(wqe[1]),
            source_mac: mac_from(SOURCE_MAC.get(wqe[0])),
            arp: ARP_INDEX.get16(wqe[2]),
            source: Ip::from_words(ip_words(wqe[6], wqe[7]), ipv4),
            destination: Ip::from_words(ip_words(wqe[4], wqe[5]), ipv4),
            traffic_class: crate::bits::low8(TRAFFIC_CLASS.get(wqe[1])),
            hop_limit: crate::bits::low8(HOP_LIMIT.get(wqe[2])),
            flow_label: FLOW_LABEL.get32(wqe[2]),
            vlan: INSERT_VLAN.is_set(wqe[3]).then(|| VLAN_TAG.get16(wqe[1])),
            loopback: LOOPBACK.is_set(wqe[3]),
        };
        self.ahs.insert(index, ah);
        Ok(Done::default())
    }

    pub(super) fn op_destroy_ah(&mut self, wqe: &Wqe) -> OpResult {
        let index = INDEX.get32(wqe[3]);
        match self.ahs.remove(&index) {
            Some(_) => Ok(Done::default()),
            None => Err(CqpError::unused("AH", index)),
        }
    }
}
