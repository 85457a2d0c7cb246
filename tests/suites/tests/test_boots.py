# SPDX-License-Identifier: GPL-2.0
"""Suites share boots where they can; results come out under the right name."""

import unittest
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from irdma_suites.boots import Boot, Reader, complaint, plan, run
from irdma_suites.report import Report
from irdma_suites.suite import Suite


def report():
    return Report(False, lambda text: None)


class Planning(unittest.TestCase):
    def test_equal_needs_share(self):
        boots = plan({"a": Suite("a"), "b": Suite("b")})
        self.assertEqual([(b.driver, list(b.suites)) for b in boots],
                         [("irdma_rs", ["a", "b"]), ("irdma", ["a", "b"])])

    def test_alone(self):
        boots = plan({"a": Suite("a", drivers=("irdma",), alone=True),
                      "b": Suite("b", drivers=("irdma",))})
        self.assertEqual([list(b.suites) for b in boots], [["a"], ["b"]])

    def test_alone_on_stock(self):
        boots = plan({"a": Suite("a", stock_alone=True), "b": Suite("b")})
        self.assertEqual([(b.driver, list(b.suites)) for b in boots],
                         [("irdma_rs", ["a", "b"]), ("irdma", ["a"]), ("irdma", ["b"])])

    def test_lines_are_allowed_on_stock(self):
        suite = Suite("a", allow_warn=("x",), stock_allow_warn=("y",))
        self.assertEqual(suite.allowed("irdma_rs"), ("x",))
        self.assertEqual(suite.allowed("irdma,rxe"), ("x", "y"))

    def test_guests_differ(self):
        boots = plan({"a": Suite("a", drivers=("irdma",)),
                      "b": Suite("b", drivers=("irdma",), guests=1)})
        self.assertEqual(len(boots), 2)

    def test_cards_differ(self):
        boots = plan({"a": Suite("a", drivers=("irdma",)),
                      "b": Suite("b", drivers=("irdma",), card="qps=65536")})
        self.assertEqual(len(boots), 2)

    def test_switches_differ(self):
        boots = plan({"a": Suite("a", drivers=("irdma",)),
                      "b": Suite("b", drivers=("irdma",), snoop="interval=2,response=1")})
        self.assertEqual(len(boots), 2)
        boots = plan({"a": Suite("a", drivers=("irdma",)),
                      "b": Suite("b", drivers=("irdma",), switches="nic0/nic1")})
        self.assertEqual(len(boots), 2)

    def test_what_loads_our_modules_has_a_boot_of_its_own_on_stock(self):
        boots = plan({"a": Suite("a"), "b": Suite("b", modules=True), "c": Suite("c")})
        self.assertEqual([(b.driver, list(b.suites), b.modules) for b in boots],
                         [("irdma_rs", ["a", "b", "c"], True), ("irdma", ["a", "c"], False),
                          ("irdma", ["b"], True)])

    def test_only_one_driver(self):
        boots = plan({"a": Suite("a", drivers=("irdma_rs,rxe", "irdma,rxe"))}, ["irdma"])
        self.assertEqual([b.driver for b in boots], ["irdma,rxe"])

    def test_some_drivers_are_for_the_asking(self):
        suites = {"a": Suite("a", on_request=("rxe",))}
        self.assertEqual([b.driver for b in plan(suites)], ["irdma_rs", "irdma"])
        self.assertEqual([b.driver for b in plan(suites, ["rxe"])], ["rxe"])
        self.assertEqual([b.driver for b in plan(suites, ["irdma", "rxe"])], ["irdma", "rxe"])

    def test_debug_kernel_is_for_our_driver(self):
        boots = plan({"a": Suite("a", drivers=("irdma_rs", "irdma", "irdma_rs,rxe"),
                                 kernels=("stock", "debug"), debug_each_time=True)})
        self.assertEqual([(b.driver, b.kernel) for b in boots],
                         [("irdma_rs", "stock"), ("irdma", "stock"),
                          ("irdma_rs,rxe", "stock"), ("irdma_rs", "debug"),
                          ("irdma_rs,rxe", "debug")])

    def test_kernels_do_not_share_a_boot(self):
        suites = {"a": Suite("a", drivers=("irdma_rs",), kernels=("stock", "debug"),
                             debug_each_time=True),
                  "b": Suite("b", drivers=("irdma_rs",))}
        self.assertEqual([(b.kernel, list(b.suites)) for b in plan(suites)],
                         [("stock", ["a", "b"]), ("debug", ["a"])])
        self.assertEqual([b.kernel for b in plan(suites, kernels=["debug"])], ["debug"])

    def test_debug_kernel_is_not_for_rxe_alone(self):
        suites = {"a": Suite("a", drivers=("rxe",), kernels=("stock", "debug"),
                             debug_each_time=True)}
        self.assertEqual([b.kernel for b in plan(suites)], ["stock"])

    def test_debug_kernel_only_when_asked_for_or_each_time(self):
        suites = {"a": Suite("a", drivers=("irdma_rs",), kernels=("stock", "debug")),
                  "b": Suite("b", drivers=("irdma_rs",), kernels=("debug",),
                             debug_each_time=True)}
        self.assertEqual([(b.kernel, list(b.suites)) for b in plan(suites)],
                         [("stock", ["a"]), ("debug", ["b"])])
        self.assertEqual([(b.kernel, list(b.suites)) for b in plan(suites, None, ["debug"])],
                         [("debug", ["a", "b"])])

    def test_what_was_asked_for_and_is_not_run_is_named(self):
        suites = {"a": Suite("a"), "b": Suite("b", kernels=("stock", "debug"))}
        boots = plan(suites, None, ["debug"])
        self.assertEqual(complaint(suites, boots, []), "")
        self.assertEqual(complaint(suites, boots, ["b"]), "")
        self.assertIn("a has no such run", complaint(suites, boots, ["a", "b"]))
        self.assertIn("no suite", complaint(suites, plan(suites, ["irdma"], ["debug"]), []))

    def test_debug_kernel_has_more_time_and_a_name(self):
        suites = {"a": Suite("a", drivers=("irdma_rs",), kernels=("stock", "debug"),
                             debug_each_time=True)}
        stock, debug = plan(suites)
        self.assertGreater(debug.timeout, stock.timeout)
        self.assertEqual(debug.label, "irdma_rs, debug kernel")


class Reading(unittest.TestCase):
    LINES = ("@suite begin a", "ok 1 - own", "@suite document there and back",
             "1..1", "ok 1 - far", "@suite document-end 0 there and back", "1..1",
             "@suite end a")

    def read(self, lines, driver="irdma_rs", **suite):
        found = report()
        reader = Reader(Boot(driver, 2, {"a": Suite("a", **suite)}), found)
        for line in lines:
            reader.feed("[0] " + line)
        return found, reader

    def test_all_passed(self):
        found, reader = self.read(self.LINES)
        self.assertEqual(found.counts, {"pass": 2, "fail": 0, "skip": 0})
        self.assertEqual(reader.finished, {("a", 0)})
        self.assertEqual(found.close(), 0)

    def test_program_fails_without_a_word(self):
        lines = list(self.LINES)
        lines[5] = "@suite document-end 1 there and back"
        self.assertEqual(self.read(lines)[0].counts["fail"], 1)

    def test_program_dies_halfway(self):
        lines = list(self.LINES)
        lines[3] = "1..2"
        self.assertEqual(self.read(lines)[0].counts["fail"], 1)

    def test_defect_of_stock_is_shown_as_skip(self):
        lines = list(self.LINES)
        lines[4] = "not ok 1 - far"
        found, _ = self.read(lines, driver="irdma", stock_defects={"far": "it is slow"})
        self.assertEqual(found.counts, {"pass": 1, "fail": 0, "skip": 1})
        self.assertIn("it is slow", found.skips[0][1])

    def test_defect_of_stock_is_no_excuse_for_ours(self):
        lines = list(self.LINES)
        lines[4] = "not ok 1 - far"
        found, _ = self.read(lines, stock_defects={"far": "it is slow"})
        self.assertEqual(found.counts["fail"], 1)

    def test_each_driver_has_its_own_defects(self):
        lines = list(self.LINES)
        lines[4] = "not ok 1 - far"
        for driver, of in (("rxe", "rxe_defects"), ("irdma", "stock_defects")):
            for other in ("rxe", "irdma", "irdma_rs"):
                found, _ = self.read(lines, driver=other, **{of: {"far": "it is slow"}})
                self.assertEqual(found.counts["skip"], int(other == driver))

    def test_nothing_run_is_no_success(self):
        self.assertEqual(report().close(), 1)


class Running(unittest.TestCase):
    SAID = "lab:  39.1 s  guest 0: FAILED: "
    OOPS = [f"{SAID}died while: running the command (QEMU's status 0)",
            f"{SAID}kernel log, line 448 (bug): [   29.3] BUG: kernel NULL pointer dereference",
            f"{SAID}kernel log, line 449 (oops): [   29.3] Oops: Oops: 0002 [#1] SMP NOPTI",
            f"{SAID}kernel log, line 460 (call trace): [   29.3] Call Trace:",
            f"{SAID}kernel log, line 490 (panic): [   29.4] Kernel panic - not syncing: Fatal"]
    HANG = [f"{SAID}not finished after 390 s, still: running the command"]
    HALF = ["[0] @suite begin a", "[0] ok 1 - one"]
    WHOLE = [*HALF, "[0] 1..1", "[0] @suite end a"]

    def run_on(self, driver, lines, status=1):
        """(passed, failed, skipped) of a suite whose stock driver may crash."""
        found = report()
        boot = Boot(driver, 1, {"a": Suite("a", guests=1, alone=True,
                                           stock_crash="it falls over")})
        with TemporaryDirectory() as folder, mock.patch(
                "irdma_suites.lanes.lines", lambda *_args, **_more: [*lines, status]):
            run(boot, Path(folder), found)
        return tuple(found.counts[kind] for kind in ("pass", "fail", "skip"))

    def test_whole(self):
        self.assertEqual(self.run_on("irdma", self.WHOLE, 0), (2, 0, 0))

    def test_stock_may_bring_its_kernel_down(self):
        self.assertEqual(self.run_on("irdma", [*self.HALF, *self.OOPS]), (1, 0, 2))

    def test_ours_may_not(self):
        self.assertEqual(self.run_on("irdma_rs", [*self.HALF, *self.OOPS]), (1, 2, 0))

    def test_not_before_the_suite(self):
        self.assertGreater(self.run_on("irdma", self.OOPS)[1], 0)

    def test_nothing_else_is_excused(self):
        warning = f"{self.SAID}kernel log, line 1 (warning): [   2.0] WARNING: x.c:1 at x"
        user = f"{self.SAID}kernel log, line 7 (oops): traps: a[3] general protection fault"
        for lines in (self.HANG, [user], [*self.HANG, user], [warning, *self.OOPS],
                      self.OOPS[:1], self.OOPS[1:]):
            self.assertEqual(self.run_on("irdma", [*self.HALF, *lines]), (1, 2, 0), lines)

    def test_only_for_who_is_alone(self):
        with self.assertRaises(ValueError):
            Suite("a", stock_crash="it falls over")
