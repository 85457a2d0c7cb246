# SPDX-License-Identifier: GPL-2.0
"""Many groups in one process and many processes in one group, joined by rdma_cm."""

import os
import signal

from irdma_suites import fabric, port
from irdma_suites.shell import Shell
from irdma_suites.suite import Suite
from irdma_suites.traffic import Traffic, expect

SUITE = Suite(
    about="200 groups joined by one process, 8 processes in one group on 3 guests; links "
          "and switches go and come back; nothing stays behind",
    guests=3,
    snoop="interval=5,response=1",
    switches="nic0,nic1/nic2",
    timeout=300)

#: Groups of the process on node 1, the first of them, and room for a datagram of each.
GROUPS, FIRST, DEPTH = 200, "239.8.0.1", 512
#: The group of all, and how many processes are in it on each node.
SHARED, PROCESSES = "239.8.1.1", (2, 3, 3)
COUNT = 20


def guest(g) -> None:
    """Node 0 sends as well. Node 2 has queue pairs attached that nobody has joined for."""
    before = _held(g)
    crowd = Crowd(g)
    crowd.join()
    crowd.step("all joined")
    _limits(crowd)
    _flap(crowd)
    crowd.step("after each link was down")
    for switch in fabric.BOTH:
        if g.leads:
            g.nic("switch", switch=switch, restart=True)
        crowd.step(f"after switch {switch} was restarted")
    _power(crowd)
    crowd.step("after switch 0 was off")
    _leave_half(crowd)
    _end(crowd, before)


def _held(g) -> dict:
    """What the card and the kernel hold."""
    # The list of event queues has counts of events. Stock irdma keeps an ARP entry for
    # each neighbour of the host, whoever needs it.
    counts = ("ceq_list", "arps") if g.driver == "irdma" else ("ceq_list",)
    shown = g.run("rdma", "resource", "show", g.device).stdout.split()
    return {"card": {k: v for k, v in g.held().items() if k not in counts},
            "resources": " ".join(shown[1:]),
            "maddr": g.run("ip", "maddr", "show", "dev", g.netdev).stdout}


def _octets(number: int) -> str:
    """The address of one of the groups."""
    first = [int(octet) for octet in FIRST.split(".")]
    value = first[2] * 256 + first[3] + number
    return f"{first[0]}.{first[1]}.{value // 256}.{value % 256}"


class Crowd:
    """The processes of this guest."""

    def __init__(self, g):
        self.g = g
        self.many = Traffic(g, "many")
        self.shared = Traffic(g, "shared")
        #: The process with 200 groups, on node 1; on node 2 one that joins nothing.
        self.one = Shell(g.device) if not g.leads else None
        self.all = [Shell(g.device) for _ in range(PROCESSES[g.node])]
        self._token = 0
        for shell, traffic in ([(self.one, self.many)] if self.one else []) + [
                (shell, self.shared) for shell in self.all]:
            said = shell("bind", 0, g.ip, DEPTH)
            g.check("a process has a queue pair by rdma_cm", not said["err"], said["err"])
            traffic.listen(shell, 0, said.get("qpn", 0))
        self.many.ready()
        self.shared.ready()

    def join(self) -> None:
        """Everybody joins; node 2's one process only attaches."""
        g = self.g
        if g.node == 1:
            err = self.one.err("joins", 0, FIRST, GROUPS)
            g.check(f"one process joins {GROUPS} groups", not err, err)
        if g.node == 2:
            for number in (0, GROUPS - 1):
                err = self.one.err("attach", 0, _octets(number))
                g.check("a process attaches without a join", not err, err)
        for shell in self.all:
            err = shell.err("join", 0, SHARED)
            g.check("a process joins the group of all", not err, err)
        g.sync()

    def known(self, name: str, first: int = 0) -> None:
        """Waits until the switches know the groups from number `first` on, and no others."""
        g = self.g
        many = {_octets(number): {"nic1"} for number in range(first, GROUPS)}
        wanted = ({**many, SHARED: {"nic0", "nic1", "switch0-1"}}, {SHARED: {"nic2"}})
        found = [{}, {}]

        def all_known() -> bool:
            for switch in fabric.BOTH:
                found[switch] = {str(group): ports for group, ports
                                 in fabric.members(g, switch).items()
                                 if str(group).startswith("239.8.")}
            return tuple(found) == wanted
        if g.leads:
            done = g.wait(all_known, 60)
            missing = [[group for group in want if have.get(group) != want[group]][:5]
                       for want, have in zip(wanted, found)]
            g.check(f"{name}: switches know all members and no others", done,
                    f"missing or wrong: {missing}; "
                    f"known: {[len(one) for one in found]}")
        g.sync()

    def step(self, name: str, first: int = 0) -> None:
        """One datagram to each of the groups, some to the group of all."""
        g, start = self.g, self._token
        self._token += GROUPS + COUNT
        self.known(name, first)
        got = self.many.shoot(("each", 0, FIRST, GROUPS, start))
        if g.node == 1:
            expect(g, f"{name}: {GROUPS - first} groups of one process, each datagram once",
                   got, range(start + first, start + GROUPS))
            wrong = [d for d in got[0] if d["group"] != _octets(d["token"] - start)]
            g.check(f"{name}: each came by its group", not wrong, f"{wrong[:3]}")
        if g.node == 2:
            expect(g, f"{name}: attached and not joined, nothing comes", got, ())
        start += GROUPS
        got = self.shared.shoot(("send", 0, SHARED, COUNT, start))
        expect(g, f"{name}: each of the {len(got)} processes gets each datagram once", got,
               range(start, start + COUNT))


def _limits(crowd: Crowd) -> None:
    """The limit of groups is one of sockets; rdma_cm joins without one."""
    g = crowd.g
    if g.node != 1:
        return
    limit = int(g.run("sysctl", "-n", "net.ipv4.igmp_max_memberships").stdout)
    joined = g.run("ip", "-4", "maddr", "show", "dev", g.netdev).stdout.count("239.8.")
    g.check(f"the interface is in all groups, though a socket may join {limit} only",
            limit < GROUPS and joined == GROUPS + 1, f"{joined} of {GROUPS + 1}")


def _flap(crowd: Crowd) -> None:
    """Every guest's link goes down and comes up."""
    g = crowd.g
    g.nic("link", up=False)
    g.check("link down", g.wait(lambda: port.state(g.device) == "DOWN"), "not in 30 s")
    g.nic("link", up=True)
    g.check("link up: the device is as before", g.wait(g.device_ready, 60), "not in 60 s")
    g.sync()


def _power(crowd: Crowd) -> None:
    """Switch 0 is off for a while, and with it the links of nodes 0 and 1."""
    g = crowd.g
    if g.leads:
        g.nic("switch", switch=0, power=False)
    g.sync()
    if g.node < 2:
        g.check("switch off: link down", g.wait(lambda: port.state(g.device) == "DOWN"),
                "not in 30 s")
    g.sync()
    if g.leads:
        g.nic("switch", switch=0, power=True)
    g.check("switch on: the device is as before", g.wait(g.device_ready, 60), "not in 60 s")
    g.sync()


def _leave_half(crowd: Crowd) -> None:
    """One process leaves half of its groups, and nothing of these comes any more."""
    g, half = crowd.g, GROUPS // 2
    if g.node == 1:
        err = crowd.one.err("leaves", 0, FIRST, half)
        g.check(f"one process leaves {half} groups", not err, err)
        g.equal("the device is in the others, and in the group of all",
                len(g.nic("groups")), half + 1)
    crowd.step("after half were left", half)


def _end(crowd: Crowd, before: dict) -> None:
    """Processes end, the one with many groups by force. Nothing stays."""
    g = crowd.g
    if crowd.one:
        os.kill(crowd.one.process.pid, signal.SIGKILL)
        crowd.one.process.wait()
    for traffic in (crowd.many, crowd.shared):
        traffic.close()
    after = {}

    def clean() -> bool:
        after.update(_held(g))
        return after == before
    done = g.wait(clean, 30)
    more = {key: (before[key], after[key]) for key in before if before[key] != after[key]}
    g.check("card, kernel and interface hold what they held before", done, f"{more}")
    g.sync()
    if g.leads:
        left = {}

        def forgotten() -> bool:
            left.update({switch: [str(group) for group in fabric.members(g, switch)
                                  if str(group).startswith("239.8.")]
                         for switch in fabric.BOTH})
            return not any(left.values())
        g.check("switches have forgotten the groups", g.wait(forgotten, 60), f"{left}")
    g.sync()
