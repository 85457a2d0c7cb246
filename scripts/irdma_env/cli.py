# SPDX-License-Identifier: GPL-2.0
"""Command line of `scripts/env`."""

import argparse
import os
import sys
import threading
import time

from . import apt, parts
from .catalog import Catalog
from .errors import EnvError
from .paths import cache_dir
from .progress import say, stop_all

EPILOG = """
examples:
  scripts/env                     make everything that is missing
  scripts/env make modules        make one part and what it needs, print its path
  scripts/env list                what there is, and where
  scripts/env run gcc-14 --version   run a program in the build root (as root)
  scripts/env refresh             look for newer packages: make all parts again
  scripts/env clean               delete parts that are not current

The cache is $IRDMA_RS_CACHE, else $XDG_CACHE_HOME/irdma_rs, else ~/.cache/irdma_rs.
"""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="scripts/env", epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Make and cache the environment: build root, kernel, guest image, "
                    "virtual NIC, guest programs, modules.")
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    make = commands.add_parser("make", help="make parts (default: all)")
    make.add_argument("part", nargs="*", help="names from `list`")
    commands.add_parser("list", help="show the parts and their state")
    run = commands.add_parser("run", help="run a command in the build root")
    run.add_argument("--bind", action="append", default=[], metavar="DIR[:INSIDE]",
                     help="a directory the command may write to (the current one always)")
    run.add_argument("--tree", action="store_true",
                     help="with the prepared kernel tree at /build/linux")
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND...")
    commands.add_parser("refresh", help="make all parts again, from newer packages")
    clean = commands.add_parser("clean", help="delete parts that are not current")
    clean.add_argument("--all", action="store_true", help="delete every part, and kept results")
    return top


def make_parts(catalog: Catalog, names) -> None:
    """Make the named parts, or all: those that need each other one after the other."""
    unknown = [n for n in names if n not in catalog]
    if unknown:
        raise EnvError(f"no part called {', '.join(unknown)}; there are: "
                       + ", ".join(p.name for p in catalog.parts()))
    if names:
        for name in names:
            print(catalog[name].path())
        return
    start = time.monotonic()
    catalog["root"].path()
    errors = []

    # The kernel's chain and the images' do not need each other: side by side.
    def chain(*chained):
        try:
            for name in chained:
                catalog[name].path()
        except EnvError as error:
            errors.append(error)

    threads = [threading.Thread(target=chain, args=c) for c in
               (("kernel", "tree", "boot", "modules"), ("guest", "programs", "nic"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise EnvError("\n".join(str(e) for e in errors))
    say(f"[env] everything is ready in {catalog.cache} "
        f"({time.monotonic() - start:.1f} s)")


def show_list(catalog: Catalog) -> None:
    for part in catalog.parts():
        state = "ready  " if part.complete() else "missing"
        print(f"{part.name:16} {state}  {part.about}\n                 {part.where}")


def run_inside(catalog: Catalog, options) -> None:
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    if not words:
        raise EnvError("run: which command?")
    binds = [os.getcwd(), *options.bind]
    if options.tree:
        tree = catalog["tree"]
        binds.append(f"{tree.path()}:{tree.inside}")
    command = catalog["root"].enter(words, binds=binds, cwd=os.getcwd())
    os.execvp(command[0], command)


def main(argv) -> int:
    options = parser().parse_args(argv)
    catalog = Catalog(cache_dir())
    try:
        if options.command == "list":
            show_list(catalog)
        elif options.command == "run":
            run_inside(catalog, options)
        elif options.command == "clean":
            for name in parts.clean(catalog, options.all):
                print(f"deleted {name}")
            if options.all and (catalog.cache / "results").exists():
                parts.remove(catalog.cache / "results")
                print("deleted results")
        elif options.command == "refresh":
            apt.require_root("refresh")
            for part in reversed(catalog.parts()):
                parts.remove(part.stamp)
            make_parts(catalog, [])
        else:
            make_parts(catalog, getattr(options, "part", []))
    except EnvError as error:
        print(f"scripts/env: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        stop_all()
        print("scripts/env: interrupted; what was unfinished is made again next time",
              file=sys.stderr)
        return 130
    return 0
