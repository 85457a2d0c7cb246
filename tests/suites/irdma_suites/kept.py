# SPDX-License-Identifier: GPL-2.0
"""Results that are kept while nothing that they are made of changes.

They are of what judges the driver and has no part of it: stock irdma and rxe on the virtual
card, the card's unit tests, the lab's check of itself. As long as the card, the tests, the
kernel and the guests' programs stay what they are, these say nothing new. Kept results are in
`CACHE/results/NAME/KEY/`: `results.json` and, of suites, what they left, `share/`. The stamp
beside it, written last, holds the digest of its listing.
"""

import dataclasses
import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from .boots import UNFINISHED
from .host import TREE
from .ktap import FAIL, Outcome

from irdma_env.parts import digest, hash_files, listing_digest, remove, source_files

#: Days after which all is run again all the same.
DAYS, DAY = 14, 86400
#: Sources that whatever runs in guests is made of and that are in no part.
LAB_SOURCES = ("tests/suites/irdma_suites", "tests/lab", "scripts")
#: Parts of the cache that it is made of. The build root has QEMU.
LAB_PARTS = ("root", "guest", "boot", "nic", "programs")


@dataclass(frozen=True)
class Subject:
    """What results are of, and what that is made of."""

    #: Name in the cache.
    name: str
    #: For people.
    title: str
    #: How the names of its results begin.
    where: tuple
    #: Files and folders below the top of the source tree.
    sources: tuple
    #: Parts of the cache.
    parts: tuple

    @classmethod
    def of_boot(cls, boot):
        """Of a boot; None if the driver of this project is in it."""
        if boot.kernel != "stock" or boot.is_on_ours:
            return None
        name = digest(boot.driver, boot.guests, list(boot.suites))
        return cls(f"{boot.driver}-{name}", boot.title,
                   tuple(f"{suite} [{boot.label}]" for suite in boot.suites),
                   (*LAB_SOURCES, *(f"tests/suites/{suite}.py" for suite in boot.suites)),
                   (*LAB_PARTS, *("modules",) * boot.modules))

    @classmethod
    def of_check(cls, name: str, sources=(), parts=()):
        """Of a check of `host.py`."""
        return cls(f"check-{digest(name)}", name, (name,),
                   ("tests/suites/irdma_suites", *sources), tuple(parts))


class Recorder:
    """A report that remembers what it is told of one subject."""

    def __init__(self, subject: Subject, key: str, report):
        self.subject, self.key = subject, key
        self.results = []
        self._report = report

    def say(self, text: str) -> None:
        self._report.say(text)

    def add(self, where: str, outcome, defect=None) -> None:
        self.results.append((where, dataclasses.asdict(outcome), defect))
        self._report.add(where, outcome, defect)

    def is_good(self) -> bool:
        """Whether it came to its end, and nothing failed that is not known to."""
        return bool(self.results) and all(
            outcome["status"] != FAIL or defect and outcome["name"] != UNFINISHED
            for _, outcome, defect in self.results)


class Store:
    """Results in the cache. With `fresh`, none is found, and new ones are kept."""

    def __init__(self, catalog, fresh: bool = False, now=time.time):
        self._catalog, self._fresh, self._now = catalog, fresh, now

    #: Which subject a boot is, or a check.
    of_boot, of_check = Subject.of_boot, Subject.of_check

    def key(self, subject: Subject) -> str:
        """Of everything that decides the results."""
        files = source_files(*(TREE / s for s in subject.sources))
        return digest(hash_files(TREE, files), [self._catalog[p].key for p in subject.parts])

    def replay(self, subject: Subject, report):
        """Report what was kept, and return its folder; None if there is nothing to be used."""
        where = self._home(subject) / self.key(subject)
        try:
            stamp = json.loads(_stamp(where).read_text())
            if (self._fresh or not 0 <= self._now() - stamp["time"] < DAYS * DAY
                    or listing_digest(where) != stamp["listing"]):
                return None
            results = [(place, Outcome(**outcome), defect) for place, outcome, defect in
                       json.loads((where / "results.json").read_text())]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        day = time.strftime("%Y-%m-%d", time.gmtime(stamp["time"]))
        report.say(f"{subject.title}: as on {day}, nothing it is made of has changed since")
        for place, outcome, defect in results:
            report.add(place, outcome, defect)
        report.kept += len(results)
        return where

    def recorder(self, subject: Subject, report) -> Recorder:
        """Who is to hear the results when they come; before anything is run."""
        return Recorder(subject, self.key(subject), report)

    def keep(self, told: Recorder, failures, share: Path = None) -> None:
        """Keep results that are good, in place of older ones of the same subject.

        `failures`: (name, reason) of all that failed, also when results were compared later.
        If the key is not what it was before, nobody knows which of the two the results are of,
        and they are not kept.
        """
        subject = told.subject
        if (not told.is_good() or self.key(subject) != told.key
                or any(name.startswith(subject.where) for name, _ in failures)):
            return
        home = self._home(subject)
        if home.exists():
            remove(home)
        where, new = home / told.key, home / f"{told.key}.{os.getpid()}"
        new.mkdir(parents=True)
        if share:
            shutil.copytree(share, new / "share", symlinks=True)
        (new / "results.json").write_text(json.dumps(told.results, indent=1) + "\n")
        new.rename(where)
        half = _stamp(new)
        half.write_text(json.dumps({"of": subject.title, "time": self._now(),
                                    "listing": listing_digest(where)}) + "\n")
        half.rename(_stamp(where))

    def prune(self) -> None:
        """Delete what is too old to be used again."""
        for home in (self._catalog.cache / "results").glob("*-*"):
            if self._now() - home.stat().st_mtime > DAYS * DAY:
                remove(home)

    def _home(self, subject: Subject) -> Path:
        """Where results of the subject are, of whatever key."""
        return self._catalog.cache / "results" / subject.name


def _stamp(where: Path) -> Path:
    return where.with_name(where.name + ".stamp")
