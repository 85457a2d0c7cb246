# SPDX-License-Identifier: GPL-2.0
"""Command line of `scripts/lab`."""

import argparse
import sys
import time
from pathlib import Path

from irdma_env.catalog import Catalog
from irdma_env.errors import EnvError
from irdma_env.paths import cache_dir

from . import rundir
from .options import DRIVERS, Options
from .session import INTERRUPTED, UNUSABLE, Session

EPILOG = """
examples:
  scripts/lab run -- ibv_devinfo -v
  scripts/lab run --guests 2 --driver irdma -- sh -c 'ping -c 1 $PEERS'
  scripts/lab run --guests 2 --driver irdma,rxe --pcap /tmp/pcap -- rdma link
  scripts/lab run --guests 2 -- sh -c 'lab-sync start; nicctl state'
  scripts/lab shell --guests 2
  scripts/lab run --kernel debug --leaks -- ibv_devinfo
  scripts/lab list

In the guest the command runs as root in /share with
  NODE (0..), NODES, DRIVER, KERNEL, RDMA_DEV, NETDEV, IP (10.99.0.NODE+1), IP6, PEERS, PEERS6
and with nicctl (control of the virtual NIC: `nicctl help`), lab-sync NAME (waits
until every guest has come there), lab-driver load|unload|insert, and the programs of
tests/guest in PATH. tests/ is at /opt/irdma_rs/tests, rdma-core's own tests at
/opt/rdma-core.

Exit status: 0 all commands succeeded in time and all kernel logs are clean,
1 not so, 2 the run could not start, 124 out of time, 130 interrupted.
"""


def _add_options(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("--driver", default="irdma_rs", metavar="NAME[,NAME...]",
        help=f"{', '.join(DRIVERS)}; one for all guests or one for each "
             "(default: irdma_rs). rxe and none use a virtio interface")
    add("--guests", type=int, default=None, metavar="N", help="number of guests "
        "(default: as many as drivers are named)")
    add("--cpus", type=int, default=2, metavar="N", help="processors of each (2)")
    add("--mem", metavar="SIZE", help="memory of each (1G; 2G with the debug kernel)")
    add("--kernel", default="stock", metavar="stock|debug|DIR",
        help="debug: one with KUnit, KASAN, lockdep, fault injection (made when first asked "
             "for: 20 minutes); or a directory with vmlinuz, lib/modules/RELEASE and, for "
             "irdma_rs, irdma_rs/*.ko built for it")
    add("--leaks", action="store_true",
        help="look for leaked memory after the command, with the driver loaded and "
             "unloaded (needs --kernel debug)")
    add("--share", type=Path, metavar="DIR",
        help="directory seen as /share, read-write (default: a temporary one)")
    add("--pcap", type=Path, metavar="DIR", help="write captures of all ports there")
    add("--coverage", action="store_true",
        help="count how often each line of the project's modules runs, into "
             "/share/coverage (needs --kernel debug)")
    add("--modules", action="store_true",
        help="have the project's modules in /run/lab/modules whatever the driver is; "
             "`lab-driver insert NAME` loads one")
    add("--module-params", default="", metavar="WORDS", help="for the RDMA driver")
    add("--card", default="", metavar="NAME=N,...",
        help="what the virtual E810s offer, like qps=65536,mcast=4096; also cqs, mrs, ahs, "
             "arps, pbles, sds, ceqs")
    add("--snoop", default="", metavar="off|SETTINGS",
        help="how switches listen to IGMP and MLD, like interval=5,response=1 or "
             "unregistered=flood; with `off` every frame goes everywhere, and a queue pair "
             "gets what it attached to without a join (default: as RFC 4541 has it, with "
             "groups that nobody joined going nowhere)")
    add("--switches", default="", metavar="LAYOUT",
        help="several linked switches, like nic0/nic1,port0")
    add("--allow-warn", action="append", default=[], metavar="REGEX",
        help="kernel log lines that are no failure (may be repeated)")
    add("--append", default="", metavar="WORDS", help="more kernel parameters")
    add("-v", "--verbose", action="store_true", help="say how far each guest is")


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="scripts/lab", epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Boot guests with a virtual E810 on one fabric and run a command in "
                    "each.")
    commands = top.add_subparsers(dest="action", metavar="run|shell|list", required=True)
    raw = argparse.RawDescriptionHelpFormatter
    run = commands.add_parser("run", help="run a command in every guest", epilog=EPILOG,
                              formatter_class=raw)
    _add_options(run)
    run.add_argument("--timeout", type=float, metavar="SECONDS",
                     help="for the whole run (600; four times that with the debug kernel)")
    shell = commands.add_parser("shell", help="a terminal in every guest", epilog=EPILOG,
                                formatter_class=raw)
    _add_options(shell)
    commands.add_parser("list", help="show the runs of this machine")
    return top


def parse(argv) -> tuple:
    """(action, Options or None, verbose) of a command line.

    Raises EnvError for options that cannot work; argparse exits by itself for
    those it does not know.
    """
    argv, command = list(argv), []
    if "--" in argv:
        cut = argv.index("--")
        argv, command = argv[:cut], argv[cut + 1:]
    top = parser()
    words, unknown = top.parse_known_args(argv)
    if words.action == "run" and not command:
        top.error("run: no command; write it after `--`")
    if unknown:
        top.error(f"unrecognized arguments: {' '.join(unknown)}")
    if words.action == "list":
        return "list", None, False
    if words.action == "shell" and command:
        top.error("shell takes no command")
    guests = words.guests if words.guests is not None else len(words.driver.split(","))
    options = Options(
        command=command, driver=words.driver, guests=guests, cpus=words.cpus,
        mem=words.mem, kernel=words.kernel, share=words.share, pcap=words.pcap,
        timeout=getattr(words, "timeout", None), module_params=words.module_params,
        card=words.card, snoop=words.snoop, switches=words.switches,
        allow_warn=words.allow_warn, append=words.append,
        leaks=words.leaks, modules=words.modules, coverage=words.coverage)
    options.check()
    return words.action, options, words.verbose


def show_runs() -> None:
    found = rundir.runs()
    if not found:
        print("no run of the lab on this machine")
    for run in found:
        command = " ".join(run["command"]) or "(shell)"
        print(f"pid {run['pid']}: {run['guests']} x {run['driver']}, "
              f"{time.time() - run['started']:.0f} s: {command}\n  logs: {run['logs']}")


def main(argv) -> int:
    try:
        action, options, verbose = parse(argv)
        if action == "list":
            show_runs()
            return 0
        return Session(options, Catalog(cache_dir()), verbose).execute()
    except EnvError as error:
        print(f"scripts/lab: {error}", file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        return INTERRUPTED
