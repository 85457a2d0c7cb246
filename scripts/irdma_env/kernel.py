# SPDX-License-Identifier: GPL-2.0
"""The stock kernel of backports, and a tree that modules for it are built in."""

import lzma
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import apt
from .errors import EnvError
from .parts import Part
from .progress import say

#: The series the project is written for.
SERIES = (7, 3)
_HEADERS = re.compile(r"^linux-headers-((\d+)\.(\d+)(?:\.(\d+))?(\S*-amd64))$")


def choose_abi(names) -> tuple:
    """(abi, series) of the kernel to use, from names of header packages.

    The newest of SERIES; without one the newest of the nearest newer series.
    Raises EnvError when there is neither.
    """
    found = []
    for name in names:
        match = _HEADERS.match(name.strip())
        # Cloud, real-time and debug flavours have a word of their own there.
        if match and not re.search(r"cloud|rt|dbg|common", match.group(5)):
            abi, major, minor, patch, rest = match.groups()
            found.append(((int(major), int(minor)), int(patch or 0), rest, abi))
    same = [f for f in found if f[0] == SERIES]
    newer = [f for f in found if f[0] > SERIES]
    if same:
        best = max(same)
    elif newer:
        nearest = min(f[0] for f in newer)
        best = max(f for f in newer if f[0] == nearest)
    else:
        have = ", ".join(sorted(f[3] for f in found)) or "none at all"
        raise EnvError(f"no kernel {SERIES[0]}.{SERIES[1]} or newer in "
                       f"{apt.BACKPORTS}; kernels there: {have}")
    return best[3], f"{best[0][0]}.{best[0][1]}"


class Kernel(Part):
    """Stock kernel, its modules (uncompressed), its configuration and its source."""

    name = "kernel"
    needs = ("root",)
    about = "stock kernel, modules and source from backports"

    def inputs(self):
        # The build root is but a tool here.
        return [apt.RELEASE, SERIES]

    def build(self, out, step):
        root = self.catalog["root"]
        mirror = apt.find_mirror()
        work = out.with_name(out.name + ".debs")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        try:
            step.stage("looking for the newest kernel in backports")
            (work / "sources.list").write_text(re.sub(r"\[signed-by=[^]]*\] ", "",
                                                      mirror.sources()))
            (work / "apt.conf").write_text("\n".join(apt.proxy_options() + [
                f'Dir::Etc::sourcelist "{work}/sources.list";',
                'Dir::Etc::sourceparts "-"; Acquire::Languages "none";',
                f'Dir::State::lists "{work}/lists";',
                'APT::Sandbox::User "root";']) + "\n")
            (work / "lists/partial").mkdir(parents=True)
            self._inside(root, step, work, """
                apt-get update -q
                apt-cache search --names-only '^linux-headers-' | cut -d' ' -f1 >names
                apt-cache search --names-only '^linux-(image|binary|modules|base)-' |
                    cut -d' ' -f1 >>names""")
            names = (work / "names").read_text().split()
            abi, series = choose_abi(names)
            if series != f"{SERIES[0]}.{SERIES[1]}":
                say(f"[env] WARNING: no kernel {SERIES[0]}.{SERIES[1]} in "
                    f"{apt.BACKPORTS}; using the nearest newer one, {abi}")
            wanted = [f"linux-{kind}-{abi}" for kind in
                      ("image", "binary", "modules", "base", "headers")]
            wanted = [w for w in wanted if w in names] + [f"linux-source-{series}"]
            step.stage(f"downloading {abi}")
            self._inside(root, step, work, f"""
                apt-get download -q -t {apt.BACKPORTS} {' '.join(wanted)}
                for deb in *.deb; do dpkg-deb -x "$deb" files; done""")
            step.stage("unpacking modules")
            self._arrange(work / "files", out, abi)
            step.run(root.enter(["depmod", "-b", out, abi], binds=[out]))
        finally:
            shutil.rmtree(work, ignore_errors=True)

    @staticmethod
    def _inside(root, step, work, script):
        step.run(root.enter(["sh", "-euc", script], binds=[work], cwd=work,
                            env={"APT_CONFIG": f"{work}/apt.conf"}))

    @staticmethod
    def _arrange(files: Path, out: Path, abi: str) -> None:
        """Put what the packages hold into the shape `--kernel DIR` has, too."""
        def one(pattern, what):
            hits = sorted(files.glob(pattern))
            if not hits:
                raise EnvError(f"kernel {abi}: no {what} in its packages")
            return hits[0]

        modules = out / "lib/modules"
        modules.mkdir(parents=True)
        shutil.move(one(f"usr/lib/modules/{abi}", "modules"), modules / abi)
        image = modules / abi / "vmlinuz"
        if not image.exists():
            image = one(f"boot/vmlinuz-{abi}", "kernel image")
        shutil.copy(image, out / "vmlinuz")
        config = modules / abi / "config"
        if not config.exists():
            config = one(f"boot/config-{abi}", "configuration")
        shutil.copy(config, out / "config")
        shutil.copy(one(f"usr/src/linux-headers-{abi}/Module.symvers", "Module.symvers"),
                    out / "Module.symvers")
        shutil.move(one("usr/src/linux-source-*.tar.xz", "source"), out / "source.tar.xz")
        (out / "release").write_text(abi + "\n")

        def expand(module: Path) -> None:
            module.with_suffix("").write_bytes(lzma.decompress(module.read_bytes()))
            module.unlink()

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(expand, modules.rglob("*.ko.xz")))


class Tree(Part):
    """Kernel source with the stock configuration, prepared for modules."""

    name = "tree"
    needs = ("root", "kernel")
    about = "kernel tree prepared for out-of-tree modules"

    make = ["CC=gcc-14", "HOSTCC=gcc-14"]
    #: Where it appears in the build root, whatever the cache's path is.
    inside = "/build/linux"

    def inputs(self):
        # Of the build root only the compilers count, which are those of the release.
        return [self.catalog["kernel"].key, self.make]

    def build(self, out, step):
        root, kernel = self.catalog["root"], self.catalog["kernel"].path()
        abi = (kernel / "release").read_text().strip()
        step.stage("unpacking the source")
        binds = [f"{out}:{self.inside}"]
        step.run(root.enter(["tar", "-C", self.inside, "--strip-components=1", "-xJf",
                             kernel / "source.tar.xz"], binds=[*binds, kernel]))
        shutil.copy(kernel / "config", out / ".config")
        jobs = f"-j{os.cpu_count()}"
        step.stage("configuring")
        step.run(root.enter(["make", *self.make, "olddefconfig"], binds=binds,
                            cwd=self.inside))
        step.stage("building headers, tools and Rust metadata")
        step.run(root.enter(["make", jobs, *self.make, f"KERNELRELEASE={abi}", "prepare",
                             "modules_prepare"], binds=binds, cwd=self.inside))
        shutil.copy(kernel / "Module.symvers", out / "Module.symvers")
