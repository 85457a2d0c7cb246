# SPDX-License-Identifier: GPL-2.0
"""UD unicast and the life of objects, through unmodified libibverbs."""

from irdma_suites.suite import Suite

SUITE = Suite(
    about="UD unicast between two guests and within one; objects come and go",
    guests=2,
    kernels=("stock", "debug"),
    timeout=240)


def guest(g) -> None:
    """Node 0 leads, node 1 follows."""
    if g.leads:
        g.ktap("within", "ud-check")
        g.sync()
        g.ktap("between", "ud-check", g.peers[0])
        g.ktap("leaks", "leak-check")
    else:
        g.sync()
        g.succeeds("follower served to the end", "ud-check", "--follow", timeout=200)
    g.sync()
