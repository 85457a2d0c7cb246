# SPDX-License-Identifier: GPL-2.0
"""Differences between the drivers' values are found, and only excused by name."""

import tempfile
import unittest
from pathlib import Path

from irdma_suites import suite
from irdma_suites.ktap import FAIL, PASS, SKIP

devinfo = suite.module("devinfo")
TEXT = """\
hca_id:\tirdma0
\tmax_sge:\t\t\t13
\tmax_mcast_grp:\t\t\t{groups}
\tdevice_cap_flags:\t\t{flags}
\t\tport:\t1
\t\t\tactive_mtu:\t\t{mtu} (3)
\t\t\tGID[  0]:\t\tfe80::1, RoCE v2
"""
STOCK = TEXT.format(groups=4096, flags="0x00221000\n\t\t\t\t\tMEM_WINDOW", mtu=1024)


class Values(unittest.TestCase):
    def judge(self, ours):
        with tempfile.TemporaryDirectory() as folder:
            shares = {}
            for driver, text in (("irdma_rs", ours), ("irdma", STOCK)):
                shares[driver] = Path(folder) / driver
                shares[driver].mkdir()
                if text is not None:
                    (shares[driver] / "devinfo").write_text(text)
            return [o for _, o in devinfo.judge(shares)]

    def test_lists_belong_to_their_key(self):
        self.assertEqual(devinfo.values(STOCK)["device_cap_flags"], "0x00221000 MEM_WINDOW")

    def test_equal(self):
        self.assertEqual({o.status for o in self.judge(STOCK)}, {PASS})

    def test_better_is_named(self):
        found = self.judge(TEXT.format(groups=4095, flags="0x0", mtu=1024))
        self.assertEqual({o.status for o in found}, {PASS})
        self.assertTrue(any("not the number of QPs" in o.name for o in found))

    def test_other_difference_fails(self):
        found = self.judge(TEXT.format(groups=4096, flags="0x0", mtu=2048))
        self.assertEqual([o.name for o in found if o.status == FAIL],
                         ["active_mtu as on stock irdma"])

    def test_nothing_to_compare(self):
        self.assertEqual([o.status for _, o in devinfo.judge({"irdma": ""})], [SKIP])
        self.assertEqual([o.status for o in self.judge(None)], [FAIL])
