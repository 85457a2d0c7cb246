// SPDX-License-Identifier: GPL-2.0

//! The kinds of object the device keeps in host memory (HMC, host memory cache).
//!
//! The driver allocates and announces their memory and never looks inside, but for the PBLEs.

/// Kinds of object, in the order their memory is announced in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    /// Queue pairs.
    Qp,
    /// Completion queues.
    Cq,
    /// Hash table entries.
    Hte,
    /// Destination MAC addresses.
    Arp,
    /// Port bit map of iWARP.
    Apbvt,
    /// Memory regions.
    Mr,
    /// Transmit FIFO.
    Xf,
    /// Its free list.
    Xffl,
    /// Queue of inbound reads.
    Q1,
    /// Its free list.
    Q1fl,
    /// Timers.
    Timer,
    /// Multicast groups.
    Fsimc,
    /// Address vectors.
    Fsiav,
    /// Page buffer list entries.
    Pble,
    /// Read request FIFO.
    Rrf,
    /// Its free list.
    Rrffl,
    /// Headers.
    Hdr,
    /// Multicast data.
    Md,
}

impl Object {
    /// Number of kinds.
    pub(crate) const COUNT: usize = 18;

    /// All kinds.
    pub(crate) const ALL: [Self; Self::COUNT] = [
        Self::Qp,
        Self::Cq,
        Self::Hte,
        Self::Arp,
        Self::Apbvt,
        Self::Mr,
        Self::Xf,
        Self::Xffl,
        Self::Q1,
        Self::Q1fl,
        Self::Timer,
        Self::Fsimc,
        Self::Fsiav,
        Self::Pble,
        Self::Rrf,
        Self::Rrffl,
        Self::Hdr,
        Self::Md,
    ];
}

/// One value per kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PerObject<T>([T; Object::COUNT]);

impl<T: Copy> PerObject<T> {
    /// The same value for every kind.
    pub(crate) const fn all(value: T) -> Self {
        Self([value; Object::COUNT])
    }

    /// The value of `object`.
    pub(crate) const fn get(&self, object: Object) -> T {
        // CAST, PANIC: the discriminants are the positions in `ALL`, below `COUNT`.
        self.0[object as usize]
    }

    /// Replaces the value of `object`.
    pub(crate) fn set(&mut self, object: Object, value: T) {
        // CAST, PANIC: as in `get`.
        self.0[object as usize] = value;
    }
}
