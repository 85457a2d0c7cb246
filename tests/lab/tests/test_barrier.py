# SPDX-License-Identifier: GPL-2.0
"""Meeting points let guests go when all have come, and tell them when one cannot."""

import unittest

from irdma_lab.barrier import Barriers


class Meeting(unittest.TestCase):
    def setUp(self):
        self.said = []
        self.barriers = Barriers(2, lambda *a: self.said.append(a))

    def test_goes_when_the_last_one_comes(self):
        self.barriers.arrive(0, "a", "t0")
        self.assertEqual(self.said, [])
        self.assertEqual(self.barriers.waiting(), {"a": [0]})
        self.barriers.arrive(1, "a", "t1")
        self.assertEqual(sorted(self.said), [(0, "t0", "go"), (1, "t1", "go")])
        self.assertEqual(self.barriers.waiting(), {})

    def test_names_are_apart(self):
        self.barriers.arrive(0, "a", "t0")
        self.barriers.arrive(1, "b", "t1")
        self.assertEqual(self.said, [])

    def test_one_guest_twice_is_not_two_guests(self):
        self.barriers.arrive(0, "a", "first")
        self.barriers.arrive(0, "a", "second")
        self.assertEqual(self.said, [])
        self.barriers.arrive(1, "a", "t1")
        self.assertEqual(sorted(self.said), [(0, "first", "go"), (1, "t1", "go")])
        self.assertEqual(self.barriers.waiting(), {"a": [0]})

    def test_a_name_works_again(self):
        for turn in range(3):
            self.barriers.arrive(0, "a", f"x{turn}")
            self.barriers.arrive(1, "a", f"y{turn}")
        self.assertEqual(len(self.said), 6)

    def test_who_waits_is_told_when_another_leaves(self):
        self.barriers.arrive(0, "a", "t0")
        self.barriers.leave(1)
        self.assertEqual(self.said, [(0, "t0", "gone 1")])

    def test_who_comes_after_another_left_is_told_at_once(self):
        self.barriers.leave(1)
        self.barriers.arrive(0, "a", "t0")
        self.assertEqual(self.said, [(0, "t0", "gone 1")])

    def test_leaving_after_arriving_is_no_harm(self):
        self.barriers.arrive(1, "a", "t1")
        self.barriers.leave(1)
        self.barriers.arrive(0, "a", "t0")
        self.assertEqual(sorted(self.said), [(0, "t0", "go"), (1, "t1", "go")])
