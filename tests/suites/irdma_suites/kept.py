# SPDX-License-Identifier: GPL-2.0
"""Results of boots on other drivers, kept while nothing that they are made of changes.

Stock irdma and rxe are there to judge the virtual card and the tests. As long as these,
the kernel and the guests' programs stay what they are, a boot on them says nothing new;
the driver of this project has no part in it. A kept boot lives in
`CACHE/results/BOOT/KEY/`: `results.json` and what its suites left, `share/`. The stamp
beside it, written last, holds the digest of its listing.
"""

import dataclasses
import json
import os
import shutil
import time
from pathlib import Path

from .boots import UNFINISHED
from .host import TREE
from .ktap import FAIL, Outcome

from irdma_env.parts import digest, hash_files, listing_digest, remove, source_files

#: Days after which a boot is run again all the same.
DAYS, DAY = 14, 86400
#: Parts of the cache that every boot is made of. The build root has QEMU.
PARTS = ("root", "guest", "boot", "nic", "programs")
#: Sources that every boot is made of and that are in no part, beside its suites' own.
SOURCES = ("tests/suites/irdma_suites", "tests/lab", "scripts")


class Recorder:
    """A report that remembers what it is told of one boot."""

    def __init__(self, boot, key: str, share: Path, report):
        self.boot, self.key, self.share = boot, key, share
        self.results = []
        self._report = report

    def say(self, text: str) -> None:
        self._report.say(text)

    def add(self, where: str, outcome, defect=None) -> None:
        self.results.append((where, dataclasses.asdict(outcome), defect))
        self._report.add(where, outcome, defect)

    def is_good(self) -> bool:
        """Whether the boot came to its end, and nothing failed that is not known to."""
        return bool(self.results) and all(
            outcome["status"] != FAIL or defect and outcome["name"] != UNFINISHED
            for _, outcome, defect in self.results)


class Store:
    """Boots' results in the cache."""

    def __init__(self, catalog, now=time.time):
        self._catalog, self._now = catalog, now

    @staticmethod
    def concerns(boot) -> bool:
        """Whether this boot's results may be kept: our own driver has no part in it."""
        return boot.kernel == "stock" and not boot.is_on_ours

    def key(self, boot) -> str:
        """Of everything that decides how this boot ends."""
        suites = [f"tests/suites/{name}.py" for name in boot.suites]
        files = source_files(*(TREE / s for s in (*SOURCES, *suites)))
        ours = boot.modules and self._catalog["modules"].key
        return digest(hash_files(TREE, files), [self._catalog[p].key for p in PARTS], ours)

    def find(self, boot):
        """(folder, results, day) of the boot if it was kept whole, else None."""
        where = self._home(boot) / self.key(boot)
        try:
            stamp = json.loads(_stamp(where).read_text())
            if (not 0 <= self._now() - stamp["time"] < DAYS * DAY
                    or listing_digest(where) != stamp["listing"]):
                return None
            results = [(place, Outcome(**outcome), defect) for place, outcome, defect in
                       json.loads((where / "results.json").read_text())]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return where, results, time.strftime("%Y-%m-%d", time.gmtime(stamp["time"]))

    def recorder(self, boot, folder: Path, report) -> Recorder:
        """Who is to hear what comes of this boot, whose files are in `folder`."""
        return Recorder(boot, self.key(boot), folder / "share", report)

    def keep(self, told: Recorder, failures) -> None:
        """Keep what a boot gave that ended well, in place of older results of it.

        `failures`: (name, reason) of all that failed, also when results were compared. If the
        boot's key is not what it was before, nobody knows which of the two the results are of,
        and they are not kept.
        """
        boot = told.boot
        names = tuple(f"{suite} [{boot.label}]" for suite in boot.suites)
        if (not told.is_good() or any(name.startswith(names) for name, _ in failures)
                or self.key(boot) != told.key):
            return
        home = self._home(boot)
        if home.exists():
            remove(home)
        where, new = home / told.key, home / f"{told.key}.{os.getpid()}"
        new.mkdir(parents=True)
        shutil.copytree(told.share, new / "share", symlinks=True)
        (new / "results.json").write_text(json.dumps(told.results, indent=1) + "\n")
        new.rename(where)
        half = _stamp(new)
        half.write_text(json.dumps({"boot": boot.title, "time": self._now(),
                                    "listing": listing_digest(where)}) + "\n")
        half.rename(_stamp(where))

    def prune(self) -> None:
        """Delete what is too old to be used again."""
        for home in (self._catalog.cache / "results").glob("*-*"):
            if self._now() - home.stat().st_mtime > DAYS * DAY:
                remove(home)

    def _home(self, boot) -> Path:
        """Where results of this boot are, of whatever key."""
        name = digest(boot.driver, boot.guests, list(boot.suites))
        return self._catalog.cache / "results" / f"{boot.driver}-{name}"


def _stamp(where: Path) -> Path:
    return where.with_name(where.name + ".stamp")
