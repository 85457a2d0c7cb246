# SPDX-License-Identifier: GPL-2.0
"""Jobs side by side end together when one of them fails."""

import io
import sys
import time
import unittest

from irdma_suites import lanes


class Lanes(unittest.TestCase):
    def test_lines_then_status(self):
        kept = io.StringIO()
        got = list(lanes.lines([sys.executable, "-c", "print('one'); raise SystemExit(3)"],
                               kept))
        self.assertEqual(got, ["one", 3])
        self.assertEqual(kept.getvalue(), "one\n")

    def test_all_jobs_run(self):
        done = []
        lanes.run([lambda n=n: done.append(n) for n in range(5)], 2)
        self.assertEqual(sorted(done), list(range(5)))

    def test_a_failing_job_ends_the_others(self):
        def endless():
            for _ in lanes.lines([sys.executable, "-c", "import time; time.sleep(60)"],
                                 io.StringIO()):
                pass

        def failing():
            while not lanes._running:
                time.sleep(0.01)
            raise RuntimeError("enough")

        start = time.monotonic()
        with self.assertRaisesRegex(RuntimeError, "enough"):
            lanes.run([endless, failing, endless], 2)
        self.assertLess(time.monotonic() - start, 30)
        self.assertEqual(lanes._running, set())
