# SPDX-License-Identifier: GPL-2.0
"""Switches that snoop: who gets a group's datagrams, and from when to when."""

import socket
import struct
import threading

from irdma_suites import fabric
from irdma_suites.shell import Shell
from irdma_suites.suite import Suite
from irdma_suites.traffic import Traffic, expect, tokens

SUITE = Suite(
    about="on two linked switches that snoop: attach and join, leave, time-outs, queriers, "
          "and links that lose, double, delay and damage",
    guests=3,
    drivers=("irdma_rs",),
    # What a switch does is the same for both.
    on_request=("irdma",),
    # Who does not answer is forgotten after 21 seconds, who does not ask after 20.5: guests on
    # a slow machine have to be faster, and the cases that wait for it should not take all day.
    snoop="interval=10,response=1",
    switches="nic0,nic1/nic2",
    timeout=1800)

#: Seconds for what takes a few: to end what hangs.
LIMIT = 120

#: The port of switch 0 behind which switch 1 is, and what is there.
CABLE = "switch0-1"
#: Datagrams of a step.
COUNT = 3
#: Datagrams that a rate is tried on; receivers have room for 32.
RATED = 24
#: Seconds after which who does not answer is forgotten.
MEMBERSHIP = 21
#: Settings with which two minutes of asking follow a leave, and who is silent is kept as long.
DOUBTFUL = "interval=60,last_member=60"
#: Groups that go everywhere, joined or not.
LINK_LOCAL = {4: "224.0.0.113", 6: "ff02::1"}


def guest(g) -> None:
    """Node 0 sends. Nodes 1, at its switch, and 2, at the other one, listen."""
    for family in (4, 6):
        stage = Stage(g, family)
        _join_and_leave(stage)
        _link_local(stage)
        _leave_is_checked(stage)
        _fast_leave(stage)
        _time_out(stage)
        _unregistered(stage)
        if family == 4:
            _router(stage)
            _queriers(stage)
            _cable(stage)
            _impairments(stage)
        stage.traffic.close()
    if not g.leads:
        g.equal("no group is left in the device", g.nic("groups"), [])


class Stage:
    """What the cases of a family share."""

    def __init__(self, g, family: int):
        self.g, self.family = g, family
        self.traffic = Traffic(g, f"IPv{family}", family)
        self.shell = None
        if not g.leads:
            self.shell = Shell(g.device)
            said = self.shell("open", 0, family)
            g.check(f"IPv{family}: receiver", not said["err"], said["err"])
            self.traffic.listen(self.shell, 0, said.get("qpn", 0))
        self.traffic.ready()
        self._joined = {}
        self._groups = 0
        self._token = 0

    def check(self, name: str, passed: bool, reason: str = "") -> bool:
        return self.g.check(f"IPv{self.family}: {name}", passed, reason)

    def group(self) -> str:
        """An address that no case has used."""
        self._groups += 1
        return (f"239.6.{self._groups}.1" if self.family == 4
                else f"ff0e::6:{self._groups:x}")

    def attach(self, group: str, verb: str = "attach") -> None:
        """Nodes 1 and 2 attach their queue pairs, and do nothing else."""
        if self.shell and (err := self.shell.err(verb, 0, group)):
            self.check(f"{verb} {group}", False, err)

    def join(self, group: str, *nodes: int) -> None:
        """These nodes' hosts join."""
        if self.g.node in nodes:
            self._joined[group] = fabric.join(group, self.g.netdev)

    def leave(self, group: str, *nodes: int) -> None:
        """These nodes' hosts leave, with all that belongs to it."""
        if self.g.node in nodes:
            self._joined.pop(group).close()

    def known(self, name: str, group: str, near: set, far=None, seconds: float = LIMIT) -> None:
        """Waits until switch 0 knows the group at ports `near`, and switch 1 at `far`."""
        def found():
            return (fabric.ports_of(self.g, group),
                    fabric.ports_of(self.g, group, 1) if far is not None else None)
        if self.g.leads:
            self.check(f"{name}: switches know the members",
                       self.g.wait(lambda: found() == (near, far), seconds),
                       f"{found()}, not {(near, far)}")
        self.g.sync()

    def settled(self, name: str) -> None:
        """Waits until the first switch alone asks. It takes the other one for a router as long
        as that has asked, too, and what a router hears of makes members there."""
        if self.g.leads:
            self.check(f"{name}: one switch asks", self.g.wait(
                lambda: not fabric.asks(self.g, 1) and not fabric.routers(self.g), LIMIT),
                       f"routers: {fabric.routers(self.g)}")
        self.g.sync()

    def refreshed(self, name: str, group: str) -> None:
        """Waits until switches have heard of all members of a group a moment ago."""
        def left():
            return [fabric.seconds_left(self.g, group, switch) for switch in fabric.BOTH]
        if self.g.leads:
            self.check(f"{name}: members answer the switches",
                       self.g.wait(lambda: min(left()) > MEMBERSHIP - 4, LIMIT),
                       f"seconds left to them: {left()}")
        self.g.sync()

    def step(self, name: str, group: str, *served: int) -> None:
        """Datagrams come to the `served` nodes, each once, and to no other."""
        first = self._token
        self._token += COUNT
        got = self.traffic.shoot(("send", 0, group, COUNT, first))
        wanted = range(first, self._token) if self.g.node in served else ()
        if not self.g.leads:
            expect(self.g, f"IPv{self.family}: {name}", got, wanted)


def _join_and_leave(stage: Stage) -> None:
    """Attaching tells the switches nothing; joining does."""
    group = stage.group()
    stage.attach(group)
    stage.step("attached, joined by nobody: nothing arrives", group)
    stage.join(group, 1)
    stage.known("joined by one", group, {"nic1"})
    stage.step("joined by one: it gets everything, the other nothing", group, 1)
    stage.join(group, 2)
    stage.known("joined by both", group, {"nic1", CABLE}, {"nic2"})
    stage.step("joined by both: across the link between switches, too", group, 1, 2)
    stage.leave(group, 1)
    stage.known("left by one", group, {CABLE}, {"nic2"})
    stage.step("left by one: the other still gets everything", group, 2)
    stage.leave(group, 2)
    stage.known("left by both", group, set(), set())
    stage.step("left by both: nothing arrives", group)
    stage.attach(group, "detach")


def _link_local(stage: Stage) -> None:
    """Groups of the link go everywhere."""
    group = LINK_LOCAL[stage.family]
    stage.attach(group)
    stage.step(f"{group} goes everywhere, joined or not", group, 1, 2)
    stage.attach(group, "detach")


def _leave_is_checked(stage: Stage) -> None:
    """After a leave the switch asks whether anybody is left behind the port."""
    group = stage.group()
    stage.attach(group)
    with fabric.settings(stage.g, DOUBTFUL):
        stage.join(group, 1)
        stage.known("before the leave", group, {"nic1"})
        before = _leaves(stage)
        # Else the leave could be told, and told again, before it is counted here.
        stage.g.sync()
        stage.leave(group, 1)
        if stage.g.leads:
            stage.check("the switch hears of the leave",
                        stage.g.wait(lambda: _leaves(stage) > before, LIMIT), f"not in {LIMIT} s")
        stage.g.sync()
        stage.step("left a moment ago: the switch asks first", group, 1)
    stage.g.sync()
    stage.join(group, 1)
    stage.leave(group, 1)
    stage.known("left for good", group, set())
    stage.attach(group, "detach")


def _leaves(stage: Stage) -> int:
    return stage.g.nic("switch", switch=0)["snoop"]["leaves"] if stage.g.leads else 0


def _fast_leave(stage: Stage) -> None:
    """With fast leave it does not ask."""
    group = stage.group()
    stage.attach(group)
    stage.settled("fast leave")
    with fabric.settings(stage.g, f"fast_leave=true,{DOUBTFUL}"):
        stage.join(group, 1, 2)
        stage.known("before the fast leave", group, {"nic1", CABLE}, {"nic2"})
        stage.leave(group, 1, 2)
        stage.known("fast leave", group, set(), set(), seconds=60)
        stage.step("fast leave: nothing arrives any more", group)
    stage.attach(group, "detach")


def _time_out(stage: Stage) -> None:
    """Who does not answer is forgotten, and is back when it answers."""
    group = stage.group()
    stage.attach(group)
    stage.join(group, 1, 2)
    stage.known("before the silence", group, {"nic1", CABLE}, {"nic2"})
    if stage.g.node == 1:
        stage.g.nic("drop", dir="tx", kind="membership", rate=1_000_000)
    stage.known("one does not answer", group, {CABLE}, {"nic2"})
    stage.step("who does not answer gets nothing, who does gets all", group, 2)
    if stage.g.node == 1:
        stage.g.nic("drop", clear=True)
    stage.known("it answers again", group, {"nic1", CABLE}, {"nic2"})
    stage.step("after the next query both get everything", group, 1, 2)
    stage.leave(group, 1, 2)
    stage.attach(group, "detach")


def _unregistered(stage: Stage) -> None:
    """By option, groups that nobody joined go everywhere."""
    group = stage.group()
    stage.attach(group)
    with fabric.settings(stage.g, "unregistered=flood"):
        stage.step("unregistered=flood: joined by nobody, everybody gets it", group, 1, 2)
        stage.join(group, 2)
        stage.known("joined by one of two", group, {CABLE}, {"nic2"})
        stage.step("unregistered=flood: joined by one, only it gets it", group, 2)
    stage.step("unregistered=drop again", group, 2)
    stage.leave(group, 2)
    stage.attach(group, "detach")


def _query(interface: str) -> None:
    """An IGMPv3 general query, as a router sends it, with our address."""
    message = struct.pack("!BBH4sBBH", 0x11, 10, 0, bytes(4), 2, 4, 0)
    total = sum(struct.unpack("!6H", message))
    total = (total & 0xffff) + (total >> 16)
    message = message[:2] + struct.pack("!H", ~total & 0xffff) + message[4:]
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_IGMP) as raw:
        index = socket.if_nametoindex(interface)
        raw.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF,
                       struct.pack("@4s4si", bytes(4), bytes(4), index))
        raw.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, bytes((148, 4, 0, 0)))
        raw.sendto(message, ("224.0.0.1", 0))


def _router(stage: Stage) -> None:
    """A router with a lower address takes over from the switch, and gets all groups."""
    g, group = stage.g, stage.group()
    stage.attach(group)
    stop = threading.Event()

    def ask():
        while not stop.wait(0.5):
            _query(g.netdev)

    stage.join(group, 2)
    stage.known("beside a router", group, {CABLE}, {"nic2"})
    router = threading.Thread(target=ask)
    if g.node == 1:
        router.start()
    if g.leads:
        stage.check("a router with a lower address asks: the switch does not",
                    g.wait(lambda: not fabric.asks(g) and "nic1" in fabric.routers(g), LIMIT),
                    f"asks: {fabric.asks(g)}, routers: {fabric.routers(g)}")
    stage.step("a router gets what it did not join", group, 1, 2)
    if g.node == 1:
        stop.set()
        router.join()
    if g.leads:
        stage.check("the router is gone: the switch asks again", g.wait(
            lambda: fabric.asks(g) and "nic1" not in fabric.routers(g), LIMIT),
                    f"asks: {fabric.asks(g)}, routers: {fabric.routers(g)}")
    # Members may have to answer the switch before they are known again: the times of a
    # router and of a member are nearly the same.
    stage.refreshed("the router is gone", group)
    stage.step("the router is gone: it gets nothing more", group, 2)
    stage.leave(group, 2)
    stage.attach(group, "detach")


def _queriers(stage: Stage) -> None:
    """Of two switches the one with the lower address asks, the other when it must."""
    g, group = stage.g, stage.group()
    stage.attach(group)
    stage.join(group, 1, 2)
    stage.known("one switch asks", group, {"nic1", CABLE}, {"nic2"})
    if g.leads:
        def asking():
            return [fabric.asks(g, switch) for switch in fabric.BOTH]
        stage.check("the switch with the lower address asks",
                    g.wait(lambda: asking() == [True, False], LIMIT), f"{asking()}")
        g.nic("switch", switch=0, snoop="querier=false")
        stage.check("it stops: the other takes over",
                    g.wait(lambda: fabric.asks(g, 1), LIMIT), f"not in {LIMIT} s")
        before = g.nic("switch", switch=1)["snoop"]["queries_sent"]
        # 0, 2.5, 12.5 and 22.5 seconds after it began: longer than who is not asked is a member.
        stage.check("it goes on asking", g.wait(
            lambda: g.nic("switch", switch=1)["snoop"]["queries_sent"] >= before + 8, LIMIT),
            f"fewer than four queries of each family in {LIMIT} s")
    stage.step("the other one asks: members are still known", group, 1, 2)
    if g.leads:
        g.nic("switch", switch=0, snoop="querier=true")
        stage.check("it asks again: the other stops", g.wait(
            lambda: fabric.asks(g, 0) and not fabric.asks(g, 1), LIMIT),
                    f"not in {LIMIT} s")
    g.sync()
    stage.leave(group, 1, 2)
    stage.attach(group, "detach")


def _cable(stage: Stage) -> None:
    """The link between the switches goes and comes back."""
    g, group = stage.g, stage.group()
    stage.attach(group)
    stage.join(group, 1, 2)
    stage.known("before the link goes", group, {"nic1", CABLE}, {"nic2"})
    if g.leads:
        g.nic("link", at=CABLE, up=False)
    stage.known("without the link", group, {"nic1"}, {"nic2"})
    if g.leads:
        g.nic("link", at=CABLE, up=True)
    stage.known("with the link again", group, {"nic1", CABLE}, {"nic2"})
    stage.step("link between switches is back, and so are the members behind it", group, 1, 2)
    stage.leave(group, 1, 2)
    stage.attach(group, "detach")


def _arrived(g, group: str) -> list:
    """Numbers of the frames of a group among the last that came to our port."""
    marked = socket.inet_aton(group).hex()
    return [frame["n"] for frame in g.nic("frames")
            if frame["dir"] == "rx" and marked in frame["hex"]]


def _impairments(stage: Stage) -> None:
    """Links do to frames what they are told, each exactly once."""
    g, group = stage.g, stage.group()
    stage.attach(group)
    stage.join(group, 1, 2)
    stage.known("before the impairments", group, {"nic1", CABLE}, {"nic2"})
    send = ("send", 0, group, COUNT, 0)
    for name, counter, command, more, wanted in (
            ("the second is lost", "impaired", "drop", {"nth": 2}, (0, 2)),
            ("the second comes twice", "duplicated", "duplicate", {"nth": 2}, (0, 1, 1, 2)),
            ("the first comes behind the others", "held", "hold", {"after": 2}, (1, 2, 0)),
            ("a bit of the second is changed: the card drops it", "corrupted", "corrupt",
             {"nth": 2, "bit": 8 * 60}, (0, 2)),
            # It must not come before the markers do.
            ("the first comes late", "delayed", "delay", {"ms": 10_000}, (1, 2))):
        before = _arrived(g, group)
        if g.leads:
            count = g.nic("counters")["port"][f"tx_{counter}"]
            g.nic(command, dir="tx", **more)
        got = stage.traffic.shoot(send)
        if g.leads:
            count = g.nic("counters")["port"][f"tx_{counter}"] - count
            g.equal(f"{name}: counted", count, 1)
        else:
            expect(g, name, got, wanted, in_order=True)
        if command == "delay":
            if not g.leads:
                g.check(f"{name}: it is on its way",
                        g.wait(lambda old=set(before): len(
                            set(_arrived(g, group)) - old) == COUNT, LIMIT),
                        f"not in {LIMIT} s")
            got = stage.traffic.shoot()
            if not g.leads:
                expect(g, f"{name}, but comes", got, (0,))
    _receiver_loses(stage, group, send)
    _rates(stage, group)
    stage.leave(group, 1, 2)
    stage.attach(group, "detach")


def _receiver_loses(stage: Stage, group: str, send) -> None:
    """The same on the way in is for one receiver only."""
    g = stage.g
    if g.node == 1:
        g.nic("drop", dir="rx", nth=1)
    got = stage.traffic.shoot(send)
    if not g.leads:
        expect(g, "one receiver's link loses the first: the other has it", got,
               (1, 2) if g.node == 1 else (0, 1, 2))


def _rates(stage: Stage, group: str) -> None:
    """Loss by rate is the same with the same seed."""
    g, lost = stage.g, []
    for seed in (7, 7, 8):
        def begin(seed=seed):
            g.nic("drop", dir="tx", rate=500_000, seed=seed)

        def end():
            g.wait(lambda: g.nic("impairments")["tx"][0]["seen"] == RATED, LIMIT)
            g.nic("drop", clear=True)

        got = stage.traffic.shoot(begin, ("send", 0, group, RATED, 0), end)
        lost.append([tokens(one) for one in got])
    if not g.leads:
        g.check("half of the datagrams are lost by rate", 0 < len(lost[0][0]) < RATED,
                f"{lost[0]}")
        g.equal("the same seed loses the same", lost[1], lost[0])
        g.check("another seed loses others", lost[2] != lost[0], f"{lost[2]}")
