# SPDX-License-Identifier: GPL-2.0
"""Results are put together, judged and written down as they were measured."""

import csv
import json
import tempfile
import unittest
from pathlib import Path

from irdma_bench import goals, profile, report
from irdma_bench.analysis import Results
from irdma_bench.plan import LEVELS, STEPS


def results(**changed) -> Results:
    """Results that meet all goals, but for what is `changed`."""
    value = {"few": 100, "many": 130, "ops": 1, "coherent": 256, "rate": 200.0, **changed}
    found = Results()
    for driver, factor in (("irdma_rs", 1), ("irdma", 0)):
        own = bool(factor)
        for level, cost in ((LEVELS[0], value["few"]), (LEVELS[-1], value["many"])):
            found.add("cost.work", "instructions", driver, [cost], op="attach", groups=level)
        for step, _ in STEPS:
            found.add("step.cqp", "operations", driver, [value["ops"] if own else 1], step=step)
        found.add("group.coherent", "bytes", driver, [value["coherent"] if own else 4096])
        found.add("rate", "pairs/s", driver, [value["rate"] if own else 100.0], threads=16,
                  one_group=False)
    return found


class GoalsTest(unittest.TestCase):
    def verdicts(self, found: Results) -> list:
        return [goal.verdict for goal in goals.judge(found)]

    def test_all_are_met_exactly_at_the_limit(self):
        self.assertEqual(self.verdicts(results()), [goals.MET] * 4)

    def test_a_goal_keeps_its_name_beside_what_explains_it(self):
        found = results()
        for driver in ("irdma_rs", "irdma"):
            found.add("rate.idle", "part", driver, [0.1], threads=16, one_group=False)
        rate = goals.judge(found)[-1]
        self.assertIn("twice stock irdma's pairs", rate.about)
        self.assertIn("idle part of the processors 0.1 against 0.1", rate.measured)

    def test_each_is_missed_just_beyond(self):
        for place, change in enumerate(({"many": 131}, {"ops": 1.1}, {"coherent": 257},
                                        {"rate": 199.0})):
            want = [goals.MET] * 4
            want[place] = goals.MISSED
            self.assertEqual(self.verdicts(results(**change)), want, change)

    def test_nothing_measured_is_neither(self):
        self.assertEqual(self.verdicts(Results()), [goals.UNKNOWN] * 4)


class ResultsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def read(self, *entries, tail: str = "") -> Results:
        file = self.folder / "times.jsonl"
        file.write_text("".join(json.dumps(e) + "\n" for e in entries) + tail)
        found = Results()
        found.read(file)
        return found

    def test_spinning_is_no_work(self):
        found = self.read({"what": "cost", "phase": "counts", "driver": "irdma", "round": 1,
                           "op": "attach", "groups": 1, "ns": [5], "all": [100, 90],
                           "kernel": [80, 70], "spin": [10, 0], "own": [7, 7]})
        series = found.get("cost.work", "irdma", op="attach", groups=1)
        self.assertEqual(series.values, [90, 90])
        self.assertIsNone(found.get("cost.time", "irdma", op="attach", groups=1))

    def test_failures_of_threads_are_told(self):
        found = self.read({"what": "rate", "phase": "crowd", "driver": "irdma", "round": 1,
                           "threads": 4, "one_group": True, "pairs": 50, "idle": 0.5, "ns": 10**9,
                           "failures": 3, "error": "Input/output error"})
        self.assertEqual(found.get("rate", "irdma", threads=4, one_group=True).median, 50)
        self.assertEqual(found.failures[0]["failures"], 3)

    def test_a_line_that_is_cut_short_is_a_failure(self):
        found = self.read({"what": "end", "phase": "times"}, tail='{"what": "co')
        self.assertEqual(found.phases, {"times"})
        self.assertEqual(len(found.failures), 1)

    def test_kernel_complaints_go_to_the_driver_that_was_loaded(self):
        log = self.folder / "kernel-crowd.log"
        log.write_text("[ 1.0] bench: irdma_rs round 1\n[ 2.0] bench: irdma round 1\n"
                       "[ 3.0] WARNING: CPU: 0 PID: 1 at x.c:1 f+0x1/0x2\n"
                       "[ 4.0] bench: irdma_rs round 2\n")
        found = Results()
        found.read_log(log)
        self.assertEqual([(f["driver"], f["round"]) for f in found.failures],
                         [("irdma", "1")])

    def test_files_hold_what_the_table_does(self):
        found = results()
        report.write(self.folder, found, goals.judge(found), {"commit": "x"}, {})
        data = json.loads((self.folder / "results.json").read_text())
        self.assertEqual(len(data["series"]), len(found.series()))
        with open(self.folder / "results.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), len(found.series()))
        self.assertIn("| 256", (self.folder / "report.md").read_text())


class ProfileTest(unittest.TestCase):
    def test_blocks_belong_to_the_function_before_them(self):
        with tempfile.TemporaryDirectory() as name:
            symbols, counts = Path(name, "symbols"), Path(name, "profile")
            symbols.write_text("1000 T first\n1080 t .Ltmp3\n1100 t second\t[irdma]\n")
            counts.write_text("1000 5\n10f0 2\n1100 9\n500 1\n")
            found = profile.functions(counts, profile.Symbols(symbols))
        self.assertEqual(found, {("first", ""): 7, ("second", "irdma"): 9, ("?", ""): 1})
