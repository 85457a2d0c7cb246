// SPDX-License-Identifier: GPL-2.0

//! Queue pair operations.

use super::super::{
    Command,
    Completed,
    Op,
    Wqe, //
};
use kernel::{
    bitfield,
    dma::DmaAddress,
    num::Bounded,
    prelude::*, //
};

/// Transport of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QpType {
    /// Reliable connected.
    Rc,
    /// Unreliable datagram, the GSI included.
    Ud,
}

impl From<QpType> for Bounded<u64, 3> {
    fn from(kind: QpType) -> Self {
        match kind {
            QpType::Rc => Self::new::<3>(),
            QpType::Ud => Self::new::<4>(),
        }
    }
}

impl TryFrom<Bounded<u64, 3>> for QpType {
    type Error = Error;

    fn try_from(code: Bounded<u64, 3>) -> Result<Self> {
        match code.get() {
            3 => Ok(Self::Rc),
            4 => Ok(Self::Ud),
            _ => Err(EINVAL),
        }
    }
}

/// State the device moves a queue pair to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QpState {
    /// Accepts receive work; IB INIT.
    Idle,
    /// Sends and receives.
    Rts,
    /// Stops sending after the work in flight.
    Sqd,
    /// Receives.
    Rtr,
    /// Connection termination, of iWARP.
    Terminate,
    /// Neither sends nor receives.
    Error,
}

impl From<QpState> for Bounded<u64, 3> {
    fn from(state: QpState) -> Self {
        match state {
            QpState::Idle => Self::new::<1>(),
            QpState::Rts => Self::new::<2>(),
            QpState::Sqd => Self::new::<3>(),
            QpState::Rtr => Self::new::<4>(),
            QpState::Terminate => Self::new::<5>(),
            QpState::Error => Self::new::<6>(),
        }
    }
}

impl TryFrom<Bounded<u64, 3>> for QpState {
    type Error = Error;

    fn try_from(code: Bounded<u64, 3>) -> Result<Self> {
        match code.get() {
            1 => Ok(Self::Idle),
            2 => Ok(Self::Rts),
            3 => Ok(Self::Sqd),
            4 => Ok(Self::Rtr),
            5 => Ok(Self::Terminate),
            6 => Ok(Self::Error),
            _ => Err(EINVAL),
        }
    }
}

bitfield! {
    struct QpHeader(u64) {
        62:60 nextiwstate ?=> QpState;
        59:59 arptabidxvalid;
        55:55 removehashentry;
        51:51 macvalid;
        50:48 qptype ?=> QpType;
        47:47 cqnumvalid;
        45:45 vq;
        42:42 ordvalid;
        23:0 qp_id;
    }
}

/// What every queue pair operation has to name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QpRef {
    /// Queue pair number.
    pub(crate) id: u32,
    /// Transport.
    pub(crate) kind: QpType,
    /// Host context, 256 bytes, 256-byte aligned.
    pub(crate) context: DmaAddress,
    /// Shadow area, 64 bytes.
    pub(crate) shadow: DmaAddress,
    /// The context holds PBL indices instead of ring addresses.
    pub(crate) virtual_rings: bool,
}

impl QpRef {
    fn header(&self) -> Result<QpHeader> {
        QpHeader::from(0)
            .with_qptype(self.kind)
            .try_with_qp_id(self.id)
    }

    fn wqe(&self, header: QpHeader) -> Wqe {
        Wqe::new()
            .with::<2>(self.context)
            .with::<3>(header)
            .with::<5>(self.shadow)
    }
}

/// Creates a queue pair in state [`QpState::Idle`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreateQp {
    /// The queue pair.
    pub(crate) qp: QpRef,
}

impl Command for CreateQp {
    const OP: Op = Op::CreateQp;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        let header = self
            .qp
            .header()?
            .with_vq(self.qp.virtual_rings)
            .with_cqnumvalid(true)
            .with_macvalid(true)
            .with_nextiwstate(QpState::Idle);
        Ok(self.qp.wqe(header))
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}

/// Moves a queue pair to another state and makes the device read its context again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModifyQp {
    /// The queue pair.
    pub(crate) qp: QpRef,
    /// State to move to.
    pub(crate) next: QpState,
    /// The context's limit of outstanding reads is valid.
    pub(crate) ord_valid: bool,
    /// The context's CQ numbers are valid.
    pub(crate) cq_num_valid: bool,
    /// The context's ARP index is valid.
    pub(crate) arp_index_valid: bool,
}

impl Command for ModifyQp {
    const OP: Op = Op::ModifyQp;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        let header = self
            .qp
            .header()?
            .with_vq(self.qp.virtual_rings)
            .with_ordvalid(self.ord_valid)
            .with_cqnumvalid(self.cq_num_valid)
            .with_arptabidxvalid(self.arp_index_valid)
            .with_nextiwstate(self.next);
        Ok(self.qp.wqe(header))
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}

/// Destroys a queue pair. Once it has succeeded, the device touches none of its memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DestroyQp {
    /// The queue pair.
    pub(crate) qp: QpRef,
}

impl Command for DestroyQp {
    const OP: Op = Op::DestroyQp;
    type Answer = ();

    fn wqe(&self) -> Result<Wqe> {
        Ok(self.qp.wqe(self.qp.header()?.with_removehashentry(true)))
    }

    fn answer(&self, _: Completed) -> Self::Answer {}
}
