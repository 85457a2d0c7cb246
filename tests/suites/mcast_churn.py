# SPDX-License-Identifier: GPL-2.0
"""Attach and detach without end: no failure, and all memory comes back."""

from contextlib import ExitStack

from irdma_suites import memory
from irdma_suites.suite import Suite

SUITE = Suite(
    about="pairs of attach and detach of changing groups; memory afterwards",
    guests=1,
    kernels=("stock", "debug"),
    timeout=240)

#: Pairs of each run; `tests/suites/run --long mcast_churn` does a million in the first.
PAIRS, PAIRS_LONG = 8000, 1_000_000
#: Pairs before anything is counted: each group index has been used once then. Group contexts
#: of irdma_rs come in pages of 64 indexes, 64 pages in all, which stay.
WARM_UP = 5000
#: Pairs of the others.
FEWER, FEWER_LONG = 4000, 100_000
#: Bytes of slab per pair, and in all, that are no leak: caches that grow a little.
PER_PAIR, IN_ALL = 0.2, 192 * 1024


def guest(g) -> None:
    """Warm up, churn, compare."""
    pairs, fewer = (PAIRS_LONG, FEWER_LONG) if g.long else (PAIRS, FEWER)
    # Each takes the longer.
    pairs, fewer = pairs // g.slowness, fewer // g.slowness
    g.run("mcast-churn", "-n", WARM_UP, timeout=120)
    for name, pairs, options in (
            ("one thread", pairs, ()),
            ("one thread in 32 groups", fewer, ("-w", 32)),
            ("4 threads", fewer, ("-t", 4)),
            ("4 threads in 8 groups each, the same", fewer, ("-t", 4, "-w", 8, "-s"))):
        g.run("mcast-churn", "-n", 1000, *options)
        with ExitStack() as counting:
            coherent = None
            if memory.Coherent.available():
                coherent = counting.enter_context(memory.Coherent())
            before = memory.settled_slab()
            g.ktap(name, "mcast-churn", "-n", pairs, *options)
            after = memory.settled_slab()
            _coherent(g, name, coherent)
        more = sum(after.values()) - sum(before.values())
        g.note(f"{name}: {more} bytes of slab more")
        if g.kernel == "stock":
            g.check(f"{name}: slab is as before", more < IN_ALL + PER_PAIR * pairs,
                    f"{more} bytes more; most: {memory.grown(before, after)}")
        else:
            g.skip(f"{name}: slab is as before",
                   "KASAN holds back what is freed; kmemleak looks for leaks instead")
    g.equal("the driver broke no rule of the device",
            g.nic("check")["violations"], [])


def _coherent(g, name: str, coherent) -> None:
    """All coherent memory that was taken during the run has been given back."""
    name = f"{name}: coherent memory is as before"
    if not coherent:
        g.skip(name, "this kernel cannot count its events")
        return
    taken, given = coherent.counts()
    g.note(f"{name}: {taken} allocations, {given} given back")
    g.equal(name, taken - given, 0)
