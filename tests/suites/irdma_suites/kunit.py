# SPDX-License-Identifier: GPL-2.0
"""KUnit suites of the project's modules: loads the modules, reads the results.

KUnit runs the suites of a module when it is loaded; the load succeeds whatever they
say. Each suite's results are a file of debugfs, in KTAP.
"""

import os
import re
import subprocess
from pathlib import Path

from .ktap import FAIL, Document, Outcome

DEBUGFS = Path("/sys/kernel/debug/kunit")
MODULES = Path("/run/lab/modules")
#: Kernel parameters with which suites run.
ENABLE = "kunit.enable=1"

_RESULT = re.compile(r"^(not )?ok \d+(?: - )?\s*(\S+)")


def read(suite: str, text: str) -> list:
    """Outcomes of one suite from its `results` file.

    Besides those of its tests there is one of the suite as a whole, if it says
    otherwise than they do: no plan, tests missing, or no result at all.
    """
    document, verdict = Document(), None
    for line in text.splitlines():
        if line.startswith("    "):
            # A test with parameters has a document of its own, deeper still.
            if not line.startswith("        ") or line.lstrip().startswith("#"):
                document.feed(line.strip())
        elif match := _RESULT.match(line):
            verdict = FAIL if match.group(1) else "pass"
    fault = document.end()
    if not fault and verdict is None:
        fault = "no verdict on the suite: it did not come to its end"
    if not fault and not document.outcomes:
        fault = "it has no test"
    failed = any(o.status == FAIL for o in document.outcomes)
    if not fault and verdict == FAIL and not failed:
        fault = "no test failed, yet the suite did"
    outcomes = list(document.outcomes)
    if fault:
        outcomes.append(Outcome(f"suite {suite} as a whole", FAIL, fault))
    return outcomes


def modules() -> list:
    """The project's modules, those that others need first."""
    names = sorted(p.stem for p in MODULES.glob("*.ko"))
    return sorted(names, key=lambda n: (n != "rdma_rs", n))


def run():
    """Load each module of the project; yields (module, suite, text of the results).

    Raises RuntimeError when a module cannot be loaded or its suites cannot be found.
    """
    if not DEBUGFS.is_dir():
        raise RuntimeError(f"no {DEBUGFS}: this kernel has no KUnit")
    seen = set(os.listdir(DEBUGFS))
    names = modules()
    if not names:
        raise RuntimeError(f"no module in {MODULES}")
    for name in names:
        done = subprocess.run(["lab-driver", "insert", name], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{name}: cannot be loaded: {done.stdout.strip()}")
        found = sorted(set(os.listdir(DEBUGFS)) - seen)
        seen.update(found)
        for suite in found:
            yield name, suite, (DEBUGFS / suite / "results").read_text()


def show(found) -> str:
    """One KTAP document of all suites: (module, suite, text)."""
    found = list(found)
    lines = ["KTAP version 1", f"1..{len(found)}"]
    for number, (_, suite, text) in enumerate(found, 1):
        body = [line for line in text.rstrip().splitlines() if line.startswith(" ")]
        failed = any(o.status == FAIL for o in read(suite, text))
        lines += [*body, f"{'not ok' if failed else 'ok'} {number} {suite}"]
    return "\n".join(lines)
