# SPDX-License-Identifier: GPL-2.0
"""Cached parts: named by what they are made from, made once, checked before use.

A part lives in `CACHE/parts/NAME-KEY/`. It is built in `CACHE/tmp/` under an
exclusive lock and renamed into place when it is complete; the stamp beside it
(`NAME-KEY.stamp`) is written last and holds a digest of the directory's
listing (type, size, time of change, path of every file). A part without stamp,
or whose listing differs from its stamp, is made again. Users of a part hold a
shared lock on the stamp (`hold`), so that `clean` leaves it alone.
"""

import fcntl
import hashlib
import inspect
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

from .errors import EnvError
from .progress import Step, say

#: Directories below a part that its users may change.
SCRATCH_NAMES = ("__pycache__",)


def digest(*items) -> str:
    """A short name for any JSON-able values."""
    text = json.dumps(items, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def hash_files(root: Path, paths) -> str:
    """Digest of the names and contents of files below `root`."""
    total = hashlib.sha256()
    for path in sorted(paths):
        name = os.fspath(path.relative_to(root))
        if path.is_symlink():
            body = os.readlink(path).encode()
        else:
            body = path.read_bytes()
        total.update(f"{name}\0{os.access(path, os.X_OK)}\0{len(body)}\0".encode())
        total.update(body)
    return total.hexdigest()[:16]


def source_files(*roots: Path, skip=("target", "__pycache__")) -> list:
    """All files below `roots`, without build output."""
    found = []
    for root in roots:
        if root.is_file():
            found.append(root)
        for folder, folders, files in os.walk(root):
            folders[:] = [f for f in folders if f not in skip]
            found += [Path(folder, f) for f in files if not f.endswith((".pyc", ".orig"))]
    return found


def listing_digest(root: Path):
    """Digest of what `find` says of a directory: notices lost, cut and changed files.

    None when some of it cannot be read.
    """
    prune = []
    for name in SCRATCH_NAMES:
        prune += ["-name", name, "-prune", "-o"]
    found = subprocess.run(
        ["find", ".", *prune, "-type", "f", "-printf", r"f %s %T@ %p\0",
         "-o", "-type", "l", "-printf", r"l %l %p\0",
         "-o", "-type", "d", "-printf", r"d %p\0"],
        cwd=root, capture_output=True, check=False)
    if found.returncode:
        return None
    entries = sorted(found.stdout.split(b"\0"))
    return hashlib.sha256(b"\0".join(entries)).hexdigest()


class Part:
    """A thing to be made; subclasses say what from and how."""

    #: Name in the cache and on the command line.
    name = "part"
    #: What it is, for people.
    about = ""
    #: Parts it is made from; they are made first.
    needs = ()
    #: Newest parts of this name that `clean` keeps although they are not current.
    keep = 0

    def __init__(self, catalog):
        self.catalog = catalog
        self._path = None

    # -- for subclasses -----------------------------------------------------

    def inputs(self):
        """Everything that decides the content, JSON-able. May use other parts' `key`."""
        raise NotImplementedError

    def build(self, out: Path, step: Step) -> None:
        """Fill the empty directory `out`."""
        raise NotImplementedError

    # -- for users ----------------------------------------------------------

    @property
    def key(self) -> str:
        return digest(self.name, inspect.getsource(type(self)), self.inputs())

    @property
    def where(self) -> Path:
        return self.catalog.cache / "parts" / f"{self.name}-{self.key}"

    @property
    def stamp(self) -> Path:
        return self.where.with_name(self.where.name + ".stamp")

    def complete(self) -> bool:
        """Whether the part is there, whole and unharmed."""
        try:
            wanted = json.loads(self.stamp.read_text())["listing"]
        except (OSError, ValueError, KeyError, TypeError):
            return False
        if not self.where.is_dir():
            return False
        found = listing_digest(self.where)
        if found is None and os.geteuid() != 0:
            # Root's files in it are closed to us; whoever made it can look.
            return True
        return found == wanted

    def path(self) -> Path:
        """The part's directory; makes it when it is missing or damaged."""
        while self._path is None:
            # Hold first, look then: `clean` cannot come between the two.
            held = self._hold()
            if held and self.complete():
                self._held = held
                self._path = self.where
                break
            if held:
                held.close()
            self._make()
        return self._path

    def _hold(self):
        """A lock that keeps `clean` of other processes away; None without a stamp."""
        try:
            held = open(self.stamp, "rb")
        except OSError:
            return None
        fcntl.flock(held, fcntl.LOCK_SH)
        return held

    def _make(self) -> None:
        for name in self.needs:
            self.catalog[name].path()
        cache = self.catalog.cache
        try:
            for folder in ("parts", "tmp", "locks", "logs"):
                (cache / folder).mkdir(parents=True, exist_ok=True)
            lock = open(cache / "locks" / self.name, "w")
        except PermissionError as error:
            raise EnvError(f"{self.name}: has to be made, and you may not write to "
                           f"{error.filename}; run as root: IRDMA_RS_CACHE={cache} "
                           "scripts/env") from None
        except OSError as error:
            raise EnvError(f"{self.name}: has to be made, and {error.filename} cannot: "
                           f"{error.strerror}; set IRDMA_RS_CACHE to another directory"
                           ) from None
        with lock:
            self._lock(lock)
            if self.complete():
                return
            if self.stamp.exists():
                say(f"[env] {self.name}: {self.where} is damaged, making it again")
            elif self.where.exists():
                say(f"[env] {self.name}: {self.where} is unfinished, making it again")
            remove(self.stamp)
            remove(self.where)
            # Under the lock every leftover of this part is a dead process's.
            for old in (cache / "tmp").glob(f"{self.name}.*"):
                remove(old)
            out = cache / "tmp" / f"{self.name}.{os.getpid()}"
            stem = time.strftime("%Y%m%d-%H%M%S")
            log = cache / "logs" / f"{stem}-{self.name}-{os.getpid()}.log"
            key, where, goal = self.key, self.where, self.stamp
            try:
                with Step(self.name, log) as step:
                    out.mkdir()
                    self.build(out, step)
                if self.key != key:
                    # What was read is then of neither key; the caller tries again.
                    say(f"[env] {self.name}: what it is made from changed meanwhile, "
                        "making it again")
                    return
                listing = listing_digest(out)
                out.rename(where)
                stamp = cache / "tmp" / f"{self.name}.{os.getpid()}.stamp"
                stamp.write_text(json.dumps(
                    {"part": self.name, "key": key, "listing": listing,
                     "inputs": self.inputs()}, indent=1, default=str) + "\n")
                stamp.rename(goal)
            finally:
                remove(out)

    def _lock(self, lock) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"[env] {self.name}: another process is making it, waiting")
            fcntl.flock(lock, fcntl.LOCK_EX)


def remove(path: Path) -> None:
    """Delete a file or a whole directory, if it is there."""
    if path.is_dir() and not path.is_symlink():
        # The stamp's rule holds while this runs: the name goes first.
        doomed = path.with_name(f"{path.name}.gone.{os.getpid()}")
        if ".gone." in path.name:
            doomed = path
        else:
            path.rename(doomed)
        shutil.rmtree(doomed)
    else:
        path.unlink(missing_ok=True)


def clean(catalog, everything: bool = False) -> list:
    """Delete parts that no current key names and nobody uses; returns their names."""
    folder = catalog.cache / "parts"
    if not folder.is_dir():
        return []
    current = set() if everything else {part.where.name for part in catalog.parts()}
    spare = {} if everything else {part.name: part.keep for part in catalog.parts()}
    gone = []
    stamps = sorted(folder.glob("*.stamp"), key=lambda p: -p.stat().st_mtime)
    for stamp in stamps:
        name = stamp.name[:-len(".stamp")]
        kind = name.rsplit("-", 1)[0]
        if name in current:
            continue
        if spare.get(kind, 0) > 0:
            spare[kind] -= 1
            continue
        with open(stamp, "rb") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"[env] {name}: in use, kept")
                continue
            remove(stamp)
            remove(folder / name)
            gone.append(name)
    return gone


def need(value, message: str):
    """`value` if there is one, else an error for the user."""
    if not value:
        raise EnvError(message)
    return value
