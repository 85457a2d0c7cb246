# SPDX-License-Identifier: GPL-2.0
"""Command line of tests/bench/run."""

import argparse
import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from irdma_env.errors import EnvError
from irdma_env.paths import TREE, cache_dir

from . import goals, parts, plan, profile, report
from .analysis import Results

IN_GUEST = "/opt/irdma_rs/tests/bench/run"
PHASES = {"counts": "instructions are counted", "times": "time is measured",
          "crowd": "all threads use one group"}
EPILOG = """
examples:
  tests/bench/run                   everything (`make bench`)
  tests/bench/run --quick           fewer rounds, for a first look
  tests/bench/run --full            more rounds, and up to a million pairs: hours
  tests/bench/run --only counts     nothing that depends on how busy the machine is
  tests/bench/run --only times --only crowd
  tests/bench/run --show DIR        judge and show once more what lies in DIR

Exit status: 0 measured, whether goals are met or not, 1 something could not be
measured, 2 wrong usage, 130 interrupted.
"""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="tests/bench/run", epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Compare irdma_rs with stock irdma, both in the same guest, one after "
                    "the other and over again.")
    size = top.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a few minutes")
    size.add_argument("--full", action="store_true", help="as much as makes sense")
    top.add_argument("--only", action="append", choices=PHASES,
                     help="only this part (may be repeated): "
                     + "; ".join(f"{k}: {v}" for k, v in PHASES.items()))
    top.add_argument("--rounds", type=int, metavar="N", help="loads of each driver per part")
    top.add_argument("--churn", type=int, metavar="N",
                     help="pairs of changing groups at the end")
    top.add_argument("--output", type=Path, metavar="DIR",
                     help="where results go (default: a new directory in the cache)")
    top.add_argument("--show", type=Path, metavar="DIR", help="run nothing")
    return top


def _plan(options) -> plan.Plan:
    chosen = plan.QUICK if options.quick else plan.FULL if options.full else plan.DEFAULT
    if options.rounds:
        chosen.count_rounds = chosen.time_rounds = options.rounds
    if options.churn:
        chosen.churn = options.churn
    return chosen


def _about(chosen: plan.Plan) -> dict:
    """What a reader of the results has to know."""
    commit = subprocess.run(["git", "-C", TREE, "describe", "--always", "--dirty"],
                            capture_output=True, text=True, check=False).stdout.strip()
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {"time": time.strftime("%Y-%m-%d %H:%M:%S %Z"), "commit": commit or "unknown",
            "processor": (model.group(1) if model else platform.machine())
            + f", {os.cpu_count()} processors",
            "load when it began": " ".join(f"{n:.1f}" for n in os.getloadavg()),
            "guest": "2 vCPUs, emulated by QEMU (TCG), virtual E810",
            "plan": ", ".join(f"{k} {v}" for k, v in asdict(chosen).items())}


def _run_phase(phase: str, chosen: plan.Plan, folder: Path, catalog) -> str:
    """Run a guest for one half; empty if all is well, else what is not."""
    environment = dict(os.environ)
    if phase == "counts":
        counter = parts.Counter(catalog).path() / "count.so"
        environment["IRDMA_RS_QEMU_ARGS"] = (
            f"-plugin {counter},profile={folder}/profile-")
    share = folder / "raw"
    share.mkdir(exist_ok=True)
    # A pair takes well below 10 ms, a round some seconds.
    limit = 900 + 240 * (chosen.count_rounds + chosen.time_rounds) + chosen.churn // 50
    command = [TREE / "scripts/lab", "run", "--driver", "irdma_rs", "--share", share,
               "--timeout", str(limit), "--allow-warn", "", "--snoop", "off", "--", IN_GUEST,
               "--in-guest", phase, json.dumps(asdict(chosen))]
    print(f"{phase}: one guest; {PHASES[phase]}", flush=True)
    complaints = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", env=environment) as lab, \
            open(folder / f"{phase}.log", "w", encoding="utf-8") as log:
        for line in lab.stdout:
            log.write(line)
            if line.startswith("[0] "):
                line = "  " + line[4:]
            elif line.startswith(("lab:", "scripts/lab:")):
                complaints.append(line.strip())
            print(line, end="", flush=True)
    return "" if not lab.returncode else " | ".join(complaints) or f"status {lab.returncode}"


def _profiles(folder: Path, catalog, repeat: int) -> None:
    """Functions by instructions, for each profile that the counter wrote."""
    for raw in sorted(folder.glob("profile-[0-9]*")):
        if not raw.name[8:].isdigit():
            continue
        number = int(raw.name[8:])
        driver, about = plan.DRIVERS[number // 10 % 10], plan.PROFILES[number % 10]
        symbols = folder / "raw" / f"symbols-{driver}-{number // 100 + 1}"
        if not symbols.is_file():
            continue
        counts = profile.functions(raw, profile.Symbols(symbols))
        readable = parts.demangle(catalog, {name for name, _ in counts})
        target = folder / f"profile-{driver}-{about}-round{number // 100 + 1}.txt"
        pairs = repeat if "groups" in about else 0
        target.write_text(profile.text(counts, pairs, readable), encoding="utf-8")


def _places(folder: Path, catalog, results: Results) -> dict:
    """Where the longest times with interrupts off begin and end: functions by condition."""
    longest, symbols = {}, {}
    for driver, number, kind, op, groups, length, begin, end in results.places:
        key = (driver, kind, op, groups)
        if length and length >= longest.get(key, (0,))[0]:
            longest[key] = (length, number, int(begin, 16), int(end, 16))
    found = {}
    for key, (_, number, *addresses) in longest.items():
        file = folder / "raw" / f"symbols-{key[0]}-{number}"
        if file not in symbols and file.is_file():
            symbols[file] = profile.Symbols(file)
        if file in symbols:
            found[key] = [symbols[file].at(address)[0] for address in addresses]
    readable = parts.demangle(catalog, {name for names in found.values() for name in names})
    return {key: " to ".join(readable[name] for name in names)
            for key, names in found.items()}


def _plot(folder: Path, catalog) -> str:
    """Make the plots; empty if there are some, else why not."""
    try:
        plotter = parts.Plotter(catalog)
        done = subprocess.run(
            plotter.enter(["python3", TREE / "tests/bench/irdma_bench/plots.py", folder],
                          binds=[TREE, folder], env={"MPLCONFIGDIR": "/tmp"}),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    except (EnvError, OSError) as error:
        return str(error)
    return done.stdout.strip() if done.returncode else ""


def _show(folder: Path, catalog, about: dict, faults) -> int:
    """Judge and write down what was measured."""
    results = Results()
    for fault in faults:
        results.failures.append({"of": "the run", "error": fault})
    for file in sorted((folder / "raw").glob("*.jsonl")):
        results.read(file)
    for file in sorted((folder / "raw").glob("kernel-*.log")):
        results.read_log(file)
    if not results.series():
        print(f"bench: nothing was measured; logs: {folder}", file=sys.stderr)
        return 1
    verdicts = goals.judge(results)
    _profiles(folder, catalog, about.get("repeat", 1))
    places = _places(folder, catalog, results)
    report.write(folder, results, verdicts, {k: v for k, v in about.items() if k != "repeat"},
                 places)
    print((folder / "report.md").read_text())
    why = _plot(folder, catalog)
    if why:
        print(f"bench: no plots, the numbers are there all the same: {why}", file=sys.stderr)
    print(f"bench: report.md, results.json, results.csv, plots: {folder}")
    # What stock irdma does not bear is a result.
    return 1 if any(f.get("driver") != "irdma" for f in results.failures) else 0


def main(argv) -> int:
    options = parser().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    catalog = parts.catalog()
    try:
        if options.show:
            folder = options.show.resolve()
            return _show(folder, catalog, json.loads((folder / "about.json").read_text()), ())
        chosen = _plan(options)
        folder = options.output or cache_dir() / "bench" / time.strftime("%Y%m%d-%H%M%S")
        folder = folder.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        about = {**_about(chosen), "repeat": chosen.repeat}
        (folder / "about.json").write_text(json.dumps(about, indent=1) + "\n")
        faults = [fault for phase in PHASES if (not options.only or phase in options.only)
                  and (fault := _run_phase(phase, chosen, folder, catalog))]
        return _show(folder, catalog, about, faults)
    except (EnvError, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return 130
