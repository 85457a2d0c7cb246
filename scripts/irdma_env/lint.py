# SPDX-License-Identifier: GPL-2.0
"""Formatting and static checks, with the tools of the build root."""

import argparse
import os
import subprocess
import sys
import time

from .catalog import Catalog
from .errors import EnvError
from .builds import cargo_settings
from .paths import TREE

#: Folders with Rust for the kernel.
KERNEL_RUST = ("rust", "drivers")
#: What checkpatch says of any code outside the kernel tree, and why it does not count.
CHECKPATCH_IGNORE = {
    "LINUX_VERSION_CODE": "no patch",
    "FILE_PATH_CHANGES": "no MAINTAINERS file here",
    "SPDX_LICENSE_TAG": "checked by `headers`, for all languages",
    "CAMELCASE": "needs the headers of the kernel tree it runs in",
    "CONST_STRUCT": "needs the kernel's list",
    "LONG_LINE_STRING": "messages stay in one piece, so that one can search for them",
}
#: More of the same for C of the kernel's side.
CHECKPATCH_KERNEL = {
    "EXPORT_SYMBOL": "Rust functions are exported away from their definition",
    "AVOID_EXTERNS": "Rust functions have no header",
    "MACRO_ARG_REUSE": "declares and exports one name",
}
#: More of the same for headers of trace events, whose macros have a layout of their own.
CHECKPATCH_TRACE = {
    "OPEN_ENDED_LINE": "TP_STRUCT__entry( and its like are written so in the kernel",
    "PARENTHESIS_ALIGNMENT": "as above",
}
#: More of the same for programs.
CHECKPATCH_USER = {
    "PREFER_KERNEL_TYPES": "the C library's types",
    "NEW_TYPEDEFS": "not the kernel",
    "ARRAY_SIZE": "a macro of the kernel",
    "USE_NEGATIVE_ERRNO": "libibverbs returns positive ones",
    "PREFER_DEFINED_ATTRIBUTE_MACRO": "macros of the kernel",
}


class Lint:
    """All checks; each returns whether it found nothing."""

    def __init__(self, catalog: Catalog, fix: bool):
        self.catalog = catalog
        self.fix = fix
        listed = subprocess.run(
            ["git", "-C", TREE, "ls-files", "-z", "--cached", "--others",
             "--exclude-standard"], capture_output=True, check=True).stdout
        self.files = [TREE / os.fsdecode(name) for name in listed.split(b"\0") if name]
        self.files = [f for f in self.files if f.is_file() and not f.is_symlink()]

    def inside(self, command, **options) -> bool:
        """Run in the build root; output goes to the user."""
        args = self.catalog["root"].enter(
            command, binds=[TREE, *options.pop("binds", [])],
            cwd=options.pop("cwd", TREE), **options)
        return subprocess.run(args, check=False).returncode == 0

    def of(self, *suffixes, under=()) -> list:
        """Files of ours with these name endings."""
        return [f for f in self.files if f.name.endswith(suffixes)
                and (not under or f.relative_to(TREE).parts[0] in under)]

    def scripts(self, *interpreters) -> list:
        """Files whose first line calls one of these interpreters."""
        found = []
        for file in self.files:
            with open(file, "rb") as opened:
                first = opened.readline(80).decode(errors="replace")
            if first.startswith("#!") and any(
                    word.split("/")[-1] in interpreters for word in first[2:].split()):
                found.append(file)
        return found

    # -- checks -------------------------------------------------------------

    def rustfmt(self) -> bool:
        """Rust for the kernel is formatted as the kernel wants it."""
        files = self.of(".rs", under=KERNEL_RUST)
        if not files:
            return True
        tree = self.catalog["tree"]
        how = [] if self.fix else ["--check"]
        return self.inside(
            ["rustfmt", "--edition=2021", "--config-path", f"{tree.inside}/.rustfmt.toml",
             "--config", "skip_children=true", *how, *files],
            binds=[f"{tree.path()}:{tree.inside}"], env={"RUSTC_BOOTSTRAP": "1"})

    def clippy(self) -> bool:
        """Rust for the kernel passes the kernel's own clippy settings."""
        modules = self.catalog["modules"]
        work = self.catalog.cache / "kbuild" / (self.catalog["tree"].key + "-clippy")
        work.mkdir(parents=True, exist_ok=True)
        modules.copy_sources(work)
        args = modules.make(work, "CLIPPY=1", "modules")
        done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        found = [line for line in done.stdout.splitlines()
                 if line.startswith(("warning:", "error"))]
        if done.returncode or found:
            print(done.stdout)
            # What was warned of would not be warned of again.
            for file in work.rglob("*.o"):
                file.unlink()
            return False
        return True

    def nic_fmt(self) -> bool:
        """The virtual NIC is formatted."""
        return self._cargo("fmt", "--all", *([] if self.fix else ["--check"]))

    def nic_clippy(self) -> bool:
        """The virtual NIC passes clippy without a warning."""
        # `precedence` wants brackets around shifts among bit operations, which newer
        # releases of clippy leave to taste.
        return self._cargo("clippy", "--locked", "--workspace", "--all-targets", "--quiet",
                           "--", "-D", "warnings", "-A", "clippy::precedence")

    def _cargo(self, command: str, *args) -> bool:
        """The build root's cargo, so that every machine finds the same."""
        nic = TREE / "tests/nic"
        target, home = (self.catalog.cache / "cargo" / name for name in ("root", "home"))
        for folder in (target, home):
            folder.mkdir(parents=True, exist_ok=True)
        return self.inside(
            ["cargo", command, "--manifest-path", nic / "Cargo.toml", *args],
            binds=[target, home], cwd=nic,
            env={"CARGO_HOME": home, "CARGO_TARGET_DIR": target, **cargo_settings()})

    def checkpatch(self) -> bool:
        """C is in kernel style, by the kernel's own script."""
        tests = ("tests",)
        user = self.of(".c", ".h", under=tests)
        trace = [f for f in self.of(".h") if f.parts[-3:-1] == ("trace", "events")]
        kernel = [f for f in self.of(".c", ".h") if f not in {*user, *trace}]
        return all([self._checkpatch(kernel, CHECKPATCH_KERNEL),
                    self._checkpatch(trace, {**CHECKPATCH_KERNEL, **CHECKPATCH_TRACE}),
                    self._checkpatch(user, CHECKPATCH_USER)])

    def _checkpatch(self, files, ignore) -> bool:
        if not files:
            return True
        tree = self.catalog["tree"]
        # It keeps a cache file where it runs.
        return self.inside(
            ["perl", f"{tree.inside}/scripts/checkpatch.pl", f"--root={tree.inside}", "--terse",
             "--quiet", "--no-summary", "--show-types", "--strict",
             "--max-line-length=100", "--ignore", ",".join({**CHECKPATCH_IGNORE, **ignore}),
             "--file", *files],
            binds=[f"{tree.path()}:{tree.inside}"], cwd="/tmp")

    def shellcheck(self) -> bool:
        """Shell scripts have none of the usual mistakes."""
        files = self.scripts("sh", "bash", "dash") + self.of(".sh", under=("tests",))
        files += [f for f in self.files if f.name == "setup" and "guest" in f.parts]
        if not files:
            return True
        # SC1091: files of the guest are not there to be followed.
        return self.inside(["shellcheck", "--exclude=SC1091,SC2154", *sorted(set(files))])

    def pyflakes(self) -> bool:
        """Python has no unused or undefined names."""
        files = sorted(set(self.scripts("python3")) | set(self.of(".py")))
        return self.inside(["python3", "-m", "pyflakes", *files])

    def headers(self) -> bool:
        """Every file names its licence."""
        bad = []
        for file in self.files:
            text = file.read_bytes()[:4096].decode(errors="replace")
            name = file.relative_to(TREE)
            if name.parts[0] == "COPYING" or file.suffix in (".lock", ".pcap", ".bin"):
                continue
            if not any("SPDX-License-Identifier: GPL-2.0" in line
                       for line in text.splitlines()[:4]):
                bad.append(f"{name}: no SPDX-License-Identifier: GPL-2.0 at its top")
        print("\n".join(bad), end="\n" if bad else "")
        return not bad


CHECKS = ("headers", "pyflakes", "shellcheck", "checkpatch", "nic_fmt", "rustfmt",
          "nic_clippy", "clippy")


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="scripts/lint", description=__doc__)
    top.add_argument("check", nargs="*", metavar="CHECK",
                     help="one of " + ", ".join(CHECKS) + " (default: all)")
    top.add_argument("--fix", action="store_true", help="format instead of complaining")
    return top


def main(argv) -> int:
    top = parser()
    options = top.parse_args(argv)
    unknown = set(options.check) - set(CHECKS)
    if unknown:
        top.error(f"no such check: {', '.join(sorted(unknown))}")
    failed = []
    try:
        lint = Lint(Catalog(), options.fix)
        for name in options.check or CHECKS:
            check, start = getattr(lint, name), time.monotonic()
            sys.stdout.flush()
            fine = check()
            word = "ok" if fine else "FAILED"
            print(f"lint: {name:10} {word:6} {time.monotonic() - start:5.1f} s  "
                  f"{check.__doc__}", flush=True)
            if not fine:
                failed.append(name)
    except EnvError as error:
        print(f"scripts/lint: {error}", file=sys.stderr)
        return 2
    if failed:
        print(f"lint: failed: {', '.join(failed)}")
    return 1 if failed else 0
