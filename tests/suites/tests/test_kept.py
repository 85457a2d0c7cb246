# SPDX-License-Identifier: GPL-2.0
"""Results are used again only while they are whole and nothing they are made of changed."""

import json
import os
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

from irdma_suites import kept
from irdma_suites.boots import UNFINISHED, Boot
from irdma_suites.ktap import FAIL, PASS, Outcome
from irdma_suites.report import Report
from irdma_suites.suite import Suite


class Part:
    """A part of the cache that has a key and a stamp and nothing else."""

    def __init__(self, stamp: Path):
        self.key, self.stamp = "1", stamp
        self.make("made")

    def path(self) -> None:
        if not self.stamp.exists():
            self.make("made")

    def make(self, listing: str) -> None:
        self.stamp.write_text(json.dumps({"listing": listing}))


class Catalog(dict):
    """The parts that results are made of."""

    def __init__(self, cache: Path):
        cache.mkdir()
        super().__init__({name: Part(cache / f"{name}.stamp") for name in
                          (*kept.PARTS, "modules")})
        self.cache = cache


class Kept(unittest.TestCase):
    def setUp(self):
        temporary = TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder, self.runs = Path(temporary.name), 0
        self.tree = self.folder / "tree"
        for name in ("tests/suites/irdma_suites/a.py", "tests/lab/b", "scripts/c"):
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
        for name in ("tests/suites/run", "tests/suites/irdma_suites/a.py", "tests/lab/b",
                     "scripts/c", "tests/suites/multicast.py", "tests/suites/other.py"):
            (self.tree / name).write_text("source")
        self.left = self.folder / "left/share"
        self.left.mkdir(parents=True)
        (self.left / "capture").write_text("something")
        os.mkfifo(self.left / "fifo")
        self.now = 1e9
        self.catalog = Catalog(self.folder / "cache")
        self.said = []
        self.boot = Boot("irdma", 2, {"multicast": Suite("a")})
        self.restart()

    def restart(self, fresh: bool = False) -> None:
        """Another run of all tests."""
        self.report = Report(False, self.said.append)
        self.store = kept.Store(self.catalog, self.report, fresh, self.tree, lambda: self.now)

    @property
    def subject(self):
        return self.store.of_boot(self.boot)

    def find(self):
        """Where a copy is of what was kept of the boot; None if nothing was."""
        self.runs += 1
        folder = self.folder / f"run{self.runs}"
        if self.store.replay(self.subject, folder):
            return folder
        self.assertFalse(folder.exists())
        return None

    @property
    def where(self) -> Path:
        """The kept results themselves."""
        return next(p for p in self.catalog.cache.glob("results/*/*") if p.is_dir())

    def run_boot(self, *outcomes, meanwhile=lambda: None, failures=()):
        told = self.store.recorder(self.subject)
        for name, status, defect in outcomes or (("one", PASS, None),):
            told.add("multicast [irdma]", Outcome(name, status, "why"), defect)
        meanwhile()
        self.store.settle([(told, self.left)], failures)

    def test_comes_back_as_it_was(self):
        self.assertIsNone(self.find())
        self.run_boot(("one", PASS, None), ("two", FAIL, "a defect of it"))
        first = self.report
        self.restart()
        self.assertEqual((self.find() / "capture").read_text(), "something")
        self.assertEqual(self.report.counts, first.counts)
        self.assertEqual(self.report.skips, first.skips)
        self.assertEqual((self.report.kept, first.kept), (2, 0))

    def test_asked_to_run_all(self):
        self.run_boot()
        self.restart(fresh=True)
        self.assertIsNone(self.find())
        self.run_boot(("one", PASS, None), ("two", PASS, None))
        self.restart()
        self.assertIsNotNone(self.find())
        self.assertEqual(self.report.kept, 2)

    def test_parts_that_change_are_seen(self):
        for part in kept.PARTS:
            for change in (lambda p: setattr(p, "key", p.key + "x"),
                           # The same recipe, another result.
                           lambda p: p.make("made again"), lambda p: p.stamp.unlink()):
                self.run_boot()
                self.assertIsNotNone(self.find())
                change(self.catalog[part])
                self.assertIsNone(self.find(), part)

    def test_sources_that_change_are_seen(self):
        for name in ("tests/suites/run", "tests/suites/irdma_suites/a.py", "tests/lab/b",
                     "scripts/c", "tests/suites/multicast.py"):
            self.run_boot()
            self.assertIsNotNone(self.find())
            (self.tree / name).write_text(f"{name} is another one")
            self.assertIsNone(self.find(), name)
        self.run_boot()
        (self.tree / "tests/suites/other.py").write_text("not of this boot")
        self.assertIsNotNone(self.find())

    def test_our_modules_count_where_they_are_loaded(self):
        self.run_boot()
        self.catalog["modules"].key = "2"
        self.assertIsNotNone(self.find())
        self.boot = Boot("irdma", 2, {"multicast": Suite("a", modules=True)})
        self.run_boot()
        self.catalog["modules"].key = "3"
        self.assertIsNone(self.find())

    def test_other_suites_are_another_boot(self):
        self.run_boot()
        self.boot.suites["other"] = Suite("b")
        self.assertIsNone(self.find())

    def test_failures_are_not_kept_and_take_earlier_results_along(self):
        for outcomes in ((("one", FAIL, None),), (("one", PASS, None), ("two", FAIL, None)),
                         (("one", PASS, None), (UNFINISHED, FAIL, "its kernel may die"))):
            self.run_boot()
            self.assertIsNotNone(self.find())
            self.run_boot(*outcomes)
            self.assertIsNone(self.find())
        self.run_boot(failures=[("multicast [irdma]: compared", "they differ")])
        self.assertIsNone(self.find())
        self.run_boot(failures=[("multicast [irdma_rs]: compared", "they differ")])
        self.assertIsNotNone(self.find())

    def test_old_results_that_fail_a_comparison_are_forgotten(self):
        self.run_boot()
        self.restart()
        self.assertIsNotNone(self.find())
        self.store.settle([], [("multicast [irdma_rs]: compared", "they differ")])
        # Comparisons come last, after checks have settled theirs.
        self.store.settle([], [("multicast [irdma]: compared", "they differ")])
        self.assertIsNone(self.find())

    def test_nothing_is_not_kept(self):
        self.store.settle([(self.store.recorder(self.subject), self.left)], [])
        self.assertIsNone(self.find())

    def test_what_is_missing_is_made_first(self):
        self.catalog["nic"].stamp.unlink()
        self.run_boot()
        self.assertIsNotNone(self.find())

    def test_what_changed_while_it_ran_is_not_kept(self):
        self.run_boot(meanwhile=lambda: setattr(self.catalog["nic"], "key", "2"))
        self.assertIsNone(self.find())
        self.assertIn("changed meanwhile", self.said[-1])

        def there_and_back():
            source = self.tree / "tests/lab/b"
            body = source.read_text()
            source.write_text("another")
            source.write_text(body)
        self.run_boot(meanwhile=there_and_back)
        self.assertIsNone(self.find())

    def test_harm_is_seen(self):
        def stamp():
            return self.where.with_name(self.where.name + ".stamp")
        for harm in (lambda: (self.where / "share/capture").unlink(),
                     lambda: (self.where / "results.json").write_text("[]"),
                     lambda: stamp().unlink(), lambda: stamp().write_text("{"),
                     lambda: stamp().write_text(json.dumps({"time": self.now})),
                     lambda: stamp().write_text(json.dumps(
                         {"time": self.now, "listing": None}))):
            self.run_boot()
            self.assertIsNotNone(self.find())
            harm()
            self.assertIsNone(self.find())

    def test_trouble_with_the_cache_costs_nothing_but_time(self):
        self.run_boot()
        (self.tree / "tests/lab/b").unlink()
        (self.tree / "tests/lab/b").symlink_to("nowhere")
        (self.tree / "scripts/c").unlink()
        (self.tree / "scripts").rmdir()
        (self.tree / "tests/suites/run").unlink()
        self.assertIsNone(self.find())
        self.run_boot(meanwhile=lambda: (self.left / "capture").unlink())
        results = self.catalog.cache / "results"
        for home in results.glob("*-*"):
            kept.remove(home)
            home.write_text("no folder")
        self.run_boot()
        self.assertIn("not kept", self.said[-1])
        self.assertEqual(self.report.counts["fail"], 0)

    def test_age(self):
        self.run_boot()
        self.now += kept.DAYS * kept.DAY - 1
        self.assertIsNotNone(self.find())
        self.now += 1
        self.assertIsNone(self.find())

    def test_the_old_is_deleted(self):
        self.run_boot()
        home = self.where.parent
        self.now = home.stat().st_mtime
        self.restart()
        self.assertTrue(home.exists())
        self.now += (kept.DAYS + 1) * kept.DAY
        self.restart()
        self.assertFalse(home.exists())

    def test_only_what_is_not_ours(self):
        for driver, kernel, answer in (
                ("irdma", "stock", True), ("irdma,rxe", "stock", True),
                ("rxe", "stock", True), ("irdma_rs", "stock", False),
                ("irdma_rs,rxe", "stock", False), ("none", "debug", False)):
            boot = Boot(driver, 2, {}, kernel)
            self.assertEqual(self.store.of_boot(boot) is not None, answer, boot)


if __name__ == "__main__":
    unittest.main()
