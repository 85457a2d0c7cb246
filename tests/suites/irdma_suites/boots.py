# SPDX-License-Identifier: GPL-2.0
"""Runs suites in guests: as many as possible in one boot, since boots are dear."""

import re
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import lanes
from .guest import MARK
from .ktap import FAIL, Document, Outcome
from .suite import Suite

TREE = Path(__file__).resolve().parents[3]
IN_GUEST = "/opt/irdma_rs/tests/suites/run"
#: Seconds for booting and powering off.
BOOT_TIME = 150
#: How many times as long all takes on the debug kernel; as in the lab.
DEBUG_SLOWNESS = 4
#: How many times as long a long run may take.
LONG = 20

#: The test that fails when a suite does not get through.
UNFINISHED = "runs to its end"
#: What the lab says of a guest whose kernel died of a fault in itself, and how it calls the
#: lines of the kernel log that lead there.
_DIED = re.compile(r"FAILED: died while: running the command")
_FINDING = re.compile(r"FAILED: kernel log, line \d+ \(([\w ]+)\)")
_OF_A_CRASH = {"bug", "oops", "call trace", "panic"}
_PREFIX = re.compile(r"^\[(\d+)\] (.*)$")


@dataclass
class Boot:
    """Guests with one driver setting, and the suites that run in them."""

    driver: str
    guests: int
    suites: dict = field(default_factory=dict)
    kernel: str = "stock"

    @property
    def timeout(self) -> int:
        slowness = DEBUG_SLOWNESS if self.kernel == "debug" else 1
        return slowness * (BOOT_TIME + sum(s.timeout for s in self.suites.values()))

    @property
    def label(self) -> str:
        """What the suites run on, in results' names."""
        return self.driver if self.kernel == "stock" else f"{self.driver}, {self.kernel} kernel"

    @property
    def title(self) -> str:
        return (f"{self.guests} guest{'s' if self.guests > 1 else ''} on {self.label}: "
                + ", ".join(self.suites))

    @property
    def modules(self) -> bool:
        """Whether guests load modules of the project, whatever the driver."""
        return any(s.modules for s in self.suites.values())

    @property
    def is_on_ours(self) -> bool:
        """Whether some guest has irdma_rs."""
        return "irdma_rs" in self.driver.split(",")

    def takes(self, suite: Suite) -> bool:
        """Whether this suite can run in it after the others."""
        # What has nothing of this project in its guests is kept apart: see kept.py.
        return not suite.is_alone(self.driver) and not any(
            s.is_alone(self.driver) or s.setting != suite.setting
            or not self.is_on_ours and s.modules != suite.modules
            for s in self.suites.values())


def settings(suite: Suite, drivers=None, kernels=None):
    """(driver, kernel) of each run of a suite; only these drivers and kernels, if given.

    If no kernels are given, those on the debug kernel only where a suite wants them each
    time, and drivers that are for the asking not at all.
    """
    known = suite.drivers + (suite.on_request if drivers else ())
    for kernel in suite.kernels:
        if kernel == "debug" and not kernels and not suite.debug_each_time:
            continue
        for driver in known:
            if drivers and driver.split(",")[0] not in drivers:
                continue
            if kernels and kernel not in kernels:
                continue
            # The debug kernel is for our own driver, and too slow to see others there.
            names = set(driver.split(","))
            if kernel != "debug" or "irdma" not in names and names != {"rxe"}:
                yield driver, kernel


def plan(suites: dict, drivers=None, kernels=None) -> list:
    """The boots that these suites (name -> Suite) need."""
    boots = []
    for name, suite in suites.items():
        for driver, kernel in settings(suite, drivers, kernels):
            boot = next((b for b in boots if (b.driver, b.kernel) == (driver, kernel)
                         and b.takes(suite)), None)
            if boot is None:
                boot = Boot(driver, suite.guests, kernel=kernel)
                boots.append(boot)
            boot.suites[name] = suite
    return boots


def complaint(suites: dict, boots: list, asked) -> str:
    """What was asked for and no boot runs, or "": nobody is to take that for success."""
    if not boots:
        return "no suite has such a run: the debug kernel is for irdma_rs"
    return "; ".join(
        f"{name} has no such run: it is for "
        f"{', '.join(suites[name].drivers + suites[name].on_request)}, on the "
        f"{' and '.join(suites[name].kernels)} kernel"
        for name in asked if not any(name in boot.suites for boot in boots))


class Reader:
    """Makes results of the lines that guests print."""

    def __init__(self, boot: Boot, report):
        self._boot = boot
        self._report = report
        self._open = {}
        self._label = {}
        self._suite = {}
        #: (suite, guest) of what has begun, and of what came to its end.
        self.begun, self.finished = set(), set()

    def feed(self, line: str) -> None:
        """One line of the lab's output."""
        match = _PREFIX.match(line)
        if not match:
            return
        node, text = int(match.group(1)), match.group(2)
        if text.startswith(MARK + " "):
            self._mark(node, text.split()[1:])
        elif node in self._suite:
            outcome = self._documents(node)[-1].feed(text)
            if outcome:
                self._add(node, outcome)

    def _documents(self, node: int) -> list:
        return self._open[node]

    def _where(self, node: int) -> str:
        where = f"{self._suite[node]} [{self._boot.label}]"
        if self._boot.guests > 1 and node:
            where += f" guest {node}"
        return where

    def _add(self, node: int, outcome: Outcome) -> None:
        if self._label.get(node):
            outcome.name = f"{self._label[node]}: {outcome.name}"
        suite = self._boot.suites[self._suite[node]]
        self._report.add(self._where(node), outcome,
                         suite.defect(self._boot.driver, outcome.name))

    def _mark(self, node: int, words) -> None:
        verb, rest = words[0], words[1:]
        if verb == "begin":
            self._suite[node] = rest[0]
            self.begun.add((rest[0], node))
            self._open[node] = [Document()]
            self._label[node] = ""
            if node == 0:
                self._report.say(f"  {rest[0]} [{self._boot.label}]")
        elif verb == "document":
            self._label[node] = " ".join(rest)
            self._open[node].append(Document())
        elif verb == "document-end":
            document = self._open[node].pop()
            fault = document.end()
            failed = any(o.status == FAIL for o in document.outcomes)
            if not fault and rest[0] != "0" and not failed:
                fault = f"no test failed, yet the exit status is {rest[0]}"
            if fault:
                self._add(node, Outcome("the program as a whole", FAIL, fault))
            self._label[node] = ""
        elif verb == "end":
            fault = self._open[node].pop().end()
            if fault:
                self._add(node, Outcome("the suite as a whole", FAIL, fault))
            self.finished.add((rest[0], node))
            del self._suite[node]


def run(boot: Boot, folder: Path, report, long: bool = False, coverage: bool = False) -> None:
    """Boot guests, run their suites, report every result. `folder` keeps it all.

    With `long` what is repeated is repeated as often as was ever asked for. With
    `coverage`, guests keep counters of what ran as well.
    """
    share, pcap = folder / "share", folder / "share/pcap"
    pcap.mkdir(parents=True)
    allowed = [w for s in boot.suites.values() for w in s.allowed(boot.driver)]
    setting = next(iter(boot.suites.values()))
    timeout = LONG * boot.timeout if long else boot.timeout
    command = [TREE / "scripts/lab", "run", "--driver", boot.driver,
               "--guests", str(boot.guests), "--share", share, "--pcap", pcap,
               "--timeout", str(timeout), "--module-params", setting.module_params,
               "--append", setting.append, "--card", setting.card,
               "--snoop", setting.snoop]
    if boot.kernel != "stock":
        command += ["--kernel", boot.kernel]
        command += ["--leaks"] * setting.leaks + ["--coverage"] * coverage
    if boot.modules:
        command.append("--modules")
    if setting.switches:
        command += ["--switches", setting.switches]
    for pattern in allowed:
        command += ["--allow-warn", pattern]
    command += ["--", IN_GUEST, "--in-guest", *(["--long"] if long else []), *boot.suites]
    report.say(f"{boot.title}")
    reader, start = Reader(boot, report), time.monotonic()
    log = folder / "output.log"
    with open(log, "w", encoding="utf-8", errors="replace") as kept:
        complaints, status = [], None
        for line in lanes.lines(command, kept):
            if isinstance(line, int):
                status = line
                continue
            reader.feed(line)
            if line.startswith(("lab:", "scripts/lab:", "[env]")):
                complaints.append(line.strip())
    name = "+".join(boot.suites)
    crash = setting.crash(boot.driver) if _crashed(complaints) else None
    for suite in boot.suites:
        for node in range(boot.guests):
            if (suite, node) not in reader.finished:
                report.add(f"{suite} [{boot.label}] guest {node}", Outcome(
                    UNFINISHED, FAIL, f"it did not; output: {log}"),
                    crash if (suite, node) in reader.begun else None)
    said = " | ".join(c for c in complaints if "[env]" not in c) or f"status {status}"
    report.add(f"{name} [{boot.label}]", Outcome(
        "guests end in time and in order, kernel logs clean",
        FAIL if status else "pass", f"{said}; output: {log}" if status else ""), crash)
    report.say(f"  {name} [{boot.label}] done in {time.monotonic() - start:.0f} s")


def _crashed(complaints) -> bool:
    """Whether guests failed for nothing but that a kernel died while a suite ran."""
    signs = [match.group(1) for match in map(_FINDING.search, complaints) if match]
    return (any(map(_DIED.search, complaints)) and "panic" in signs
            and set(signs) <= _OF_A_CRASH)


def judge(suites: dict, boots: list, folders: dict, report) -> None:
    """Let suites compare what their runs left. `folders`: boot index -> folder."""
    from . import suite as suite_module
    for name, suite in suites.items():
        judge_of = getattr(suite_module.module(name), "judge", None)
        if not judge_of:
            continue
        shares = {boot.driver: folders[i] / "share" for i, boot in enumerate(boots)
                  if name in boot.suites and boot.kernel == "stock"}
        if not shares:
            continue
        for driver, outcome in judge_of(shares):
            report.add(f"{name} [{driver}]", outcome, suite.defect(driver, outcome.name))


__all__ = ["Boot", "Reader", "Suite", "complaint", "judge", "plan", "run"]
