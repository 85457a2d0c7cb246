# SPDX-License-Identifier: GPL-2.0
"""Threads that attach and detach at the same moment."""

from irdma_suites import driver
from irdma_suites.suite import Suite

_TWICE = ("two threads that miss a group both make it, and one of them is lost "
          "(irdma_attach_mcast)")
_TORN = ("the list of members is rewritten while the device reads it, and commands reach "
         "the device in another order than their changes (irdma_mcast_cqp_op, "
         "irdma_create_mg_ctx)")
_STUCK = ("a detach that the device refuses is forgotten above the driver, whose queue pair "
          "then stays in use (irdma_detach_mcast)")

SUITE = Suite(
    about="attach and detach from several threads at once; the first datagram after",
    guests=1,
    # Stock leaves a device and queue pairs that are of no use to other suites.
    stock_alone=True,
    kernels=("stock", "debug"),
    timeout=240,
    stock_defects={
        r"threads make one group at once": _TWICE,
        r"threads join a live group": _TORN,
        r"threads come and go in 3 groups": _TORN,
        r"every queue pair could be destroyed": _STUCK,
        r"device holds no group in the end": _TWICE,
        r"the driver broke no rule of the device": _TWICE,
        r"kernel does not warn": _STUCK,
    },
    stock_crash="its kernel may write through a NULL pointer under threads (seen once, not traced)",
    stock_allow_warn=(r"WARNING: .*(uverbs_main|restrack|refcount)\.[ch]:",
                      r"refcount_t: underflow", r"restrack: "))

#: How often each thing is done.
ROUNDS, ROUNDS_LONG = 200, 10000


def guest(g) -> None:
    """All among the queue pairs of one process."""
    rounds = ROUNDS_LONG if g.long else ROUNDS
    # Each takes the longer.
    g.ktap("threads", "mcast-race", "-r", rounds // g.slowness)
    g.equal("kernel does not warn", driver.warnings(), [])
