# SPDX-License-Identifier: GPL-2.0
"""Counts results, shows them as they come, and sums up."""

import threading
import time

from .ktap import FAIL, PASS, SKIP


class Report:
    """All results of a run of `make test`."""

    def __init__(self, verbose: bool, write=print):
        self.counts = {PASS: 0, FAIL: 0, SKIP: 0}
        #: How many of these were not run now: see kept.py.
        self.kept = 0
        self.failures, self.skips, self.surprises = [], [], []
        self._verbose = verbose
        self._write = write
        self._start = time.monotonic()
        # Suites report from several threads.
        self._lock = threading.RLock()

    def say(self, text: str) -> None:
        """A line of progress, with the time since the start."""
        elapsed = int(time.monotonic() - self._start)
        with self._lock:
            self._write(f"[{elapsed // 60:2}:{elapsed % 60:02}] {text}")

    def add(self, where: str, outcome, defect=None) -> None:
        """One result. `defect` says why it is known to fail on a stock driver."""
        with self._lock:
            self._add(f"{where}: {outcome.name}", outcome, defect)

    def _add(self, name: str, outcome, defect) -> None:
        status, reason = outcome.status, outcome.reason
        if defect and status == FAIL:
            status, reason = SKIP, f"known defect of a stock driver: {defect} ({reason})"
        elif defect and status == PASS:
            self.surprises.append(f"{name}: known to fail, passed: {defect}")
        self.counts[status] += 1
        if status == FAIL:
            self.failures.append((name, reason))
            self.say(f"FAIL {name}: {reason}")
        elif status == SKIP:
            self.skips.append((name, reason))
            if self._verbose:
                self.say(f"skip {name}: {reason}")
        elif self._verbose or outcome.shown:
            self.say(f"ok   {name}")

    def close(self) -> int:
        """The summary; returns the exit status."""
        for name, reason in self.skips:
            self._write(f"skipped: {name}: {reason}")
        for text in self.surprises:
            self._write(f"note: {text}")
        for name, reason in self.failures:
            self._write(f"FAILED: {name}: {reason}")
        elapsed = int(time.monotonic() - self._start)
        kept = (f" ({self.kept} of these in an earlier run; `make test FRESH=1` runs all)"
                if self.kept else "")
        self._write(f"{self.counts[PASS]} passed, {self.counts[FAIL]} failed, "
                    f"{self.counts[SKIP]} skipped{kept}, "
                    f"after {elapsed // 60}:{elapsed % 60:02}")
        # Nothing run is nothing shown.
        return 0 if self.counts[PASS] and not self.counts[FAIL] else 1
