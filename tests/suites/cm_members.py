# SPDX-License-Identifier: GPL-2.0
"""rdma_cm's multicast calls, each as its man page says, through a switch that snoops."""

import ipaddress
from pathlib import Path

from irdma_suites.ktap import FAIL, PASS, Outcome
from irdma_suites.pcap import JOINS, LEAVES, frames, igmp_records
from irdma_suites.shell import Shell
from irdma_suites.suite import Suite

SUITE = Suite(
    about="join, join_ex, leave and attach as their man pages say, behind a snooping switch",
    guests=2,
    on_request=("rxe",),
    kernels=("stock", "debug"),
    snoop="interval=2,response=1,fast_leave=true",
    timeout=600)

#: Groups that cm-check joins, and those it only sends to.
JOINED = ipaddress.ip_network("239.76.0.0/16")
SEND_ONLY = ipaddress.ip_network("239.77.0.0/16")
#: Groups that one case alone joins.
AT_LEAST = 100
#: Largest MTU of a netdev that is too small for datagrams of 256 bytes with 96 of headers.
TOO_SMALL = 351


def guest(g) -> None:
    """Node 0 leads, node 1 follows."""
    if g.leads:
        g.ktap("within", "cm-check")
        g.sync()
        g.ktap("between", "cm-check", g.peers[0])
    else:
        g.sync()
        g.succeeds("follower served to the end", "cm-check", "--follow", timeout=SUITE.timeout)
    g.sync()
    if g.leads:
        _small_mtu(g)
    g.sync()


def _small_mtu(g) -> None:
    """The smallest MTU of a group is 256: less, with its headers, cannot be joined."""
    for mtu, want in ((TOO_SMALL, "EINVAL"), (TOO_SMALL + 1, "")):
        g.succeeds(f"netdev takes MTU {mtu}", "ip", "link", "set", g.netdev, "mtu", mtu)
        with Shell(g.device) as shell:
            g.equal(f"netdev MTU {mtu}: an identifier is bound", shell.err("bind", 0, g.ip), "")
            g.equal(f"netdev MTU {mtu}: join gives {want or 'success'}",
                    shell.err("join", 0, f"239.78.201.{mtu % 256}"), want)
    g.succeeds("netdev takes MTU 1500", "ip", "link", "set", g.netdev, "mtu", 1500)
    # There is no IPv6 below 1280, and what had an address then has none.
    g.run("ip", "addr", "add", f"{g.ip6}/64", "dev", g.netdev, "nodad")
    g.check("port is active at the end", g.wait(g.device_ready), "not in 30 s")


def judge(shares: dict):
    """What the hosts have reported, as the wire shows it."""
    for driver, share in shares.items():
        joined, left, silent = set(), set(), set()
        for frame in frames(Path(share) / "pcap/fabric.pcap"):
            for kind, group in igmp_records(frame):
                if group in SEND_ONLY:
                    silent.add(group)
                if group in JOINED and kind in JOINS:
                    joined.add(group)
                if group in JOINED and kind in LEAVES:
                    left.add(group)
        yield driver, _judged("capture: joins of full members are reported by IGMP",
                              len(joined) >= AT_LEAST, f"only of {len(joined)} groups")
        yield driver, _judged("capture: each group that was joined is reported as left",
                              not joined - left, f"not {sorted(map(str, joined - left))[:3]}")
        yield driver, _judged("capture: no send-only join is reported by IGMP",
                              joined and not silent, f"but {sorted(map(str, silent))[:3]}")


def _judged(name: str, passed: bool, reason: str) -> Outcome:
    return Outcome(name, PASS if passed else FAIL, "" if passed else reason)
