// SPDX-License-Identifier: GPL-2.0
//! Names of the LAN registers of BAR0 (section 2 of the hardware contract), apart from what they do.
//!
//! [`Register::decode`] turns an offset into a name; the card's `GLINT_DYN_CTL` and the RDMA half's
//! registers never reach it.

/// Queues of the function, receive and transmit each.
pub const QUEUES: u16 = 256;
/// Words of a receive queue's context.
pub const QRX_CONTEXT_WORDS: usize = 8;

/// `PFGEN_CTRL`: PF software reset.
pub const PFGEN_CTRL_PFSWR: u32 = 1 << 0;
/// `GLGEN_RTRIG`: core reset.
pub const GLGEN_RTRIG_CORER: u32 = 1 << 0;
/// `GLGEN_RTRIG`: global reset.
pub const GLGEN_RTRIG_GLOBR: u32 = 1 << 1;
/// Lowest bit of the type of the last reset in `GLGEN_RSTAT`.
pub const GLGEN_RSTAT_TYPE_SHIFT: u32 = 2;
/// `GLGEN_RSTAT`: a reset was requested and has not happened yet.
pub const GLGEN_RSTAT_REQUESTED: u32 = 1;
/// `GLGEN_RSTAT` type of a core reset.
pub const RESET_TYPE_CORER: u32 = 1;
/// `GLGEN_RSTAT` type of a global reset.
pub const RESET_TYPE_GLOBR: u32 = 2;
/// `PFINT_OICR`: a global reset has happened.
pub const OICR_GRST: u32 = 1 << 20;
/// Cause enable of `PFINT_*_CTL`, `QINT_RQCTL` and `QINT_TQCTL`.
pub const CAUSE_ENA: u32 = 1 << 30;
/// Vector of the same registers.
pub const CAUSE_VECTOR: u32 = 0x7ff;
/// `PFINT_FW_CTL`: vector of the firmware's events.
pub const PFINT_FW_CTL: u32 = 0x16_c800;
/// `QRX_CTRL`: enable request.
pub const QRX_CTRL_REQUEST: u32 = 1 << 0;
/// `QRX_CTRL`: enable status.
pub const QRX_CTRL_STATUS: u32 = 1 << 2;

/// First registers of the queues' arrays.
const QTX_COMM_HEAD: u32 = 0x0e_0000;
const QRX_CTRL: u32 = 0x12_0000;
const QINT_TQCTL: u32 = 0x14_0000;
const QINT_RQCTL: u32 = 0x15_0000;
const QRX_CONTEXT: u32 = 0x28_0000;
const QRX_TAIL: u32 = 0x29_0000;
const QTX_COMM_DBELL: u32 = 0x2c_0000;
/// From one word of the contexts to the next.
const QRX_CONTEXT_STEP: u32 = 8192;

/// The registers of a control queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingRegister {
    /// Ring address, low half.
    BaseLow,
    /// Ring address, high half.
    BaseHigh,
    /// Entries and enable.
    Length,
    /// Next entry of the device.
    Head,
    /// Next entry of the driver.
    Tail,
}

/// The control queues of the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// Admin commands.
    AdminSend,
    /// Events of the firmware.
    AdminReceive,
    /// Messages to virtual functions, of which there are none.
    MailboxSend,
    /// Messages of virtual functions.
    MailboxReceive,
}

/// A LAN register by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// A control queue's register.
    Ring(Ring, RingRegister),
    /// `PFGEN_CTRL`.
    PfReset,
    /// `GLGEN_RSTCTL`.
    ResetControl,
    /// `GLGEN_RSTAT`.
    ResetState,
    /// `GLGEN_RTRIG`.
    ResetTrigger,
    /// `PF_FUNC_RID`.
    FunctionId,
    /// `PFINT_OICR`.
    OtherCause,
    /// `PFINT_OICR_ENA`.
    OtherCauseEnable,
    /// `PFINT_OICR_CTL`.
    OtherCauseControl,
    /// `PFINT_FW_CTL`.
    FirmwareCauseControl,
    /// `PFPM_WUS`, write one to clear.
    WakeUpStatus,
    /// `QRX_CONTEXT` of word and queue.
    RxContext(usize, u16),
    /// `QRX_CTRL` of a queue.
    RxControl(u16),
    /// `QRX_TAIL` of a queue.
    RxTail(u16),
    /// `QINT_RQCTL` of a queue.
    RxCause(u16),
    /// `QINT_TQCTL` of a queue.
    TxCause(u16),
    /// `QTX_COMM_DBELL` of a queue.
    TxDoorbell(u16),
    /// `QTX_COMM_HEAD` of a queue, read only.
    TxHead(u16),
    /// A statistics register.
    Statistic,
    /// A register that always reads this.
    Constant(u32),
    /// A register without effect in the model: reads what was written, or this after a reset.
    Storage(u32),
}

/// The five registers of a ring at `first`, `step` apart in the order of the contract's table.
fn ring_register(offset: u32, ring: Ring, addresses: [u32; 5]) -> Option<Register> {
    use RingRegister::*;
    [BaseLow, BaseHigh, Length, Head, Tail]
        .into_iter()
        .zip(addresses)
        .find(|(_, address)| *address == offset)
        .map(|(register, _)| Register::Ring(ring, register))
}

/// Index into an array of 32-bit registers with `count` elements at `base`.
fn index(offset: u32, base: u32, count: u32) -> Option<u32> {
    let distance = offset.checked_sub(base)?;
    (distance / 4 < count).then_some(distance / 4)
}

/// Like [`index`] for an array with one element a queue.
fn queue(offset: u32, base: u32) -> Option<u16> {
    index(offset, base, u32::from(QUEUES)).and_then(|queue| u16::try_from(queue).ok())
}

/// Arrays and single registers that only store: first offset, number, value after reset.
const STORAGE: &[(u32, u32, u32)] = &[
    (0x04_9348, 1, 0),           // GL_MDCK_TX_TDPU
    (0x08_3000, 1, 0),           // PRTDCB_GENC
    (0x09_dc00, 1, 0),           // PFPM_WUFC
    (0x0b_8080, 1, 0),           // PFPM_APM
    (0x15_4000, 3 * 2048, 0),    // GLINT_ITR
    (0x15_a000, 2048, 0),        // GLINT_RATE
    (0x16_b280, 1, 0),           // PFINT_MBX_CTL
    (0x16_b600, 1, 0),           // PFINT_SB_CTL
    (0x16_c980, 1, 0),           // PFINT_TSYN_MSK
    (0x16_cc54, 1, 0x2222_0000), // GLINT_CTL: granularity 2 us at each speed
    (0x20_f0fc, 6, 0),           // GL_PREEXT_L2_PMASK0, GL_PREEXT_L2_PMASK1
    (0x29_2000, 256, 0),         // QRX_ITR
    (0x40_f000, 6 * 128, 0),     // GLQF_HSYMM
    (0x40_fc00, 32, 0),          // GLQF_HMASK
    (0x41_0000, 128, 0),         // GLQF_HMASK_SEL
    (0x41_0400, 128, 0),         // GLQF_FDMASK_SEL
    (0x41_0800, 32, 0),          // GLQF_FDMASK
    (0x41_2000, 6 * 128, 0),     // GLQF_FDINSET
    (0x41_3000, 6 * 128, 0),     // GLQF_FDSWAP
    (0x43_a000, 1, 0),           // PFQF_FD_ENA
    (0x45_c800, 256, 0),         // GLFLXP_RXDID_FLX_WRD_0..3
    (0x46_0100, 1, 0),           // PFQF_FD_SIZE
    (0x48_0000, 256, 0),         // QRXFLXP_CNTXT
];

/// Registers that report and ignore writes: first offset, number, value.
const CONSTANT: &[(u32, u32, u32)] = &[
    (0x08_3020, 1, 7),           // PRTDCB_GENS: DCBX in the firmware is off
    (0x0b_6008, 1, 0x73b),       // GLNVM_ULD: all loaded, protocol engine included
    (0x0b_6100, 1, 6 << 5),      // GLNVM_GENS: 64 KiB of shadow RAM
    (0x0b_6108, 1, 1 << 6),      // GLNVM_FLA: flash is valid
    (0x0b_612c, 1, 0),           // GLGEN_STAT, read to flush
    (0x0b_6134, 1, 0),           // GL_MNG_FWSM: firmware runs
    (0x0b_820c, 1, 1 << 30),     // GL_PWR_MODE_CTL: 100G profile
    (0x0b_826c, 1, 0),           // GLGEN_CLKSTAT_SRC
    (0x0b_e004, 1, 0),           // GLPCI_CNF2: 64-byte cache lines
    (0x1d_2600, 1, 0),           // PFINT_ALLOC: first vector of the function
    (0x1d_26c0, 1, 0),           // PRTDCB_TUP2TC: all priorities in class 0
    (0x1e_3140, 1, 0),           // PRTMAC_HSEC_CTL_TX_PAUSE_ENABLE
    (0x1e_37e0, 8, 0),           // PRTMAC_HSEC_CTL_TX_PAUSE_QUANTA
    (0x1e_3800, 9 * 8, 0),       // PRTMAC_HSEC_CTL_TX_PAUSE_REFRESH_TIMER
    (0x29_4c00, 1, 0),           // GL_MDET_RX: no malicious event
    (0x45_d000, 5 * 64, 0),      // GLFLXP_RXDID_FLAGS: no time stamp flags
    (0x46_0010, 1, 0x0400_0200), // GLQF_FD_SIZE: 512 guaranteed, 1024 shared
    (0x46_2000, 768, 0),         // VSIQF_FD_SIZE
    (0x46_4000, 768, 0),         // VSIQF_FD_CNT
];

/// Ranges of statistics: first offset, bytes.
const STATISTIC: &[(u32, u32)] = &[
    (0x0a_c260, 4),       // PRTRPB_RDPC
    (0x29_4c04, 768 * 4), // GLV_RDPC
    (0x30_0000, 768 * 8), // GLV_GOTC
    (0x30_a000, 768 * 8), // GLV_UPTC
    (0x30_c000, 768 * 8), // GLV_MPTC
    (0x30_e000, 768 * 8), // GLV_BPTC
    (0x31_2000, 768 * 4), // GLV_TEPC
    (0x38_0000, 0x13c0),  // GLPRT
    (0x3a_0000, 0x2000),  // GLSTAT_FD_CNT0
    (0x3b_0000, 768 * 8), // GLV_GORC
    (0x3b_2000, 768 * 8), // GLV_UPRC
    (0x3b_4000, 768 * 8), // GLV_MPRC
    (0x3b_6000, 768 * 8), // GLV_BPRC
];

/// Looks `offset` up in one of the tables above.
fn table(offset: u32, entries: &[(u32, u32, u32)]) -> Option<u32> {
    entries
        .iter()
        .find(|(base, count, _)| index(offset, *base, *count).is_some())
        .map(|(_, _, value)| *value)
}

impl Register {
    /// Names the register at `offset`, if the LAN half has one there.
    pub fn decode(offset: u32) -> Option<Self> {
        if offset % 4 != 0 {
            return None;
        }
        Self::single(offset)
            .or_else(|| Self::of_queue(offset))
            .or_else(|| Self::of_ring(offset))
            .or_else(|| table(offset, CONSTANT).map(Register::Constant))
            .or_else(|| table(offset, STORAGE).map(Register::Storage))
            .or_else(|| {
                STATISTIC
                    .iter()
                    .any(|(base, len)| offset.checked_sub(*base).is_some_and(|at| at < *len))
                    .then_some(Register::Statistic)
            })
    }

    /// Offset of a queue's register.
    pub fn offset(self) -> Option<u32> {
        let (base, queue) = match self {
            Register::RxContext(word, queue) => {
                let step = u32::try_from(word).ok()?.checked_mul(QRX_CONTEXT_STEP)?;
                (QRX_CONTEXT.checked_add(step)?, queue)
            }
            Register::RxControl(queue) => (QRX_CTRL, queue),
            Register::RxTail(queue) => (QRX_TAIL, queue),
            Register::RxCause(queue) => (QINT_RQCTL, queue),
            Register::TxCause(queue) => (QINT_TQCTL, queue),
            Register::TxDoorbell(queue) => (QTX_COMM_DBELL, queue),
            _ => return None,
        };
        base.checked_add(4 * u32::from(queue))
    }

    fn single(offset: u32) -> Option<Self> {
        Some(match offset {
            0x09_1000 => Register::PfReset,
            0x09_db80 => Register::WakeUpStatus,
            0x09_e880 => Register::FunctionId,
            0x0b_8180 => Register::ResetControl,
            0x0b_8188 => Register::ResetState,
            0x0b_8190 => Register::ResetTrigger,
            PFINT_FW_CTL => Register::FirmwareCauseControl,
            0x16_c900 => Register::OtherCauseEnable,
            0x16_ca00 => Register::OtherCause,
            0x16_ca80 => Register::OtherCauseControl,
            _ => return None,
        })
    }

    fn of_queue(offset: u32) -> Option<Self> {
        let context = || {
            (0..QRX_CONTEXT_WORDS).zip(0u32..).find_map(|(word, step)| {
                queue(offset, QRX_CONTEXT + QRX_CONTEXT_STEP * step)
                    .map(|q| Register::RxContext(word, q))
            })
        };
        queue(offset, QTX_COMM_DBELL)
            .map(Register::TxDoorbell)
            .or_else(|| queue(offset, QTX_COMM_HEAD).map(Register::TxHead))
            .or_else(|| queue(offset, QRX_TAIL).map(Register::RxTail))
            .or_else(|| queue(offset, QRX_CTRL).map(Register::RxControl))
            .or_else(|| queue(offset, QINT_TQCTL).map(Register::TxCause))
            .or_else(|| queue(offset, QINT_RQCTL).map(Register::RxCause))
            .or_else(context)
    }

    fn of_ring(offset: u32) -> Option<Self> {
        let evenly = |first: u32, step: u32| [0, 1, 2, 3, 4].map(|i| first + i * step);
        ring_register(offset, Ring::AdminSend, evenly(0x08_0000, 0x100))
            .or_else(|| ring_register(offset, Ring::AdminReceive, evenly(0x08_0080, 0x100)))
            .or_else(|| {
                let at = [0x22_e100, 0x22_e180, 0x22_e200, 0x22_e280, 0x22_e300];
                ring_register(offset, Ring::MailboxSend, at)
            })
            .or_else(|| {
                let at = [0x22_e380, 0x22_e400, 0x22_e480, 0x22_e500, 0x22_e580];
                ring_register(offset, Ring::MailboxReceive, at)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contract_offsets_have_names() {
        let ring = |ring, register| Some(Register::Ring(ring, register));
        for (offset, register) in [
            (0x08_0400, ring(Ring::AdminSend, RingRegister::Tail)),
            (0x08_0280, ring(Ring::AdminReceive, RingRegister::Length)),
            (0x22_e580, ring(Ring::MailboxReceive, RingRegister::Tail)),
            (0x2c_0004, Some(Register::TxDoorbell(1))),
            (0x0e_0008, Some(Register::TxHead(2))),
            (0x28_e008, Some(Register::RxContext(7, 2))),
            (0x12_03fc, Some(Register::RxControl(255))),
            (0x0b_6008, Some(Register::Constant(0x73b))),
            (0x16_cc54, Some(Register::Storage(0x2222_0000))),
            (0x38_1380, Some(Register::Statistic)),
            (0x3b_0004, Some(Register::Statistic)),
        ] {
            assert_eq!(Register::decode(offset), register, "{offset:#x}");
        }
    }

    #[test]
    fn others_have_none() {
        for offset in [0x12_0400, 0x08_0001, 0x00_0000, 0xff_fffc, u32::MAX] {
            assert_eq!(Register::decode(offset), None, "{offset:#x}");
        }
    }

    /// No register of one table hides one of another.
    #[test]
    fn tables_do_not_overlap() {
        let mut ranges: Vec<(u32, u32)> = STORAGE
            .iter()
            .chain(CONSTANT)
            .map(|(base, count, _)| (*base, base + 4 * count))
            .chain(STATISTIC.iter().map(|(base, len)| (*base, base + len)))
            .collect();
        ranges.sort_unstable();
        for pair in ranges.windows(2) {
            assert!(
                pair[0].1 <= pair[1].0,
                "{:#x} and {:#x}",
                pair[0].0,
                pair[1].0
            );
        }
    }
}
