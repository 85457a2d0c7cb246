// SPDX-License-Identifier: GPL-2.0
//! Queue pairs: the context the driver writes, and the states.

use crate::bits::{bit, bits, low8, mac_from, words, Field};
use crate::cqp::error::CqpError;
use crate::ring::{Cursor, RingMemory};

/// Bytes of the context.
pub(crate) const CONTEXT_SIZE: usize = 256;
/// Largest ring in quanta.
const MAX_QUANTA: u32 = 32768;

/// Fields of the context by word.
mod layout {
    use super::{bit, bits, Field};
    /// Word 0.
    pub(super) const RQ_WQE_SHIFT: Field = bits(9, 8);
    pub(super) const PD_HIGH: Field = bits(21, 20);
    /// Word 3.
    pub(super) const RQ_SIZE: Field = bits(11, 8);
    pub(super) const SQ_SIZE: Field = bits(15, 12);
    pub(super) const SOURCE_PORT: Field = bits(47, 32);
    /// Word 6.
    pub(super) const MSS: Field = bits(29, 16);
    /// Word 7.
    pub(super) const PKEY: Field = bits(47, 32);
    pub(super) const PD_LOW: Field = bits(63, 48);
    /// Word 8.
    pub(super) const QKEY: Field = bits(63, 32);
    /// Word 17.
    pub(super) const SEND_CQ: Field = bits(24, 0);
    pub(super) const RECV_CQ: Field = bits(56, 32);
    /// Word 19.
    pub(super) const MAC: Field = bits(63, 16);
    /// Word 20.
    pub(super) const PRIVILEGED: Field = bit(25);
    pub(super) const NO_ICRC: Field = bit(31);
    /// Word 22.
    pub(super) const QUEUE_SET: Field = bits(25, 16);
}

/// Transport of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QpType {
    /// Reliable connection: an object only, its transport is not modelled yet.
    Rc,
    /// Unreliable datagram, the GSI's included.
    Ud,
}

impl QpType {
    pub(crate) fn from_code(code: u64) -> Option<Self> {
        match code {
            3 => Some(Self::Rc),
            4 => Some(Self::Ud),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rc => "RC",
            Self::Ud => "UD",
        }
    }
}

/// State of a queue pair, with the device's codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Idle = 1,
    Rts = 2,
    Sqd = 3,
    Rtr = 4,
    Terminate = 5,
    Error = 6,
}

impl State {
    pub(crate) fn from_code(code: u64) -> Option<Self> {
        match code {
            1 => Some(Self::Idle),
            2 => Some(Self::Rts),
            3 => Some(Self::Sqd),
            4 => Some(Self::Rtr),
            5 => Some(Self::Terminate),
            6 => Some(Self::Error),
            _ => None,
        }
    }

    /// Whether a modify operation may go from here to `next`.
    pub(crate) fn may_become(self, next: Self) -> bool {
        match (self, next) {
            (_, Self::Error) => true,
            (a, b) if a == b => true,
            (Self::Idle, Self::Rtr)
            | (Self::Rtr, Self::Rts)
            | (Self::Rts, Self::Sqd)
            | (Self::Sqd, Self::Rts) => true,
            _ => false,
        }
    }

    /// The state field of an event. Drivers take a value above 2 for a dead queue pair, so a live
    /// one never shows more.
    pub(crate) fn reported(self) -> u8 {
        match self {
            Self::Idle => 1,
            Self::Rts | Self::Sqd | Self::Rtr => 2,
            Self::Terminate => 5,
            Self::Error => 6,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Idle => "IDLE",
            Self::Rts => "RTS",
            Self::Sqd => "SQD",
            Self::Rtr => "RTR",
            Self::Terminate => "TERMINATE",
            Self::Error => "ERROR",
        }
    }
}

/// What the device takes from the context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QpContext {
    pub(crate) sq: RingMemory,
    pub(crate) rq: RingMemory,
    /// Sizes in quanta of 32 bytes.
    pub(crate) sq_quanta: u32,
    pub(crate) rq_quanta: u32,
    /// A receive WQE has `1 << rq_shift` quanta.
    pub(crate) rq_shift: u8,
    pub(crate) pd: u32,
    pub(crate) source_port: u16,
    /// Largest payload of a packet.
    pub(crate) mtu: u32,
    pub(crate) pkey: u16,
    pub(crate) qkey: u32,
    pub(crate) send_cq: u32,
    pub(crate) recv_cq: u32,
    pub(crate) mac: [u8; 6],
    /// STag 0 stands for all memory.
    pub(crate) privileged: bool,
    pub(crate) check_icrc: bool,
    pub(crate) queue_set: u16,
    /// Repeated in every completion.
    pub(crate) completion_context: u64,
}

impl QpContext {
    /// Reads the context. With `pages`, the ring addresses are indices of page lists.
    pub(crate) fn parse(raw: &[u8; CONTEXT_SIZE], pages: bool) -> Result<Self, CqpError> {
        let w: [u64; CONTEXT_SIZE / 8] = words(raw);
        let ring = |word: u64| -> Result<RingMemory, CqpError> {
            if !pages {
                return match word % 32 {
                    0 => Ok(RingMemory::Block(word)),
                    _ => Err(CqpError::parameter(format_args!("ring address {word:#x}"))),
                };
            }
            u32::try_from(word)
                .map(RingMemory::Pages)
                .map_err(|_| CqpError::parameter(format_args!("page list index {word:#x}")))
        };
        let quanta = |code: u64| -> Result<u32, CqpError> {
            match 4u32 << code.min(31) {
                n if n <= MAX_QUANTA => Ok(n),
                n => Err(CqpError::parameter(format_args!("ring of {n} quanta"))),
            }
        };
        let rq_shift = low8(layout::RQ_WQE_SHIFT.get(w[0]));
        let rq_quanta = quanta(layout::RQ_SIZE.get(w[3]))?;
        if rq_quanta >> rq_shift == 0 {
            return Err(CqpError::parameter("receive ring smaller than one WQE"));
        }
        Ok(Self {
            sq: ring(w[1])?,
            rq: ring(w[2])?,
            sq_quanta: quanta(layout::SQ_SIZE.get(w[3]))?,
            rq_quanta,
            rq_shift,
            pd: layout::PD_HIGH.get32(w[0]) << 16 | layout::PD_LOW.get32(w[7]),
            source_port: layout::SOURCE_PORT.get16(w[3]),
            mtu: layout::MSS.get32(w[6]),
            pkey: layout::PKEY.get16(w[7]),
            qkey: layout::QKEY.get32(w[8]),
            send_cq: layout::SEND_CQ.get32(w[17]),
            recv_cq: layout::RECV_CQ.get32(w[17]),
            mac: mac_from(layout::MAC.get(w[19])),
            privileged: layout::PRIVILEGED.is_set(w[20]),
            check_icrc: !layout::NO_ICRC.is_set(w[20]),
            queue_set: layout::QUEUE_SET.get16(w[22]),
            completion_context: w[21],
        })
    }

    /// Whether ring memory or geometry differ, which no modify may change.
    pub(crate) fn rings_differ(&self, other: &Self) -> bool {
        (
            self.sq,
            self.rq,
            self.sq_quanta,
            self.rq_quanta,
            self.rq_shift,
        ) != (
            other.sq,
            other.rq,
            other.sq_quanta,
            other.rq_quanta,
            other.rq_shift,
        )
    }
}

/// A live queue pair.
pub(crate) struct Qp {
    pub(crate) kind: QpType,
    pub(crate) state: State,
    pub(crate) context: QpContext,
    /// Position in the send ring, in quanta.
    pub(crate) sq: Cursor,
    /// Position in the receive ring, in WQEs.
    pub(crate) rq: Cursor,
    /// Sequence number of the next packet.
    pub(crate) psn: u32,
    /// Stopped by SUSPEND_QP.
    pub(crate) suspended: bool,
    /// Waits for the worker.
    pub(crate) queued: bool,
    /// A message about the missing transport was logged.
    pub(crate) warned: bool,
    /// Datagrams sent and received.
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

impl Qp {
    pub(crate) fn new(kind: QpType, context: QpContext) -> Self {
        Self {
            kind,
            state: State::Idle,
            sq: Cursor::new(context.sq_quanta),
            rq: Cursor::new(context.rq_quanta >> context.rq_shift),
            context,
            psn: 0,
            suspended: false,
            queued: false,
            warned: false,
            sent: 0,
            received: 0,
        }
    }

    /// Whether posted sends are taken.
    pub(crate) fn may_send(&self) -> bool {
        self.state == State::Rts && !self.suspended
    }

    /// Whether packets are accepted.
    pub(crate) fn may_receive(&self) -> bool {
        matches!(self.state, State::Rtr | State::Rts | State::Sqd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_follow_the_table() {
        use State::*;
        assert!(Idle.may_become(Rtr) && Rtr.may_become(Rts) && Rts.may_become(Sqd));
        assert!(
            Sqd.may_become(Rts)
                && Rts.may_become(Rts)
                && Rtr.may_become(Error)
                && Idle.may_become(Error)
        );
        assert!(!Idle.may_become(Rts) && !Error.may_become(Rts) && !Error.may_become(Idle));
    }

    #[test]
    fn only_dead_states_are_reported_above_two() {
        for code in 1..=4 {
            let Some(state) = State::from_code(code) else {
                panic!("state {code}")
            };
            assert!(state.reported() <= 2);
        }
        assert_eq!(State::Error.reported(), 6);
    }

    #[test]
    fn oversized_rings_are_refused() {
        let mut raw = [0; CONTEXT_SIZE];
        raw[25] = 0xE0; // SQ code 14
        assert!(QpContext::parse(&raw, false).is_err());
        raw[25] = 0xD0; // SQ code 13: 32768
        assert_eq!(
            QpContext::parse(&raw, false).map(|c| c.sq_quanta),
            Ok(32768)
        );
    }
}
