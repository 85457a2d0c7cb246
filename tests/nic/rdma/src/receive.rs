// SPDX-License-Identifier: GPL-2.0
//! Receiving datagrams: which queue pairs a packet is for, and what each does with its copy.

use crate::aeq::{code, Source};
use crate::bits::{len64, low32, mac_to};
use crate::counts::Drop;
use crate::cq::CqEntry;
use crate::cqe;
use crate::host::MemError;
use crate::model::Model;
use crate::packet::{icrc_valid, Datagram, Envelope, IpHeader, NoDatagram, MULTICAST_QP};
use crate::qp::{Qp, QpType};
use crate::rq::rq_index;
use crate::stag::{Refusal, Rights};
use crate::wqe::{receive_fragments, Quantum};

/// Bytes in front of the payload: the IP header, at its end.
const HEADER_ROOM: usize = 40;
/// Membership bit of a P_Key.
const PKEY_FULL: u16 = 0x8000;

impl Model {
    /// Whether a frame belongs to the RDMA half.
    pub(crate) fn wants(&self, frame: &[u8]) -> bool {
        if self.filters.is_empty() || self.cqp.is_none() {
            return false;
        }
        Envelope::parse(frame).is_some_and(|e| {
            if e.destination.is_multicast() {
                self.groups.matches(e.destination, e.vlan())
            } else {
                self.host.wire.is_own(e.destination_mac)
            }
        })
    }

    /// A frame came from the port.
    pub(crate) fn receive(&mut self, frame: &[u8]) {
        match Envelope::parse(frame) {
            Some(envelope) => self.accept(&envelope),
            None => self.counts.drop(Drop::Malformed),
        }
    }

    /// Hands a packet to the queue pairs it is for.
    pub(crate) fn accept(&mut self, envelope: &Envelope<'_>) {
        self.stats.received(envelope.destination, envelope.octets);
        let datagram = match Datagram::parse(envelope) {
            Ok(d) => d,
            Err(NoDatagram::Malformed) => return self.discard(envelope, Drop::Malformed),
            Err(NoDatagram::Opcode(opcode)) => {
                self.log(format_args!(
                    "packet with transport operation {opcode:#04x} dropped"
                ));
                return self.discard(envelope, Drop::Opcode);
            }
        };
        let icrc = icrc_valid(envelope);
        if !envelope.destination.is_multicast() {
            return self.deliver(datagram.destination_qp, envelope, &datagram, icrc);
        }
        if datagram.destination_qp != MULTICAST_QP {
            return self.discard(envelope, Drop::Malformed);
        }
        let members = self.groups.members(envelope.destination, envelope.vlan());
        if members.is_empty() {
            return self.discard(envelope, Drop::NoGroup);
        }
        for qp in members {
            self.deliver(qp, envelope, &datagram, icrc);
        }
    }

    fn discard(&mut self, envelope: &Envelope<'_>, why: Drop) {
        self.counts.drop(why);
        self.stats.discarded(envelope.destination);
    }

    /// One queue pair's copy.
    fn deliver(&mut self, id: u32, envelope: &Envelope<'_>, datagram: &Datagram<'_>, icrc: bool) {
        let Some(qp) = self.qps.get(&id) else {
            return self.discard(envelope, Drop::NoQp);
        };
        if let Some(why) = rejects(qp, datagram, icrc) {
            return self.discard(envelope, why);
        }
        let quanta = match self.rq_peek(qp) {
            Ok(Some(quanta)) => quanta,
            Ok(None) => return self.discard(envelope, Drop::NoReceive),
            Err(e) => {
                let index = rq_index(qp);
                self.violate(format_args!("QP {id}: receive queue: {e}"));
                self.qp_error(id, code::LOCAL_QP_CATASTROPHIC, Source::Rq, index);
                return self.discard(envelope, Drop::NoReceive);
            }
        };
        let index = rq_index(qp);
        match self.place(qp, &quanta, envelope, datagram) {
            Ok(()) => self.rq_complete(id, index, envelope, datagram),
            Err(refusal) => {
                let code = self.refused(id, &refusal);
                self.qp_error(id, code, Source::Rq, index);
                self.discard(envelope, Drop::BadReceive);
            }
        }
    }

    /// Writes header and payload into the buffers of a receive WQE.
    fn place(
        &self,
        qp: &Qp,
        quanta: &[Quantum],
        envelope: &Envelope<'_>,
        datagram: &Datagram<'_>,
    ) -> Result<(), Refusal> {
        let list = receive_fragments(quanta)?;
        let room: u64 = list.iter().map(|f| u64::from(f.len)).sum();
        let mut data = vec![0; HEADER_ROOM];
        match &envelope.header {
            IpHeader::V4(h) => data.splice(HEADER_ROOM - h.len().., h.iter().copied()),
            IpHeader::V6(h) => data.splice(.., h.iter().copied()),
        };
        data.extend(datagram.payload);
        let wanted = len64(data.len());
        if room < wanted {
            return Err(code::MESSAGE_TOO_LONG_FOR_BUFFER.into());
        }
        let pieces = self.pieces(&qp.context, &list, wanted, Rights::LOCAL_WRITE)?;
        let mut rest = data.as_slice();
        for piece in pieces {
            let (part, tail) = rest.split_at_checked(piece.len).unwrap_or((rest, &[]));
            self.host
                .dma
                .write(piece.addr, part)
                .map_err(MemError::from)?;
            rest = tail;
        }
        Ok(())
    }

    fn rq_complete(
        &mut self,
        id: u32,
        index: u32,
        envelope: &Envelope<'_>,
        datagram: &Datagram<'_>,
    ) {
        let Some(qp) = self.qps.get_mut(&id) else {
            return;
        };
        qp.rq.advance(1);
        qp.received += 1;
        self.stats.sends_rx = self.stats.sends_rx.wrapping_add(1);
        let length = low32(len64(HEADER_ROOM + datagram.payload.len()));
        let ipv4 = matches!(envelope.header, IpHeader::V4(_));
        let flags = cqe::WQE_INDEX.put(index.into())
            | cqe::IPV4.flag(ipv4)
            | cqe::SOLICITED.flag(datagram.solicited)
            | cqe::OPCODE.put(cqe::OP_RECEIVE);
        let body = [
            cqe::PAYLOAD_LEN.put(length.into()),
            qp.context.completion_context,
            cqe::SOURCE_QP.put(datagram.source_qp.into()) | cqe::QP.put(id.into()),
            flags,
        ];
        let extension = [
            cqe::IMMEDIATE.put(datagram.immediate.unwrap_or(0).into()),
            0,
            cqe::SOURCE_MAC.put(mac_to(envelope.source_mac))
                | cqe::VLAN_TAG.put(envelope.tag.unwrap_or(0).into()),
            cqe::MAC_VALID.flag(true)
                | cqe::VLAN_VALID.flag(envelope.tag.is_some())
                | cqe::IMMEDIATE_VALID.flag(datagram.immediate.is_some()),
        ];
        let cq = qp.context.recv_cq;
        self.cq_write(
            cq,
            CqEntry {
                body,
                extension: Some(extension),
                solicited: datagram.solicited,
            },
        );
    }
}

/// Why a queue pair does not take a packet.
fn rejects(qp: &Qp, datagram: &Datagram<'_>, icrc: bool) -> Option<Drop> {
    if qp.kind != QpType::Ud {
        return Some(Drop::NoQp);
    }
    if !qp.may_receive() {
        return Some(Drop::State);
    }
    if qp.context.check_icrc && !icrc {
        return Some(Drop::Icrc);
    }
    if !pkeys_match(qp.context.pkey, datagram.pkey) {
        return Some(Drop::Pkey);
    }
    (qp.context.qkey != datagram.qkey).then_some(Drop::Qkey)
}

/// Same partition, and at least one side a full member.
fn pkeys_match(a: u16, b: u16) -> bool {
    (a ^ b) & !PKEY_FULL == 0 && (a | b) & PKEY_FULL != 0
}

#[cfg(test)]
mod tests {
    use super::pkeys_match;

    #[test]
    fn limited_members_do_not_meet() {
        assert!(pkeys_match(0xFFFF, 0xFFFF));
        assert!(pkeys_match(0xFFFF, 0x7FFF));
        assert!(!pkeys_match(0x7FFF, 0x7FFF));
        assert!(!pkeys_match(0xFFFF, 0x8001));
    }
}
