# SPDX-License-Identifier: GPL-2.0
"""A run is begun again when the emulator failed it, and only then."""

import asyncio
import contextlib
import io
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from unittest import mock

from irdma_lab import guest, klog, session
from irdma_lab.barrier import Barriers
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


async def end_of(program, stage: str) -> tuple:
    """How a guest ends whose QEMU is `program`, and what was said to who waits for it."""
    told = []
    made = guest.Guest.__new__(guest.Guest)
    made.seat, made.node, made.log, made.stage = None, 1, Path("none"), stage
    made._qemu_log, made._status, made._errors, made._stuck = Path("none"), None, [], False
    made._out_open, made._exited = False, asyncio.Event()
    barriers = Barriers(2, lambda node, ticket, text: told.append((node, text)))
    made._session = SimpleNamespace(barriers=barriers, allowed=[],
                                    options=SimpleNamespace(slowness=1))
    barriers.arrive(0, "up", "ticket")
    made.process = await guest.process.spawn(program)
    return await made.finish(), told


class Boots(unittest.TestCase):
    """A guest that hangs before its first program, or later, or ends."""

    def end_of(self, program, stage):
        with mock.patch.object(guest, "BOOT_TIMEOUT", 0.2):
            return asyncio.run(end_of(program, stage))

    def test_hangs(self):
        result, told = self.end_of(["sleep", "1000"], guest.BOOTING)
        self.assertTrue(result.stillborn)
        self.assertRegex(result.reasons[0], "hung .* while: starting")
        self.assertEqual(told, [(0, "gone 1")])

    def test_is_on_its_way(self):
        result, told = self.end_of(["sleep", "1"], "loading driver irdma_rs")
        self.assertFalse(result.stillborn)
        self.assertRegex(result.reasons[0], "died while: loading")
        self.assertEqual(told, [(0, "gone 1")])

    def test_ends(self):
        result, _ = self.end_of(["true"], guest.BOOTING)
        self.assertFalse(result.stillborn)
        self.assertRegex(result.reasons[0], "died while: starting")


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
