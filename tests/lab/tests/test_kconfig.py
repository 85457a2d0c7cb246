# SPDX-License-Identifier: GPL-2.0
"""A kernel configuration that is not as asked is noticed, whatever the reason."""

import unittest

from irdma_env import kconfig
from irdma_env.debug import FRAGMENTS

ASKED = "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=\"x y\"\n# A remark\nCONFIG_D=m\n"


class Compare(unittest.TestCase):
    def unmet(self, config):
        return kconfig.unmet(kconfig.read(ASKED), kconfig.read(config))

    def test_as_asked(self):
        self.assertEqual(self.unmet("CONFIG_A=y\nCONFIG_C=\"x y\"\nCONFIG_D=m\n"), [])

    def test_dropped_by_a_dependency(self):
        self.assertEqual(self.unmet("CONFIG_C=\"x y\"\nCONFIG_D=m\n"),
                         ["CONFIG_A: asked for y, is n"])

    def test_on_although_to_be_off(self):
        self.assertEqual(self.unmet(ASKED.replace("# CONFIG_B is not set", "CONFIG_B=y")),
                         ["CONFIG_B: asked for n, is y"])

    def test_other_value(self):
        self.assertEqual(self.unmet(ASKED.replace("CONFIG_D=m", "CONFIG_D=y")),
                         ["CONFIG_D: asked for m, is y"])

    def test_later_fragment_wins(self):
        self.assertEqual(kconfig.read("CONFIG_A=y\n# CONFIG_A is not set\n"), {"A": "n"})

    def test_our_fragments_ask_for_no_option_twice(self):
        names = [name for fragment in FRAGMENTS for name in kconfig.read(fragment.read_text())]
        self.assertEqual(sorted(n for n in set(names) if names.count(n) > 1), [])
