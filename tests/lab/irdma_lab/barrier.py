# SPDX-License-Identifier: GPL-2.0
"""Meeting points across guests, the lab's side of `lab-sync NAME`.

A name is passed when every guest has come to it once. Guests may use a name
again and again: each passage takes one arrival of every guest. A guest whose
command has ended can come nowhere any more, so whoever waits for it is told.
"""

from collections import deque


class Barriers:
    """State of all meeting points of a run.

    `answer(guest, ticket, text)` is called for each arrival that is decided:
    text "go", or "gone N" when guest N will never come.
    """

    def __init__(self, guests: int, answer):
        self._guests = range(guests)
        self._gone = set()
        self._waiting = {}
        self._answer = answer

    def arrive(self, guest: int, name: str, ticket: str) -> None:
        """A guest has come to a meeting point and waits with this ticket."""
        queues = self._waiting.setdefault(name, {g: deque() for g in self._guests})
        queues[guest].append(ticket)
        self._settle(name)

    def leave(self, guest: int) -> None:
        """A guest's command has ended."""
        self._gone.add(guest)
        for name in list(self._waiting):
            self._settle(name)

    def waiting(self) -> dict:
        """Who waits where, for messages: name -> guests."""
        return {name: [g for g in self._guests if queues[g]]
                for name, queues in self._waiting.items()
                if any(queues.values())}

    def _settle(self, name: str) -> None:
        queues = self._waiting[name]
        while all(queues.values()):
            for guest, queue in queues.items():
                self._answer(guest, queue.popleft(), "go")
        missing = [g for g in self._guests if g in self._gone and not queues[g]]
        if missing:
            for guest, queue in queues.items():
                while queue:
                    self._answer(guest, queue.popleft(), f"gone {missing[0]}")
