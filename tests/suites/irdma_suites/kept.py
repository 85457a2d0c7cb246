# SPDX-License-Identifier: GPL-2.0
"""Results that are kept while nothing that they are made of changes.

They are of what judges the driver and has no part of it: stock irdma and rxe on the virtual
card, and the lab's check of itself. As long as the card, the tests, the kernel and the
guests' programs stay what they are, these say nothing new. Kept results are in
`CACHE/results/NAME/KEY/`: `results.json` and, of suites, what they left, `share/`. The stamp
beside it, written last, holds the digest of its listing. Who reads or changes any of it holds
the lock.
"""

import dataclasses
import fcntl
import json
import os
import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .boots import UNFINISHED
from .ktap import FAIL, Outcome

from irdma_env.errors import EnvError
from irdma_env.parts import digest, hash_files, listing_digest, remove, source_files
from irdma_env.paths import TREE

#: Days after which all is run again all the same.
DAYS, DAY = 14, 86400
#: Sources that whatever runs in guests is made of and that are in no part.
SOURCES = ("tests/suites/run", "tests/suites/irdma_suites", "tests/lab", "scripts")
#: Parts of the cache that it is made of. The build root has QEMU.
PARTS = ("root", "guest", "boot", "nic", "programs")
#: With these set, guests run with something that no key names.
OVERRIDES = ("IRDMA_RS_RACK", "IRDMA_RS_QEMU_ARGS")


@dataclass(frozen=True)
class Subject:
    """What results are of, and what that is made of."""

    #: Name in the cache.
    name: str
    #: For people.
    title: str
    #: How the names of its results begin.
    where: tuple
    #: Files and folders below the top of the source tree, beside SOURCES.
    sources: tuple = ()
    #: Parts of the cache, beside PARTS.
    parts: tuple = ()

    @classmethod
    def of_boot(cls, boot):
        """The subject that a boot is; None if the driver of this project is in it."""
        if boot.kernel != "stock" or boot.is_on_ours:
            return None
        name = digest(boot.driver, boot.guests, list(boot.suites))
        return cls(f"{boot.driver}-{name}", boot.title,
                   tuple(f"{suite} [{boot.label}]" for suite in boot.suites),
                   tuple(f"tests/suites/{suite}.py" for suite in boot.suites),
                   ("modules",) if boot.modules else ())

    @classmethod
    def of_check(cls, name: str, parts: tuple):
        """The subject that a check of `host.py` in guests is."""
        return cls(f"check-{digest(name)}", name, (name,), parts=parts)


class Recorder:
    """A report that remembers what it is told of one subject."""

    def __init__(self, subject: Subject, before: tuple, report):
        self.subject = subject
        #: What the subject was made of before it was run.
        self.before = before
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
    """Results in the cache. With `fresh`, none is used, and new ones are kept.

    It is there to save time: where it cannot read or write, things are run.
    """

    def __init__(self, catalog, report, fresh: bool = False, tree: Path = TREE, now=time.time):
        self._catalog, self._report = catalog, report
        self._fresh, self._tree, self._now = fresh, tree, now
        self._folder = catalog.cache / "results"
        #: What was not run, since its results were there.
        self._used = []
        self._prune()

    #: See Subject; here for those who have a store and no need of this module otherwise.
    of_boot, of_check = Subject.of_boot, Subject.of_check

    def replay(self, subject: Subject, folder: Path) -> bool:
        """Report what was kept, and copy what the suites left to `folder`.

        False if there is nothing to be used, and nothing has been reported.
        """
        if self._fresh:
            return False
        try:
            with self._locked():
                stamp, results = self._read(subject, folder)
        except (OSError, ValueError, KeyError, TypeError):
            if folder.exists():
                remove(folder)
            return False
        day = time.strftime("%Y-%m-%d", time.gmtime(stamp["time"]))
        self._report.say(f"{subject.title}: as on {day}, nothing it is made of has changed since")
        for place, outcome, defect in results:
            self._report.add(place, outcome, defect)
        self._report.kept += len(results)
        self._used.append(subject)
        return True

    def _read(self, subject: Subject, folder: Path) -> tuple:
        key, _ = self._made_of(subject)
        where = self._folder / subject.name / key
        stamp = json.loads(_stamp(where).read_text())
        if not 0 <= self._now() - stamp["time"] < DAYS * DAY:
            raise ValueError("too old")
        if not stamp["listing"] or listing_digest(where) != stamp["listing"]:
            raise ValueError("not whole")
        results = [(place, Outcome(**outcome), defect) for place, outcome, defect in
                   json.loads((where / "results.json").read_text())]
        if (where / "share").is_dir():
            _copy(where / "share", folder)
        return stamp, results

    def recorder(self, subject: Subject) -> Recorder:
        """Who is to hear the results; to be asked for before anything is run.

        Makes the parts that are missing: whoever is run would, and nobody would know of which.
        """
        try:
            for name in (*PARTS, *subject.parts):
                self._catalog[name].path()
            before = self._made_of(subject)
        except (OSError, EnvError):
            before = None
        return Recorder(subject, before, self._report)

    def settle(self, told, failures) -> None:
        """Keep what has passed, and forget what has not. May be called more than once in a run.

        `told`: (recorder, what the suites left or None) of what was run. `failures`: (name,
        reason) of all that failed, also when results were compared, be they old or new.
        """
        names = [name for name, _ in failures]
        for teller, share in told:
            good = teller.is_good() and not _concerns(names, teller.subject)
            self._guarded(self._keep if good else self._forget, teller.subject, teller, share)
        for subject in self._used:
            if _concerns(names, subject):
                self._guarded(self._forget, subject)

    def _guarded(self, action, subject: Subject, *more) -> None:
        try:
            with self._locked():
                action(subject, *more)
        except OSError as error:
            self._report.say(f"{subject.title}: results not kept: {error}")

    def _keep(self, subject: Subject, teller: Recorder, share) -> None:
        if self._made_of(subject) != teller.before:
            why = "has changed meanwhile" if teller.before else "could not be read at the start"
            self._report.say(f"{subject.title}: results not kept: what they are made of {why}")
            return
        home, key = self._folder / subject.name, teller.before[0]
        where, new = home / key, home / f"{key}.{os.getpid()}"
        new.mkdir(parents=True)
        try:
            if share:
                _copy(share, new / "share")
            (new / "results.json").write_text(json.dumps(teller.results, indent=1) + "\n")
            for old in home.iterdir():
                if old != new:
                    remove(old)
            new.rename(where)
        finally:
            remove(new)
        half = _stamp(new)
        half.write_text(json.dumps({"of": subject.title, "time": self._now(),
                                    "listing": listing_digest(where)}) + "\n")
        half.rename(_stamp(where))

    def _forget(self, subject: Subject, *_more) -> None:
        home = self._folder / subject.name
        if home.exists():
            remove(home)

    def _made_of(self, subject: Subject) -> tuple:
        """(key of everything that decides the results, when a source was last touched)."""
        files = source_files(*(self._tree / s for s in (*SOURCES, *subject.sources)))
        parts = [self._catalog[name] for name in (*PARTS, *subject.parts)]
        # A part's key names what it was made from; what came of that is in its stamp.
        made = [(part.key, _listing(part)) for part in parts]
        return (digest(hash_files(self._tree, files), made),
                max(file.lstat().st_ctime_ns for file in files))

    def _prune(self) -> None:
        """Delete what is too old to be used again."""
        try:
            with self._locked():
                for home in self._folder.glob("*-*"):
                    if self._now() - home.stat().st_mtime > DAYS * DAY:
                        remove(home)
        except OSError as error:
            self._report.say(f"old results not deleted: {error}")

    @contextmanager
    def _locked(self):
        self._folder.mkdir(parents=True, exist_ok=True)
        with open(self._folder / "lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _copy(source: Path, target: Path) -> None:
    """Copy a folder; files, which nobody changes any more, are shared."""
    shutil.copytree(source, target, symlinks=True, copy_function=os.link, dirs_exist_ok=True)


def _concerns(names, subject: Subject) -> bool:
    """Whether one of these results is the subject's."""
    return any(name.startswith(subject.where) for name in names)


def _stamp(where: Path) -> Path:
    return where.with_name(where.name + ".stamp")


def _listing(part):
    """Digest of the listing of a part as it was made; None if it is not there."""
    try:
        return json.loads(part.stamp.read_text())["listing"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
