# SPDX-License-Identifier: GPL-2.0
"""A card with far more queue pairs than the device has multicast groups."""

from irdma_suites.suite import Suite

SUITE = Suite(
    about="65536 queue pairs, 4096 group objects: what is reported can be had, for ever",
    guests=1,
    alone=True,
    card="qps=65536,mcast=4096",
    timeout=240,
    stock_defects={
        r"max_mcast_grp is what a command can name":
            "max_mcast_grp is the number of QPs (irdma_query_device)",
        r"pairs of attach and detach":
            "group indexes go round up to the number of QPs, and a command names 4095 "
            "(irdma_attach_mcast, irdma_access_mcast_grp)",
        r"exactly max_mcast_grp groups":
            "max_mcast_grp is the number of QPs, the device takes 4095 groups "
            "(irdma_query_device)",
    })


def guest(g) -> None:
    """The number, all groups at once, and one group more often than there are indexes."""
    g.equal("max_mcast_grp is what a command can name", g.device_attribute("max_mcast_grp"),
            4095)
    g.ktap("limit", "mcast-check", "--limits", "--only", "max_mcast_grp")
    g.ktap("one group", "mcast-churn", "-n", 70000 if g.long else 9000, "--same")
