# SPDX-License-Identifier: GPL-2.0
"""The card against stock rdma_rxe: both must mean the same by every bit of a frame."""

from irdma_suites.suite import Suite

SUITE = Suite(
    about="UD unicast with stock rdma_rxe, both ways: the wire format is real",
    guests=2,
    drivers=("irdma_rs,rxe", "irdma,rxe"),
    kernels=("stock", "debug"),
    timeout=150)


def guest(g) -> None:
    """Node 0 has the card and leads."""
    if g.leads:
        g.ktap("card and rxe", "ud-check", g.peers[0])
    else:
        g.succeeds("rxe side served to the end", "ud-check", "--follow", timeout=140)
    g.sync()
