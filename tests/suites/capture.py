# SPDX-License-Identifier: GPL-2.0
"""What the fabric saw of the demo: every RoCE frame dissected and recomputed."""

import zlib
from pathlib import Path

from irdma_suites.ktap import FAIL, PASS, Outcome
from irdma_suites.pcap import frames
from irdma_suites.suite import Suite

SUITE = Suite(
    about="the story's frames in a capture: RoCEv2 UD, ICRC, MAC and QP numbers",
    guests=2,
    timeout=200)

ROCE_PORT = 4791
UD_SEND = (0x64, 0x65)
MULTICAST_QPN = 0xffffff
#: Groups of the story, one of each family.
GROUPS = {"IPv4": "239.1.2.3", "IPv6": "ff0e::4d:1234"}
FIELDS = ("frame.number", "eth.dst", "ip.dst", "ipv6.dst", "infiniband.bth.opcode",
          "infiniband.bth.destqp", "infiniband.deth.q_key", "_ws.malformed")


def guest(g) -> None:
    """The story, in both families; then tshark reads the capture."""
    for family, group in GROUPS.items():
        if g.leads:
            words = ["mcast-story", "--group", group, g.peers[0]]
            if g.driver == "irdma" and family == "IPv6":
                # Stock's MAC of IPv6 groups is judged below.
                words.insert(1, "--any-mac")
            done = g.run(*words, timeout=60)
            g.check(f"story of an {family} group", done.returncode == 0,
                    (done.stdout.strip().splitlines() or ["it said nothing"])[-1])
        else:
            g.succeeds(f"sender of the {family} story", "mcast-story", "--follow",
                       timeout=60)
        g.sync()
    if g.leads:
        _dissect(g)


def _dissect(g) -> None:
    """One tshark over what the switch saw; it is slow in a guest."""
    capture = g.share / "pcap/fabric.pcap"
    wanted = " || ".join(("ipv6.dst" if ":" in group else "ip.dst") + f" == {group}"
                         for group in GROUPS.values())
    words = ["tshark", "-n", "-r", capture, "-Y",
             f"udp.dstport == {ROCE_PORT} && ({wanted})", "-T", "fields"]
    for field in FIELDS:
        words += ["-e", field]
    done = g.run(*words, timeout=200)
    g.check("tshark reads the capture", done.returncode == 0, done.stdout[-300:])
    rows = [line.split("\t") for line in done.stdout.splitlines()
            if line.count("\t") == len(FIELDS) - 1]
    for group in GROUPS.values():
        found = [r for r in rows if group in (r[2], r[3])]
        g.equal(f"tshark: frames to {group}", len(found), 1300)
        good = [r for r in found if r[4] and int(r[4], 0) in UD_SEND
                and int(r[5], 0) == MULTICAST_QPN and not r[7]]
        g.check(f"tshark: every frame to {group} is RoCEv2 UD to QP 0xffffff",
                len(good) == len(found), f"{len(found) - len(good)} are not")


# -- on the host: the same frames, taken apart by hand -----------------------


def roce(frame: bytes):
    """(kind, ip offset, udp offset) of a RoCEv2 frame, or None."""
    at = 14
    kind = frame[12:14]
    while kind == b"\x81\x00" and len(frame) >= at + 4:
        kind, at = frame[at + 2:at + 4], at + 4
    if kind == b"\x08\x00" and len(frame) >= at + 28 and frame[at + 9] == 17:
        udp = at + 4 * (frame[at] & 15)
    elif kind == b"\x86\xdd" and len(frame) >= at + 48 and frame[at + 6] == 17:
        udp = at + 40
    else:
        return None
    if len(frame) < udp + 20 or int.from_bytes(frame[udp + 2:udp + 4], "big") != ROCE_PORT:
        return None
    return kind, at, udp


def icrc(frame: bytes, at: int, udp: int, ipv4: bool) -> bytes:
    """The invariant CRC that belongs at the end of a frame (IBA, annex A17)."""
    end = udp + int.from_bytes(frame[udp + 4:udp + 6], "big") - 4
    body = bytearray(frame[at:end])
    if ipv4:
        masked = (1, 8, 10, 11)  # TOS, TTL, checksum
    else:
        body[0] |= 0x0f  # traffic class and flow label
        masked = (1, 2, 3, 7)  # and hop limit
    for byte in masked:
        body[byte] = 0xff
    start = udp - at
    body[start + 6] = body[start + 7] = 0xff  # UDP checksum
    body[start + 8 + 4] = 0xff  # BTH: FECN, BECN, reserved
    return zlib.crc32(b"\xff" * 8 + bytes(body)).to_bytes(4, "little")


def multicast_mac(frame: bytes, at: int, ipv4: bool) -> bytes:
    """The MAC that the standards give the frame's group."""
    if ipv4:
        to = frame[at + 16:at + 20]
        return b"\x01\x00\x5e" + bytes([to[1] & 0x7f]) + to[2:]
    return b"\x33\x33" + frame[at + 36:at + 40]


def judge(shares: dict):
    """ICRC and MAC of every RoCE frame of the run."""
    for driver, share in shares.items():
        total = multicast = 0
        faults = {"icrc": 0, "opcode": 0, "mac4": 0, "mac6": 0, "qpn": 0}
        for frame in frames(Path(share) / "pcap/fabric.pcap"):
            found = roce(frame)
            if not found:
                continue
            kind, at, udp = found
            ipv4, total = kind == b"\x08\x00", total + 1
            end = udp + int.from_bytes(frame[udp + 4:udp + 6], "big")
            faults["icrc"] += frame[end - 4:end] != icrc(frame, at, udp, ipv4)
            faults["opcode"] += frame[udp + 8] not in UD_SEND
            to = frame[at + 16] if ipv4 else frame[at + 24]
            if (224 <= to < 240) if ipv4 else to == 0xff:
                multicast += 1
                wrong = frame[:6] != multicast_mac(frame, at, ipv4)
                faults["mac4" if ipv4 else "mac6"] += wrong
                faults["qpn"] += frame[udp + 13:udp + 16] != b"\xff\xff\xff"
        for name, fault in (
                ("every RoCE frame has the right ICRC", "icrc"),
                ("every RoCE frame is a UD send", "opcode"),
                ("every IPv4 multicast frame goes to its standard MAC", "mac4"),
                ("every IPv6 multicast frame goes to its standard MAC", "mac6"),
                ("every multicast frame goes to QP 0xffffff", "qpn")):
            bad = faults[fault]
            fine = not bad and total and multicast
            yield driver, Outcome(
                f"{name} ({total} frames, {multicast} multicast)",
                PASS if fine else FAIL, f"{bad} do not" if bad else "there are none")


SUITE.stock_defects.update({
    r"IPv6 multicast frame goes to its standard MAC":
        "IPv6 groups get the MAC of the address's first octets (irdma_mcast_mac)",
})
