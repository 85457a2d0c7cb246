# SPDX-License-Identifier: GPL-2.0
"""Threads of several processes attach and detach in a few groups; processes are killed.

Each phase has the device do something else to its operations, by count. After it the
device obeys again, and the device, the driver and the processes that are left are to agree
on who is in which group.
"""

import ipaddress
import re
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

from irdma_suites import driver
from irdma_suites.shell import Shell
from irdma_suites.suite import Suite

SUITE = Suite(
    about="threads x groups x queue pairs attach, detach and are killed, with faults by count",
    guests=1,
    # Stock's list does not survive half of it: see mcast_races and mcast_faults.
    drivers=("irdma_rs",),
    kernels=("stock", "debug"),
    timeout=240)

#: Processes, threads of each, queue pairs of each, and groups for all.
WORKERS, THREADS, PAIRS, GROUPS = 3, 4, 6, 5
#: What each thread does in a phase.
STEPS = 240
#: The groups of a storm, as mcast-shell names them.
GROUP_NAMES = [f"ff0e::66:{n + 1:x}" if n % 2 else f"239.66.0.{n + 1}" for n in range(GROUPS)]
#: Percent of steps in which who is in a group leaves it: groups stay full, or come and go.
CROWDED, SPARSE = 0, 75
#: What attach may say when a group is full, and when the device may refuse.
FULL, REFUSED = {"ENOMEM"}, {"ENOMEM", "EIO"}
#: Where the driver shows its groups.
SHOWN = Path("/sys/kernel/debug/irdma_rs")


def guest(g) -> None:
    """Phase after phase, with other processes in each round."""
    rounds = 10 if g.long else 2
    driver.violations(g, clear=True)
    for number in range(1, rounds + 1):
        with Crew(g, number) as crew:
            _phases(g, crew, f"round {number}: ")
        g.equal(f"round {number}: nothing is left in the device", g.nic("groups"), [])
        left = [line for line in g.run("rdma", "resource", "show", "qp").stdout.splitlines()
                if "mcast-shell" in line]
        g.equal(f"round {number}: no queue pair is left", left, [])
    g.equal("kernel does not warn", driver.warnings(), [])


def _phases(g, crew, name: str) -> None:
    crew.phase(name + "groups are full", FULL)
    crew.phase(name + "groups come and go", FULL, leave=SPARSE)
    for op, every, leave in (("CREATE_MCAST_GRP", 2, SPARSE), ("MODIFY_MCAST_GRP", 3, CROWDED),
                             ("DESTROY_MCAST_GRP", 2, SPARSE), ("*_MCAST_GRP", 4, SPARSE)):
        with faults(g, op, every) as strikes:
            crew.phase(f"{name}of {op}, each {every}. is refused", REFUSED, strikes,
                       leave=leave)
    for action in ("delay", "late"):
        with faults(g, "*_MCAST_GRP", 5, action) as strikes:
            crew.phase(f"{name}of *_MCAST_GRP, each 5. has fault \"{action}\"", FULL, strikes,
                       leave=SPARSE, release=True)
    crew.phase(name + "a process is killed", FULL, kill=1)
    with faults(g, "*_MCAST_GRP", 3) as strikes:
        crew.phase(name + "two processes are killed while each 3. *_MCAST_GRP is refused",
                   REFUSED, strikes, leave=SPARSE, kill=2)


def commands(g) -> int:
    """How many commands for groups there have been."""
    return sum(count for op, count in g.nic("ops")["cqp"].items()
               if op.endswith("_MCAST_GRP"))


@contextmanager
def faults(g, op: str, every: int, action: str = "fail"):
    """Each so many-th operation meets a fault; gives a function that counts them."""
    before = g.struck()
    g.nic("fault", op=op, nth=every, every=every, count=1_000_000, action=action)
    try:
        yield lambda: g.struck() - before
    finally:
        g.nic("fault", clear=True)


class Crew:
    """Processes with queue pairs, and what they are to be attached to."""

    def __init__(self, g, number: int):
        self._g = g
        self._seed = 1000 * number
        self._shells = []
        self._other = Shell(g.device)
        self._other("open", 0, 4)
        self._fill()

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        ended = [shell.quit(60 * self._g.slowness) for shell in (*self._shells, self._other)]
        self._g.equal("all processes give everything back", set(ended), {0})

    def _fill(self) -> None:
        """Take on a process for each that is gone."""
        while len(self._shells) < WORKERS:
            shell = Shell(self._g.device)
            for place in range(PAIRS):
                # Of both families in turn: a group has members of both.
                shell("open", place, 6 if place & 1 else 4)
            self._shells.append(shell)

    def phase(self, name: str, allowed: set, strikes=None, *, leave: int = CROWDED,
              kill: int = 0, release: bool = False) -> None:
        """All threads at once, then everybody is asked; one result.

        `allowed` are errors that attach may give; `strikes` counts faults, of which there
        must be one at least. With `kill` so many processes do not come to their end; with
        `release` the device is told again and again to go on.
        """
        g, wrong = self._g, []
        before = commands(g)
        for shell in self._shells:
            self._seed += 1
            # Those to be killed never end by themselves.
            steps = 10**9 if shell in self._shells[:kill] else STEPS // g.slowness
            shell.start("storm", THREADS, GROUPS, steps, self._seed, leave)
        if release:
            while not all(shell.has_answered() for shell in self._shells):
                g.nic("release")
        survivors = self._shells[kill:]
        counts = Counter()
        for shell in survivors:
            said = shell.answer(120 * g.slowness)
            for verb in ("attach", "detach"):
                counts.update({(verb, err): n for err, n in said[verb].items()})
        for shell in self._shells[:kill]:
            shell.kill()
        struck = strikes() if strikes else 0
        g.nic("fault", clear=True)
        self._shells = survivors
        wrong += [f"{verb} gives {err} {n} times" for (verb, err), n in counts.items()
                  if verb == "detach" or err not in allowed]
        if strikes and not struck:
            wrong.append("no fault was met")
        done = commands(g) - before
        wrong += self._settle() + self._compare()
        self._fill()
        g.note(f"{name}: {done} commands for groups, {struck} faults, "
               f"errors {dict(counts)}")
        g.check(name, not wrong, "; ".join(wrong))

    def _settle(self) -> list:
        """One more change to each group makes up for what was refused before."""
        wrong = []
        for group in GROUP_NAMES:
            err = self._other.err("attach", 0, group)
            if not err:
                err = self._other.err("detach", 0, group)
            # A full group is as the device was told last: the last member came in.
            if err not in ("", "ENOMEM"):
                wrong.append(f"a change to {group} afterwards gives {err}")
        return wrong

    def _compare(self) -> list:
        """What device, driver and processes say differently."""
        g, expected, wrong = self._g, {}, []
        for shell in self._shells:
            said = shell("list")
            wrong += [f"list gives {said['err']}"] if said["err"] else []
            for entry in said["in"]:
                expected.setdefault(entry["group"], set()).add(entry["qpn"])
        held = [(str(ipaddress.ip_address(entry["ip"])), {m["qp"] for m in entry["members"]},
                 len(entry["members"])) for entry in g.nic("groups")]
        if sorted(ip for ip, _, _ in held) != sorted(expected):
            wrong.append(f"device has {[ip for ip, _, _ in held]}, not {list(expected)}")
        wrong += [f"{ip} has {count} members {sorted(members)}, not "
                  f"{sorted(expected.get(ip, ()))}" for ip, members, count in held
                  if members != expected.get(ip) or count != len(members)]
        if broken := driver.violations(g, clear=True):
            wrong.append(f"the device's rules are broken: {broken}")
        for text in (path.read_text() for path in SHOWN.glob("*/mcast_groups")):
            wrong += [f"the driver shows: {line}" for line in text.splitlines()
                      if re.search(r"\b(stale|quarantined|busy|new|retired)\b", line)]
        return wrong
