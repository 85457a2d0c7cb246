# SPDX-License-Identifier: GPL-2.0
"""Reads results in KTAP, as programs and suites print them."""

import re
from dataclasses import dataclass

PASS, FAIL, SKIP = "pass", "fail", "skip"

_RESULT = re.compile(r"^(not )?ok (\d+)(?:\s+(?:- )?(.*))?$")
_PLAN = re.compile(r"^1\.\.(\d+)(?:\s*#\s*SKIP\s*(.*))?$")
_DIRECTIVE = re.compile(r"^(.*?)\s*#\s*(SKIP|XFAIL|TODO)\b:?\s*(.*)$", re.IGNORECASE)


@dataclass
class Outcome:
    """One test's result."""

    name: str
    status: str
    reason: str = ""
    #: Whether it is worth a line even when it passed: it carries a measurement.
    shown: bool = False


class Document:
    """One KTAP document, fed line by line.

    The plan may stand at either end. Diagnostic lines before a failed test
    are its reason.
    """

    def __init__(self):
        self.outcomes = []
        self.planned = None
        self._notes = []

    def feed(self, line: str):
        """Take a line; returns the Outcome if it is a result."""
        line = line.rstrip()
        if plan := _PLAN.match(line):
            self.planned = int(plan.group(1))
            return None
        if line.startswith("#"):
            self._notes.append(line.lstrip("# "))
            return None
        match = _RESULT.match(line)
        if not match:
            return None
        failed, name = match.group(1), match.group(3) or f"test {match.group(2)}"
        outcome = Outcome(name, FAIL if failed else PASS)
        if directive := _DIRECTIVE.match(name):
            outcome.name = directive.group(1)
            if directive.group(2).upper() == "SKIP":
                outcome.status = SKIP
                outcome.reason = directive.group(3)
                if not outcome.reason:
                    # A skip has to say why.
                    outcome.status, outcome.reason = FAIL, "skipped without a reason"
        if outcome.status == FAIL and not outcome.reason:
            outcome.reason = "; ".join(self._notes[-3:])
        self._notes = []
        self.outcomes.append(outcome)
        return outcome

    def end(self):
        """What is wrong with the document as a whole, or None."""
        if self.planned is None:
            return "no plan: the tests did not come to their end"
        if self.planned != len(self.outcomes):
            return (f"{self.planned} tests planned, {len(self.outcomes)} "
                    "results: the tests did not come to their end")
        return None
