# SPDX-License-Identifier: GPL-2.0
"""The switches of the rack as a guest can see and set them, and the host's own joins."""

import ipaddress
import socket
import struct
from contextlib import contextmanager

#: Numbers of the switches of suites that have two.
BOTH = (0, 1)


def interface(g, vlan: int) -> str:
    """The interface of a VLAN of the card; 0 is the card's own."""
    return f"{g.netdev}.{vlan}" if vlan else g.netdev


def join(group: str, interface: str) -> socket.socket:
    """Has the host join an IP group on an interface, for as long as the socket is open."""
    index = socket.if_nametoindex(interface)
    address = ipaddress.ip_address(group)
    if address.version == 4:
        joined = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        joined.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                          address.packed + bytes(4) + struct.pack("@i", index))
    else:
        joined = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        joined.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP,
                          address.packed + struct.pack("@I", index))
    return joined


def _table(g, switch: int) -> dict:
    """Groups that a switch knows outside VLANs: address -> name of port -> seconds left to it."""
    return {ipaddress.ip_address(one["group"]):
            {port["port"]: port["seconds"] for port in one["ports"]}
            for one in g.nic("members", switch=switch)["groups"] if not one["vlan"]}


def members(g, switch: int = 0) -> dict:
    """Groups that a switch knows outside VLANs: address -> names of ports."""
    return {group: set(ports) for group, ports in _table(g, switch).items()}


def ports_of(g, group: str, switch: int = 0) -> set:
    """The ports that a switch counts as members of a group."""
    return members(g, switch).get(ipaddress.ip_address(group), set())


def seconds_left(g, group: str, switch: int = 0) -> float:
    """How long a switch keeps all members of a group if none of them answers; 0 without one."""
    return min(_table(g, switch).get(ipaddress.ip_address(group), {}).values(), default=0)


def routers(g, switch: int = 0) -> set:
    """The ports behind which a switch has heard a router."""
    return {one["port"] for one in g.nic("members", switch=switch)["routers"]
            if not one["vlan"]}


def asks(g, switch: int = 0) -> bool:
    """Whether a switch is the one that asks."""
    return bool(g.nic("switch", switch=switch)["snoop"]["asks"])


def _text(shown: dict) -> str:
    """Settings as `switch` shows them, as it takes them."""
    names = ("interval", "response", "last_member", "robustness", "querier", "fast_leave")
    parts = [f"{name}={str(shown[name]).lower()}" for name in names]
    parts.append("unregistered=" + ("flood" if shown["flood_unregistered"] else "drop"))
    return ",".join(parts)


@contextmanager
def settings(g, text: str, switches=BOTH):
    """Other settings for a while. All guests come here, node 0 does it."""
    before = {}
    if g.leads:
        # The first asks when it gets settings. The others are to count what they hear by theirs.
        for switch in reversed(switches):
            before[switch] = _text(g.nic("switch", switch=switch)["snoop"])
            g.nic("switch", switch=switch, snoop=text)
    g.sync()
    yield
    g.sync()
    for switch, old in before.items():
        g.nic("switch", switch=switch, snoop=old)
    g.sync()
