# SPDX-License-Identifier: GPL-2.0
"""All parts by name."""

from pathlib import Path

from .builds import Modules, Nic, Programs
from .debug import CoverageModules, DebugBoot, DebugKernel, DebugModules, Faults
from .guest import Boot, Guest
from .kernel import Kernel, Tree
from .paths import cache_dir
from .root import Root


class Catalog:
    """The parts of one cache; `catalog["tree"].path()` makes what is missing."""

    def __init__(self, cache: Path = None):
        self.cache = cache or cache_dir()
        self._parts = {kind.name: kind(self) for kind in
                       (Root, Kernel, Tree, Guest, Boot, Nic, Programs, Modules,
                        DebugKernel, DebugBoot, DebugModules, CoverageModules, Faults)}

    def __getitem__(self, name: str):
        return self._parts[name]

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def parts(self) -> list:
        """In an order in which each part comes after those it is made from."""
        return list(self._parts.values())
