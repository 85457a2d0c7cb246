# SPDX-License-Identifier: GPL-2.0
"""Reports of hosts are found in frames, tagged or not, and nowhere else."""

import ipaddress
import unittest

from irdma_suites.pcap import igmp_records

#: An IGMPv3 report of two records: 239.1.2.3 is joined, 239.1.2.4 left with one source.
REPORT = bytes.fromhex("2200000000000002"
                       "04000000ef010203"
                       "03000001ef0102040a000001")
#: IPv4 header of 24 octets, router alert among them, protocol 2.
IP = bytes.fromhex("4600003c00004000010200000a000001e000001694040000")
MACS = bytes.fromhex("01005e00001602e810000001")
FOUND = [(4, ipaddress.IPv4Address("239.1.2.3")), (3, ipaddress.IPv4Address("239.1.2.4"))]


class Records(unittest.TestCase):
    def test_report(self):
        self.assertEqual(list(igmp_records(MACS + b"\x08\x00" + IP + REPORT)), FOUND)

    def test_tagged_report(self):
        frame = MACS + bytes.fromhex("810000640800") + IP + REPORT
        self.assertEqual(list(igmp_records(frame)), FOUND)

    def test_cut_off(self):
        frame = MACS + b"\x08\x00" + IP + REPORT
        self.assertEqual(list(igmp_records(frame[:14 + 24 + 18])), FOUND[:1])
        for length in range(14 + 24 + 8):
            self.assertEqual(list(igmp_records(frame[:length])), [])

    def test_other_frames(self):
        query = b"\x11" + REPORT[1:]
        self.assertEqual(list(igmp_records(MACS + b"\x08\x00" + IP + query)), [])
        self.assertEqual(list(igmp_records(MACS + b"\x86\xdd" + IP + REPORT)), [])
        udp = IP[:9] + b"\x11" + IP[10:]
        self.assertEqual(list(igmp_records(MACS + b"\x08\x00" + udp + REPORT)), [])


if __name__ == "__main__":
    unittest.main()
