# SPDX-License-Identifier: GPL-2.0
"""Results of KUnit suites: what fails is seen, and what was not run as well."""

import unittest

from irdma_suites import kunit

GOOD = """\
KTAP version 1
1..1
    KTAP version 1
    # Subtest: rdma_lid
    # module: rdma_rs
    1..2
    ok 1 host_order
    ok 2 out_of_range # SKIP no such port
# rdma_lid: pass:1 fail:0 skip:1 total:2
# Totals: pass:1 fail:0 skip:1 total:2
ok 1 rdma_lid
"""
SAID = "    # host_order: ASSERTION FAILED at rust/rdma/lid.rs:60\n    not ok 1 host_order"


class Read(unittest.TestCase):
    def statuses(self, text):
        return [o.status for o in kunit.read("rdma_lid", text)]

    def test_good(self):
        self.assertEqual(self.statuses(GOOD), ["pass", "skip"])

    def test_failure_and_its_reason(self):
        text = GOOD.replace("    ok 1 host_order", SAID).replace("ok 1 rdma", "not ok 1 rdma")
        first = kunit.read("rdma_lid", text)[0]
        self.assertEqual(first.status, "fail")
        self.assertIn("lid.rs:60", first.reason)

    def test_suite_fails_without_a_failed_test(self):
        self.assertEqual(self.statuses(GOOD.replace("ok 1 rdma", "not ok 1 rdma"))[-1], "fail")

    def test_cut_short(self):
        lines = GOOD.splitlines()
        for end in (3, 6, 7, 8):
            self.assertEqual(self.statuses("\n".join(lines[:end]))[-1], "fail", end)

    def test_empty_suite(self):
        text = "    KTAP version 1\n    # Subtest: x\n    1..0\nok 1 x\n"
        self.assertEqual(self.statuses(text), ["fail"])

    def test_parameters_do_not_count_as_tests(self):
        text = GOOD.replace("    ok 1 host_order", "        KTAP version 1\n        1..2\n"
                            "        ok 1 a\n        ok 2 b\n    ok 1 host_order")
        self.assertEqual(self.statuses(text), ["pass", "skip"])

    def test_shown_as_one_document(self):
        bad = GOOD.replace("    ok 1 host_order", SAID).replace("rdma_lid", "other")
        shown = kunit.show([("rdma_rs", "rdma_lid", GOOD), ("irdma_rs", "other", bad)])
        lines = shown.splitlines()
        self.assertEqual(lines[:2], ["KTAP version 1", "1..2"])
        self.assertIn("ok 1 rdma_lid", lines)
        self.assertIn("not ok 2 other", lines)
