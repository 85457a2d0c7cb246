# SPDX-License-Identifier: GPL-2.0
"""The capture's arithmetic against a frame whose ICRC is known."""

import unittest

from irdma_suites import suite

capture = suite.module("capture")


#: Sent by the kernel's rdma_rxe, whose ICRC is not of our making.
IPV4 = bytes.fromhex(
    "01005e01020302e8100000010800"
    "4500004cb1ea40001011bd4e0a630001ef010203"
    "c15c12b700380000" "6430ffff00ffffff00000000" "0123456700000015"
    "64617461000000010000001502eefbc7d3bf8c9864000000" "1f69af46")
IPV6 = bytes.fromhex(
    "3333004d123402e81000000186dd"
    "6000000000381110" "fd000099000000000000000000000001"
    "ff0e00000000000000000000004d1234"
    "d9ce12b700380000" "6430ffff00ffffff00000000" "0123456700000016"
    "64617461000000010000001502eefbc7d3bf8c9864000000" "7d30605d")


class Frames(unittest.TestCase):
    def test_mac(self):
        for ipv4, whole in ((True, IPV4), (False, IPV6)):
            _, at, _ = capture.roce(whole)
            self.assertEqual(whole[:6], capture.multicast_mac(whole, at, ipv4))

    def test_icrc(self):
        for ipv4, whole in ((True, IPV4), (False, IPV6)):
            _, at, udp = capture.roce(whole)
            self.assertEqual(whole[-4:], capture.icrc(whole, at, udp, ipv4))

    def test_icrc_does_not_see_what_routers_change(self):
        for ipv4, positions in ((True, (15, 22, 24)), (False, (15, 21))):
            whole = bytearray(IPV4 if ipv4 else IPV6)
            kind, at, udp = capture.roce(bytes(whole))
            for position in positions:
                whole[position] ^= 0x5a
            self.assertEqual(whole[-4:], capture.icrc(bytes(whole), at, udp, ipv4))

    def test_icrc_sees_the_payload_and_the_addresses(self):
        for ipv4 in (True, False):
            for position in (-5, 30, 44 if ipv4 else 64):
                whole = bytearray(IPV4 if ipv4 else IPV6)
                whole[position] ^= 1
                _, at, udp = capture.roce(bytes(whole))
                self.assertNotEqual(whole[-4:], capture.icrc(bytes(whole), at, udp, ipv4))

    def test_other_frames_are_not_taken(self):
        self.assertIsNone(capture.roce(bytes(60)))
        self.assertIsNone(capture.roce(IPV4[:40]))
