// SPDX-License-Identifier: GPL-2.0

//! Memory that a process registered for the rings of its queues.
//!
//! The user library registers the memory of a queue as a memory region of a special type before it
//! creates the queue, and names it by its address then. Such a region has no key and the device learns
//! of it only with the queue. A queue *takes* its memory: while it does, the region cannot be
//! deregistered, and no other queue can have it.

use kernel::{
    dma::DmaAddress,
    new_mutex,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sizes::SZ_4K,
    sync::{
        atomic::{
            Acquire,
            AtomicFlag,
            Full,
            Release, //
        },
        Arc,
        Mutex, //
    },
};
use rdma::umem::{
    PageSize,
    Umem, //
};

use super::abi::{
    MemRegReq,
    MemRegType, //
};

/// Bytes in a page of a ring.
pub(crate) const PAGE: usize = SZ_4K;

/// What a piece of memory was registered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RingUse {
    /// The rings of a queue pair, its send queue first, and its shadow area behind them.
    Qp {
        /// Pages of the send ring.
        sq_pages: usize,
        /// Pages of the receive ring.
        rq_pages: usize,
    },
    /// The ring of a completion queue, or its shadow area.
    Cq {
        /// Pages of it.
        pages: usize,
    },
}

impl RingUse {
    /// Checks what the user library says of `available` pages; `None` if it is not a ring.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it says that there are more, `EOPNOTSUPP` for a kind of queue that is not there.
    pub(crate) fn from_request(request: &MemRegReq, available: usize) -> Result<Option<Self>> {
        let (sq_pages, rq_pages, cq_pages) = (
            usize::from(request.sq_pages),
            usize::from(request.rq_pages),
            usize::from(request.cq_pages),
        );

        match MemRegType::try_from(request.reg_type)? {
            MemRegType::Mem => Ok(None),
            MemRegType::Qp => {
                // Numbers of 16 bits: no overflow.
                if sq_pages + rq_pages + 1 > available {
                    return Err(EINVAL);
                }
                Ok(Some(RingUse::Qp { sq_pages, rq_pages }))
            }
            MemRegType::Cq => {
                if cq_pages == 0 || cq_pages > available {
                    return Err(EINVAL);
                }
                Ok(Some(RingUse::Cq { pages: cq_pages }))
            }
        }
    }
}

/// A registered piece of memory.
pub(crate) struct RingMemory {
    /// Its address in the process.
    start: u64,
    purpose: RingUse,
    /// Bus addresses of its pages.
    pages: KVVec<DmaAddress>,
    /// A queue has it.
    taken: AtomicFlag,
    /// Keeps the pages.
    _umem: Umem,
}

impl RingMemory {
    /// Notes the pages of `umem`, which starts at `start` in the process.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it does not start at a page.
    pub(crate) fn new(start: u64, purpose: RingUse, umem: Umem) -> Result<Arc<Self>> {
        if start % PageSize::BASE.get() != 0 {
            return Err(EINVAL);
        }
        let mut pages = KVVec::with_capacity(umem.num_blocks(PageSize::BASE), GFP_KERNEL)?;
        for address in umem.blocks(PageSize::BASE) {
            pages.push(address, GFP_KERNEL)?;
        }
        Ok(Arc::new(
            Self {
                start,
                purpose,
                pages,
                taken: AtomicFlag::new(false),
                _umem: umem,
            },
            GFP_KERNEL,
        )?)
    }

    /// Returns what the memory was registered for.
    pub(crate) fn purpose(&self) -> RingUse {
        self.purpose
    }

    /// Returns the bus addresses of `count` pages from `first` on.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there are not so many.
    pub(crate) fn pages(&self, first: usize, count: usize) -> Result<&[DmaAddress]> {
        let end = first.checked_add(count).ok_or(EINVAL)?;
        self.pages.get(first..end).ok_or(EINVAL)
    }
}

/// A piece of memory that a queue has taken; dropping it gives it back.
pub(crate) struct TakenRing(Arc<RingMemory>);

impl core::ops::Deref for TakenRing {
    type Target = RingMemory;

    fn deref(&self) -> &RingMemory {
        &self.0
    }
}

impl TakenRing {
    /// Gives the memory back to the process, which may deregister it, but keeps the pages: the device
    /// may still use them.
    pub(crate) fn abandon(self) -> Arc<RingMemory> {
        self.0.clone()
    }
}

impl Drop for TakenRing {
    fn drop(&mut self) {
        self.0.taken.store(false, Release);
    }
}

/// The memory for queues that a process has registered, by address.
#[pin_data]
pub(crate) struct Rings {
    #[pin]
    by_start: Mutex<RBTree<u64, Arc<RingMemory>>>,
}

impl Rings {
    /// Makes an empty list.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            by_start <- new_mutex!(RBTree::new(), "irdma_rs::verbs::Rings"),
        })
    }

    /// Enters memory.
    ///
    /// # Errors
    ///
    /// `EEXIST` if memory with the same address is registered.
    pub(crate) fn enter(&self, memory: Arc<RingMemory>) -> Result {
        let start = memory.start;
        let node = RBTreeNode::new(start, memory, GFP_KERNEL)?;
        let mut by_start = self.by_start.lock();

        if by_start.get(&start).is_some() {
            return Err(EEXIST);
        }
        by_start.insert(node);
        Ok(())
    }

    /// Removes memory so that no queue can take it any more.
    ///
    /// # Errors
    ///
    /// `EBUSY` if a queue has it.
    pub(crate) fn remove(&self, memory: &RingMemory) -> Result {
        let mut by_start = self.by_start.lock();

        if memory.taken.load(Acquire) {
            return Err(EBUSY);
        }
        let removed = by_start.remove(&memory.start);
        drop(by_start);
        drop(removed);
        Ok(())
    }

    /// Takes the memory that starts at `start` for a queue.
    ///
    /// # Errors
    ///
    /// `ENOENT` if there is none, `EINVAL` if another queue has it.
    pub(crate) fn take(&self, start: u64) -> Result<TakenRing> {
        let by_start = self.by_start.lock();
        let memory = by_start.get(&start).ok_or(ENOENT)?;

        if memory.taken.xchg(true, Full) {
            return Err(EINVAL);
        }
        Ok(TakenRing(memory.clone()))
    }
}

#[kernel::macros::kunit_tests(irdma_rs_rings)]
mod tests {
    use super::*;

    fn request(reg_type: u16, sq_pages: u16, rq_pages: u16, cq_pages: u16) -> MemRegReq {
        MemRegReq {
            reg_type,
            cq_pages,
            rq_pages,
            sq_pages,
        }
    }

    #[test]
    fn believes_no_page_counts() {
        for (request, available, expected) in [
            (request(0, 0xdead, 0xbeef, 0xffff), 1, Ok(None)),
            (
                request(1, 2, 3, 0),
                6,
                Ok(Some(RingUse::Qp {
                    sq_pages: 2,
                    rq_pages: 3,
                })),
            ),
            (request(1, 2, 3, 0), 5, Err(EINVAL)),
            (request(1, 0xffff, 0xffff, 0), 0x1fffe, Err(EINVAL)),
            (request(2, 0, 0, 4), 4, Ok(Some(RingUse::Cq { pages: 4 }))),
            (request(2, 0, 0, 5), 4, Err(EINVAL)),
            (request(2, 0, 0, 0), 4, Err(EINVAL)),
            (request(3, 0, 0, 0), 4, Err(EOPNOTSUPP)),
            (request(4, 0, 0, 0), 4, Err(EINVAL)),
        ] {
            assert_eq!(RingUse::from_request(&request, available), expected);
        }
    }
}
