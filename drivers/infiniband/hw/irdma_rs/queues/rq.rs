// SPDX-License-Identifier: GPL-2.0

//! The receive queue of a kernel queue pair.
//!
//! All WQEs have the size the queue was created with. There is no doorbell: the device looks at the
//! next WQE when a message arrives, so the header, which makes it valid, is written last.

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
        Fragment,
        RqHeader,
        HEADER,
        QUANTUM_WORDS, //
    },
};

/// A receive queue; locked by its queue pair.
///
/// # Invariants
///
/// `head` and `tail` are below `count`, a power of two, and `requests` has that many entries.
pub(crate) struct RecvQueue<M> {
    memory: M,
    /// WQEs in the ring.
    count: u32,
    /// A WQE has `1 << shift` quanta.
    shift: u32,
    /// Where the next WQE goes.
    head: u32,
    /// The WQE that the device takes next.
    tail: u32,
    /// Valid bit of the current pass; the first pass uses `true`.
    polarity: bool,
    max_fragments: u32,
    /// The caller's names for the requests.
    requests: KVec<u64>,
}

impl<M: Words> RecvQueue<M> {
    /// Creates a queue in zeroed `memory` of the given size.
    pub(crate) fn new(memory: M, size: &WorkQueue, max_fragments: u32) -> Result<Self> {
        let count = size.depth() >> size.shift();
        let requests = usize::try_from(count).map_err(|_| EINVAL)?;

        // INVARIANT: The depth is a power of two of at least `8 << shift`.
        Ok(Self {
            memory,
            count,
            shift: size.shift(),
            head: 0,
            tail: 0,
            polarity: true,
            max_fragments,
            requests: KVec::from_elem(0, requests, GFP_KERNEL)?,
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
        // `count` is a power of two.
        index & (self.count - 1)
    }

    /// Writes a receive WQE; the device may take it at once.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the queue is full, `EINVAL` for a request the device has no words for. The queue
    /// is as before.
    pub(crate) fn post(&mut self, fragments: &[Fragment], wr_id: u64) -> Result {
        let places = u32::try_from(fragments.len()).map_err(|_| EINVAL)?;

        if places > self.max_fragments {
            return Err(EINVAL);
        }
        for fragment in fragments {
            fragment.words(true)?;
        }
        let header = RqHeader::zeroed()
            .try_with_add_frag_cnt(additional_fragments(places))
            .map_err(|_| EINVAL)?
            .with_valid(self.polarity);

        self.room()?;
        // At most 32768 quanta of four words: no overflow.
        let base = (self.head << self.shift) * QUANTUM_WORDS;
        for i in 0..=additional_fragments(places) {
            let fragment = usize::try_from(i)
                .ok()
                .and_then(|i| fragments.get(i))
                .copied()
                .unwrap_or_default();
            let (addr, meta) = fragment.words(self.polarity)?;
            self.memory.write(base + fragment_word(i), addr)?;
            self.memory.write(base + fragment_word(i) + 1, meta)?;
        }
        self.memory.write(base + 2, 0)?;
        // Orders the words of the WQE before the header that makes the device read them.
        dma_mb(Write);
        self.memory.write(base + HEADER, header.into_raw())?;
        self.advance(wr_id)
    }

    /// Makes a work request part of a queue that the device no longer looks at.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the queue is full.
    pub(crate) fn post_flushed(&mut self, wr_id: u64) -> Result {
        self.room()?;
        self.advance(wr_id)
    }

    fn room(&self) -> Result {
        if self.used() + 1 >= self.count {
            return Err(ENOMEM);
        }
        Ok(())
    }

    fn advance(&mut self, wr_id: u64) -> Result {
        let at = usize::try_from(self.head).map_err(|_| EINVAL)?;

        *self.requests.get_mut(at).ok_or(EINVAL)? = wr_id;
        // INVARIANT: Wrapped.
        self.head = self.wrap(self.head + 1);
        if self.head == 0 {
            self.polarity = !self.polarity;
        }
        Ok(())
    }

    /// Takes the WQE that begins at quantum `index` as done and returns the name of its request.
    ///
    /// `None` if it is not the oldest one under way: the device made a mistake.
    pub(crate) fn complete(&mut self, index: u32) -> Option<u64> {
        if self.is_empty() || index != self.tail << self.shift {
            return None;
        }
        self.flush_next()
    }

    /// Takes the oldest request of a flushed queue.
    pub(crate) fn flush_next(&mut self) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        let request = self.requests.get(usize::try_from(self.tail).ok()?).copied();
        // INVARIANT: Wrapped.
        self.tail = self.wrap(self.tail + 1);
        request
    }
}

#[kernel::macros::kunit_tests(irdma_rs_rq)]
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

    fn queue(wrs: u32, sge: u32) -> Result<(RecvQueue<Arc<FakeWords>>, Arc<FakeWords>)> {
        let size = WorkQueue::recv(&Capabilities {
            recv_wr: wrs,
            recv_sge: sge,
            ..Capabilities::default()
        })?;
        let words = FakeWords::new(size.bytes() / 8)?;
        Ok((RecvQueue::new(words.clone(), &size, sge)?, words))
    }

    #[test]
    fn writes_the_worked_example() -> Result {
        let (mut queue, words) = queue(7, 1)?;

        queue.post(&[FRAGMENT], 1)?;
        assert_eq!(words.read(0)?, 0x1000);
        assert_eq!(words.read(1)?, 0x8000_0040_0000_0007);
        assert_eq!(words.read(2)?, 0);
        assert_eq!(words.read(3)?, 1 << 63);
        Ok(())
    }

    #[test]
    fn fills_an_even_number_of_fragments() -> Result {
        let (mut queue, words) = queue(7, 2)?;

        queue.post(&[FRAGMENT; 2], 1)?;
        assert_eq!(words.read(3)?, 0x8000_0080_0000_0000);
        assert_eq!(words.read(4)?, 0x1000);
        assert_eq!(words.read(6)?, 0);
        assert_eq!(words.read(7)?, 1 << 63);
        assert_eq!(queue.post(&[FRAGMENT; 3], 2), Err(EINVAL));
        Ok(())
    }

    #[test]
    fn toggles_polarity_and_completes_in_order() -> Result {
        let (mut queue, words) = queue(7, 1)?;

        for i in 0..20 {
            queue.post(&[FRAGMENT], i)?;
            let at = u32::try_from(i % 8).map_err(|_| EINVAL)?;
            let valid = words.read(at * 4 + 3)? >> 63 == 1;
            assert_eq!(valid, (i / 8) % 2 == 0);
            assert_eq!(queue.complete((at + 1) % 8), None);
            assert_eq!(queue.complete(at), Some(i));
        }
        assert!(queue.is_empty());
        Ok(())
    }

    #[test]
    fn holds_what_it_promises_and_no_more() -> Result {
        let (mut queue, _) = queue(7, 1)?;

        for i in 0..7 {
            queue.post(&[FRAGMENT], i)?;
        }
        assert_eq!(queue.post(&[FRAGMENT], 7), Err(ENOMEM));
        assert_eq!(queue.post_flushed(7), Err(ENOMEM));
        for i in 0..7 {
            assert_eq!(queue.flush_next(), Some(i));
        }
        assert_eq!(queue.flush_next(), None);
        Ok(())
    }
}
