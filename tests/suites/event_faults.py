# SPDX-License-Identifier: GPL-2.0
"""Events of the device that are lost, late, or far too many."""

import json
import re
import subprocess
import time
from pathlib import Path

from irdma_suites import driver
from irdma_suites.shell import Shell
from irdma_suites.suite import Suite

SUITE = Suite(
    about="interrupts that are lost, events of objects that are gone, storms of events",
    guests=1,
    # Finds the vectors by the names that irdma_rs gives them.
    drivers=("irdma_rs",),
    kernels=("stock", "debug"),
    alone=True,
    # So few that their numbers come back soon.
    module_params="max_qps=16",
    timeout=240)

#: More than are sent while a vector loses what it gets.
ALL = 1_000_000
#: Seconds after which a control queue with something outstanding is taken for dead, and then some.
IDLE = 15
#: Codes of asynchronous events: a queue pair is broken; a group has no members.
BROKEN, EMPTY_GROUP = 0x0704, 0x0380
#: Events of a storm, and messages of one kind that get through in an interval of 5 s.
STORM, BURST, INTERVAL = 150, 10, 5.0
#: Groups of this suite: 239.62.0.x.
GROUP = "239.62.0.{}"


def guest(g) -> None:
    """Each part leaves a device that works."""
    _completions(g)
    _asynchronous(g)
    _numbers(g)
    _storm(g)
    g.equal("kernel does not warn", driver.warnings(), [])
    g.equal("the driver broke no rule of the device", driver.violations(g), [])


class Lost:
    """While it is used, no interrupt of a vector arrives."""

    def __init__(self, g, queue: str):
        """`queue` is "aeq", or "ceq" for that of the control queue."""
        self._g = g
        found = self._found(f"irdma_rs_{queue}") or self._found("irdma_rs_ceq")
        self.vector = min(found)

    @staticmethod
    def _found(name: str) -> list:
        """The card's numbers of the vectors of this name."""
        return [int(match.group(1))
                for line in Path("/proc/interrupts").read_text().splitlines()
                if (match := re.search(rf" (\d+)-edge +{name}$", line))]

    def __enter__(self):
        self._g.nic("interrupts", lose=ALL, vector=self.vector)
        return self

    def __exit__(self, *_):
        self._g.nic("interrupts", lose=0, vector=self.vector)


def state(g, qpn: int) -> str:
    """State of a queue pair as the kernel knows it."""
    for qp in json.loads(g.run("rdma", "-j", "resource", "show", "qp").stdout):
        if qp["ifname"] == g.device and qp["lqpn"] == qpn:
            return qp["state"]
    return "gone"


def lines() -> list:
    """The driver's lines in the kernel log, warnings and worse."""
    said = subprocess.run(["dmesg", "--level=emerg,alert,crit,err,warn"], text=True,
                          capture_output=True, check=True, errors="replace").stdout
    return [line for line in said.splitlines() if "irdma_rs" in line]


def outstanding() -> int:
    """Commands that have not ended, as debugfs tells."""
    text = next(Path("/sys/kernel/debug/irdma_rs").glob("*/cqp")).read_text()
    return int(re.search(r"outstanding (\d+) of", text).group(1))


def _completions(g) -> None:
    """No event tells of the last commands, for which nobody waits."""
    def entries():
        return g.nic("state")["rdma"]["arps"]

    faults, before, said, at_first = [], driver.bringups(g), len(lines()), entries()
    with Lost(g, "ceq"):
        with Shell(g.device) as shell:
            shell("open", 0, 4)
            # Takes an address handle, and with it an entry of the ARP table.
            shell("send", 0, GROUP.format(1), 1, 77)
            if entries() == at_first:
                faults.append("no ARP entry was taken")
        time.sleep(IDLE)
        if driver.bringups(g) != before:
            faults.append("the device was reset")
        if entries() != at_first:
            faults.append(f"{entries()} ARP entries are left, {at_first} at first")
        if number := outstanding():
            faults.append(f"{number} commands have not ended")
        if more := lines()[said:]:
            faults.append(f"the log says {more}")
    with Shell(g.device) as shell:
        shell("open", 0, 4)
        if error := shell.err("attach", 0, GROUP.format(1)):
            faults.append(f"an attach afterwards gives {error}")
    g.check(f"events of the control queue are lost for {IDLE} s: nothing comes of it",
            not faults, "; ".join(faults))


def _asynchronous(g) -> None:
    """The interrupt of the only event is lost."""
    with Shell(g.device) as shell, Lost(g, "aeq"):
        qpn = shell("open", 0, 4)["qpn"]
        g.equal("a queue pair works", state(g, qpn), "RTS")
        g.nic("inject", ae=BROKEN, qp=qpn)
        g.check("an asynchronous event without an interrupt is noticed",
                g.wait(lambda: state(g, qpn) == "ERR", IDLE), "not within 15 s")


def _numbers(g) -> None:
    """An event waits while its queue pair goes and another gets its number."""
    faults, many = [], g.device_attribute("max_qp")
    with Shell(g.device) as shell:
        other = shell("open", 1, 4)["qpn"]
        with Lost(g, "aeq"):
            first = shell("open", 0, 4)["qpn"]
            g.nic("inject", ae=BROKEN, qp=first)
            shell("close", 0)
            for _ in range(many + 1):
                again = shell("open", 0, 4)["qpn"]
                if again == first:
                    break
                shell("close", 0)
            if again != first:
                faults.append(f"number {first} did not come back, of {many}")
        g.nic("inject", ae=BROKEN, qp=other)
        if not g.wait(lambda: state(g, other) == "ERR", IDLE):
            faults.append("the next event was not noticed")
        if state(g, first) != "RTS":
            faults.append(f"the next queue pair with the number is {state(g, first)}")
    g.check("a late event does not hit the next queue pair of its number", not faults,
            "; ".join(faults))


def _storm(g) -> None:
    """Many events of a kind that the log hears of."""
    said, begin = len(lines()), time.monotonic()
    with Shell(g.device) as shell:
        qpn = shell("open", 0, 4)["qpn"]
        for _ in range(STORM):
            g.nic("inject", ae=EMPTY_GROUP, qp=qpn)
        # Comes after all of them.
        g.nic("inject", ae=BROKEN, qp=qpn)
        g.check("events of a storm are all taken",
                g.wait(lambda: state(g, qpn) == "ERR", IDLE), f"the queue pair is {state(g, qpn)}")
    bound = BURST * (2 + int((time.monotonic() - begin) / INTERVAL))
    more = lines()[said:]
    g.check("a storm of events gives few lines", 0 < len(more) <= bound < STORM,
            f"{len(more)} lines, at most {bound} of {STORM} expected")
