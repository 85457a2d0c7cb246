# SPDX-License-Identifier: GPL-2.0
"""What benchmarks need besides the lab, cached like all parts of the environment.

They are made when a benchmark first needs them; `scripts/env clean` deletes them.
"""

import os

from irdma_env.builds import FromTree
from irdma_env.catalog import Catalog
from irdma_env.paths import TREE, cache_dir
from irdma_env.root import Root


class Counter(FromTree):
    """The plugin of QEMU that counts instructions."""

    name = "bench-counter"
    needs = ("root",)
    about = "plugin of QEMU that counts instructions"
    sources = ("tests/bench/plugin", "tests/guest/lib/counter.h")

    def inputs(self):
        return [self.catalog["root"].key, self.source_key()]

    def build(self, out, step):
        step.stage("compiling tests/bench/plugin")
        step.run(self.catalog["root"].enter(
            ["gcc-14", "-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
             "-fvisibility=hidden", f"-I{TREE}/tests/guest/lib", "-o", out / "count.so",
             TREE / "tests/bench/plugin/count.c"], binds=[TREE, out]))


class Plotter(Root):
    """A small Debian with matplotlib: the machine's Python need not have it."""

    name = "bench-plotter"
    about = "Debian with matplotlib, for plots"
    packages = ["python3-matplotlib"]
    backports = []

    def build(self, out, step):
        super().build(out, step)
        # Where programs find it that are given the host's certificates.
        (out / "etc/ssl/certs").mkdir(parents=True, exist_ok=True)


def catalog() -> Catalog:
    return Catalog(cache_dir())


def demangle(parts: Catalog, names) -> dict:
    """Readable names of symbols, by the build root's c++filt."""
    import subprocess
    names = list(names)
    done = subprocess.run(
        [os.fspath(w) for w in parts["root"].host_command("usr/bin/c++filt")],
        input="\n".join(names) + "\n", capture_output=True, text=True, check=False)
    found = done.stdout.splitlines()
    return dict(zip(names, found)) if len(found) == len(names) else dict(zip(names, names))
