// SPDX-License-Identifier: GPL-2.0
//! Sending datagrams: address handle, payload, and the ways a packet takes.

use crate::aeq::code;
use crate::bits::len64;
use crate::model::Model;
use crate::packet::{build, Datagram, Envelope, Path};
use crate::qp::QpContext;
use crate::stag::{Access, Piece, Rights};
use crate::wqe::{Fragment, Payload, Send};

/// Largest payload the device ever sends in one packet.
const MAX_PAYLOAD: u32 = 4096;
/// First port of the range RoCEv2 takes its source ports from.
const FIRST_SOURCE_PORT: u16 = 0xC000;
/// A Q_Key with this bit stands for the queue pair's own.
const OWN_QKEY: u32 = 1 << 31;

impl Model {
    /// Sends one datagram.
    ///
    /// # Errors
    ///
    /// The event code of what is wrong with the WQE.
    pub(crate) fn send(&mut self, id: u32, send: &Send) -> Result<(), u16> {
        let Some(qp) = self.qps.get(&id) else {
            return Ok(());
        };
        let ah = self.ahs.get(&send.ah).ok_or(code::INVALID_AH)?;
        if ah.pd != qp.context.pd {
            return Err(code::DATAGRAM_BAD_PD);
        }
        let payload = self.gather(id, &qp.context, &send.payload)?;
        let (destination, loopback) = (ah.destination, ah.loopback);
        let Some(&destination_mac) = self.arps.get(&ah.arp) else {
            let arp = ah.arp;
            self.stats.unroutable(destination);
            self.log(format_args!(
                "QP {id}: ARP entry {arp} is not valid, packet dropped"
            ));
            return Ok(());
        };
        let path = Path {
            destination_mac,
            source_mac: ah.source_mac,
            tag: ah.vlan,
            source: ah.source,
            destination,
            traffic_class: ah.traffic_class,
            hop_limit: ah.hop_limit,
            flow_label: ah.flow_label,
            source_port: qp.context.source_port.max(FIRST_SOURCE_PORT),
        };
        let datagram = Datagram {
            solicited: send.solicited,
            pkey: qp.context.pkey,
            destination_qp: send.destination_qp,
            psn: qp.psn,
            qkey: if send.qkey & OWN_QKEY != 0 {
                qp.context.qkey
            } else {
                send.qkey
            },
            source_qp: id,
            immediate: send.immediate,
            payload: &payload,
        };
        let frame = build(&path, &datagram).ok_or(code::WQE_INVALID_PARAMETER)?;
        if let Some(qp) = self.qps.get_mut(&id) {
            qp.psn = (qp.psn + 1) & 0xFF_FFFF;
            qp.sent += 1;
        }
        let local = loopback || destination_mac == self.host.wire.mac();
        self.forward(frame, local);
        Ok(())
    }

    /// A packet leaves by the wire, or turns to queue pairs of this function. Multicast goes both
    /// ways.
    fn forward(&mut self, frame: Vec<u8>, local: bool) {
        let Some(envelope) = Envelope::parse(&frame) else {
            return;
        };
        let (destination, vlan) = (envelope.destination, envelope.vlan());
        self.stats.sent(destination, envelope.octets);
        let multicast = destination.is_multicast();
        if local && (!multicast || self.groups.matches(destination, vlan)) {
            self.counts.loopback += 1;
            self.accept(&envelope);
        }
        if multicast || !local {
            self.out.frames.push(frame);
        }
    }

    fn gather(&self, id: u32, context: &QpContext, payload: &Payload) -> Result<Vec<u8>, u16> {
        let limit = u64::from(context.mtu.min(MAX_PAYLOAD));
        match payload {
            Payload::Inline(data) if len64(data.len()) > limit => Err(code::DATAGRAM_TOO_LONG),
            Payload::Inline(data) => Ok(data.clone()),
            Payload::Fragments(list) => {
                let total: u64 = list.iter().map(|f| u64::from(f.len)).sum();
                if total > limit {
                    return Err(code::DATAGRAM_TOO_LONG);
                }
                let pieces = self.pieces(id, context, list, total, Rights::LOCAL_READ)?;
                let mut data = Vec::new();
                for piece in pieces {
                    let mut part = vec![0; piece.len];
                    if let Err(e) = self.host.dma.read(piece.addr, &mut part) {
                        self.log(format_args!("QP {id}: payload: {e}"));
                        return Err(code::LOCAL_QP_CATASTROPHIC);
                    }
                    data.extend(part);
                }
                Ok(data)
            }
        }
    }

    /// The host memory of the first `wanted` bytes of a fragment list, checked.
    pub(crate) fn pieces(
        &self,
        id: u32,
        context: &QpContext,
        list: &[Fragment],
        wanted: u64,
        rights: Rights,
    ) -> Result<Vec<Piece>, u16> {
        let access = Access {
            pd: context.pd,
            privileged: context.privileged,
            rights,
        };
        let mut pieces = Vec::new();
        let mut left = wanted;
        for fragment in list {
            let len = u32::try_from(left).map_or(fragment.len, |l| l.min(fragment.len));
            let part = Fragment { len, ..*fragment };
            self.stags
                .translate(&self.hmc, &*self.host.dma, access, part, &mut pieces)
                .map_err(|refusal| {
                    self.log(format_args!(
                        "QP {id}: STag {:#x}, {:#x}+{:#x}: {refusal}",
                        part.stag, part.to, part.len
                    ));
                    refusal.code
                })?;
            left -= u64::from(len);
        }
        Ok(pieces)
    }
}
