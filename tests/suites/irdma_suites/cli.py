# SPDX-License-Identifier: GPL-2.0
"""Command line of tests/suites/run."""

import argparse
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from . import boots, host, lanes, suite
from .report import Report

TREE = Path(__file__).resolve().parents[3]
EPILOG = """
examples:
  tests/suites/run                       everything (`make test`)
  tests/suites/run multicast devinfo     these suites only, no unit tests, no lint
  tests/suites/run --driver irdma -v multicast   one driver, every result shown
  tests/suites/run --kernel debug        all that runs with KASAN, lockdep, kmemleak
                                         (`make test-debug`)
  tests/suites/run --kernel debug mcast_watch   one of them
  tests/suites/run --coverage            line coverage of the modules (`make coverage`)
  tests/suites/run --host                unit tests and lint only
"""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="tests/suites/run", epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Run the project's tests: unit tests and lint on this machine, then "
                    "suites in guests, on irdma_rs and on stock irdma.")
    top.add_argument("suite", nargs="*", help="suites to run (default: everything)")
    top.add_argument("--driver", action="append", metavar="NAME",
                     help="only suites' runs on this driver (may be repeated)")
    top.add_argument("--kernel", action="append", choices=("stock", "debug"),
                     help="only suites' runs on this kernel (may be repeated)")
    top.add_argument("--host", action="store_true", help="unit tests and lint only")
    top.add_argument("--guests", action="store_true", help="suites in guests only")
    top.add_argument("--coverage", action="store_true",
                     help="runs on the debug kernel only, counting which lines of the "
                          "modules run: a table, and HTML in the cache")
    top.add_argument("--list", action="store_true", help="show the suites there are")
    top.add_argument("-j", "--jobs", type=int, default=2, metavar="N",
                     help="how much to do side by side (2)")
    top.add_argument("--fresh", action="store_true",
                     help="run what has no part of irdma_rs, too, whose results are in the "
                          "cache and of which nothing has changed since")
    top.add_argument("-v", "--verbose", action="store_true", help="show every result")
    top.add_argument("--long", action="store_true",
                     help="repeat what is repeated as often as was ever asked for: hours")
    top.add_argument("--in-guest", action="store_true", help=argparse.SUPPRESS)
    return top


def _log_folder() -> Path:
    sys.path.insert(0, os.fspath(TREE / "scripts"))
    from irdma_env.paths import cache_dir
    stamp = time.strftime("%Y%m%d-%H%M%S")
    folder = cache_dir() / "test-logs" / f"{stamp}-{os.getpid()}"
    folder.mkdir(parents=True)
    old = sorted(folder.parent.iterdir())[:-10]
    for one in old:
        # Captures and logs add up; the last ten runs are kept.
        subprocess.run(["rm", "-rf", "--", os.fspath(one)], check=False)
    return folder


def _store(report, fresh: bool):
    """Where results are kept that need not be had again; None if they cannot be told apart."""
    from . import kept
    from irdma_env.catalog import Catalog
    for name in kept.OVERRIDES:
        if os.environ.get(name):
            report.say(f"{name} is set: all is run, and no result is kept")
            return None
    return kept.Store(Catalog(), report, fresh)


def _coverage(folders) -> int:
    """Sum up what guests counted; exit status."""
    from . import coverage
    from irdma_env.errors import EnvError
    from irdma_env.paths import cache_dir
    try:
        reached = coverage.report([f / "share" for f in folders], cache_dir() / "coverage",
                                  print)
    except (EnvError, OSError, RuntimeError, ValueError) as error:
        print(f"coverage: {error}", file=sys.stderr)
        return 1
    return 0 if reached else 1


def show(suites: dict) -> None:
    for name, one in suites.items():
        print(f"{name:16} {one.about}\n{'':16} {one.guests} guests; "
              + "; ".join([*one.drivers, *(f"--driver {d}" for d in one.on_request)])
              + "; on kernel " + ", ".join(one.kernels)
              + (" each time" if one.debug_each_time else ""))


def main(argv) -> int:
    top = parser()
    options = top.parse_args(argv)
    if options.in_guest:
        from . import guest
        return guest.main(options.suite, options.long)
    unknown = set(options.suite) - set(suite.names())
    if unknown:
        top.error(f"no such suite: {', '.join(sorted(unknown))}; there are: "
                  + ", ".join(suite.names()))
    if options.fresh and (options.suite or options.driver or options.kernel or options.guests
                          or options.host or options.long):
        top.error("--fresh is for everything: whatever else is asked for is always run")
    if options.coverage:
        if options.host or options.kernel:
            top.error("--coverage goes with no --host and no --kernel")
        options.kernel, options.guests = ["debug"], True
    suites = {name: suite.module(name).SUITE for name in options.suite or suite.names()}
    if options.list:
        show(suites)
        return 0
    planned = [] if options.host else boots.plan(suites, options.driver, options.kernel)
    if complaint := "" if options.host else boots.complaint(suites, planned, options.suite):
        top.error(f"{complaint}; `tests/suites/run --list` shows what there is")
    report = Report(options.verbose, lambda text: print(text, flush=True))
    return _run(options, suites, planned, report)


def _run(options, suites: dict, planned, report) -> int:
    """Run and judge all that is planned; exit status."""
    # Told to end, it ends what it started, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = _log_folder()
    report.say(f"logs: {folder}")
    some = options.suite or options.driver or options.kernel or options.guests
    # Who asks for something in particular wants to see it run.
    store = None if some or options.host or options.long else _store(report, options.fresh)
    jobs, folders, told = [], {}, []
    if options.host or not some:
        jobs.append(lambda: host.run(report, folder, store))
    # The longest first, so that no lane is left with it at the end.
    for number, boot in sorted(enumerate(planned), key=lambda b: -b[1].timeout):
        folders[number], teller = folder / f"boot{number}", report
        if subject := store and store.of_boot(boot):
            share = folders[number] / "share"
            if store.replay(subject, share):
                continue
            teller = store.recorder(subject)
            told.append((teller, share))
        jobs.append(partial(boots.run, boot, folders[number], teller, options.long,
                            options.coverage))
    try:
        lanes.run(jobs, options.jobs)
        boots.judge(suites, planned, folders, report)
    except KeyboardInterrupt:
        report.say("interrupted")
        report.close()
        return 130
    if store:
        store.settle(told, report.failures)
    status = report.close()
    if options.coverage:
        return _coverage(folders.values()) or status
    return status
