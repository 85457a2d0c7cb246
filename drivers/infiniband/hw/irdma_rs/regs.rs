// SPDX-License-Identifier: GPL-2.0

//! Registers and doorbells of the protocol engine in BAR0.
//!
//! Names are those of the hardware contract (`Documentation/hardware`, registers). All accesses are
//! 32 bits wide. Only the protocol engine's registers are listed; everything else in the BAR
//! belongs to the LAN driver.

use kernel::io::register;

/// The part of BAR0 this driver touches from the kernel.
pub(crate) const BAR_SIZE: usize = 0x80_0000;

/// Vectors that `GLINT_DYN_CTL` is declared for.
const VECTORS: usize = 2048;

/// Completion event queues that `GLINT_CEQCTL` is declared for.
const CEQS: usize = 1024;

register! {
    /// Control queue pair: index of the next WQE the device will complete.
    pub(crate) PFPE_CQPTAIL(u32) @ 0x50_0880 {
        /// The most recently completed operation failed.
        31:31 cqp_op_err;
        /// Completed WQEs modulo the ring size.
        10:0 wqtail;
    }

    /// Control queue pair doorbell.
    pub(crate) PFPE_CQPDB(u32) @ 0x50_0800 {
        /// Ring head after the increment.
        10:0 wqhead;
    }

    /// State of the control queue pair.
    pub(crate) PFPE_CCQPSTATUS(u32) @ 0x50_a000 {
        /// Creation failed.
        31:31 ccqp_err;
        /// The control queue pair exists.
        0:0 ccqp_done;
    }

    /// Upper half of the address of the control queue pair's context.
    pub(crate) PFPE_CCQPHIGH(u32) @ 0x50_a100 {
        31:0 address;
    }

    /// Lower half of the address; the write creates (or, when zero, destroys) the queue pair.
    pub(crate) PFPE_CCQPLOW(u32) @ 0x50_a080 {
        31:0 address;
    }

    /// Arms a completion queue owned by the kernel.
    pub(crate) PFPE_CQARM(u32) @ 0x50_2c00 {
        31:0 cq_id;
    }

    /// Acknowledges a completion event.
    pub(crate) PFPE_CQACK(u32) @ 0x50_2c80 {
        31:0 cq_id;
    }

    /// Gives consumed asynchronous event entries back to the device.
    pub(crate) PFPE_AEQALLOC(u32) @ 0x50_2d00 {
        31:0 count;
    }

    /// Codes of the last failed control operation, for messages only.
    pub(crate) PFPE_CQPERRCODES(u32) @ 0x50_a200 {
        31:16 cqp_major_code;
        15:0 cqp_minor_code;
    }

    /// Send queue doorbell of the kernel.
    pub(crate) PFPE_WQEALLOC(u32) @ 0x50_4400 {
        31:0 qp_id;
    }

    /// Control of one interrupt vector.
    pub(crate) GLINT_DYN_CTL(u32)[VECTORS, stride = 4] @ 0x16_0000 {
        /// Moderation interval.
        16:5 interval;
        4:3 itr_indx;
        /// Clears the pending bit.
        1:1 clearpba;
        /// Enables the vector.
        0:0 intena;
    }

    /// Maps a completion event queue to a vector.
    pub(crate) GLINT_CEQCTL(u32)[CEQS, stride = 4] @ 0x15_c000 {
        30:30 cause_ena;
        12:11 itr_indx;
        10:0 msix_indx;
    }

    /// Maps the asynchronous event queue to a vector.
    pub(crate) PFINT_AEQCTL(u32) @ 0x16_cb00 {
        30:30 cause_ena;
        12:11 itr_indx;
        10:0 msix_indx;
    }

    /// Doorbell space of the function.
    pub(crate) GLPCI_LBARCTRL(u32) @ 0x9_de74 {
        /// 1 is 4 MiB, 2 is 8 MiB.
        5:4 pe_db_size;
    }

    /// Readiness of the engine's first processor.
    pub(crate) GLPE_CPUSTATUS0(u32) @ 0x50_ba5c {
        31:0 status;
    }

    /// Readiness of the engine's second processor.
    pub(crate) GLPE_CPUSTATUS1(u32) @ 0x50_ba60 {
        31:0 status;
    }

    /// Readiness of the engine's third processor.
    pub(crate) GLPE_CPUSTATUS2(u32) @ 0x50_ba64 {
        31:0 status;
    }

    /// Makes the device forget a cached page descriptor.
    pub(crate) PFHMC_PDINV(u32) @ 0x52_0300 {
        24:16 pmpdidx;
        15:15 pmsdpartsel;
        11:0 pmsdidx;
    }

    /// Cause of a critical error.
    pub(crate) GLPE_CRITERR(u32) @ 0x53_4000 {
        31:0 code;
    }

    /// What went wrong in host memory.
    pub(crate) PFHMC_ERRORINFO(u32) @ 0x52_0400 {
        31:0 info;
    }

    /// Address or data of that error.
    pub(crate) PFHMC_ERRORDATA(u32) @ 0x52_0500 {
        31:0 data;
    }
}

/// Value of each `GLPE_CPUSTATUSn` when the engine is ready.
pub(crate) const CPU_READY: u32 = 0x80;

/// `itr_indx` value meaning "no moderation".
pub(crate) const ITR_NONE: u32 = 3;
