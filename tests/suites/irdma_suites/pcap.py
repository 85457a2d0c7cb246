# SPDX-License-Identifier: GPL-2.0
"""Reads captures of the fabric, and what they say of group management."""

import ipaddress
import struct
from pathlib import Path

#: Kinds of IGMPv3 records (RFC 3376) that say that a host is in a group, or is not.
JOINS, LEAVES = (2, 4), (3,)
IGMP, IGMPV3_REPORT = 2, 0x22


def frames(path: Path):
    """Frames of a capture file in the classic format."""
    data = path.read_bytes() if path.is_file() else b""
    if len(data) < 24:
        return
    magic = data[:4]
    order = "<" if magic in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    at = 24
    while at + 16 <= len(data):
        length = struct.unpack_from(order + "I", data, at + 8)[0]
        frame = data[at + 16:at + 16 + length]
        if len(frame) == length:
            yield frame
        at += 16 + length


def igmp_records(frame: bytes):
    """(kind, group) of each record of an IGMPv3 report; nothing of other frames."""
    at = 14
    kind = frame[12:14]
    while kind == b"\x81\x00" and len(frame) >= at + 4:
        kind, at = frame[at + 2:at + 4], at + 4
    if kind != b"\x08\x00" or len(frame) < at + 20 or frame[at + 9] != IGMP:
        return
    at += 4 * (frame[at] & 15)
    if len(frame) < at + 8 or frame[at] != IGMPV3_REPORT:
        return
    count = int.from_bytes(frame[at + 6:at + 8], "big")
    at += 8
    for _ in range(count):
        if len(frame) < at + 8:
            return
        sources = int.from_bytes(frame[at + 2:at + 4], "big")
        yield frame[at], ipaddress.IPv4Address(frame[at + 4:at + 8])
        at += 8 + 4 * (sources + frame[at + 1])
