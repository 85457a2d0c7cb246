# SPDX-License-Identifier: GPL-2.0
"""Cached parts: made once, made again when damaged, whole or not there."""

import contextlib
import io
import os
import tempfile
import threading
import unittest
from pathlib import Path

from irdma_env import parts
from irdma_env.errors import EnvError
from irdma_env.paths import cache_dir


class Toy(parts.Part):
    """A part that counts how often it is made."""

    name = "toy"

    def __init__(self, catalog, what="1"):
        super().__init__(catalog)
        self.what = what

    def inputs(self):
        return [self.what]

    def build(self, out, step):
        self.catalog.built += 1
        if self.catalog.fail:
            (out / "half").write_text("half")
            raise EnvError("no luck")
        (out / "dir").mkdir()
        (out / "dir/file").write_text("content " + self.what)
        (out / "link").symlink_to("dir/file")


class FakeCatalog:
    def __init__(self, cache):
        self.cache, self.built, self.fail = Path(cache), 0, False

    def parts(self):
        return [Toy(self)]


class Cache(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.catalog = FakeCatalog(self.folder.name)
        quiet = contextlib.redirect_stderr(io.StringIO())
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)

    def path(self, what="1"):
        return Toy(self.catalog, what).path()

    def test_made_once(self):
        self.assertEqual(self.path(), self.path())
        self.assertEqual(self.catalog.built, 1)

    def test_other_inputs_are_another_part(self):
        self.assertNotEqual(self.path("1"), self.path("2"))
        self.assertEqual(self.catalog.built, 2)

    def test_inputs_that_change_meanwhile_are_noticed(self):
        toy = Toy(self.catalog)

        class Editor:
            """Changes what the part is made from while it is made, once."""

            def __init__(self, build):
                self.build = build

            def __call__(self, out, step):
                self.build(out, step)
                toy.what = "2"

        toy.build = Editor(toy.build)
        path = toy.path()
        self.assertEqual(self.catalog.built, 2)
        self.assertEqual((path / "dir/file").read_text(), "content 2")
        self.assertEqual(self.path("2"), path)
        self.assertEqual(self.catalog.built, 2)

    def test_every_damage_is_noticed(self):
        def cut(path):
            (path / "dir/file").write_text("c")

        def same_size(path):
            (path / "dir/file").write_text("CONTENT 1")

        def lose(path):
            (path / "dir/file").unlink()

        def add(path):
            (path / "dir/more").touch()

        def bend(path):
            (path / "link").unlink()
            (path / "link").symlink_to("dir")

        def vanish(path):
            parts.remove(path)

        def unstamp(path):
            path.with_name(path.name + ".stamp").unlink()

        def garble(path):
            path.with_name(path.name + ".stamp").write_text("{")

        for number, damage in enumerate(
                (cut, same_size, lose, add, bend, vanish, unstamp, garble), 2):
            damage(self.path())
            self.assertEqual((self.path() / "dir/file").read_text(), "content 1")
            self.assertEqual(self.catalog.built, number, damage.__name__)

    def test_failure_leaves_nothing_and_names_the_log(self):
        self.catalog.fail = True
        with self.assertRaises(EnvError):
            self.path()
        self.assertEqual(list((self.catalog.cache / "parts").iterdir()), [])
        self.assertEqual(list((self.catalog.cache / "tmp").iterdir()), [])
        self.catalog.fail = False
        self.path()

    def test_leftovers_of_a_killed_run_are_removed(self):
        left = self.catalog.cache / "tmp/toy.999999"
        left.mkdir(parents=True)
        half = Toy(self.catalog).where
        half.mkdir(parents=True)
        self.path()
        self.assertFalse(left.exists())
        self.assertEqual(self.catalog.built, 1)

    def test_two_at_once_make_it_once(self):
        threads = [threading.Thread(target=self.path) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.catalog.built, 1)

    def test_clean_keeps_what_is_current_or_used(self):
        self.path("1")
        used = Toy(self.catalog, "2")
        used.path()
        self.path("3")
        gone = parts.clean(self.catalog)
        self.assertEqual(gone, [Toy(self.catalog, "3").where.name])


class Keys(unittest.TestCase):
    def test_content_name_and_mode_count(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            file = root / "a"
            seen = set()

            def look():
                seen.add(parts.hash_files(root, parts.source_files(root)))
            file.write_text("x")
            look()
            file.write_text("y")
            look()
            file.chmod(0o755)
            look()
            file.rename(root / "b")
            look()
            self.assertEqual(len(seen), 4)
            os.utime(root / "b")
            look()
            self.assertEqual(len(seen), 4, "the time of a file must not count")

    def test_build_output_does_not_count(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "target").mkdir()
            (Path(folder) / "target/big").touch()
            self.assertEqual(parts.source_files(Path(folder)), [])

    def test_cache_dir(self):
        self.assertEqual(cache_dir({"IRDMA_RS_CACHE": "/c", "HOME": "/h"}), Path("/c"))
        self.assertEqual(cache_dir({"XDG_CACHE_HOME": "/x"}), Path("/x/irdma_rs"))
        self.assertEqual(cache_dir({"HOME": "/h"}), Path("/h/.cache/irdma_rs"))
