# SPDX-License-Identifier: GPL-2.0
"""Groups and VLANs: where the host has joined decides which packets a member gets."""

from contextlib import ExitStack

from irdma_suites.fabric import interface, join
from irdma_suites.shell import Shell
from irdma_suites.suite import Suite

SUITE = Suite(
    about="groups joined on VLAN interfaces take packets of these VLANs only",
    guests=2,
    kernels=("stock", "debug"),
    timeout=240,
    stock_defects={
        r"joined on VLAN (100|100 and 200) only$":
            "groups never have a VLAN: the group's address is looked up as if it were one "
            "of ours (irdma_get_vlan_ipv4, irdma_get_vlan_mac_ipv6)",
        r"attached before and after the join on VLAN 100$":
            "groups never have a VLAN (irdma_get_vlan_ipv4)",
    })

VLANS = (100, 200)
#: Where datagrams come from: the interface itself, and its VLANs.
SOURCES = (0, *VLANS)
#: Every member is in this one, too: its datagram says that all before it have come.
MARKERS = {4: "239.5.255.1", 6: "ff0e::5:ffff"}


def guest(g) -> None:
    """Node 0 sends on every VLAN, node 1 has the members."""
    for vlan in VLANS:
        name = f"{g.netdev}.{vlan}"
        g.succeeds(f"interface of VLAN {vlan}", "ip", "link", "add", "link", g.netdev, "name",
                   name, "type", "vlan", "id", vlan)
        g.run("ip", "link", "set", name, "up")
        for address in addresses(g, vlan):
            g.run("ip", "addr", "add", address, "dev", name, "nodad")
        g.check(f"VLAN {vlan}: addresses are in the GID table", g.wait(
            lambda v=vlan: all(g.gid_index(a.split("/")[0]) is not None
                               for a in addresses(g, v))), "not in 30 s")
    g.sync()
    for family in (4, 6):
        number = 0
        for name, joins, served in (
                ("joined nowhere", (), SOURCES),
                ("joined on VLAN 100 only", (100,), (100,)),
                ("joined on VLAN 100 and 200 only", (100, 200), (100, 200)),
                ("joined on the interface itself", (0,), SOURCES),
                ("joined on the interface and VLAN 100", (0, 100), SOURCES)):
            number += 1
            _case(g, f"IPv{family} group {name}", family, number, joins, served)
        _before_and_after(g, family)
    for vlan in VLANS:
        g.succeeds(f"VLAN {vlan} goes", "ip", "link", "del", f"{g.netdev}.{vlan}")
    g.check("the device is as before", g.wait(g.device_ready), "not in 30 s")
    g.sync()


def addresses(g, vlan: int) -> tuple:
    """Ours on a VLAN."""
    return f"10.99.{vlan}.{g.node + 1}/24", f"fd99:{vlan}::{g.node + 1}/64"


def group_of(family: int, number: int) -> str:
    return f"239.5.{number}.1" if family == 4 else f"ff0e::5:{number}"


def token_of(source: int) -> int:
    return 1000 + source


def _send(g, family: int, group: str) -> list:
    """One datagram from each source, then the marker; what went wrong."""
    faults = []
    with Shell(g.device) as shell:
        for place, source in enumerate(SOURCES):
            for words in (("open", place, family, interface(g, source)),
                          ("send", place, group, 1, token_of(source))):
                if err := shell.err(*words):
                    faults.append(f"{words[0]} on VLAN {source} gives {err}")
        if err := shell.err("mark", 0, MARKERS[family], 9):
            faults.append(f"mark gives {err}")
    return faults


def _got(shell: Shell, place: int, served) -> str:
    """Empty if a member got one datagram from each source that it is to be served from."""
    said = shell("collect", place, 9)
    tokens = sorted(d["token"] for d in said["got"])
    if said["err"]:
        return f"collect gives {said['err']}"
    if tokens != sorted(map(token_of, served)):
        return (f"got those of VLANs {[t - 1000 for t in tokens]}, not of {list(served)} "
                "(0: untagged)")
    return "" if all(d["right"] for d in said["got"]) else f"got {said['got']}"


def _case(g, name: str, family: int, number: int, joins, served) -> None:
    """The host joins, the queue pair attaches, each source sends."""
    group = group_of(family, number)
    if g.leads:
        g.sync()
        faults = _send(g, family, group)
        g.check(f"{name}: sender", not faults, "; ".join(faults))
        g.sync()
        return
    faults = []
    with ExitStack() as joined, Shell(g.device) as shell:
        for vlan in joins:
            joined.enter_context(join(group, interface(g, vlan)))
        shell("open", 0, family)
        for one in (group, MARKERS[family]):
            if err := shell.err("attach", 0, one):
                faults.append(f"attach to {one} gives {err}")
        g.sync()
        g.sync()
        if wrong := _got(shell, 0, served):
            faults.append(wrong)
        # The host leaves first: what was attached is what is detached.
        joined.close()
        for one in (group, MARKERS[family]):
            if err := shell.err("detach", 0, one):
                faults.append(f"detach from {one} gives {err}")
        if left := g.nic("groups"):
            faults.append(f"device still has {left}")
    g.check(name, not faults, "; ".join(faults))


def _before_and_after(g, family: int) -> None:
    """One queue pair attached before the host joined on a VLAN, one after."""
    name = f"IPv{family} group attached before and after the join on VLAN 100"
    group = group_of(family, 50)
    if g.leads:
        g.sync()
        faults = _send(g, family, group)
        g.check(f"{name}: sender", not faults, "; ".join(faults))
        g.sync()
        return
    faults = []
    with ExitStack() as joined, Shell(g.device) as shell:
        for place in (0, 1):
            shell("open", place, family)
            shell("attach", place, MARKERS[family])
        for place in (0, 1):
            if err := shell.err("attach", place, group):
                faults.append(f"attach {place} gives {err}")
            if place == 0:
                joined.enter_context(join(group, interface(g, 100)))
        g.sync()
        g.sync()
        for place, served in ((0, SOURCES), (1, (100,))):
            if wrong := _got(shell, place, served):
                faults.append(f"queue pair {place} {wrong}")
        for place in (1, 0):
            for one in (group, MARKERS[family]):
                if err := shell.err("detach", place, one):
                    faults.append(f"detach gives {err}")
        if left := g.nic("groups"):
            faults.append(f"device still has {left}")
    g.check(name, not faults, "; ".join(faults))
