# SPDX-License-Identifier: GPL-2.0
"""Every reported multicast limit is reached, and nothing beyond it."""

from irdma_suites.suite import Suite

SUITE = Suite(
    about="all groups with all members at once; one more is ENOMEM",
    guests=1,
    kernels=("stock", "debug"),
    timeout=300,
    stock_defects={
        r"every group takes every member":
            "max_mcast_grp is the number of QPs, the device takes 4095 groups "
            "(irdma_query_device)",
    })


def guest(g) -> None:
    """One process with as many queue pairs as a group takes."""
    g.ktap("limits", "mcast-limits", *(["--all"] if g.long else []))
