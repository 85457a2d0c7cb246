# SPDX-License-Identifier: GPL-2.0
"""Results of stock drivers are used again only while they are whole and nothing changed."""

import json
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

from irdma_suites import kept
from irdma_suites.boots import UNFINISHED, Boot
from irdma_suites.ktap import FAIL, PASS, Outcome
from irdma_suites.report import Report
from irdma_suites.suite import Suite


class Catalog(dict):
    """Parts that have a key and nothing else."""

    def __init__(self, cache):
        super().__init__({name: SimpleNamespace(key="1") for name in
                          (*kept.LAB_PARTS, "modules")})
        self.cache = cache


class Kept(unittest.TestCase):
    def setUp(self):
        folder = TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name, "run")
        (self.folder / "share").mkdir(parents=True)
        (self.folder / "share/left").write_text("something")
        self.now = 1e9
        self.catalog = Catalog(Path(folder.name, "cache"))
        self.store = kept.Store(self.catalog, now=lambda: self.now)
        self.report = Report(False, lambda text: None)
        # A suite whose file exists.
        self.boot = Boot("irdma", 2, {"multicast": Suite("a")})

    def find(self):
        """(folder, report) of what was kept of the boot; None if nothing was."""
        report = Report(False, lambda text: None)
        folder = self.store.replay(self.store.of_boot(self.boot), report)
        return folder and (folder, report)

    def run_boot(self, *outcomes, meanwhile=lambda: None, failures=()):
        told = self.store.recorder(self.store.of_boot(self.boot), self.report)
        for name, status, defect in outcomes or (("one", PASS, None),):
            told.add("multicast [irdma]", Outcome(name, status, "why"), defect)
        meanwhile()
        self.store.keep(told, failures, self.folder / "share")

    def test_comes_back_as_it_was(self):
        self.assertIsNone(self.find())
        self.run_boot(("one", PASS, None), ("two", FAIL, "a defect of it"))
        folder, again = self.find()
        self.assertEqual((folder / "share/left").read_text(), "something")
        self.assertEqual(again.counts, self.report.counts)
        self.assertEqual(again.skips, self.report.skips)
        self.assertEqual((again.kept, self.report.kept), (2, 0))

    def test_asked_to_run_all(self):
        self.run_boot()
        self.store = kept.Store(self.catalog, True, lambda: self.now)
        self.assertIsNone(self.find())
        self.run_boot(("one", PASS, None), ("two", PASS, None))
        self.store = kept.Store(self.catalog, False, lambda: self.now)
        self.assertEqual(self.find()[1].kept, 2)

    def test_checks(self):
        subject = self.store.of_check("unit tests", ["tests/nic"], ["nic"])
        told = self.store.recorder(subject, self.report)
        told.add("unit tests", Outcome("one", PASS))
        self.store.keep(told, [])
        self.assertIsNotNone(self.store.replay(subject, self.report))
        self.assertEqual(self.report.kept, 1)
        self.catalog["nic"].key = "2"
        self.assertIsNone(self.store.replay(subject, self.report))

    def test_changes_are_seen(self):
        for part in kept.LAB_PARTS:
            self.run_boot()
            self.assertIsNotNone(self.find())
            self.catalog[part].key += "x"
            self.assertIsNone(self.find(), part)

    def test_our_modules_count_where_they_are_loaded(self):
        self.run_boot()
        self.catalog["modules"].key = "2"
        self.assertIsNotNone(self.find())
        self.boot = Boot("irdma", 2, {"mcast_watch": Suite("a", modules=True)})
        self.run_boot()
        self.catalog["modules"].key = "3"
        self.assertIsNone(self.find())

    def test_other_suites_are_another_boot(self):
        self.run_boot()
        self.boot.suites["unicast"] = Suite("b")
        self.assertIsNone(self.find())

    def test_failures_are_not_kept(self):
        for outcomes in ((("one", FAIL, None),), (("one", PASS, None), ("two", FAIL, None)),
                         (("one", PASS, None), (UNFINISHED, FAIL, "its kernel may die"))):
            self.run_boot(*outcomes)
            self.assertIsNone(self.find())
        self.run_boot(failures=[("multicast [irdma]: compared", "they differ")])
        self.assertIsNone(self.find())
        self.run_boot(failures=[("multicast [irdma_rs]: compared", "they differ")])
        self.assertIsNotNone(self.find())

    def test_nothing_is_not_kept(self):
        told = self.store.recorder(self.store.of_boot(self.boot), self.report)
        self.store.keep(told, [])
        self.assertIsNone(self.find())

    def test_what_changed_while_it_ran_is_not_kept(self):
        def change():
            self.catalog["nic"].key = "2"
        self.run_boot(meanwhile=change)
        self.assertIsNone(self.find())
        self.catalog["nic"].key = "1"
        self.assertIsNone(self.find())

    def test_harm_is_seen(self):
        def stamp_of(where):
            return where.with_name(where.name + ".stamp")
        for harm in (lambda where: (where / "share/left").unlink(),
                     lambda where: (where / "results.json").write_text("[]"),
                     lambda where: stamp_of(where).unlink(),
                     lambda where: stamp_of(where).write_text("{"),
                     lambda where: stamp_of(where).write_text(json.dumps(
                         {"time": self.now}))):
            self.run_boot()
            harm(self.find()[0])
            self.assertIsNone(self.find())

    def test_age(self):
        self.run_boot()
        self.now += kept.DAYS * kept.DAY - 1
        self.assertIsNotNone(self.find())
        self.now += 1
        self.assertIsNone(self.find())

    def test_the_old_is_deleted(self):
        self.run_boot()
        self.now = self.find()[0].stat().st_mtime
        self.store.prune()
        homes = list((self.catalog.cache / "results").iterdir())
        self.assertEqual(len(homes), 1)
        self.now += (kept.DAYS + 1) * kept.DAY
        self.store.prune()
        self.assertEqual(list((self.catalog.cache / "results").iterdir()), [])

    def test_only_what_is_not_ours(self):
        for driver, kernel, answer in (
                ("irdma", "stock", True), ("irdma,rxe", "stock", True),
                ("rxe", "stock", True), ("irdma_rs", "stock", False),
                ("irdma_rs,rxe", "stock", False), ("none", "debug", False)):
            boot = Boot(driver, 2, {}, kernel)
            self.assertEqual(self.store.of_boot(boot) is not None, answer, boot)


if __name__ == "__main__":
    unittest.main()
