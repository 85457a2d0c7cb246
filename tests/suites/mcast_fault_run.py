# SPDX-License-Identifier: GPL-2.0
"""Every operation of an attach or a detach fails once, in each way it can fail.

A scene is one call in one situation. It is repeated with the first, second, ... operation
struck, until there was none left to strike: so no operation is forgotten. After each case
the device has to hold what the caller was told, and the same call, repeated, has to work.
"""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from irdma_suites import driver
from irdma_suites.fabric import interface, join
from irdma_suites.shell import Shell
from irdma_suites.suite import Suite

SUITE = Suite(
    about="the n-th operation of attach and detach fails, is late or lost, for each n",
    guests=1,
    # What stock makes of such faults is shown, and named, by mcast_faults.
    drivers=("irdma_rs",),
    kernels=("stock", "debug"),
    alone=True,
    timeout=600)

VLANS = (100, 200)
#: More operations than this has no scene: the run does not end.
MOST = 500
#: Knobs of the kernel so that any allocation can be made to fail, without a word in the log.
KNOBS = {
    "failslab/ignore-gfp-wait": "N", "failslab/verbose": "0",
    "fail_page_alloc/ignore-gfp-wait": "N", "fail_page_alloc/ignore-gfp-highmem": "N",
    "fail_page_alloc/min-order": "0", "fail_page_alloc/verbose": "0",
    "fail_usercopy/verbose": "0",
}


@dataclass(frozen=True)
class Scene:
    """One call, what comes before it, and what takes it back."""

    name: str
    group: str
    step: tuple
    undo: tuple
    before: tuple = ()
    #: CQP commands that the call takes.
    commands: int = 1
    #: VLANs on which the host has joined the group.
    joined: tuple = ()


def scenes() -> list:
    """Attach and detach in every situation that makes a difference to the device."""
    found, plain = [], "239.62.1.1"

    def scene(name, *words, group=plain, **more):
        verb, rest = words[0], words[1:]
        back = {"attach": "detach", "detach": "attach"}[verb]
        place, lid = rest[0], rest[1:]
        found.append(Scene(name, group, (verb, place, group, *lid),
                           (back, place, group, *lid), **more))

    for family, group in (("IPv4", plain), ("IPv6", "ff0e::62:1")):
        scene(f"first attach, {family}", "attach", 0, group=group)
        scene(f"last detach, {family}", "detach", 0, group=group, before=((0,),))
    scene("attach of a second member", "attach", 1, before=((0,),))
    scene("detach of a second member", "detach", 1, before=((0,), (1,)))
    scene("attach under a second MLID", "attach", 0, 1, before=((0,),), commands=0)
    scene("detach from a second MLID", "detach", 0, 1, before=((0,), (0, 1)), commands=0)
    scene("first attach on two VLANs", "attach", 0, group="239.62.2.1", joined=VLANS,
          commands=2)
    scene("last detach on two VLANs", "detach", 0, group="239.62.2.1", joined=VLANS,
          before=((0,),), commands=2)
    scene("attach of a second member on two VLANs", "attach", 1, group="239.62.2.1",
          joined=VLANS, before=((0,),), commands=2)
    return found


class Stage:
    """A process in the situation of a scene."""

    def __init__(self, g, scene: Scene):
        self.g, self.scene = g, scene
        self.shell = Shell(g.device)
        for place in range(2):
            self._do("open", place, 6 if ":" in scene.group else 4)
        for place, *lid in scene.before:
            self._do("attach", place, scene.group, *lid)
        self.other = Shell(g.device)
        self.addresses = 0
        self.was = self.groups()
        self.step()
        self.becomes = self.groups()
        self.undo()

    def groups(self) -> list:
        """What the device holds."""
        return sorted((entry["ip"], entry["vlan"] or 0, sorted(m["qp"] for m in entry["members"]))
                      for entry in self.g.nic("groups"))

    def others(self) -> None:
        """Another process has the device make address handles, some of them later."""
        if not self.addresses:
            self.other("open", 0, 4)
        for _ in range(10):
            self.addresses += 1
            err = self.other.err("address", 0, f"239.63.{self.addresses >> 8}."
                                 f"{self.addresses & 0xff}", seconds=60 * self.g.slowness)
            if err:
                raise RuntimeError(f"address handle gives {err}")

    def step(self) -> None:
        self._do(*self.scene.step)

    def undo(self) -> None:
        self._do(*self.scene.undo)

    def _do(self, *words) -> None:
        if err := self.shell.err(*words, seconds=60 * self.g.slowness):
            raise RuntimeError(f"{' '.join(map(str, words))} gives {err}, without a fault")

    def settle(self, err: str) -> str:
        """Judges the device after a call that gave `err`, and brings it back; what is wrong."""
        if err:
            if self.groups() != self.was:
                return f"{err}, and the device has {self.groups()}, not {self.was}"
            self.step()
        elif self.scene.step[0] == "attach" and self.groups() != self.becomes:
            return f"success, and the device has {self.groups()}, not {self.becomes}"
        # A refused detach shows in the device only with the next command for the group.
        self.undo()
        if self.groups() != self.was:
            return f"taken back, and the device has {self.groups()}, not {self.was}"
        self.step()
        if self.groups() != self.becomes:
            return f"repeated, and the device has {self.groups()}, not {self.becomes}"
        self.undo()
        return ""

    def end(self) -> str:
        """The process gives all back; what is wrong then."""
        for shell in (self.shell, self.other):
            if status := shell.quit(90 * self.g.slowness):
                return f"a process ended with status {status}"
        return leftovers(self.g)


def leftovers(g) -> str:
    """What is still there without a process."""
    if groups := g.nic("groups"):
        return f"device still has {groups}"
    judged = g.nic("check", clear=True)
    if not judged["ok"]:
        return f"the device's rules are broken: {judged['violations']}"
    said = g.run("rdma", "resource", "show", "qp").stdout
    pairs = [line for line in said.splitlines() if "comm" in line and "[ib_core]" not in line]
    return f"queue pairs are left: {pairs}" if pairs else ""


def guest(g) -> None:
    """All scenes in all ways, the device whole between two."""
    _vlans(g)
    total = 0
    for scene in scenes():
        with ExitStack() as joined:
            for vlan in scene.joined:
                joined.enter_context(join(scene.group, interface(g, vlan)))
            total += _repeat(g, scene, "refused", _refused)
            total += _repeat(g, scene, "answered late", _late)
            if g.kernel == "debug":
                total += _allocations(g, scene)
            else:
                total += _lost(g, scene)
    if g.kernel != "debug":
        g.skip("each allocation fails", "takes the debug kernel: run with --kernel debug")
    else:
        g.skip("each command is lost", "waits for the driver to give up: shown on the stock "
               "kernel")
    g.check(f"{total} cases", total > 0)
    for vlan in VLANS:
        g.run("ip", "link", "del", f"{g.netdev}.{vlan}")
    g.equal("kernel does not warn", driver.warnings(), [])


def _vlans(g) -> None:
    for vlan in VLANS:
        name = f"{g.netdev}.{vlan}"
        g.run("ip", "link", "add", "link", g.netdev, "name", name, "type", "vlan", "id", vlan)
        g.succeeds(f"interface of VLAN {vlan}", "ip", "link", "set", name, "up")


def _repeat(g, scene: Scene, way: str, strike) -> int:
    """The n-th command of a scene is struck, for n from 1 until there is none; how many."""
    wrong, stage, hit = "", Stage(g, scene), 0
    for nth in range(1, MOST):
        struck, wrong = strike(g, stage, nth)
        if wrong or not struck:
            break
        hit += 1
    wrong = (f"command {hit + 1}: {wrong}" if wrong else "") or stage.end()
    if not wrong and hit != scene.commands:
        wrong = f"{hit} commands, not {scene.commands}"
    g.check(f"{scene.name}: each of {scene.commands} commands is {way}", not wrong, wrong)
    return hit


def _refused(g, stage: Stage, nth: int) -> tuple:
    """(whether there was an n-th command, what is wrong)."""
    before = g.struck()
    g.nic("fault", op="*", nth=nth, action="fail")
    err = stage.shell.err(*stage.scene.step)
    g.nic("fault", clear=True)
    struck = g.struck() > before
    want = "EIO" if struck and stage.scene.step[0] == "attach" else ""
    if err != want:
        return struck, f"gives {err or 'success'}, not {want or 'success'}"
    return struck, stage.settle(err)


def _late(g, stage: Stage, nth: int) -> tuple:
    """The answer comes late, but before the driver gives up: nothing is to be seen.

    A held command goes on when others are posted behind it, which another process does.
    """
    before = g.struck()
    g.nic("fault", op="*_MCAST_GRP", nth=nth, action="delay", until_ops=1)
    stage.shell.start(*stage.scene.step)
    stage.others()
    answer = stage.shell.answer(60 * g.slowness)
    struck = g.struck() > before
    g.nic("fault", clear=True)
    if answer["err"]:
        return struck, f"gives {answer['err']}"
    return struck, stage.settle("")


def _lost(g, scene: Scene) -> int:
    """The n-th command is never answered: the driver gives up, and the card is reset."""
    hit, wrong = 0, ""
    for nth in range(1, MOST):
        before, struck = driver.bringups(g), g.struck()
        stage = Stage(g, scene)
        g.nic("fault", op="*", nth=nth, action="swallow")
        err = stage.shell.err(*scene.step, seconds=60 * g.slowness)
        g.nic("fault", clear=True)
        if g.struck() == struck:
            wrong = stage.end() or (f"gives {err}" if err else "")
            break
        hit += 1
        want = "ETIMEDOUT" if scene.step[0] == "attach" else ""
        if err != want:
            wrong = f"gives {err or 'success'}, not {want or 'success'}"
        if not g.wait(lambda b=before: driver.bringups(g) > b, 90):
            wrong = wrong or "the device is not brought up again"
        for shell in (stage.shell, stage.other):
            if status := shell.quit(60 * g.slowness):
                wrong = wrong or f"a process ended with status {status}"
        if not driver.usable(g, 60 * g.slowness):
            wrong = wrong or "the device did not come back"
        if wrong := wrong or leftovers(g):
            wrong = f"command {hit}: {wrong}"
            break
    if not wrong and hit != scene.commands:
        wrong = f"{hit} commands, not {scene.commands}"
    g.check(f"{scene.name}: each of {scene.commands} commands is lost", not wrong, wrong)
    return hit


def _allocations(g, scene: Scene) -> int:
    """The n-th allocation, or access to user memory, of the call fails."""
    for name, value in KNOBS.items():
        knob = Path("/sys/kernel/debug", name)
        if knob.exists():
            knob.write_text(value)
    stage, wrong, hit = Stage(g, scene), "", 0
    for nth in range(1, MOST):
        stage.shell("nth", nth)
        answer = stage.shell(*scene.step, seconds=60 * g.slowness)
        if "met" not in answer:
            wrong = f"fail-nth gives {answer['err']}"
        elif answer["err"] not in ("", "ENOMEM", "EFAULT"):
            wrong = f"gives {answer['err']}"
        elif answer["met"] or not answer["err"]:
            wrong = stage.settle(answer["err"])
        else:
            wrong = f"gives {answer['err']}, and nothing was made to fail"
        if wrong or not answer["met"]:
            break
        hit += 1
    wrong = (f"allocation {hit + 1}: {wrong}" if wrong else "") or stage.end()
    if not wrong and not hit:
        wrong = "nothing could be made to fail"
    g.note(f"{scene.name}: {hit} allocations failed")
    g.check(f"{scene.name}: each allocation fails", not wrong, wrong)
    return hit
