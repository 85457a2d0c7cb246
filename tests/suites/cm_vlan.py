# SPDX-License-Identifier: GPL-2.0
"""rdma_cm on VLAN interfaces: the join, the report and the traffic stay in the VLAN."""

from contextlib import ExitStack

from irdma_suites.shell import Shell
from irdma_suites.suite import Suite

SUITE = Suite(
    about="groups joined by rdma_cm on VLAN interfaces, behind a snooping switch",
    guests=2,
    on_request=("rxe",),
    snoop="interval=2,response=1,fast_leave=true",
    timeout=300,
    stock_defects={
        r"^one namespace: the member on VLAN 100|^a namespace .*: the member on VLAN":
            "groups never have a VLAN (irdma_get_vlan_ipv4)",
    },
    rxe_defects={
        r"^one namespace: the member on VLAN 100":
            "groups never have a VLAN",
        r"^a namespace for each VLAN: the member on VLAN":
            "datagrams are received in the namespace that the device was added in alone",
    })

VLANS = (100, 200)
GROUP = "239.80.1.1"
#: Both members are in this one, on their VLANs; its datagram says that all have come.
MARKER = "239.80.1.2"


def guest(g) -> None:
    """Node 0 has the members, node 1 sends."""
    for vlan in VLANS:
        name = f"{g.netdev}.{vlan}"
        g.succeeds(f"interface of VLAN {vlan}", "ip", "link", "add", "link", g.netdev, "name",
                   name, "type", "vlan", "id", vlan)
        g.run("ip", "link", "set", name, "up")
        for text in (f"{_address(g, vlan)}/24", f"fd98:{vlan}::{g.node + 1}/64"):
            g.run("ip", "addr", "add", text, "dev", name, "nodad")
        g.check(f"VLAN {vlan}: its address is in the GID table",
                g.wait(lambda v=vlan: g.gid_index(_address(g, v)) is not None), "not in 30 s")
    g.sync()
    _between(g)
    _apart(g)
    for vlan in VLANS:
        # Those of node 0 have gone with their namespaces.
        if not g.leads:
            g.succeeds(f"VLAN {vlan} goes", "ip", "link", "del", f"{g.netdev}.{vlan}")
    g.check("the device is as before", g.wait(g.device_ready), "not in 30 s")
    g.sync()


def _address(g, vlan: int, node=None) -> str:
    return f"10.98.{vlan}.{(g.node if node is None else node) + 1}"


def _between(g) -> None:
    """All that cm-check knows, on a VLAN."""
    vlan = VLANS[0]
    words = ("cm-check", "--netdev", f"{g.netdev}.{vlan}")
    if g.leads:
        g.ktap(f"on VLAN {vlan}", *words, _address(g, vlan, 1))
    else:
        g.succeeds("follower on a VLAN served to the end", *words, "--follow",
                   timeout=SUITE.timeout)
    g.sync()


def _apart(g) -> None:
    """One group on two VLANs: a member on each, and a sender on each and on none.

    An attach names no VLAN, so the driver goes by where the host has joined: on the
    first VLAN alone when the first member attaches, on both when the second does. A
    process sees its own network namespace only.
    """
    for how, spaces, served in (
            ("one namespace", (None, None), (VLANS[:1], VLANS)),
            ("a namespace for each VLAN", ("first", "second"), (VLANS[:1], VLANS[1:]))):
        if g.leads:
            for space, vlan in zip(spaces, VLANS):
                if space:
                    _move(g, vlan, space)
            _receive(g, how, spaces, served)
            for space in filter(None, spaces):
                g.succeeds(f"namespace {space} goes", "ip", "netns", "del", space)
        else:
            g.sync()
            _send(g)
            g.sync()
        g.sync()


def _move(g, vlan: int, space: str) -> None:
    """Puts a VLAN's interface into a namespace of its own, where it gets its address."""
    name, address = f"{g.netdev}.{vlan}", f"{_address(g, vlan)}/24"
    g.succeeds(f"namespace {space}", "ip", "netns", "add", space)
    for words in (("ip", "link", "set", name, "netns", space),
                  ("ip", "-n", space, "link", "set", name, "up"),
                  ("ip", "-n", space, "addr", "add", address, "dev", name)):
        g.succeeds(f"VLAN {vlan} into namespace {space}: {words[-1]}", *words)
    g.check(f"VLAN {vlan}: its address is in the GID table",
            g.wait(lambda: g.gid_index(_address(g, vlan)) is not None), "not in 30 s")


def _receive(g, how: str, spaces, served) -> None:
    """Node 0: a member on each VLAN, of which each is to be served from some."""
    with ExitStack() as stack:
        shells = [stack.enter_context(Shell(
            g.device, within=("ip", "netns", "exec", space) if space else ())) for space in spaces]
        for shell, vlan in zip(shells, VLANS):
            for words in (("bind", 0, _address(g, vlan)), ("join", 0, GROUP),
                          ("join", 0, MARKER)):
                g.equal(f"{how}: VLAN {vlan}: {words[0]} {words[2]}", shell.err(*words), "")
        for vlan in VLANS:
            g.check(f"{how}: VLAN {vlan}: the switch has the groups on it",
                    g.wait(lambda v=vlan: g.subscribed(GROUP, v) and g.subscribed(MARKER, v)),
                    "not in 30 s")
        g.check(f"{how}: the switch has the group on these VLANs alone",
                not g.subscribed(GROUP, 0), "it has it without a VLAN, too")
        g.sync()
        g.sync()
        for shell, vlan, sources in zip(shells, VLANS, served):
            said = shell("collect", 0, 9)
            g.equal(f"{how}: the member on VLAN {vlan} gets those of {list(sources)}",
                    [d["token"] - 1000 for d in said["got"]], list(sources))
            for group in (GROUP, MARKER):
                g.equal(f"{how}: VLAN {vlan}: leave {group}", shell.err("leave", 0, group), "")
        g.check(f"{how}: the switch has the group no more", g.wait(
            lambda: not any(g.subscribed(GROUP, vlan) for vlan in VLANS)), "not in 30 s")


def _send(g) -> None:
    """On each VLAN and on none a datagram, then the marker, of which VLAN 200's is last."""
    faults = []
    with Shell(g.device) as shell:
        for place, vlan in enumerate((0, *VLANS)):
            interface = f"{g.netdev}.{vlan}" if vlan else g.netdev
            for words in (("open", place, 4, interface), ("send", place, GROUP, 1, 1000 + vlan)):
                if err := shell.err(*words):
                    faults.append(f"{words[0]} on VLAN {vlan} gives {err}")
        for place in (1, 2):
            if err := shell.err("mark", place, MARKER, 9):
                faults.append(f"mark gives {err}")
    g.check("sender on each VLAN and on none", not faults, "; ".join(faults))
