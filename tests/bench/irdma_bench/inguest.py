# SPDX-License-Identifier: GPL-2.0
"""In a guest: all measurements, one driver and then the other, round by round."""

import json
import os
import subprocess
import time
from dataclasses import asdict
from pathlib import Path

from irdma_suites.guest import Guest

from . import drivers
from .plan import (DRIVERS, LEVELS, MARK, MEMORY_GROUPS, STEP_GROUPS, STEPS, THREADS, Plan,
                   profile_number)
from .tracing import DMA, SLAB, Trace

#: Where a single operation is measured, with the card's interrupts on the same
#: processor: which one wakes which would else be a matter of chance.
COST_CPU = 1
PINNED = ("taskset", "--cpu-list", str(COST_CPU))
#: Seconds that one program may take.
PROGRAM_TIME = 300


class Bench:
    """One phase of measurements; every result is a line of JSON in a file."""

    def __init__(self, phase: str, plan: Plan):
        self.phase, self.plan = phase, plan
        self.g = Guest("bench")
        self.pci = Path(f"/sys/class/net/{self.g.netdev}/device").resolve().name
        self.where = {}
        self.code = []
        self._results = open(self.g.share / f"{phase}.jsonl", "w", encoding="utf-8")
        self._start = time.monotonic()

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._start:6.1f} s  {text}", flush=True)

    def add(self, result: dict) -> None:
        print(json.dumps({**self.where, **result}), file=self._results, flush=True)

    def attempt(self, what: str, function, *args) -> None:
        """Call `function`; its failure is a result, too."""
        try:
            function(*args)
        except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
            self.add({"what": "failure", "of": what, "error": str(error)})
            self.say(f"{what}: {error}")

    def program(self, *words, timeout: float = PROGRAM_TIME) -> None:
        """Run a program whose lines are results."""
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True,
                              timeout=timeout, check=False)
        for line in done.stdout.splitlines():
            self.add(json.loads(line))
        if done.returncode:
            raise RuntimeError(f"{words[0]}: {done.stderr.strip() or done.returncode}")

    # -- rounds -------------------------------------------------------------

    def run(self, rounds: int, measure) -> None:
        """`measure` each driver in turn, over and over."""
        Trace.reserve()
        drivers.unload(self.g, self.g.driver)
        for number in range(1, rounds + 1):
            # Who comes first changes, so that neither always finds the same state.
            for driver in DRIVERS if number % 2 else DRIVERS[::-1]:
                self.where = {"phase": self.phase, "driver": driver, "round": number}
                self.say(f"round {number} of {rounds}: {driver}")
                # What the kernel complains of from here on is this driver's.
                Path("/dev/kmsg").write_text(f"{MARK} {driver} round {number}\n")
                try:
                    self._load(driver)
                except RuntimeError as error:
                    self.add({"what": "failure", "of": "load", "error": str(error)})
                    raise
                measure(driver, number)
                drivers.unload(self.g, driver)

    def _load(self, driver: str) -> None:
        """Load, and see what memory that takes."""
        before = drivers.available_kb(self.g)
        with Trace(self.pci) as trace:
            drivers.load(self.g, driver)
            seen = trace.seen()
        self.add({"what": "load", "available_kb": before - drivers.available_kb(self.g),
                  **asdict(seen)})

    # -- while instructions are counted -------------------------------------

    def counts(self, driver: str, number: int) -> None:
        code = drivers.Code()
        code.keep(self.g.share / f"symbols-{driver}-{number}")
        self.code = code.options(driver)
        self.attempt("steps", self._steps)
        self.attempt("memory per group", self._memory)
        drivers.route_interrupts(self.pci, COST_CPU)
        for level in LEVELS:
            profile = profile_number(number, driver, LEVELS.index(level))
            self.attempt(f"cost at {level} groups", self.program, *PINNED, "bench-cost",
                         *self.code, "-g", level, "-r", self.plan.repeat, "-p", profile)
        drivers.route_interrupts(self.pci)
        for threads in THREADS:
            self.attempt(f"{threads} threads", self._counted_rate, threads,
                         profile_number(number, driver, len(LEVELS) + THREADS.index(threads)))

    def _counted_rate(self, threads: int, profile: int) -> None:
        """What a pair takes when many are under way."""
        before = self._ops()
        self.program("bench-rate", *self.code, "-t", threads, "-m", self.plan.milliseconds,
                     "-p", profile)
        doorbells = _difference(before["doorbells"], self._ops()["doorbells"])
        self.add({"what": "rate ops", "threads": threads, "doorbells": doorbells})

    def _ops(self) -> dict:
        ops = self.g.nic("ops")
        return {"cqp": ops["cqp"], "doorbells": ops["doorbells"]}

    def _steps(self) -> None:
        """Operations, doorbells and coherent memory of each kind of attach and detach."""
        with Walker(STEP_GROUPS) as walker, Trace(self.pci, DMA) as trace:
            for name, line in STEPS:
                before = self._ops()
                trace.seen()
                error = walker.step(line)
                seen, after = trace.seen(), self._ops()
                self.add({"what": "step", "step": name, "groups": STEP_GROUPS, "error": error,
                          "cqp": _difference(before["cqp"], after["cqp"]),
                          "doorbells": _difference(before["doorbells"], after["doorbells"]),
                          **asdict(seen)})

    def _memory(self) -> None:
        """Memory of groups with one member."""
        with Walker(MEMORY_GROUPS) as walker, \
                Trace(self.pci, DMA + SLAB, walker.pid) as trace:
            trace.seen()
            error = walker.step("attach 0 0")
            self.add({"what": "memory", "groups": MEMORY_GROUPS, "error": error,
                      **asdict(trace.seen())})
            error = walker.step("detach 0 0")
            self.add({"what": "memory after", "groups": MEMORY_GROUPS, "error": error,
                      **asdict(trace.seen())})

    # -- while time is ------------------------------------------------------

    def times(self, driver: str, number: int) -> None:
        drivers.route_interrupts(self.pci, COST_CPU)
        for level in LEVELS:
            self.attempt(f"cost at {level} groups", self.program, *PINNED, "bench-cost",
                         "-g", level, "-r", self.plan.repeat)
        drivers.route_interrupts(self.pci)
        for threads in THREADS:
            self._rate(threads)
        if number == self.plan.time_rounds:
            self.attempt("churn", self._churn)

    def one_group(self, _driver: str, _number: int) -> None:
        """In a guest of its own: stock irdma may not survive it whole."""
        for threads in THREADS:
            self._rate(threads, "--one-group")

    def _rate(self, threads: int, *options) -> None:
        self.attempt(f"{threads} threads", self.program, "bench-rate", "-t", threads, "-m",
                     self.plan.milliseconds, *options)

    def _churn(self) -> None:
        # A pair takes a few hundred microseconds on a quiet machine.
        self.program("bench-rate", "--pairs", self.plan.churn,
                     timeout=PROGRAM_TIME + self.plan.churn * 0.01)


class Walker:
    """The program `bench-steps`, step by step."""

    def __init__(self, groups: int):
        self._groups = groups

    def __enter__(self):
        self._process = subprocess.Popen(
            ["bench-steps", "-g", str(self._groups)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, bufsize=1)
        if (said := self._process.stdout.readline().strip()) != "ready":
            raise RuntimeError(f"bench-steps: says {said!r}, not ready")
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(PROGRAM_TIME)

    @property
    def pid(self) -> int:
        return self._process.pid

    def step(self, line: str) -> str:
        """Do one step; empty if it went well, else what did not."""
        print(line, file=self._process.stdin, flush=True)
        said = self._process.stdout.readline().strip()
        return "" if said == "done" else said or "bench-steps ended"


def _difference(before: dict, after: dict) -> dict:
    return {k: after[k] - before.get(k, 0) for k in after if after[k] != before.get(k, 0)}


def main(phase: str, settings: str) -> int:
    plan = Plan(**json.loads(settings))
    bench = Bench(phase, plan)
    try:
        if phase == "counts":
            bench.run(plan.count_rounds, bench.counts)
        elif phase == "times":
            bench.run(plan.time_rounds, bench.times)
        else:
            bench.run(plan.time_rounds, bench.one_group)
        bench.where = {"phase": phase}
        bench.add({"what": "end"})
    finally:
        log = subprocess.run(["dmesg"], capture_output=True, check=False).stdout
        (bench.g.share / f"kernel-{phase}.log").write_bytes(log)
        os.sync()
    return 0
