// SPDX-License-Identifier: GPL-2.0

//! How the control queue pair and its completion queue come into being, and how they end.

use super::{
    ccq::{
        self,
        Ccq, //
    },
    cmd,
    kept::Kept,
    request::Waiter,
    ring::{
        Mode,
        Ring, //
    },
    Command,
    Cqp,
    Failure,
    Op,
    POLL_SLICE, //
};
use crate::regs::*;
use kernel::{
    bitfield,
    dma::DmaAddress,
    io::poll::read_poll_timeout,
    prelude::*,
    sync::Arc,
    time::{
        delay::fsleep,
        Delta, //
    },
};

/// How long creation and destruction of the queue pair itself may take.
const STATUS_TIMEOUT: Delta = Delta::from_millis(100);

bitfield! {
    /// Word 0 of the queue pair's own context.
    struct Context0(u64) {
        11:8 sqsize;
        4:3 protocol_used;
    }
}

bitfield! {
    /// Word 2 of the queue pair's own context.
    struct Context2(u64) {
        2:0 hmc_profile;
    }
}

bitfield! {
    /// Word 4 of the queue pair's own context.
    struct Context4(u64) {
        31:16 hw_majver;
        15:0 hw_minver;
    }
}

/// Words of the queue pair's own context.
pub(super) const CONTEXT_WORDS: usize = 8;

/// Value of `protocol_used`: RoCE only.
const PROTOCOL_ROCE: u64 = 2;

/// Value of `hmc_profile`: the default one.
const HMC_PROFILE_DEFAULT: u64 = 1;

/// Value of `hw_majver` on E810.
const HW_MAJVER_GEN_2: u64 = 1;

/// Word 3 of the context, echoed by the device in word 1 of every completion. The driver finds
/// operations by their place on the ring and does not look at it; people who look at the memory of the
/// queue know by it whose completions these are.
const ECHO: u64 = 0x6972_646d_615f_7273;

impl Cqp {
    /// Makes the device create the queue pair.
    ///
    /// # Errors
    ///
    /// - `EOPNOTSUPP`: the device refused.
    /// - `ETIMEDOUT`: the device did not react.
    pub(crate) fn create(self: &Arc<Self>) -> Result {
        self.context.write(
            0,
            Context0::from(0)
                .with_const_sqsize::<{ Ring::SIZE_CODE }>()
                .with_const_protocol_used::<PROTOCOL_ROCE>()
                .into(),
        )?;
        self.context.write(1, self.sq.address())?;
        self.context.write(
            2,
            Context2::from(0)
                .with_const_hmc_profile::<HMC_PROFILE_DEFAULT>()
                .into(),
        )?;
        self.context.write(3, ECHO)?;
        self.context.write(
            4,
            Context4::from(0)
                .with_const_hw_majver::<HW_MAJVER_GEN_2>()
                .into(),
        )?;

        self.port.write_reg(PFPE_CQPTAIL::from(0));
        self.port.write_reg(PFPE_CQPDB::from(0));
        self.port.write_reg(PFPE_CCQPSTATUS::from(0));
        self.write_context_address(self.context.address());

        let created = read_poll_timeout(
            || self.port.read(PFPE_CCQPSTATUS),
            |status| status.into_raw() != 0,
            Delta::from_micros(10),
            STATUS_TIMEOUT,
        );
        match created {
            Ok(status) if !status.ccqp_err().into_bool() => {
                self.ring.lock().revive();
                Ok(())
            }
            Ok(_) => {
                dev_err!(
                    self.port.log(),
                    "control queue pair: the device refused to create it, code {}\n",
                    self.error_registers()
                );
                self.destroy();
                Err(EOPNOTSUPP)
            }
            Err(_) => {
                dev_err!(
                    self.port.log(),
                    "control queue pair: the device did not create it in time\n"
                );
                self.destroy();
                Err(ETIMEDOUT)
            }
        }
    }

    /// Makes the device forget the queue pair and stop all access to memory of this function.
    ///
    /// Operations that are outstanding end here. Returns whether the device confirmed; if not, no
    /// memory it knows may be freed: the queue pair's own and what was kept is given up.
    pub(crate) fn destroy(self: &Arc<Self>) -> bool {
        self.shut(ENODEV);
        self.write_context_address(0);
        let gone = read_poll_timeout(
            || self.port.read(PFPE_CCQPSTATUS),
            |status| !status.ccqp_done().into_bool(),
            Delta::from_micros(10),
            STATUS_TIMEOUT,
        );
        if gone.is_err() {
            dev_err!(
                self.port.log(),
                "control queue pair: the device did not let go of it\n"
            );
            // One reference too many: neither rings nor kept memory are ever freed.
            core::mem::forget(self.clone());
            return false;
        }
        let ccq = self.ccq.lock().take();
        drop(ccq);
        let kept = core::mem::replace(&mut *self.kept.lock(), Kept::new());
        drop(kept);
        true
    }

    /// Writes the address of the context, the part that starts the action last.
    fn write_context_address(&self, address: DmaAddress) {
        // CAST: the two halves of an address, on purpose.
        self.port
            .write_reg(PFPE_CCQPHIGH::from((address >> 32) as u32));
        self.port
            .write_reg(PFPE_CCQPLOW::from((address & u64::from(u32::MAX)) as u32));
    }

    /// Has the device create the CCQ, and takes completions from it from then on.
    ///
    /// The operation completes in the very queue it creates; a device that refuses has no queue to
    /// say so in, and says it in the tail register.
    ///
    /// Whatever the result, the queue's memory stays until [`Self::destroy`].
    pub(crate) fn create_ccq(&self, vsi: u16) -> Result<(), Failure> {
        let ccq = Ccq::new(&self.port)?;
        let command = cmd::CreateCq {
            id: ccq::ID,
            ceq: 0,
            entries: Ccq::ENTRIES,
            ring: cmd::CqRing::Contiguous(ccq.ring_address()),
            shadow: ccq.shadow_address(),
            shadow_read_threshold: Ccq::SHADOW_READ_THRESHOLD,
            mask_events: false,
            vsi,
        };
        let entry = command.wqe()?;
        *self.ccq.lock() = Some(ccq);

        let _alone = self.tail_mode.lock();
        let waiter = Waiter::new(GFP_KERNEL)?;
        let before = self.port.read(PFPE_CQPTAIL)?.wqtail();
        self.post(Op::CreateCq, &entry, waiter.clone())?;
        let outcome = loop {
            // The operation is on the ring: what can be said is that no answer came.
            let tail = self
                .port
                .read(PFPE_CQPTAIL)
                .map_err(|_| Failure::TimedOut)?;
            if let Some(outcome) = self.poll_for(&waiter) {
                break outcome;
            }
            if tail.wqtail() != before && tail.cqp_op_err().into_bool() {
                self.retire(&waiter, Err(Failure::Refused(self.error_registers())));
            }
            self.check_progress();
            fsleep(POLL_SLICE);
        };
        outcome?;
        self.ring.lock().set_mode(Mode::Polled);
        Ok(())
    }

    /// Has the device destroy the CCQ; later operations complete through the tail register.
    ///
    /// No operation may be outstanding.
    pub(crate) fn destroy_ccq(&self) -> Result<(), Failure> {
        let command = {
            let ccq = self.ccq.lock();
            let Some(ccq) = ccq.as_ref() else {
                return Ok(());
            };
            cmd::DestroyCq {
                id: ccq::ID,
                ceq: 0,
                entries: Ccq::ENTRIES,
                ring: cmd::CqRing::Contiguous(ccq.ring_address()),
                shadow: ccq.shadow_address(),
                mask_events: false,
            }
        };
        self.ring.lock().set_mode(Mode::Tail);
        self.execute(&command)
    }
}
