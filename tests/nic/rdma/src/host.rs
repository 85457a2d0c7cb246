// SPDX-License-Identifier: GPL-2.0
//! Errors of access to guest memory, with what stands between an index and an address.

use nic_bus::DmaError;
use std::fmt;

/// Why guest memory could not be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemError {
    /// The address is not mapped.
    Dma(DmaError),
    /// A segment descriptor that is not valid.
    Segment(u64),
    /// A page descriptor that is not valid: segment and page.
    Page(u64, u64),
    /// An index beyond the page address entries.
    Pble(u64),
    /// An address beyond 64 bits.
    Wrap,
}

impl From<DmaError> for MemError {
    fn from(e: DmaError) -> Self {
        Self::Dma(e)
    }
}

impl fmt::Display for MemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dma(e) => e.fmt(f),
            Self::Segment(sd) => write!(f, "segment descriptor {sd} is not valid"),
            Self::Page(sd, pd) => write!(f, "page descriptor {pd} of segment {sd} is not valid"),
            Self::Pble(index) => write!(f, "no page address entry {index}"),
            Self::Wrap => write!(f, "address wraps"),
        }
    }
}
