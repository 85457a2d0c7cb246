# SPDX-License-Identifier: GPL-2.0
"""A card that grants fewer multicast groups than a command could name."""

from irdma_suites.suite import Suite

SUITE = Suite(
    about="100 group objects: 99 groups can be had, and one more is ENOMEM",
    guests=1,
    kernels=("stock", "debug"),
    card="mcast=100",
    timeout=120,
    stock_defects={
        r"max_mcast_grp is what the card grants|every group takes every member":
            "max_mcast_grp is the number of QPs, whatever the card grants "
            "(irdma_query_device)",
        r"pairs of attach and detach":
            "group indexes go round up to the number of QPs, whatever the card grants "
            "(irdma_attach_mcast)",
    })


def guest(g) -> None:
    """Index 0 is reserved, so there is one group less than objects."""
    g.equal("max_mcast_grp is what the card grants", g.device_attribute("max_mcast_grp"), 99)
    g.ktap("limits", "mcast-limits", "--all")
    g.ktap("one group", "mcast-churn", "-n", 1000, "--same")
