// SPDX-License-Identifier: GPL-2.0

//! The send queue of a kernel queue pair.
//!
//! Rules that shape the code, all of them the device's:
//!
//! - No WQE crosses a multiple of eight quanta; what is left before it is filled with NOPs.
//! - The header of a WQE is written last: the device may look at it before any doorbell.
//! - Whenever a WQE begins at a multiple of 128 quanta, the 128 quanta from 128 quanta further on are
//!   overwritten so that none of their words looks like a valid header. This is why 257 quanta are
//!   never used.
//! - A completion retires all WQEs up to the one it names.
//!
//! A queue of a queue pair in error takes work requests too, as the drain of the core and others rely
//! on it; they get a place in the ring but no WQE, and complete as flushed.

use kernel::{
    prelude::*,
    sync::barrier::{
        dma_mb,
        Write, //
    },
};

use super::{
    geometry::WorkQueue,
    memory::Words,
    wqe::{
        additional_fragments,
        fragment_word,
        quanta_for_fragments,
        Fragment,
        SqHeader,
        SqOpcode,
        UdDest,
        HEADER,
        MAX_QUANTA,
        QUANTUM_WORDS, //
    },
};

/// Quanta that stay unused behind the producer.
const GUARD: u32 = 257;

/// Quanta cleared ahead in one go, and how far ahead.
const CLEAR: u32 = 128;

/// A datagram to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UdSend<'a> {
    pub(crate) fragments: &'a [Fragment],
    pub(crate) imm: Option<u32>,
    pub(crate) ah: u32,
    pub(crate) dest_qpn: u32,
    pub(crate) dest_qkey: u32,
    pub(crate) solicited: bool,
    pub(crate) fence: bool,
}

/// What a work request is remembered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SendRequest {
    /// The caller's name for it.
    pub(crate) wr_id: u64,
    /// The caller wants to hear of its success.
    pub(crate) signaled: bool,
    /// What the completion is to say was done; opaque to the queue.
    pub(crate) kind: u8,
}

/// What lies at a place of the ring where a WQE begins.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// `None` for padding.
    request: Option<SendRequest>,
    quanta: u32,
}

/// A send queue; locked by its queue pair.
///
/// # Invariants
///
/// `head` and `tail` are below the depth, a power of two, and `places` has that many entries. Between
/// `tail` and `head` the ring is covered by WQEs whose places say where the next one begins.
pub(crate) struct SendQueue<M> {
    memory: M,
    depth: u32,
    /// Where the next WQE goes.
    head: u32,
    /// The oldest WQE that is not known to be done.
    tail: u32,
    /// Valid bit of the current pass; the first pass uses `true`.
    polarity: bool,
    max_fragments: u32,
    places: KVec<Place>,
}

impl<M: Words> SendQueue<M> {
    /// Creates a queue in zeroed `memory` of the given size.
    pub(crate) fn new(memory: M, size: &WorkQueue, max_fragments: u32) -> Result<Self> {
        let depth = size.depth();
        let count = usize::try_from(depth).map_err(|_| EINVAL)?;

        // INVARIANT: The queue is empty, and `size` has a power of two as its depth.
        Ok(Self {
            memory,
            depth,
            head: 0,
            tail: 0,
            polarity: true,
            max_fragments,
            places: KVec::from_elem(Place::default(), count, GFP_KERNEL)?,
        })
    }

    /// Returns whether all WQEs are done.
    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    fn used(&self) -> u32 {
        self.wrap(self.head.wrapping_sub(self.tail))
    }

    fn wrap(&self, index: u32) -> u32 {
        // `depth` is a power of two.
        index & (self.depth - 1)
    }

    fn place_mut(&mut self, index: u32) -> Result<&mut Place> {
        usize::try_from(index)
            .ok()
            .and_then(|i| self.places.get_mut(i))
            .ok_or(EINVAL)
    }

    fn place(&self, index: u32) -> Result<Place> {
        usize::try_from(index)
            .ok()
            .and_then(|i| self.places.get(i))
            .copied()
            .ok_or(EINVAL)
    }

    fn write(&self, index: u32, word: u32, value: u64) -> Result {
        // At most 32768 quanta of four words: no overflow.
        self.memory.write(index * QUANTUM_WORDS + word, value)
    }

    /// Writes a UD send; the device may begin with it at once, and does when the doorbell is rung.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the queue is full, `EINVAL` for a request the device has no words for. The queue
    /// is as before.
    pub(crate) fn post_ud(&mut self, send: &UdSend<'_>, request: SendRequest) -> Result {
        let count = u32::try_from(send.fragments.len()).map_err(|_| EINVAL)?;
        if count > self.max_fragments {
            return Err(EINVAL);
        }
        let places = count + u32::from(send.imm.is_some());
        let quanta = quanta_for_fragments(places);

        let opcode = if send.solicited {
            SqOpcode::SendSolicited
        } else {
            SqOpcode::Send
        };
        let header = SqHeader::zeroed()
            .with_opcode(opcode)
            .try_with_ah_id(send.ah)
            .map_err(|_| EINVAL)?
            .with_signaled(request.signaled)
            .with_read_fence(send.fence)
            .with_imm_flag(send.imm.is_some())
            .try_with_add_frag_cnt(additional_fragments(places))
            .map_err(|_| EINVAL)?;
        let dest = UdDest::zeroed()
            .try_with_dest_qpn(send.dest_qpn)
            .map_err(|_| EINVAL)?
            .with_dest_qkey(send.dest_qkey);
        // Checked before the ring is touched, so that nothing is left behind by an error.
        for fragment in send.fragments {
            fragment.words(true)?;
        }

        let at = self.reserve(quanta)?;
        let valid = self.polarity;

        let first = match send.imm {
            Some(imm) => {
                self.write(at, 0, u64::from(imm))?;
                1
            }
            None => 0,
        };
        // Covers all places: those of the caller, and the empty ones, whose second word carries the
        // valid bit alone.
        for i in first..=additional_fragments(places) {
            let fragment = usize::try_from(i - first)
                .ok()
                .and_then(|i| send.fragments.get(i))
                .copied()
                .unwrap_or_default();
            let (addr, meta) = fragment.words(valid)?;
            self.write(at, fragment_word(i), addr)?;
            self.write(at, fragment_word(i) + 1, meta)?;
        }
        self.write(at, 2, dest.into_raw())?;
        self.publish(at, quanta, header, Some(request))
    }

    /// Makes a work request part of a queue that the device no longer looks at.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the queue is full.
    pub(crate) fn post_flushed(&mut self, request: SendRequest) -> Result {
        if self.used() + 1 > self.depth - GUARD {
            return Err(ENOMEM);
        }
        self.advance(1, Some(request))
    }

    /// Finds room for a WQE and returns where it begins.
    fn reserve(&mut self, quanta: u32) -> Result<u32> {
        let offset = self.head % MAX_QUANTA;
        let padding = if offset + quanta > MAX_QUANTA {
            MAX_QUANTA - offset
        } else {
            0
        };
        if self.used() + padding + quanta > self.depth - GUARD {
            return Err(ENOMEM);
        }

        for _ in 0..padding {
            let at = self.head;
            self.write(at, 0, 0)?;
            self.write(at, 1, 0)?;
            self.write(at, 2, 0)?;
            let nop = SqHeader::zeroed().with_opcode(SqOpcode::Nop);
            self.publish(at, 1, nop, None)?;
        }
        if self.head % CLEAR == 0 {
            self.clear_ahead()?;
        }
        Ok(self.head)
    }

    /// Overwrites quanta ahead of the producer with words that are not valid when it gets there.
    fn clear_ahead(&self) -> Result {
        let start = self.wrap(self.head + CLEAR);
        // Behind the end of the ring the next pass begins, with the other polarity.
        let polarity = self.polarity != (start < self.head);
        let filler = if polarity { 0 } else { u64::MAX };

        for index in start..start + CLEAR {
            for word in 0..QUANTUM_WORDS {
                self.write(self.wrap(index), word, filler)?;
            }
        }
        Ok(())
    }

    /// Writes the header of a WQE, whose other words are written, and goes on to the next place.
    fn publish(
        &mut self,
        at: u32,
        quanta: u32,
        header: SqHeader,
        request: Option<SendRequest>,
    ) -> Result {
        // Orders the words of the WQE before the header that makes the device read them.
        dma_mb(Write);
        let header = header.with_valid(self.polarity);
        self.write(at, HEADER, header.into_raw())?;
        self.advance(quanta, request)
    }

    fn advance(&mut self, quanta: u32, request: Option<SendRequest>) -> Result {
        let at = self.head;

        *self.place_mut(at)? = Place { request, quanta };
        // INVARIANT: The place says where the next one begins.
        self.head = self.wrap(at + quanta);
        if self.head < at {
            self.polarity = !self.polarity;
        }
        Ok(())
    }

    /// Takes the WQE that begins at `index`, and all before it, as done and returns its request.
    ///
    /// `None` if no WQE that is under way begins there: the device made a mistake.
    pub(crate) fn complete(&mut self, index: u32) -> Option<SendRequest> {
        if index >= self.depth || self.wrap(index.wrapping_sub(self.tail)) >= self.used() {
            return None;
        }
        // Only places where a WQE begins lie on the way from the tail.
        let mut at = self.tail;
        while at != index {
            if self.wrap(index.wrapping_sub(at)) > self.used() {
                return None;
            }
            let quanta = self.place(at).ok()?.quanta.max(1);
            if quanta > self.wrap(index.wrapping_sub(at)) {
                return None;
            }
            at = self.wrap(at + quanta);
        }
        let place = self.place(index).ok()?;
        let request = place.request?;
        // INVARIANT: The place says where the next WQE begins.
        self.tail = self.wrap(index + place.quanta);
        Some(request)
    }

    /// Takes the oldest request of a flushed queue.
    pub(crate) fn flush_next(&mut self) -> Option<SendRequest> {
        while !self.is_empty() {
            let place = self.place(self.tail).ok()?;
            // INVARIANT: The place says where the next WQE begins.
            self.tail = self.wrap(self.tail + place.quanta.max(1));
            if place.request.is_some() {
                return place.request;
            }
        }
        None
    }

    /// Returns whether [`SendQueue::flush_next`] has something to return.
    pub(crate) fn has_requests(&self) -> bool {
        let mut at = self.tail;

        while at != self.head {
            match self.place(at) {
                Ok(place) if place.request.is_none() => at = self.wrap(at + place.quanta.max(1)),
                Ok(_) => return true,
                Err(_) => return false,
            }
        }
        false
    }
}

#[kernel::macros::kunit_tests(irdma_rs_sq)]
mod tests {
    use super::*;
    use crate::queues::{
        geometry::Capabilities,
        memory::fake::FakeWords, //
    };
    use kernel::sync::Arc;

    const FRAGMENT: Fragment = Fragment {
        addr: 0x1000,
        len: 64,
        lkey: 7,
    };

    fn queue(wrs: u32, sge: u32) -> Result<(SendQueue<Arc<FakeWords>>, Arc<FakeWords>, u32)> {
        let size = WorkQueue::send(&Capabilities {
            send_wr: wrs,
            send_sge: sge,
            ..Capabilities::default()
        })?;
        let words = FakeWords::new(size.bytes() / 8)?;
        let queue = SendQueue::new(words.clone(), &size, sge)?;
        Ok((queue, words, size.depth()))
    }

    fn send(fragments: &[Fragment]) -> UdSend<'_> {
        UdSend {
            fragments,
            imm: None,
            ah: 5,
            dest_qpn: 0x123,
            dest_qkey: 0x1111_1111,
            solicited: false,
            fence: false,
        }
    }

    fn request(wr_id: u64) -> SendRequest {
        SendRequest {
            wr_id,
            signaled: true,
            kind: 0,
        }
    }

    #[test]
    fn writes_the_worked_examples() -> Result {
        let (mut queue, words, _) = queue(16, 2)?;

        queue.post_ud(&send(&[FRAGMENT]), request(1))?;
        assert_eq!(words.read(0)?, 0x1000);
        assert_eq!(words.read(1)?, 0x8000_0040_0000_0007);
        assert_eq!(words.read(2)?, 0x0000_0123_1111_1111);
        assert_eq!(words.read(3)?, 0xc000_0003_0000_0005);

        let with_imm = UdSend {
            imm: Some(0xaabb_ccdd),
            ..send(&[FRAGMENT])
        };
        queue.post_ud(&with_imm, request(2))?;
        assert_eq!(words.read(4)?, 0xaabb_ccdd);
        assert_eq!(words.read(7)?, 0xc000_8083_0000_0005);
        assert_eq!(words.read(8)?, 0x1000);
        assert_eq!(words.read(9)?, 0x8000_0040_0000_0007);
        assert_eq!(words.read(10)?, 0);
        assert_eq!(words.read(11)?, 1 << 63);
        Ok(())
    }

    #[test]
    fn sends_nothing_as_an_empty_fragment() -> Result {
        let (mut queue, words, _) = queue(16, 2)?;

        queue.post_ud(&send(&[]), request(1))?;
        assert_eq!(words.read(0)?, 0);
        assert_eq!(words.read(1)?, 1 << 63);
        assert_eq!(words.read(3)?, 0xc000_0003_0000_0005);
        Ok(())
    }

    #[test]
    fn pads_before_a_chunk_boundary() -> Result {
        let (mut queue, words, _) = queue(16, 4)?;

        // Three quanta each: the third one does not fit into the first eight.
        for i in 0..3 {
            queue.post_ud(&send(&[FRAGMENT; 4]), request(i))?;
        }
        assert_eq!(words.read(6 * 4 + 3)?, 0x8000_000c_0000_0000);
        assert_eq!(words.read(7 * 4 + 3)?, 0x8000_000c_0000_0000);
        assert_eq!(words.read(8 * 4 + 3)?, 0xc000_0103_0000_0005);
        assert_eq!(queue.complete(6), None);
        assert_eq!(queue.complete(1), None);
        assert_eq!(queue.complete(8), Some(request(2)));
        assert!(queue.is_empty());
        Ok(())
    }

    #[test]
    fn holds_what_it_promises_and_no_more() -> Result {
        let (mut queue, _, depth) = queue(100, 1)?;
        let mut posted = 0;

        while queue.post_ud(&send(&[FRAGMENT]), request(posted)).is_ok() {
            posted += 1;
        }
        assert_eq!(posted, u64::from(depth - GUARD));
        assert_eq!(queue.post_ud(&send(&[FRAGMENT]), request(0)), Err(ENOMEM));
        assert!(posted >= 100);
        Ok(())
    }

    #[test]
    fn never_shows_a_valid_word_ahead_of_the_producer() -> Result {
        let (mut queue, words, depth) = queue(16, 13)?;
        let junk = [Fragment {
            addr: u64::MAX,
            len: 0x7fff_ffff,
            lkey: u32::MAX,
        }; 13];

        // What nobody has cleared looks valid.
        for word in 128 * 4..depth * 4 {
            words.write(word, u64::MAX)?;
        }
        // Three passes over the ring; the device looks at the word where the next WQE will be.
        for i in 0..3 * u64::from(depth) {
            let count = usize::try_from(i % 14).map_err(|_| EINVAL)?;
            let fragments = junk.get(..count).ok_or(EINVAL)?;
            queue.post_ud(&send(fragments), request(i))?;
            let header = SqHeader::from_raw(words.read(queue.head * 4 + 3)?);
            assert!(header.valid().into_bool() != queue.polarity);
            assert_eq!(queue.flush_next(), Some(request(i)));
        }
        Ok(())
    }

    #[test]
    fn flushes_in_order_what_is_left() -> Result {
        let (mut queue, _, _) = queue(16, 4)?;

        for i in 0..3 {
            queue.post_ud(&send(&[FRAGMENT; 4]), request(i))?;
        }
        queue.complete(0);
        queue.post_flushed(request(3))?;
        assert!(queue.has_requests());
        for i in 1..4 {
            assert_eq!(queue.flush_next(), Some(request(i)));
        }
        assert_eq!(queue.flush_next(), None);
        assert!(!queue.has_requests());
        Ok(())
    }

    #[test]
    fn ignores_completions_of_nothing() -> Result {
        let (mut queue, _, _) = queue(16, 1)?;

        for index in [0, 1, 511, 512, u32::MAX] {
            assert_eq!(queue.complete(index), None);
        }
        queue.post_ud(&send(&[FRAGMENT]), request(1))?;
        assert_eq!(queue.complete(1), None);
        assert_eq!(queue.complete(0), Some(request(1)));
        assert_eq!(queue.complete(0), None);
        Ok(())
    }
}
