// SPDX-License-Identifier: GPL-2.0
//! The seams between the parts of the virtual E810.
//!
//! The card ([`Host`]) lends each half host memory, interrupt vectors, the port and the shared
//! "other interrupt cause" register. The RDMA half ([`RdmaFunction`]) is called by the card for
//! its registers, for frames from the port, for resets and for control commands. Neither side
//! knows how the other is built, so each can be tested against a stand-in.
//!
//! All addresses are bus addresses as the guest wrote them, all register offsets are from the start
//! of BAR0, all register values are in host byte order. Guest memory is little-endian; converting
//! is the caller's task except in the `u32`/`u64` helpers of [`Dma`], which convert.

use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// A DMA access that the guest's memory map does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaError {
    /// First byte of the refused access.
    pub addr: u64,
    /// Its length in bytes.
    pub len: usize,
}

impl fmt::Display for DmaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no guest memory at {:#x}+{:#x}", self.addr, self.len)
    }
}

impl std::error::Error for DmaError {}

/// Guest memory as the device sees it. Every access is checked against the map; a refused access
/// touches nothing.
pub trait Dma: Send + Sync {
    /// Copies `buf.len()` bytes from guest memory at `addr`.
    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), DmaError>;

    /// Copies `data` into guest memory at `addr`.
    fn write(&self, addr: u64, data: &[u8]) -> Result<(), DmaError>;

    /// One 32-bit little-endian load with acquire ordering. `addr` is 4-byte aligned, else refused.
    fn read_u32(&self, addr: u64) -> Result<u32, DmaError>;

    /// One 64-bit little-endian load with acquire ordering. `addr` is 8-byte aligned, else refused.
    fn read_u64(&self, addr: u64) -> Result<u64, DmaError>;

    /// One 32-bit little-endian store with release ordering. `addr` is 4-byte aligned, else refused.
    fn write_u32(&self, addr: u64, value: u32) -> Result<(), DmaError>;

    /// One 64-bit little-endian store with release ordering. `addr` is 8-byte aligned, else refused.
    /// Used for the word that holds a valid bit, after the rest of the entry was written.
    fn write_u64(&self, addr: u64, value: u64) -> Result<(), DmaError>;
}

/// The MSI-X vectors with their `GLINT_DYN_CTL` gates, shared by both halves.
pub trait Interrupts: Send + Sync {
    /// An event for `vector`: delivered now if the vector is enabled (which then disables it),
    /// else held until the guest enables it.
    fn event(&self, vector: u16);

    /// Sets bits of `PFINT_OICR`, the cause register that `ice` reads, and raises its vector.
    fn other_cause(&self, bits: u32);
}

/// The Ethernet port.
pub trait Wire: Send + Sync {
    /// Sends one frame, without FCS, as built by the caller. Dropped and counted if the link is down.
    fn send(&self, frame: Vec<u8>);

    /// The station address that the port was made with.
    fn mac(&self) -> [u8; 6];

    /// Whether frames for this unicast address are the function's: the driver may have given it
    /// another address, or several.
    fn is_own(&self, mac: [u8; 6]) -> bool {
        mac == self.mac()
    }

    /// Whether the link is up.
    fn link_up(&self) -> bool;
}

/// One line into the card's log: unknown registers, refused commands, dropped frames. Silent in
/// normal use.
pub trait Log: Send + Sync {
    /// Writes one line; rate limiting is the log's task.
    fn line(&self, text: fmt::Arguments<'_>);
}

/// What the card lends a half.
#[derive(Clone)]
pub struct Host {
    /// Guest memory.
    pub dma: Arc<dyn Dma>,
    /// Interrupt vectors.
    pub interrupts: Arc<dyn Interrupts>,
    /// The port.
    pub wire: Arc<dyn Wire>,
    /// The log.
    pub log: Arc<dyn Log>,
    /// Number of the physical function, 0 to 7.
    pub pf_id: u8,
}

/// Which reset the function went through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// PF reset or FLR: this function alone.
    Function,
    /// Core or global reset: the whole device.
    Core,
    /// The guest is gone: forget everything, including memory addresses.
    Disconnect,
}

/// What the LAN half alone may ask of the card, since `ice` orders it through LAN registers and
/// admin commands.
pub trait Card: Send + Sync {
    /// Carries out a reset that the driver triggered (`PFGEN_CTRL`, `GLGEN_RTRIG`): the RDMA half,
    /// the interrupt gates and the LAN half are reset in that order before this returns. The LAN
    /// half must hold none of its own locks while calling.
    fn reset(&self, kind: Reset);

    /// See [`RdmaFunction::set_filter`].
    fn set_pe_filter(&self, vsi: u16, enabled: bool);

    /// See [`RdmaFunction::queue_set`].
    fn queue_set(&self, handle: u16, teid: u32, present: bool);
}

/// The LAN half as the card sees it. All calls may come from several threads at once; none may block
/// on the guest. `GLINT_DYN_CTL` belongs to the card and never arrives here.
pub trait LanFunction: Send + Sync {
    /// Reads a register; unknown ones read 0 and are logged by the LAN half, which is the last to
    /// be asked.
    fn read32(&self, offset: u32) -> u32;

    /// Reads a 40-bit statistics register (or any pair) with one 8-byte access.
    fn read64(&self, offset: u32) -> u64 {
        u64::from(self.read32(offset)) | u64::from(self.read32(offset.wrapping_add(4))) << 32
    }

    /// Writes a register; unknown ones are ignored and logged.
    fn write32(&self, offset: u32, value: u32);

    /// Whether a filter of the driver takes frames for this unicast address.
    fn has_address(&self, mac: [u8; 6]) -> bool;

    /// Receives one frame from the port (without FCS) that the RDMA half did not want.
    fn receive(&self, frame: &[u8]);

    /// The link went up or down.
    fn link_changed(&self, up: bool);

    /// Sets cause bits of `PFINT_OICR` and raises its vector if unmasked.
    fn other_cause(&self, bits: u32);

    /// See [`RdmaFunction::reset`].
    fn reset(&self, kind: Reset);

    /// Answers a control command or `None` if it is not the LAN half's.
    fn control(&self, command: &str, args: &Value) -> Option<Result<Value, String>>;
}

/// The RDMA half as the card sees it. All calls may come from several threads at once; none may
/// block on the guest. Register reads must answer at once.
pub trait RdmaFunction: Send + Sync {
    /// Reads a register, or `None` if the offset is not the RDMA half's.
    fn read32(&self, offset: u32) -> Option<u32>;

    /// Writes a register; `false` if the offset is not the RDMA half's.
    fn write32(&self, offset: u32, value: u32) -> bool;

    /// Whether the frame belongs to the RDMA half: PE filter on, and RoCEv2 for this function's
    /// MAC or for a programmed group. The card hands every other frame to the LAN half.
    fn wants(&self, frame: &[u8]) -> bool;

    /// Receives one frame that [`wants`](Self::wants) accepted.
    fn receive(&self, frame: &[u8]);

    /// The PE filter of a VSI was switched by `ice` (`ice_rdma_update_vsi_filter`).
    fn set_filter(&self, vsi: u16, enabled: bool);

    /// An RDMA queue set was added (`true`) or removed by `ice` (`ice_add_rdma_qset`).
    fn queue_set(&self, handle: u16, teid: u32, present: bool);

    /// The function was reset: all objects are gone, registers are at their reset values, no DMA
    /// or interrupt follows once this returned.
    fn reset(&self, kind: Reset);

    /// Answers a control command (`state`, `groups`, `qps`, `counters`, `ops`, `fault`, `inject`,
    /// ...) or `None` if the command is not the RDMA half's.
    fn control(&self, command: &str, args: &Value) -> Option<Result<Value, String>>;
}
