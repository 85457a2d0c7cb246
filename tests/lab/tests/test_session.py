# SPDX-License-Identifier: GPL-2.0
"""A run is begun again when the emulator failed it, and only then."""

import contextlib
import io
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

from irdma_lab import klog, session
from irdma_lab.guest import Result

STILLBORN = Result(1, None, ["died while: starting"], Path("guest1.log"), stillborn=True)
CRASHED = Result(1, None, ["died while: loading driver"], Path("guest1.log"))


def a_session(began=False, interactive=False, repeats=session.REPEATS):
    """A session as far as it is looked at here."""
    made = session.Session.__new__(session.Session)
    made.guests = [SimpleNamespace(began=False), SimpleNamespace(began=began)]
    made.interactive = interactive
    made._repeats = repeats
    made._start, made._consoles = 0, None
    return made


def is_repeated(made, result) -> bool:
    with contextlib.redirect_stderr(io.StringIO()) as said:
        answer = made._is_repeated(result)
    assert answer == ("guest1.log" in said.getvalue())
    return answer


class Repeats(unittest.TestCase):

    def test_what_the_emulator_did(self):
        self.assertTrue(is_repeated(a_session(), STILLBORN))

    def test_not_what_a_driver_did(self):
        self.assertFalse(is_repeated(a_session(), CRASHED))

    def test_not_when_a_command_has_started(self):
        self.assertFalse(is_repeated(a_session(began=True), STILLBORN))

    def test_not_under_somebodys_hands(self):
        self.assertFalse(is_repeated(a_session(interactive=True), STILLBORN))

    def test_not_for_ever(self):
        self.assertFalse(is_repeated(a_session(repeats=0), STILLBORN))
        made, runs = a_session(), []

        def once():
            runs.append(made._repeats)
            return None if made._repeats else session.FAILED

        made._once = once
        self.assertEqual(made.execute(), session.FAILED)
        self.assertEqual(len(runs), session.REPEATS + 1)

    def test_reads_the_log(self):
        with TemporaryDirectory() as folder:
            log = Path(folder, "log")
            self.assertFalse(klog.died_of_emulator(log))
            log.write_text("[    6.83] Oops: int3: 0000 [#1] SMP NOPTI\n")
            self.assertTrue(klog.died_of_emulator(log))
            log.write_text("[    6.83] Oops: general protection fault\n")
            self.assertFalse(klog.died_of_emulator(log))


if __name__ == "__main__":
    unittest.main()
