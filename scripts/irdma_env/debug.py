# SPDX-License-Identifier: GPL-2.0
"""The debug kernel: KUnit, sanitizers and fault injection, and what is built for it.

Made when it is first asked for (`scripts/lab --kernel debug`), not with the rest.
"""

import os
import shutil
from pathlib import Path

from . import kconfig
from .builds import Modules
from .errors import EnvError
from .guest import Boot
from .parts import Part, digest, hash_files, remove
from .paths import TREE

#: Fragments over tinyconfig; a later one overrides an earlier one.
FRAGMENTS = [TREE / "scripts/kernel" / name for name in ("base.config", "debug.config")]


class DebugKernel(Part):
    """The source of the stock kernel, configured to find mistakes, built by clang.

    Holds what `--kernel DIR` wants (`vmlinuz`, `lib/modules/RELEASE`) and `tree/`, in
    which modules for it are built: the source tree without sources and objects.
    """

    name = "debug-kernel"
    needs = ("root", "kernel")
    about = "debug kernel: KUnit, KASAN, lockdep, ... (long: some 20 min of CPU time)"

    #: KASAN with Rust is for clang only.
    make = ["LLVM=1", "ARCH=x86_64"]
    inside = "/build/debug-linux"
    #: To be counted up when `build` makes something else of the same inputs.
    recipe = 2

    #: Parts of the source tree that module builds read.
    kept = ("Makefile", "Kbuild", ".config", ".rustfmt.toml", "Module.symvers", "include",
            "arch/x86", "scripts", "rust", "tools/objtool/objtool",
            # Unit tests compare with the field macros of its headers.
            "drivers/infiniband/hw/irdma")

    @property
    def key(self) -> str:
        # Not from the text of this class: the kernel takes too long to make.
        return digest(self.name, self.recipe, self.inputs())

    def inputs(self):
        # Of the build root only the compilers count, which are those of the release.
        return [self.catalog["kernel"].key, self.make, hash_files(TREE, FRAGMENTS)]

    def build(self, out, step):
        # Stays when the build is interrupted, which then goes on where it was.
        work = self.catalog.cache / "kbuild" / self.name
        self._unpack(work, step)
        self._configure(work, step)
        step.stage("compiling kernel and modules")
        self._kbuild(work, step, f"-j{os.cpu_count()}", "-s", "vmlinux", "modules")
        step.stage("installing")
        self._kbuild(work, step, "-s", "modules_install", f"INSTALL_MOD_PATH={out}",
                   binds=[out])
        for link in out.glob("lib/modules/*/build"):
            link.unlink()
        step.run(self.catalog["root"].enter(
            ["llvm-strip", "-s", "-o", out / "vmlinuz", f"{self.inside}/vmlinux"],
            binds=[f"{work}:{self.inside}", out]))
        shutil.copy(work / ".config", out / "config")
        self._keep(work, out / "tree")
        if not os.environ.get("IRDMA_RS_KEEP_BUILD"):
            remove(work)

    def _kbuild(self, work: Path, step, *words, binds=()) -> None:
        # Who built it when and where would make each build another one.
        stamp = {"KBUILD_BUILD_TIMESTAMP": "@0", "KBUILD_BUILD_USER": "irdma_rs",
                 "KBUILD_BUILD_HOST": "build-root"}
        step.run(self.catalog["root"].enter(
            ["make", *self.make, *words], cwd=self.inside, env=stamp,
            binds=[f"{work}:{self.inside}", *binds]))

    def _unpack(self, work: Path, step) -> None:
        kernel = self.catalog["kernel"]
        mark = work / ".unpacked"
        if mark.is_file() and mark.read_text() == kernel.key:
            return
        remove(work)
        work.mkdir(parents=True)
        step.stage("unpacking the source")
        step.run(self.catalog["root"].enter(
            ["tar", "-C", self.inside, "--strip-components=1", "-xJf",
             kernel.path() / "source.tar.xz"],
            binds=[f"{work}:{self.inside}", kernel.path()]))
        mark.write_text(kernel.key)

    def _configure(self, work: Path, step) -> None:
        step.stage("configuring")
        text = "".join(fragment.read_text() for fragment in FRAGMENTS)
        asked = kconfig.read(text)
        (work / "asked.config").write_text("".join(
            f"CONFIG_{name}={value}\n" for name, value in asked.items()))
        self._kbuild(work, step, "tinyconfig")
        step.run(self.catalog["root"].enter(
            ["scripts/kconfig/merge_config.sh", "-m", ".config", "asked.config"],
            cwd=self.inside, binds=[f"{work}:{self.inside}"]))
        self._kbuild(work, step, "olddefconfig")
        unmet = kconfig.unmet(asked, kconfig.read((work / ".config").read_text()))
        if unmet:
            raise EnvError(f"{self.name}: the configuration is not as scripts/kernel asks "
                           "for it:\n" + "\n".join(unmet))

    def _keep(self, work: Path, tree: Path) -> None:
        """Copy what module builds need."""
        waste = shutil.ignore_patterns("*.o", "*.a", "*.cmd", "*.d", "*.ko", "*.mod", "*.S",
                                       "*.dts", "*.dtsi", "tests", "selftests")
        for name in self.kept:
            source, target = work / name, tree / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True, ignore=waste)
            elif source.is_file():
                shutil.copy2(source, target)
            elif name != "Kbuild":
                raise EnvError(f"{self.name}: the build left no {name}")


class DebugModules(Modules):
    """The project's modules, built for the debug kernel."""

    name = "debug-modules"
    needs = ("root", "debug-kernel")
    about = "kernel modules for the debug kernel"
    tree = "debug-kernel"

    def tree_path(self) -> Path:
        return self.catalog[self.tree].path() / "tree"


class CoverageModules(DebugModules):
    """The project's modules for the debug kernel, with a counter in each piece of code."""

    name = "coverage-modules"
    about = "kernel modules for the debug kernel, with coverage counters"
    suffix = "-coverage"
    words = ("IRDMA_RS_COVERAGE=1",)


class Faults(DebugModules):
    """A module that makes mistakes on purpose, for the check of the detectors."""

    name = "debug-faults"
    about = "module with mistakes for the debug kernel's detectors (tests/lab/faults)"
    sources = ("tests/lab/faults",)
    suffix = "-faults"

    def make(self, work, *targets):
        return super().make(work / self.sources[0], *targets)


class DebugBoot(Boot):
    """Boot files of the debug kernel."""

    name = "debug-boot"
    needs = ("root", "debug-kernel")
    about = "initramfs and module disk of the debug kernel"
    of = "debug-kernel"
