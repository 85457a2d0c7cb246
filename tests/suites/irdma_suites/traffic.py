# SPDX-License-Identifier: GPL-2.0
"""Datagrams from one guest to queue pairs on several, and who got which.

Every guest makes a `Traffic` and comes to the same calls. A round ends with a marker
to each queue pair, on the sender's queue pair and so behind all that was sent: what is
not there before the marker does not come.
"""

import json

from .shell import Shell


class Traffic:
    """One guest's part."""

    def __init__(self, g, name: str, family: int = 4, sender: int = 0):
        self.g = g
        self.name = name
        self.family = family
        self.address = g.ip if family == 4 else g.ip6
        #: The process that sends, on the node that does.
        self.sender = Shell(g.device) if g.node == sender else None
        self._receivers = []
        self._round = 0
        self._others = []

    def listen(self, shell: Shell, place: int, qpn: int) -> None:
        """A queue pair of this guest that is to be asked what it got."""
        self._receivers.append((shell, place, qpn))

    def ready(self, *source) -> None:
        """All receivers are there. `source`: more words for the sender's `open`."""
        file = f"{self.g.suite}-{self.name}-"
        (self.g.share / f"{file}{self.g.node}").write_text(json.dumps(
            [(self.address, qpn) for _, _, qpn in self._receivers]))
        self.g.sync()
        if self.sender:
            said = self.sender(*(source or ("open", 0, self.family)))
            self.g.check(f"{self.name}: sender", not said["err"], said["err"])
            for node in range(self.g.nodes):
                text = (self.g.share / f"{file}{node}").read_text()
                self._others += json.loads(text)

    def reopen(self) -> None:
        """A new queue pair for the sender: indexes of addresses may have changed."""
        if self.sender:
            err = self.sender.err("close", 0) or self.sender.err("open", 0, self.family)
            self.g.check(f"{self.name}: sender has a new queue pair", not err, err)

    def _send(self, orders) -> str:
        """Carry out orders, send the markers; what went wrong."""
        for order in orders:
            if callable(order):
                order()
            elif err := self.sender.err(*order):
                return f"{' '.join(map(str, order))} gives {err}"
        for address, qpn in self._others:
            if err := self.sender.err("mark", 0, address, self._round, qpn):
                return f"marker to queue pair {qpn} of {address} gives {err}"
        return ""

    def shoot(self, *orders) -> list:
        """The sender carries out orders: words for its shell, or functions. Returns the
        datagrams that each receiver here got, in the order in which they came."""
        self._round += 1
        self.g.sync()
        fault = self._send(orders) if self.sender else ""
        self.g.sync()
        got = []
        for shell, place, qpn in self._receivers:
            said = shell("collect", place, self._round)
            if said["err"]:
                fault = fault or f"queue pair {qpn} misses the marker: {said['err']}"
            got.append(said["got"])
        if fault:
            self.g.check(f"{self.name}: round {self._round}", False, fault)
        return got

    def close(self) -> None:
        """End the sender, and all processes that receive."""
        shells = {id(shell): shell for shell, _, _ in self._receivers}
        for shell in (*shells.values(), *filter(None, [self.sender])):
            shell.quit()
        self.g.sync()


def tokens(one: list) -> list:
    """What one receiver got: numbers of datagrams, in the order in which they came."""
    return [datagram["token"] for datagram in one]


def expect(g, name: str, got: list, wanted, in_order: bool = False) -> bool:
    """A result: each receiver got just the `wanted` datagrams, whole."""
    wanted, faults = list(wanted), []
    for number, one in enumerate(got):
        seen = tokens(one) if in_order else sorted(tokens(one))
        if seen != wanted:
            faults.append(f"receiver {number} got {_short(seen)}, not {_short(wanted)}")
        if wrong := [datagram for datagram in one if not datagram["right"]]:
            faults.append(f"receiver {number} got {wrong[0]}")
    return g.check(name, not faults, "; ".join(faults[:4]))


def _short(numbers: list) -> str:
    """A list that may be long, in words."""
    return str(numbers) if len(numbers) < 12 else f"{numbers[:8]}.. ({len(numbers)})"

