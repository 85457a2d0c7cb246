# SPDX-License-Identifier: GPL-2.0
"""Multicast through unmodified libibverbs, within one guest and between two."""

from irdma_suites.suite import Suite

SUITE = Suite(
    about="who gets a multicast datagram, what attach and detach refuse",
    guests=2,
    kernels=("stock", "debug"),
    timeout=300,
    stock_defects={
        r"IPv6 group: device lists members and standard MAC":
            "IPv6 groups get the MAC of the address's first octets (irdma_mcast_mac)",
        r"exactly max_mcast_grp groups":
            "max_mcast_grp is the number of QPs, the device takes 4095 groups "
            "(irdma_query_device)",
        # ice tells its clients of a new MTU from its service task, up to a second later.
        r"^MTU 9000: .*payload that fills the MTU":
            "query_port has the new MTU at once, queue pairs get it only when "
            "AFTER_MTU_CHANGE was heard (irdma_query_port, icrdma_iidc_event_handler)",
    })


#: Bursts of 100 datagrams for 8 members of which one is bad; `--long` sends 100,000 for each
#: of the three ways of being so.
BURSTS, BURSTS_LONG = 2, 334


def guest(g) -> None:
    """Node 0 leads, the others follow."""
    if g.leads:
        g.ktap("one node", "mcast-check", "--limits", "--bursts",
               BURSTS_LONG if g.long else BURSTS)
    g.sync()
    _between(g, "two nodes")

    # A jumbo frame carries the largest path MTU that there is.
    g.succeeds("netdev takes MTU 9000", "ip", "link", "set", g.netdev, "mtu", 9000)
    g.check("port is active again", g.wait(g.device_ready), "not within 30 s")
    g.sync()
    _between(g, "MTU 9000", "--only", "MTU")
    g.succeeds("netdev takes MTU 1500", "ip", "link", "set", g.netdev, "mtu", 1500)
    g.check("port is active at the end", g.wait(g.device_ready), "not within 30 s")
    g.sync()


def _between(g, label: str, *options) -> None:
    if g.leads:
        g.ktap(label, "mcast-check", *options, *g.peers)
    else:
        g.succeeds(f"{label}: follower served to the end", "mcast-check", "--follow",
                   timeout=SUITE.timeout)
    g.sync()
