# SPDX-License-Identifier: GPL-2.0
"""Checks that need no guest: unit tests and lint."""

import os
import re
import sys
import time
from pathlib import Path

from . import lanes
from .ktap import FAIL, PASS, SKIP, Outcome

TREE = Path(__file__).resolve().parents[3]
sys.path.insert(0, os.fspath(TREE / "scripts"))


def _stream(report, folder: Path, name: str, command, line_outcome, **options) -> None:
    """Run a command; each line that `line_outcome` understands is a result."""
    log, start, results = folder / f"{name}.log", time.monotonic(), 0
    report.say(name)
    failed, status = False, None
    with open(log, "w", encoding="utf-8", errors="replace") as kept:
        for line in lanes.lines(command, kept, **options):
            if isinstance(line, int):
                status = line
            elif outcome := line_outcome(line):
                results += 1
                if outcome.status == FAIL:
                    failed = True
                    outcome.reason = f"{outcome.reason or 'failed'}; output: {log}"
                report.add(name, outcome)
    if status and not failed:
        report.add(name, Outcome("ends well", FAIL, f"status {status}; output: {log}"))
    elif not results:
        report.add(name, Outcome("has results", FAIL, f"there are none; output: {log}"))
    report.say(f"  {name}: {results} results in {time.monotonic() - start:.0f} s")


def cargo_line(line: str):
    """A result in the output of `cargo test`."""
    match = re.match(r"^test (.+?) \.\.\. (ok|FAILED|ignored)(?:, (.*))?$", line)
    if not match:
        return None
    name, word, why = match.groups()
    if word == "ignored":
        return Outcome(name, SKIP, why or "marked as run by hand")
    return Outcome(name, PASS if word == "ok" else FAIL)


def unittest_line(line: str):
    """A result in the output of `python3 -m unittest -v`."""
    match = re.match(r"^(.*?) \.\.\. (ok|FAIL|ERROR|skipped (.*))$", line)
    if not match:
        return None
    name, word, why = match.groups()
    if word.startswith("skipped"):
        return Outcome(name, SKIP, why.strip("'"))
    return Outcome(name, PASS if word == "ok" else FAIL)


def lint_line(line: str):
    """A result in the output of scripts/lint."""
    match = re.match(r"^lint: (\w+)\s+(ok|FAILED)\b", line)
    return match and Outcome(match.group(1), PASS if match.group(2) == "ok" else FAIL)


def _cargo(report, folder: Path) -> None:
    from irdma_env.builds import cargo_settings, host_cargo
    from irdma_env.catalog import Catalog
    from irdma_env.paths import cache_dir

    name = "virtual E810, unit tests"
    cargo, nic = host_cargo(), TREE / "tests/nic"
    target = cache_dir() / "cargo" / ("host" if cargo else "root")
    target.mkdir(parents=True, exist_ok=True)
    words = ["test", "--workspace", "--locked", "--manifest-path", nic / "Cargo.toml",
             "--target-dir", target]
    if cargo:
        _stream(report, folder, name, [cargo[0], *words], cargo_line, cwd=nic)
        return
    home = cache_dir() / "cargo/home"
    home.mkdir(parents=True, exist_ok=True)
    root = Catalog(cache_dir())["root"]
    _stream(report, folder, name, root.enter(
        ["cargo", *words], binds=[TREE, target, home], cwd=nic,
        env={"CARGO_HOME": home, **cargo_settings()}), cargo_line)


def _self_check(report, folder: Path, store) -> None:
    """The lab's check of itself, or what it gave before if that is kept."""
    name, command = "lab, with guests", [TREE / "tests/lab/self-check", "-v"]
    if not store:
        _stream(report, folder, name, command, unittest_line)
        return
    subject = store.of_check(name, ("debug-boot", "debug-faults"))
    if not store.replay(subject, folder / "self-check"):
        teller = store.recorder(subject)
        _stream(teller, folder, name, command, unittest_line)
        store.settle([(teller, None)], report.failures)


def run(report, folder: Path, store=None) -> None:
    """All of them; with a `store` those of which it has no results."""
    clean = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    _stream(report, folder, "scripts and lab, unit tests",
            [TREE / "tests/lab/run-tests", "-v"], unittest_line)
    _stream(report, folder, "suites, unit tests",
            [sys.executable, "-m", "unittest", "-v"], unittest_line,
            cwd=TREE / "tests/suites", env=clean)
    _stream(report, folder, "benchmarks, unit tests",
            [sys.executable, "-m", "unittest", "-v"], unittest_line,
            cwd=TREE / "tests/bench", env=clean)
    _self_check(report, folder, store)
    _cargo(report, folder)
    _stream(report, folder, "lint", [TREE / "scripts/lint"], lint_line)
