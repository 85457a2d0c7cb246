# SPDX-License-Identifier: GPL-2.0
"""Every CQP operation of bring-up fails once: probe gives up cleanly, then works."""

import re

from irdma_suites.suite import Suite

SUITE = Suite(
    about="each CQP operation of bring-up fails in turn; the next load succeeds",
    guests=1,
    drivers=("irdma_rs",),
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
        for nth in numbers:
            _fail(g, op, nth, times)


def counts(g) -> dict:
    """CQP operations done so far: name -> count."""
    answer = g.nic("ops")
    found = answer.get("ops", answer) if isinstance(answer, dict) else {}
    return {k: v for k, v in found.items() if re.fullmatch(r"[A-Z][A-Z0-9_]+", k)
            and isinstance(v, int)}


def load(g) -> bool:
    return (g.run("lab-driver", "load", timeout=90).returncode == 0
            and g.wait(g.device_ready, 60))


def unload(g) -> bool:
    return g.run("lab-driver", "unload", timeout=90).returncode == 0


def log_lines(g) -> list:
    """The kernel log's lines of our driver, warnings and worse."""
    text = g.run("dmesg", "--level=emerg,alert,crit,err,warn").stdout
    return [line for line in text.splitlines() if "irdma_rs" in line]


def _fail(g, op: str, nth: int, times: int) -> None:
    """One operation fails at load; everything about it is one result."""
    name = f"{op} fails" + (f", {nth} of {times}" if times > 1 else "")
    old = len(log_lines(g))
    g.nic("fault", op=op, nth=nth, count=1, action="fail", major=0, minor=1)
    done = g.run("lab-driver", "load", timeout=90)
    said = log_lines(g)[old:]
    device = g.find_device()
    g.nic("fault", clear=True)
    faults = []
    if device:
        # Work that the driver does after the device exists may be done without.
        g.note(f"{op} {nth}: device {device} came up all the same")
        faults.append("the device came up in spite of the fault")
    if len(said) != 1:
        faults.append(f"{len(said)} lines in the log, not one: {said}")
    elif op not in said[0]:
        faults.append(f"the line does not name {op}: {said[0]}")
    if done.returncode == 124:
        faults.append("the load did not end")
    if not unload(g):
        faults.append("unload failed")
    held = {k: v for k, v in g.nic("state")["rdma"].items() if k != "filter" and v}
    if held:
        faults.append(f"device still holds {held}")
    if not load(g):
        faults.append("the next load gives no usable device")
    unload(g)
    g.check(name, not faults, "; ".join(faults))
