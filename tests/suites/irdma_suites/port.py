# SPDX-License-Identifier: GPL-2.0
"""What the tools and a program see of the port: its state, and its events."""

import re
from pathlib import Path

from .background import Background

#: Asynchronous events, with their numbers of <infiniband/verbs.h>.
EVENTS = {"9": "PORT_ACTIVE", "10": "PORT_ERR", "11": "LID_CHANGE", "18": "GID_CHANGE"}
_EVENT = re.compile(r"event_type .*\((\d+)\)")


class Events(Background):
    """Asynchronous events of a device as the program ibv_asyncwatch gets them."""

    def __init__(self, device: str):
        super().__init__("stdbuf", "-oL", "ibv_asyncwatch", "-d", device)
        self._old = 0

    def listens(self) -> bool:
        """Whether the program has come so far that it misses no event."""
        return "async event FD" in self.said()

    def _all(self) -> list:
        return [EVENTS.get(number, number) for number in _EVENT.findall(self.said())]

    def seen(self) -> list:
        """Names of all events since the last `forget`."""
        return self._all()[self._old:]

    def forget(self) -> None:
        """What has come up to now does not count any more."""
        self._old = len(self._all())


def state(device: str) -> str:
    """DOWN, ACTIVE or another state of the port, as sysfs has it."""
    text = Path(f"/sys/class/infiniband/{device}/ports/1/state").read_text()
    return text.split(":")[-1].strip()


def devinfo(g, name: str) -> str:
    """The first word that `ibv_devinfo` says of an attribute of the port."""
    said = g.run("ibv_devinfo", "-d", g.device).stdout
    found = re.search(rf"^\s*{name}:\s+(\S+)", said, re.MULTILINE)
    return found.group(1) if found else ""


def link(g) -> str:
    """State and physical state that `rdma link` shows, with a blank between."""
    said = g.run("rdma", "link", "show", f"{g.device}/1").stdout
    found = re.search(r"state (\S+) physical_state (\S+)", said)
    return " ".join(found.groups()) if found else said
