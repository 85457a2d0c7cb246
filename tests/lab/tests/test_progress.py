# SPDX-License-Identifier: GPL-2.0
"""What is said at the end of a long step."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

from irdma_env import progress
from irdma_env.errors import EnvError


class Ending(unittest.TestCase):
    def said(self, error=None):
        with tempfile.TemporaryDirectory() as folder, \
                contextlib.redirect_stderr(io.StringIO()) as shown, \
                contextlib.suppress(EnvError, KeyboardInterrupt):
            with progress.Step("toy", Path(folder, "log")):
                if error:
                    raise error
        return shown.getvalue().splitlines()[-1]

    def test_ready_and_failed(self):
        self.assertRegex(self.said(), r"toy: ready after \d+ s$")
        self.assertRegex(self.said(EnvError("x")), r"toy: FAILED after \d+ s$")

    def test_interrupted(self):
        self.assertRegex(self.said(KeyboardInterrupt()),
                         r"toy: interrupted after \d+ s, to be made again next time$")

    def test_a_thread_that_ends_with_the_rest(self):
        # What `stop_all` kills seems to fail.
        self.addCleanup(setattr, progress, "_stopping", False)
        progress.stop_all()
        self.assertRegex(self.said(EnvError("killed")), "toy: interrupted after")
