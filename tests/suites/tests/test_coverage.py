# SPDX-License-Identifier: GPL-2.0
"""Coverage: counters become a profile, and a line that no run reaches is named."""

import hashlib
import struct
import unittest
import zlib

from irdma_suites import coverage, profile

NAME = coverage.STRICT + "group.rs"


class Names(unittest.TestCase):
    def key(self, name):
        return struct.unpack("<Q", hashlib.md5(name).digest()[:8])[0]

    def test_plain_packed_and_padded(self):
        plain, packed = b"_Rone\x01_Rtwo", zlib.compress(b"_Rthree")
        body = (bytes([len(plain), 0]) + plain + b"\0\0"
                + bytes([7, len(packed)]) + packed)
        self.assertEqual(profile.names(body), {
            self.key(b"_Rone"): "_Rone", self.key(b"_Rtwo"): "_Rtwo",
            self.key(b"_Rthree"): "_Rthree"})

    def test_long_names(self):
        name = b"_R" + b"x" * 300
        self.assertEqual(list(profile.names(bytes([0xae, 0x02, 0]) + name).values()),
                         [name.decode()])

    def test_no_object_file(self):
        with self.assertRaises(ValueError):
            profile.profile(b"\x7fELF\x01\x01" + bytes(100), b"")


class Lines(unittest.TestCase):
    TRACE = ("SF:/top/a/b.rs\nDA:1,3\nDA:2,0\nend_of_record\n"
             "SF:/elsewhere/core.rs\nDA:1,0\nend_of_record\n"
             "SF:/top/a/b.rs\nDA:2,1\nDA:4,0\nend_of_record\n")

    def test_files_below_the_top_and_the_best_count(self):
        files = coverage.read_lcov(self.TRACE, "/top")
        self.assertEqual({n: f.lines for n, f in files.items()},
                         {"a/b.rs": {1: 3, 2: 1, 4: 0}})
        self.assertEqual(files["a/b.rs"].missing, [4])

    def test_tests_do_not_count(self):
        text = "fn f() {}\n#[kernel::macros::kunit_tests(x)]\nmod tests {\n}\n"
        self.assertEqual(coverage.without_tests("a.rs", text, {1: 1, 3: 1}), {1: 1})
        self.assertEqual(coverage.without_tests("a/tests.rs", text, {1: 1}), {})

    def test_code_after_a_test_module_elsewhere_counts(self):
        text = "#[cfg(CONFIG_KUNIT = \"y\")]\nmod tests;\nfn f() {}\n"
        self.assertEqual(coverage.without_tests("a.rs", text, {3: 1}), {3: 1})

    def test_table_sums_up(self):
        last = coverage.table(coverage.read_lcov(self.TRACE, "/top")).splitlines()[-1]
        self.assertEqual(last.split(), ["total", "3", "1", "66.7%"])


class Reasons(unittest.TestCase):
    SOURCE = "fn f() {\n    rare();\n    common();\n}\n"

    def complaints(self, lines, reasons=()):
        files = {NAME: coverage.File(NAME, lines)}
        return coverage.unexplained(files, list(reasons), lambda name: self.SOURCE)

    def test_all_ran(self):
        self.assertEqual(self.complaints({1: 1, 2: 1, 3: 1}), [])

    def test_a_missing_line_is_named(self):
        self.assertIn(f"  {NAME}:2: rare();", self.complaints({1: 1, 2: 0, 3: 1}))

    def test_a_reason_will_do(self):
        self.assertEqual(self.complaints({1: 1, 2: 0, 3: 1}, [(NAME, "rare()", "why")]), [])

    def test_a_few_missing_lines_are_within_the_goal(self):
        self.assertEqual(self.complaints({n: int(n > 2) for n in range(2, 42)}), [])

    def test_a_reason_out_of_date_is_named(self):
        said = self.complaints({1: 1, 2: 1, 3: 1}, [(NAME, "rare()", "why")])
        self.assertEqual(len(said), 1)

    def test_other_files_have_no_goal(self):
        files = {"rust/x.rs": coverage.File("rust/x.rs", {1: 0})}
        self.assertEqual(coverage.unexplained(files, [], lambda name: ""), [])

    def test_reading(self):
        self.assertEqual(coverage.read_reasons("# x\n\na/b.rs: foo(# x) # cannot fail\n"),
                         [("a/b.rs", "foo(# x)", "cannot fail")])
        with self.assertRaises(ValueError):
            coverage.read_reasons("a/b.rs: foo()\n")
