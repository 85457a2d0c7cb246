# SPDX-License-Identifier: GPL-2.0
"""Directories of a run: a short-lived one for sockets, a lasting one for logs."""

import fcntl
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

from irdma_env.errors import EnvError

PREFIX = "irdma-lab-"
#: Runs whose logs are kept.
KEPT_LOGS = 100
#: Longest path of a UNIX socket (sun_path), less our longest file name.
MAX_PATH = 107 - len("/guest15-nicctl.sock")


class RunDir:
    """Sockets and shared files of one run; vanishes with it.

    The file `lab.json` says what runs; the lock on it tells a run that lives
    from the leftovers of one that was killed.
    """

    def __init__(self, about: dict):
        sweep()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        if len(os.fspath(self.path)) > MAX_PATH:
            shutil.rmtree(self.path)
            raise EnvError(f"the path of the temporary directory is too long for sockets: "
                           f"{self.path}; set TMPDIR to a shorter one")
        self._file = open(self.path / "lab.json", "w+")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._about = {"pid": os.getpid(), "started": time.time(), **about}
        self.update()

    def update(self, **more) -> None:
        """Change what `lab list` says."""
        self._about.update(more)
        self._file.seek(0)
        self._file.truncate()
        json.dump(self._about, self._file)
        self._file.flush()

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._file.close()


def _alive(path: Path):
    """What a run's directory says if the run lives, else None."""
    try:
        with open(path / "lab.json") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return json.load(file)
    except (OSError, ValueError):
        pass
    return None


def runs() -> list:
    """All runs that live, oldest first."""
    found = [_alive(p) for p in Path(tempfile.gettempdir()).glob(PREFIX + "*")]
    return sorted((f for f in found if f), key=lambda f: f["started"])


def sweep() -> None:
    """Delete what killed runs left behind."""
    for path in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        try:
            # A run that is just starting has no lock yet.
            young = time.time() - path.stat().st_mtime < 60
            ours = path.stat().st_uid == os.geteuid()
        except OSError:
            continue
        if ours and not young and _alive(path) is None:
            shutil.rmtree(path, ignore_errors=True)


def log_dir(cache: Path) -> Path:
    """A fresh directory for the logs of one run; old ones are deleted."""
    top = cache / "logs" / "lab"
    try:
        top.mkdir(parents=True, exist_ok=True)
        writable = os.access(top, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        # Somebody else made the cache, or it is read-only: we only use it.
        top = Path(tempfile.gettempdir(), f"irdma_rs-logs-{os.geteuid()}")
        top.mkdir(exist_ok=True)
    old = sorted(p for p in top.iterdir() if p.is_dir())
    for path in old[:-KEPT_LOGS]:
        shutil.rmtree(path, ignore_errors=True)
    stem = time.strftime("%Y%m%d-%H%M%S")
    return Path(tempfile.mkdtemp(prefix=f"{stem}-", dir=top))
