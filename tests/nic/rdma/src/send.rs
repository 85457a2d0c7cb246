// SPDX-License-Identifier: GPL-2.0
//! Sending datagrams: address handle, payload, and the ways a packet takes.

use crate::aeq::code;
use crate::bits::len64;
use crate::host::MemError;
use crate::model::Model;
use crate::packet::{build, Datagram, Envelope, Path};
use crate::qp::QpContext;
use crate::stag::{Access, Piece, Refusal, Rights};
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
        let payload = match self.gather(&qp.context, &send.payload) {
            Ok(payload) => payload,
            Err(refusal) => return Err(self.refused(id, &refusal)),
        };
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
        let local = loopback || self.host.wire.is_own(destination_mac);
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

    fn gather(&self, context: &QpContext, payload: &Payload) -> Result<Vec<u8>, Refusal> {
        let limit = u64::from(context.mtu.min(MAX_PAYLOAD));
        let list = match payload {
            Payload::Inline(data) if len64(data.len()) > limit => {
                return Err(code::DATAGRAM_TOO_LONG.into())
            }
            Payload::Inline(data) => return Ok(data.clone()),
            Payload::Fragments(list) => list,
        };
        let total: u64 = list.iter().map(|f| u64::from(f.len)).sum();
        if total > limit {
            return Err(code::DATAGRAM_TOO_LONG.into());
        }
        let mut data = Vec::new();
        for piece in self.pieces(context, list, total, Rights::LOCAL_READ)? {
            let mut part = vec![0; piece.len];
            self.host
                .dma
                .read(piece.addr, &mut part)
                .map_err(MemError::from)?;
            data.extend(part);
        }
        Ok(data)
    }

    /// The host memory of the first `wanted` bytes of a fragment list, checked.
    pub(crate) fn pieces(
        &self,
        context: &QpContext,
        list: &[Fragment],
        wanted: u64,
        rights: Rights,
    ) -> Result<Vec<Piece>, Refusal> {
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
                .translate(&self.hmc, &*self.host.dma, access, part, &mut pieces)?;
            left -= u64::from(len);
        }
        Ok(pieces)
    }

    /// Logs a refused access and returns its event code. That memory which the driver registered is
    /// not there breaks a rule; all else a program can bring about by itself.
    pub(crate) fn refused(&mut self, id: u32, refusal: &Refusal) -> u16 {
        match &refusal.memory {
            Some(e) => self.violate(format_args!("QP {id}: registered memory: {e}")),
            None => self.log(format_args!("QP {id}: {refusal}")),
        }
        refusal.code
    }
}
