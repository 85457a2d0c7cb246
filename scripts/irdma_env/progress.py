# SPDX-License-Identifier: GPL-2.0
"""Long steps: a line at the start, signs of life, a line at the end, a log file."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from .errors import EnvError

#: Seconds between two signs of life when the output is not a terminal.
QUIET_INTERVAL = 20.0
#: Lines of the log shown when a command fails.
TAIL_LINES = 25

_lock = threading.Lock()
#: Commands that run now.
_running = set()
#: Whether the user had enough, and they end for that reason.
_stopping = False

#: In front of a command: it and all its descendants die with us, however we die.
#: As the first process of a PID namespace it takes the others along.
_TIED = ["setpriv", "--pdeathsig", "KILL", "--"]
_TIED_AS_ROOT = _TIED + ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
                         "--propagation", "private", "--"]


def say(text: str) -> None:
    """Print one line of progress; several threads may do so."""
    with _lock:
        print(text, file=sys.stderr, flush=True)


def tail(path: Path, lines: int = TAIL_LINES) -> str:
    """The last lines of a text file, for an error message."""
    try:
        data = path.read_bytes()[-16384:]
    except OSError as error:
        return f"({path} cannot be read: {error.strerror})"
    return "\n".join(data.decode(errors="replace").splitlines()[-lines:])


def stop_all() -> None:
    """Kill the commands of all steps; those who wait for them see them fail."""
    global _stopping
    with _lock:
        _stopping = True
        running = list(_running)
    for process in running:
        process.kill()


class Step:
    """One long piece of work with its log file.

    Used as a context manager. `run` starts commands whose output goes to the
    log; `stage` names what is going on for the signs of life.
    """

    def __init__(self, name: str, log: Path):
        self.name = name
        self.log = log
        self._stage = "starting"
        self._done = threading.Event()
        self._start = time.monotonic()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> "Step":
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self.log, "ab", buffering=0)
        say(f"[env] {self.name}: making it (log: {self.log})")
        self._ticker.start()
        return self

    def __exit__(self, kind, value, trace) -> None:
        self._done.set()
        self._ticker.join()
        self._file.close()
        word, more = "ready" if kind is None else "FAILED", ""
        if kind and (_stopping or issubclass(kind, KeyboardInterrupt)):
            word, more = "interrupted", ", to be made again next time"
        say(f"[env] {self.name}: {word} after {self.elapsed():.0f} s{more}")

    def elapsed(self) -> float:
        return time.monotonic() - self._start

    def stage(self, text: str) -> None:
        """Say what happens now."""
        self._stage = text
        self._file.write(f"=== {text}\n".encode())
        say(f"[env] {self.name}: {self.elapsed():4.0f} s  {text}")

    def run(self, args, *, env=None, cwd=None, stdin=None) -> None:
        """Run a command; its output goes to the log.

        Raises EnvError, which names command, status and log, when it fails.
        """
        label = getattr(args, "label", None)
        args = [os.fspath(a) for a in args]
        label = label or " ".join(args)
        name = label.split()[0]
        self._file.write(f"+ {label}\n".encode())
        tied = _TIED_AS_ROOT if os.geteuid() == 0 else _TIED
        try:
            status = self._wait(subprocess.Popen(
                [*tied, *args], stdin=stdin or subprocess.DEVNULL, stdout=self._file,
                stderr=self._file, env=env, cwd=cwd))
        except OSError as error:
            raise EnvError(f"{self.name}: cannot start {name}: "
                           f"{error.strerror}") from error
        if status:
            raise EnvError(
                f"{self.name}: {self._stage}: `{name}` ended with status {status}\n"
                f"--- end of {self.log}\n{tail(self.log)}\n--- full log: {self.log}")

    @staticmethod
    def _wait(process) -> int:
        """Exit status; an interruption takes the process along."""
        with _lock:
            _running.add(process)
        try:
            return process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            with _lock:
                _running.discard(process)

    def _tick(self) -> None:
        while not self._done.wait(QUIET_INTERVAL):
            say(f"[env] {self.name}: {self.elapsed():4.0f} s  still at: "
                f"{self._stage}")
