# SPDX-License-Identifier: GPL-2.0
"""Results of stock drivers are used again only while they are whole and nothing changed."""

import json
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

from irdma_suites import kept
from irdma_suites.boots import UNFINISHED, Boot, replay
from irdma_suites.ktap import FAIL, PASS, Outcome
from irdma_suites.report import Report
from irdma_suites.suite import Suite


class Catalog(dict):
    """Parts that have a key and nothing else."""

    def __init__(self, cache):
        super().__init__({name: SimpleNamespace(key="1") for name in
                          (*kept.PARTS, "modules")})
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
        self.store = kept.Store(self.catalog, lambda: self.now)
        self.report = Report(False, lambda text: None)
        # A suite whose file exists.
        self.boot = Boot("irdma", 2, {"multicast": Suite("a")})

    def run_boot(self, *outcomes, meanwhile=lambda: None, failures=()):
        told = self.store.recorder(self.boot, self.folder, self.report)
        for name, status, defect in outcomes or (("one", PASS, None),):
            told.add("multicast [irdma]", Outcome(name, status, "why"), defect)
        meanwhile()
        self.store.keep(told, failures)

    def test_comes_back_as_it_was(self):
        self.assertIsNone(self.store.find(self.boot))
        self.run_boot(("one", PASS, None), ("two", FAIL, "a defect of it"))
        folder, results, day = self.store.find(self.boot)
        self.assertEqual((folder / "share/left").read_text(), "something")
        self.assertEqual(day, "2001-09-09")
        again = Report(False, lambda text: None)
        replay(self.boot, results, day, again)
        self.assertEqual(again.counts, self.report.counts)
        self.assertEqual(again.skips, self.report.skips)
        self.assertEqual(again.kept, 2)

    def test_changes_are_seen(self):
        for part in kept.PARTS:
            self.run_boot()
            self.assertIsNotNone(self.store.find(self.boot))
            self.catalog[part].key += "x"
            self.assertIsNone(self.store.find(self.boot), part)

    def test_our_modules_count_where_they_are_loaded(self):
        self.run_boot()
        self.catalog["modules"].key = "2"
        self.assertIsNotNone(self.store.find(self.boot))
        self.boot = Boot("irdma", 2, {"mcast_watch": Suite("a", modules=True)})
        self.run_boot()
        self.catalog["modules"].key = "3"
        self.assertIsNone(self.store.find(self.boot))

    def test_other_suites_are_another_boot(self):
        self.run_boot()
        self.boot.suites["unicast"] = Suite("b")
        self.assertIsNone(self.store.find(self.boot))

    def test_failures_are_not_kept(self):
        for outcomes in ((("one", FAIL, None),), (("one", PASS, None), ("two", FAIL, None)),
                         (("one", PASS, None), (UNFINISHED, FAIL, "its kernel may die"))):
            self.run_boot(*outcomes)
            self.assertIsNone(self.store.find(self.boot))
        self.run_boot(failures=[("multicast [irdma]: compared", "they differ")])
        self.assertIsNone(self.store.find(self.boot))
        self.run_boot(failures=[("multicast [irdma_rs]: compared", "they differ")])
        self.assertIsNotNone(self.store.find(self.boot))

    def test_nothing_is_not_kept(self):
        told = self.store.recorder(self.boot, self.folder, self.report)
        self.store.keep(told, [])
        self.assertIsNone(self.store.find(self.boot))

    def test_what_changed_while_it_ran_is_not_kept(self):
        def change():
            self.catalog["nic"].key = "2"
        self.run_boot(meanwhile=change)
        self.assertIsNone(self.store.find(self.boot))
        self.catalog["nic"].key = "1"
        self.assertIsNone(self.store.find(self.boot))

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
            harm(self.store.find(self.boot)[0])
            self.assertIsNone(self.store.find(self.boot))

    def test_age(self):
        self.run_boot()
        self.now += kept.DAYS * kept.DAY - 1
        self.assertIsNotNone(self.store.find(self.boot))
        self.now += 1
        self.assertIsNone(self.store.find(self.boot))

    def test_the_old_is_deleted(self):
        self.run_boot()
        self.now = self.store.find(self.boot)[0].stat().st_mtime
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
            self.assertEqual(kept.Store.concerns(boot), answer, boot)


if __name__ == "__main__":
    unittest.main()
