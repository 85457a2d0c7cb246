# SPDX-License-Identifier: GPL-2.0
"""A program that runs beside the suite."""

import os
import subprocess
import tempfile


class Background:
    """Started at once; killed at the end of the block if it has not ended itself."""

    def __init__(self, *words, slowness: int = 1):
        """`slowness`: factor for limits of time."""
        self._words = [str(w) for w in words]
        self._slowness = slowness
        # A file and no pipe, so that it can be looked at while the program writes on.
        self._file = tempfile.TemporaryFile()
        self.process = subprocess.Popen(self._words, stdin=subprocess.DEVNULL,
                                        stdout=self._file, stderr=subprocess.STDOUT)

    def said(self) -> str:
        """Its output up to now."""
        # At its own place: where the file stands is where the program writes next.
        file = self._file.fileno()
        return os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace")

    def finish(self, timeout: float = 60.0) -> subprocess.CompletedProcess:
        """Wait for its end, as Guest.run() does: status 124 if that does not come."""
        status = 124
        try:
            status = self.process.wait(timeout * self._slowness)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return subprocess.CompletedProcess(self._words, status, self.said())

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._file.close()
