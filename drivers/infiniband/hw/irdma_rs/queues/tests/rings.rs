// SPDX-License-Identifier: GPL-2.0

//! Long runs of the rings next to plain models, with a device that also makes things up.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use rdma::testing::{
    random::Random,
    words::{
        self,
        name,
        CqeArgs,
        ExtArgs,
        SendArgs, //
    }, //
};

use crate::queues::{
    cq::CompletionRing,
    geometry::{
        Capabilities,
        WorkQueue, //
    },
    memory::{
        fake::FakeWords,
        Words, //
    },
    rq::RecvQueue,
    sq::{
        SendQueue,
        SendRequest,
        UdSend, //
    },
    wqe::{
        fragment_word,
        quanta_for_fragments,
        Fragment, //
    },
};

/// Steps of a run: several passes over the smallest rings.
const STEPS: u32 = 4200;

/// Quanta of a send ring that are never used.
const GUARD: u32 = 257;

fn expect(good: bool, step: u32, what: &str) -> Result {
    if good {
        return Ok(());
    }
    pr_err!("irdma_rs: rings: step {step}: {what}\n");
    Err(EINVAL)
}

fn fragments(random: &mut Random) -> [Fragment; 13] {
    core::array::from_fn(|_| Fragment {
        addr: random.bits(64),
        len: random.bits32(31),
        lkey: random.bits32(32),
    })
}

/// A WQE in a send ring.
#[derive(Clone, Copy)]
struct Posted {
    start: u32,
    quanta: u32,
    /// `None` for padding.
    request: Option<SendRequest>,
}

/// What a send ring should look like.
struct SendModel {
    depth: u32,
    /// Quanta posted since the beginning.
    head: u64,
    /// What is under way, oldest first.
    posted: KVec<Posted>,
}

impl SendModel {
    fn used(&self) -> u32 {
        self.posted.iter().map(|wqe| wqe.quanta).sum()
    }

    fn place(&self) -> Result<u32> {
        Ok(u32::try_from(self.head % u64::from(self.depth))?)
    }

    /// The valid bit of the current pass.
    fn valid(&self) -> bool {
        (self.head / u64::from(self.depth)) % 2 == 0
    }

    fn push(&mut self, quanta: u32, request: Option<SendRequest>) -> Result {
        let start = self.place()?;
        self.posted.push(
            Posted {
                start,
                quanta,
                request,
            },
            GFP_KERNEL,
        )?;
        self.head += u64::from(quanta);
        Ok(())
    }

    /// The padding that a WQE of `quanta` needs in front.
    fn padding(&self, quanta: u32) -> Result<u32> {
        let at = self.place()? % 8;
        Ok(if at + quanta > 8 { 8 - at } else { 0 })
    }

    fn drop_first(&mut self, count: usize) -> Result {
        for _ in 0..count {
            self.posted.remove(0).map_err(|_| EINVAL)?;
        }
        Ok(())
    }

    /// What the completion of the WQE at `index` means.
    fn complete(&mut self, index: u32) -> Result<Option<SendRequest>> {
        let found = self
            .posted
            .iter()
            .position(|wqe| wqe.start == index && wqe.request.is_some());
        let Some(at) = found else {
            return Ok(None);
        };
        let request = self.posted.get(at).and_then(|wqe| wqe.request);
        self.drop_first(at + 1)?;
        Ok(request)
    }

    /// What the flush of the oldest request means.
    fn flush(&mut self) -> Result<Option<SendRequest>> {
        let at = self.posted.iter().position(|wqe| wqe.request.is_some());
        let request = at
            .and_then(|at| self.posted.get(at))
            .and_then(|wqe| wqe.request);
        let count = at.map_or(self.posted.len(), |at| at + 1);
        self.drop_first(count)?;
        Ok(request)
    }
}

/// Compares the words of a datagram with those that C computes.
fn check_words(
    memory: &Arc<FakeWords>,
    step: u32,
    start: u32,
    valid: bool,
    send: &UdSend<'_>,
    signaled: bool,
) -> Result {
    let base = start * 4;
    let header = words::send_header(&SendArgs {
        valid,
        signaled,
        read_fence: send.fence,
        immediate: send.imm.is_some(),
        fragments: u8::try_from(send.fragments.len())?,
        opcode: if send.solicited {
            name::SQ_SEND_SOLICITED
        } else {
            name::SQ_SEND
        },
        ah: send.ah,
    });
    expect(memory.read(base + 3)? == header, step, "header of a send")?;
    let destination = words::ud_destination(send.dest_qpn, send.dest_qkey);
    expect(memory.read(base + 2)? == destination, step, "destination")?;

    let mut place = 0;
    if let Some(imm) = send.imm {
        expect(memory.read(base)? == u64::from(imm), step, "immediate")?;
        place = 1;
    }
    for fragment in send.fragments {
        let word = base + fragment_word(place);
        let meta = words::fragment(valid, fragment.len, fragment.lkey);
        expect(
            memory.read(word)? == fragment.addr,
            step,
            "fragment address",
        )?;
        expect(memory.read(word + 1)? == meta, step, "fragment")?;
        place += 1;
    }
    // Every further quantum ends in a word whose top bit is the valid bit.
    for quantum in 1..quanta_for_fragments(place) {
        let last = memory.read(base + quantum * 4 + 3)?;
        expect(
            last >> 63 == u64::from(valid),
            step,
            "valid bit of a quantum",
        )?;
    }
    Ok(())
}

/// One run of a send queue.
fn send_run(seed: u64, wrs: u32, sge: u32) -> Result {
    let size = WorkQueue::send(&Capabilities {
        send_wr: wrs,
        send_sge: sge,
        ..Capabilities::default()
    })?;
    let memory = FakeWords::new(size.bytes() / 8)?;
    let mut queue = SendQueue::new(memory.clone(), &size, sge)?;
    let mut random = Random::new(seed);
    let mut model = SendModel {
        depth: size.depth(),
        head: 0,
        posted: KVec::new(),
    };
    let mut refused = 0;

    for step in 0..STEPS {
        // Sometimes the device is slow, and the ring fills up.
        let busy = (step / 700) % 2 == 0;

        match random.below(10) {
            0..=5 => {
                let count = random.index(sge as usize + 1);
                let fragments = fragments(&mut random);
                let send = UdSend {
                    fragments: fragments.get(..count).ok_or(EINVAL)?,
                    imm: random.flip().then(|| random.bits32(32)),
                    ah: random.bits32(25),
                    dest_qpn: random.bits32(24),
                    dest_qkey: random.bits32(32),
                    solicited: random.flip(),
                    fence: random.flip(),
                };
                let request = SendRequest {
                    wr_id: random.next(),
                    signaled: random.flip(),
                    kind: random.bits8(8),
                };
                let places = u32::try_from(count)? + u32::from(send.imm.is_some());
                let quanta = quanta_for_fragments(places);
                let padding = model.padding(quanta)?;
                let fits = model.used() + padding + quanta <= model.depth - GUARD;
                let posted = queue.post_ud(&send, request);

                expect(posted.is_ok() == fits, step, "room in the ring")?;
                if fits {
                    for _ in 0..padding {
                        model.push(1, None)?;
                    }
                    let (start, valid) = (model.place()?, model.valid());
                    model.push(quanta, Some(request))?;
                    check_words(&memory, step, start, valid, &send, request.signaled)?;
                } else {
                    expect(posted == Err(ENOMEM), step, "errno of a full ring")?;
                    refused += 1;
                }
            }
            6 => {
                // Any number the device can make up; one that is under way retires much at once.
                let index = if busy {
                    random.bits32(32) | model.depth
                } else {
                    random.below(model.depth)
                };
                let expected = model.complete(index)?;
                expect(
                    queue.complete(index) == expected,
                    step,
                    "completion of a made up index",
                )?;
            }
            7 if random.chance(1, 4) => {
                let expected = model.flush()?;
                expect(queue.flush_next() == expected, step, "flush")?;
            }
            _ if busy => {}
            _ => {
                let at = random.index(model.posted.len().max(1));
                if let Some(index) = model.posted.get(at).map(|wqe| wqe.start) {
                    let expected = model.complete(index)?;
                    expect(queue.complete(index) == expected, step, "completion")?;
                }
            }
        }
        expect(
            queue.is_empty() == model.posted.is_empty(),
            step,
            "whether the ring is empty",
        )?;
        let requests = model.posted.iter().any(|wqe| wqe.request.is_some());
        expect(queue.has_requests() == requests, step, "what is left")?;
    }
    // Else the test showed less than it says.
    expect(refused > 0, STEPS, "the ring was never full")?;
    expect(
        model.head > 2 * u64::from(model.depth),
        STEPS,
        "the ring was not passed over twice",
    )
}

/// One run of a receive queue.
fn recv_run(seed: u64, wrs: u32, sge: u32) -> Result {
    let size = WorkQueue::recv(&Capabilities {
        recv_wr: wrs,
        recv_sge: sge,
        ..Capabilities::default()
    })?;
    let memory = FakeWords::new(size.bytes() / 8)?;
    let mut queue = RecvQueue::new(memory.clone(), &size, sge)?;
    let mut random = Random::new(seed);
    let (count, shift) = (size.depth() >> size.shift(), size.shift());
    let (mut head, mut tail) = (0u64, 0u64);
    let mut names = KVec::from_elem(0, usize::try_from(count)?, GFP_KERNEL)?;
    let slot = |n: u64| n % u64::from(count);

    for step in 0..STEPS {
        let busy = (step / 300) % 2 == 0;

        if random.flip() {
            let n = random.index(sge as usize + 1);
            let fragments = fragments(&mut random);
            let fragments = fragments.get(..n).ok_or(EINVAL)?;
            let wr_id = random.next();
            let fits = head - tail < u64::from(count) - 1;
            let posted = queue.post(fragments, wr_id);

            expect(posted.is_ok() == fits, step, "room in the ring")?;
            if fits {
                let base = u32::try_from(slot(head) << shift)? * 4;
                let valid = (head / u64::from(count)) % 2 == 0;
                let header = words::recv_header(valid, u8::try_from(n)?);
                expect(memory.read(base + 3)? == header, step, "header")?;
                for (place, fragment) in (0..).zip(fragments) {
                    let word = base + fragment_word(place);
                    let meta = words::fragment(valid, fragment.len, fragment.lkey);
                    expect(memory.read(word)? == fragment.addr, step, "address")?;
                    expect(memory.read(word + 1)? == meta, step, "fragment")?;
                }
                *names.get_mut(usize::try_from(slot(head))?).ok_or(EINVAL)? = wr_id;
                head += 1;
            }
        } else if random.chance(1, 5) {
            // Nothing but the oldest may complete.
            let index = random.bits32(32);
            let oldest = u32::try_from(slot(tail) << shift)?;
            if head == tail || index != oldest {
                expect(queue.complete(index).is_none(), step, "made up index")?;
            }
        } else if !busy {
            let expected = (head != tail).then_some(());
            let expected = match expected {
                Some(()) => names.get(usize::try_from(slot(tail))?).copied(),
                None => None,
            };
            let oldest = u32::try_from(slot(tail) << shift)?;
            let completed = if random.flip() {
                queue.complete(oldest)
            } else {
                queue.flush_next()
            };
            expect(completed == expected, step, "completion")?;
            if completed.is_some() {
                tail += 1;
            }
        }
        expect(queue.is_empty() == (head == tail), step, "empty")?;
    }
    expect(head > 2 * u64::from(count), STEPS, "too few passes")
}

/// One run of a completion ring with a device that obeys.
fn completion_run(seed: u64, entries: u32) -> Result {
    let memory = FakeWords::new(usize::try_from(entries)? * 4)?;
    let shadow = FakeWords::new(8)?;
    let mut ring = CompletionRing::new(memory.clone(), shadow.clone(), entries)?;
    let mut random = Random::new(seed);
    // Entries written and read since the beginning.
    let (mut head, mut tail) = (0u64, 0u64);
    // Of each completion: the number of entries, and its context.
    let mut written: KVec<(u64, CqeArgs, Option<ExtArgs>)> = KVec::new();
    let entries64 = u64::from(entries);

    for step in 0..STEPS {
        let extended = random.flip();
        let need = 1 + u64::from(extended);

        if random.flip() && head + need - tail <= entries64 {
            let first = head;
            let mut put = |words: [u64; 4]| -> Result {
                let base = u32::try_from(head % entries64)? * 4;
                for (i, word) in (0..).zip(words) {
                    memory.write(base + i, word)?;
                }
                head += 1;
                Ok(())
            };
            let pass = |at: u64| (at / entries64) % 2 == 0;
            let args = CqeArgs {
                length: random.bits32(32),
                context: random.bits(64),
                qp: random.bits32(24),
                source_qp: random.bits32(24),
                valid: pass(first),
                sq: random.flip(),
                op: random.bits8(6),
                error: random.flip(),
                solicited: random.flip(),
                ipv4: random.flip(),
                extended,
                wqe_index: random.bits16(15),
                major: random.bits16(16),
                minor: random.bits16(16),
            };
            put(words::cqe(&args))?;
            let ext = if extended {
                // The first half alone is not a completion.
                if written.is_empty() {
                    expect(ring.take()?.is_none(), step, "half a completion")?;
                }
                let ext = ExtArgs {
                    valid: pass(first + 1),
                    imm_valid: random.flip(),
                    imm: random.bits32(32),
                    smac_valid: random.flip(),
                    smac: random.octets(),
                    vlan_valid: random.flip(),
                    vlan: random.bits16(16),
                };
                put(words::ext(&ext))?;
                Some(ext)
            } else {
                None
            };
            written.push((need, args, ext), GFP_KERNEL)?;
        } else {
            expect(
                ring.has_next() == !written.is_empty(),
                step,
                "whether there is a completion",
            )?;
            let taken = ring.take()?;
            if written.is_empty() {
                expect(taken.is_none(), step, "a completion from nowhere")?;
                continue;
            }
            let (n, args, ext) = written.remove(0).map_err(|_| EINVAL)?;
            let taken = taken.ok_or(EINVAL)?;
            tail += n;
            expect(taken.context == args.context, step, "context")?;
            expect(
                taken.status.into_raw() == words::cqe(&args)[3],
                step,
                "status",
            )?;
            let imm = taken.extension.map(|e| e.imm);
            let c_imm = ext.map(|e| e.imm_valid.then_some(e.imm));
            expect(imm == c_imm, step, "extension")?;
            ring.release()?;
            let consumer = words::consumer(u32::try_from(tail % entries64)?);
            expect(shadow.read(0)? == consumer, step, "consumer index")?;
        }
    }
    expect(head > 3 * entries64, STEPS, "too few passes")
}

/// A device that writes anything anywhere: nothing to compare, but nothing may break.
fn hostile_run(seed: u64, entries: u32) -> Result {
    let memory = FakeWords::new(usize::try_from(entries)? * 4)?;
    let shadow = FakeWords::new(8)?;
    let mut ring = CompletionRing::new(memory.clone(), shadow.clone(), entries)?;
    let mut random = Random::new(seed);
    let mut taken = 0;

    for step in 0..STEPS {
        // Often the word that the driver waits for.
        let word = if random.flip() {
            u32::try_from(shadow.read(0)?)? * 4 + 3
        } else {
            random.below(entries * 4)
        };
        memory.write(word, random.bits(64))?;
        for _ in 0..entries {
            let Some(cqe) = ring.take()? else { break };
            taken += 1;
            // What the driver looks at.
            let _ = (
                cqe.status.sq_op(),
                cqe.status.wqe_idx().get() < 1 << 15,
                cqe.qp.qp_id().get() < 1 << 24,
            );
        }
        ring.release()?;
        expect(shadow.read(0)? < u64::from(entries), step, "consumer index")?;
    }
    expect(taken > 100, STEPS, "too few completions")
}

#[kernel::macros::kunit_tests(irdma_rs_queue_rings)]
mod suite {
    use super::*;

    #[test]
    fn send_queues_agree_with_a_model() -> Result {
        for (seed, wrs, sge) in [(1, 8, 0), (2, 100, 1), (3, 16, 4), (4, 30, 13), (5, 64, 7)] {
            send_run(seed, wrs, sge)?;
        }
        Ok(())
    }

    #[test]
    fn receive_queues_agree_with_a_model() -> Result {
        for (seed, wrs, sge) in [(1, 7, 1), (2, 8, 1), (3, 20, 3), (4, 63, 13), (5, 0, 0)] {
            recv_run(seed, wrs, sge)?;
        }
        Ok(())
    }

    #[test]
    fn completion_rings_agree_with_a_model() -> Result {
        for (seed, entries) in [(1, 2), (2, 3), (3, 6), (4, 31), (5, 126)] {
            completion_run(seed, entries)?;
        }
        Ok(())
    }

    #[test]
    fn a_device_that_makes_completions_up_does_no_harm() -> Result {
        for (seed, entries) in [(1, 2), (2, 3), (3, 8), (4, 31)] {
            hostile_run(seed, entries)?;
        }
        Ok(())
    }
}
