# SPDX-License-Identifier: GPL-2.0
"""Parts built from this source tree: the virtual NIC, guest programs, the modules."""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from .errors import EnvError
from .parts import Part, hash_files, source_files
from .paths import TREE

#: Oldest Rust that builds the virtual NIC.
CARGO_MIN = (1, 85)


def host_cargo():
    """(program, version) of the host's cargo if it is new enough, else None."""
    program = shutil.which("cargo")
    if not program:
        return None
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True,
                              cwd=TREE, check=False).stdout
    except OSError:
        return None
    match = re.match(r"cargo (\d+)\.(\d+)\.\S+", said)
    if not match or (int(match.group(1)), int(match.group(2))) < CARGO_MIN:
        return None
    return program, match.group(0)


class FromTree(Part):
    """A part that is built from folders of the source tree."""

    #: Folders and files, relative to the top.
    sources = ()
    keep = 4

    def files(self) -> list:
        return source_files(*(TREE / s for s in self.sources))

    def source_key(self) -> str:
        return hash_files(TREE, self.files())


class Nic(FromTree):
    """The virtual E810: the program `rack`."""

    name = "nic"
    about = "virtual E810 (cargo build of tests/nic)"
    sources = ("tests/nic",)

    def inputs(self):
        cargo = host_cargo()
        return [self.source_key(), cargo[1] if cargo else self.catalog["root"].key]

    def build(self, out, step):
        cargo = host_cargo()
        # Cargo tells trees apart by time stamps only, so each has a directory of its own.
        tree = hashlib.sha256(str(TREE).encode()).hexdigest()[:8]
        target = self.catalog.cache / "cargo" / f"{'host' if cargo else 'root'}-{tree}"
        target.mkdir(parents=True, exist_ok=True)
        work = TREE / "tests/nic"
        args = ["build", "--release", "--locked", "--workspace", "--bins",
                "--manifest-path", work / "Cargo.toml", "--target-dir", target]
        if cargo:
            step.stage(f"{cargo[1]} build --release")
            step.run([cargo[0], *args], cwd=work)
        else:
            home = self.catalog.cache / "cargo/home"
            home.mkdir(parents=True, exist_ok=True)
            root = self.catalog["root"]
            step.stage("cargo build --release in the build root")
            step.run(root.enter(["cargo", *args], binds=[TREE, target, home], cwd=work,
                                env={"CARGO_HOME": home, **cargo_settings()}))
        program = target / "release/rack"
        if not program.is_file():
            raise EnvError("nic: tests/nic builds no program `rack`")
        shutil.copy(program, out / "rack")
        (out / "runs-on").write_text("host\n" if cargo else "root\n")


def cargo_settings() -> dict:
    """The host's settings for reaching the crate registry, to hand on."""
    return {k: v for k, v in os.environ.items()
            if k.startswith("CARGO_") and k not in ("CARGO_HOME", "CARGO_TARGET_DIR")
            or k.lower() in ("http_proxy", "https_proxy", "no_proxy")}


class Programs(FromTree):
    """Programs that run in guests, built against unmodified libibverbs and librdmacm."""

    name = "programs"
    needs = ("root",)
    about = "guest programs (tests/guest)"
    sources = ("tests/guest",)

    def inputs(self):
        return [self.catalog["root"].key, self.source_key()]

    def build(self, out, step):
        if not (TREE / "tests/guest/Makefile").is_file():
            return
        step.stage("compiling tests/guest")
        step.run(self.catalog["root"].enter(
            ["make", f"-j{os.cpu_count()}", "-C", TREE / "tests/guest", "CC=gcc-14",
             f"OUT={out}"], binds=[TREE, out]))


class Modules(FromTree):
    """The kernel modules of the project, built by Kbuild against a prepared tree."""

    name = "modules"
    needs = ("root", "tree")
    about = "kernel modules (Kbuild)"
    sources = ("Kbuild", "rust", "drivers", "include")
    #: The part that it is built against.
    tree = "tree"
    #: Added to the name of the build directory, and words for make.
    suffix, words = "", ()

    def inputs(self):
        return [self.catalog[self.tree].key, self.source_key(), self.words]

    def build(self, out, step):
        # The build directory stays, so that the next build is incremental.
        work = self.catalog.cache / "kbuild" / (self.catalog[self.tree].key + self.suffix)
        work.mkdir(parents=True, exist_ok=True)
        self.copy_sources(work)
        step.stage("building modules")
        step.run(self.make(work, "modules"))
        found = sorted(work.rglob("*.ko"))
        if not found:
            raise EnvError(f"{self.name}: the build left no .ko in {work}")
        for module in found:
            shutil.copy(module, out / module.name)

    def tree_path(self) -> Path:
        """The prepared tree itself."""
        return self.catalog[self.tree].path()

    def make(self, work: Path, *targets) -> list:
        """Command line of a Kbuild run over the sources in `work`."""
        root, tree = self.catalog["root"], self.catalog[self.tree]
        # The top Makefile is for people; Kbuild reads the file Kbuild.
        return root.enter(
            ["make", f"-j{os.cpu_count()}", "-C", tree.inside, *tree.make, f"M={work}",
             *self.words, *targets], binds=[f"{self.tree_path()}:{tree.inside}", work])

    def copy_sources(self, work: Path) -> None:
        """Make `work` hold the sources, touching only what changed."""
        names = set()
        for file in self.files():
            target = work / file.relative_to(TREE)
            names.add(target)
            body = file.read_bytes()
            if target.is_file() and target.read_bytes() == body:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(body)
            shutil.copymode(file, target)
        record = work / ".sources"
        old = set(map(Path, record.read_text().splitlines())) if record.exists() else set()
        for file in old - names:
            file.unlink(missing_ok=True)
        record.write_text("\n".join(map(os.fspath, sorted(names))) + "\n")
