# SPDX-License-Identifier: GPL-2.0
"""Every CQP operation of bring-up fails once: probe gives up cleanly, then works."""

import re

from irdma_suites.driver import load, unload
from irdma_suites.suite import Suite

SUITE = Suite(
    about="each CQP operation of bring-up fails in turn; the next load succeeds",
    guests=1,
    drivers=("irdma_rs",),
    kernels=("stock", "debug"),
    alone=True,
    timeout=400)

#: Of an operation that comes often, the first, the middle and the last are failed.
OFTEN = 3


def guest(g) -> None:
    """Learn which operations there are, then fail each."""
    unload(g)
    before = counts(g)
    if not g.check("load without a fault", load(g), "no usable device after 60 s"):
        return
    bringup = {op: n - before.get(op, 0) for op, n in counts(g).items()
               if n > before.get(op, 0)}
    g.note(f"operations of bring-up: {bringup}")
    g.check("bring-up has CQP operations", bool(bringup))
    unload(g)
    for op, times in sorted(bringup.items()):
        numbers = (range(1, times + 1) if times <= OFTEN
                   else sorted({1, (times + 1) // 2, times}))
        if g.kernel == "debug":
            # Each takes a minute there.
            numbers = [(times + 1) // 2]
        for nth in numbers:
            _fail(g, op, nth, times)


def counts(g) -> dict:
    """CQP operations done so far: name -> count."""
    return dict(g.nic("ops")["cqp"])


def log_lines(g) -> list:
    """The kernel log's lines, warnings and worse."""
    return g.run("dmesg", "--level=emerg,alert,crit,err,warn").stdout.splitlines()


def ours(lines) -> list:
    """Of those the driver's; the line about a failed probe is the driver core's."""
    return [line for line in lines if "irdma_rs" in line and "probe with driver" not in line]


def without_mad(lines) -> bool:
    """Whether the core says that the device has to do without its MAD layer.

    The core makes the MAD layer's queues after the device is registered, and keeps
    the device when they cannot be had.
    """
    return any(re.search(r"Couldn't (open port|create ib_mad)", line) for line in lines)


def _fail(g, op: str, nth: int, times: int) -> None:
    """One operation fails at load; everything about it is one result."""
    name = f"{op} fails" + (f", {nth} of {times}" if times > 1 else "")
    old, before = len(log_lines(g)), g.struck()
    g.nic("fault", op=op, nth=nth, count=1, action="fail")
    done = g.run("lab-driver", "load", timeout=90)
    hit = g.struck() - before
    device = g.find_device()
    g.nic("fault", clear=True)
    said = log_lines(g)[old:]
    faults = []
    if hit != 1:
        faults.append(f"{hit} faults struck, not one")
    if device and not without_mad(said):
        faults.append("the device came up in spite of the fault")
    if len(ours(said)) != 1:
        faults.append(f"{len(ours(said))} lines in the log, not one: {ours(said)}")
    elif op not in ours(said)[0]:
        faults.append(f"the line does not name {op}: {ours(said)[0]}")
    if done.returncode == 124:
        faults.append("the load did not end")
    if not unload(g):
        faults.append("unload failed")
    if held := g.held():
        faults.append(f"device still holds {held}")
    if not load(g):
        faults.append("the next load gives no usable device")
    unload(g)
    g.check(name, not faults, "; ".join(faults))
