# SPDX-License-Identifier: GPL-2.0
"""Each scenario of rdma_cm, and then the driver is unbound: nothing may have been kept."""

from irdma_suites.background import Background
from irdma_suites.driver import Binding, usable
from irdma_suites.suite import Suite

SUITE = Suite(
    about="scenarios of rdma_cm with an unbind after each: no GID, queue pair or group is kept",
    guests=1,
    drivers=("irdma_rs",),
    kernels=("stock", "debug"),
    snoop="interval=2,response=1,fast_leave=true",
    alone=True,
    timeout=240)

#: Words in the names of cm-check's cases.
SCENARIOS = (
    "join: the group is joined",
    "join: an IPv6 group",
    "join: without a queue pair",
    "join: two identifiers",
    "join: 100 groups",
    "join: a queue pair that cannot be attached",
    "join: one member too many",
    "join_ex: a send-only member that leaves",
    "leave: before the event",
    "leave: in the middle of traffic",
    "leave: destroying the identifier",
    "end: a process that is killed",
    "end: a queue pair destroyed before",
    "end: 1000 identifiers",
)


def guest(g) -> None:
    """Alone: what is sent is looped back by the card."""
    binding, before = Binding(), _resources(g)
    for scenario in SCENARIOS:
        g.ktap("", "cm-check", "--only", scenario)
        g.equal(f"{scenario}: `rdma resource` is as before", _resources(g), before)
        _rebind(g, binding, scenario)
    _unbound_while_joined(g, binding)
    g.equal("in the end `rdma resource` is as before", _resources(g), before)


def _resources(g) -> str:
    """What the kernel counts of the device, its own objects included, without its number."""
    said = g.run("rdma", "resource", "show").stdout
    return " ".join(line.split(": ", 2)[-1] for line in said.splitlines() if g.device in line)


def _rebind(g, binding: Binding, name: str) -> None:
    binding.unbind()
    g.equal(f"{name}: unbound, nothing is held", g.held(), {})
    binding.bind()
    g.check(f"{name}: bound again", usable(g), "no device after 60 s")


def _unbound_while_joined(g, binding: Binding) -> None:
    """The device goes while a process has joined; it learns of that, and ends later."""
    group = "239.76.200.1"
    with Background("cm-check", "--hold", group) as member:
        g.check("a process has joined", g.wait(lambda: "joined" in member.said()),
                member.said())
        binding.unbind()
        g.equal("unbound while joined: nothing is held", g.held(), {})
        g.check("unbound while joined: the host has left",
                group not in g.run("ip", "maddr", "show", "dev", g.netdev).stdout, "it has not")
    binding.bind()
    g.check("unbound while joined: bound again", usable(g), "no device after 60 s")
    g.ktap("afterwards", "cm-check", "--only", "join: the group is joined")
