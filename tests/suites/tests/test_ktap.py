# SPDX-License-Identifier: GPL-2.0
"""Results are read as they were meant, and nothing missing counts as passed."""

import unittest

from irdma_suites.ktap import FAIL, PASS, SKIP, Document


def read(text: str) -> Document:
    document = Document()
    for line in text.splitlines():
        document.feed(line)
    return document


class Reading(unittest.TestCase):
    def test_results(self):
        document = read("KTAP version 1\n1..3\nok 1 - one\n# why\nnot ok 2 - two\n"
                        "ok 3 - three # SKIP no card\n")
        self.assertEqual([(o.name, o.status, o.reason) for o in document.outcomes],
                         [("one", PASS, ""), ("two", FAIL, "why"),
                          ("three", SKIP, "no card")])
        self.assertIsNone(document.end())

    def test_plan_at_the_end(self):
        self.assertIsNone(read("ok 1 - one\n1..1\n").end())

    def test_no_plan(self):
        self.assertIn("no plan", read("ok 1 - one\n").end())

    def test_too_few(self):
        self.assertIn("2 tests planned, 1 results", read("1..2\nok 1 - one\n").end())

    def test_skip_without_reason_fails(self):
        self.assertEqual(read("ok 1 - one # SKIP\n").outcomes[0].status, FAIL)

    def test_notes_belong_to_the_next_result(self):
        document = read("# old\nok 1 - one\nnot ok 2 - two\n")
        self.assertEqual(document.outcomes[1].reason, "")

    def test_other_output_is_none(self):
        self.assertEqual(read("okay then\nnot okay\nsome ok 1\n").outcomes, [])
