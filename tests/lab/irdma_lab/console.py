# SPDX-License-Identifier: GPL-2.0
"""The terminal of `lab shell`: one console per guest, one of them in front.

Ctrl-] is the lab's key: followed by a digit it brings that guest to the front,
followed by `q` it ends the run, followed by itself it goes to the guest.
"""

import asyncio
import os
import signal
import sys
import termios
import tty
from collections import deque

ESCAPE = 0x1d
#: Bytes of a guest's output that are shown again when it comes to the front.
KEPT = 4096


class Consoles:
    """Consoles of all guests of a run, and the user's terminal."""

    def __init__(self, guests: int, say):
        #: Whether the user has had enough.
        self.quit = False
        self._guests = guests
        self._say = say
        self._front = 0
        self._writers = {}
        self._recent = {g: deque(maxlen=KEPT) for g in range(guests)}
        self._escaped = False
        self._saved = None
        self._input = sys.stdin.fileno()
        self._early = {g: bytearray() for g in range(guests)}

    @property
    def raw(self) -> bool:
        """Whether the terminal passes keys as they come."""
        return self._saved is not None

    def open(self) -> None:
        """Take the terminal."""
        self._say("booting; Ctrl-] then 0..%d switches guests, Ctrl-] q ends"
                  % (self._guests - 1))
        if os.isatty(self._input):
            self._saved = termios.tcgetattr(self._input)
            tty.setraw(self._input)
        asyncio.get_running_loop().add_reader(self._input, self._typed)

    def close(self) -> None:
        """Give the terminal back."""
        if self._saved:
            termios.tcsetattr(self._input, termios.TCSADRAIN, self._saved)
            self._saved = None
            print(file=sys.stderr)

    def handler(self, guest: int):
        """Serves the connection of a guest's console."""
        async def serve(reader, writer):
            self._writers[guest] = writer
            writer.write(bytes(self._early[guest]))
            self._early[guest].clear()
            while data := await reader.read(65536):
                self._recent[guest].extend(data)
                if guest == self._front:
                    self._show(data)
            self._writers.pop(guest, None)
            if guest == self._front and self._writers:
                self._switch(min(self._writers))
        return serve

    @staticmethod
    def _show(data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def _typed(self) -> None:
        data = os.read(self._input, 4096)
        if not data:
            # End of a script: the shell in front gets it as Ctrl-D.
            asyncio.get_running_loop().remove_reader(self._input)
            data = b"\x04"
        plain = bytearray()
        for byte in data:
            if self._escaped:
                self._escaped = False
                if byte == ESCAPE:
                    plain.append(byte)
                else:
                    self._command(byte)
            elif byte == ESCAPE:
                self._escaped = True
            else:
                plain.append(byte)
        if plain:
            self._send(bytes(plain))

    def _send(self, data: bytes) -> None:
        writer = self._writers.get(self._front)
        if writer:
            writer.write(data)
        else:
            self._early[self._front] += data

    def _command(self, byte: int) -> None:
        key = chr(byte)
        if key.isdigit() and int(key) < self._guests:
            self._switch(int(key))
        elif key == "q":
            self.quit = True
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            self._say("Ctrl-]: 0..%d switches guests, q ends" % (self._guests - 1))

    def _switch(self, guest: int) -> None:
        self._front = guest
        self._say(f"--- guest {guest}")
        self._show(bytes(self._recent[guest]))
