# SPDX-License-Identifier: GPL-2.0
"""The program mcast-shell, for suites that do other things between two verbs."""

import json
import select
import subprocess
import time


class Shell:
    """A process with queue pairs. Answers are dictionaries: see `mcast-shell --help`."""

    def __init__(self, device: str, within=(), **options):
        """`within` are words to run it by, such as `ip netns exec NAME`; `options` are those
        of subprocess.Popen, such as `user`."""
        self.process = subprocess.Popen(
            [*within, "mcast-shell", "-d", device], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            **options)
        self._said = b""

    def start(self, *words) -> None:
        """Give an order, do not wait for the answer."""
        self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.process.stdin.flush()

    def _has_line(self, seconds: float) -> bool:
        """Wait for an answer; whether there is one."""
        end = time.monotonic() + seconds
        while b"\n" not in self._said:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return False
            more = self.process.stdout.read1(65536)
            if not more:
                raise RuntimeError("mcast-shell ended")
            self._said += more
        return True

    def has_answered(self) -> bool:
        """Give the oldest order a moment; whether its answer is there."""
        return self._has_line(0.02)

    def answer(self, seconds: float = 60.0) -> dict:
        """The answer to the oldest order that has none; raises TimeoutError."""
        if not self._has_line(seconds):
            raise TimeoutError(f"no answer from mcast-shell after {seconds:.0f} s")
        line, self._said = self._said.split(b"\n", 1)
        return json.loads(line)

    def kill(self) -> None:
        """End it at once, whatever it is at."""
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def __call__(self, *words, seconds: float = 60.0) -> dict:
        """Give an order and wait for the answer."""
        self.start(*words)
        return self.answer(seconds)

    def err(self, *words, seconds: float = 60.0) -> str:
        """Name of the errno that an order gives, "" if it succeeds."""
        return self(*words, seconds=seconds)["err"]

    def quit(self, seconds: float = 60.0) -> int:
        """Let it give everything back; its exit status. It is killed if it does not end."""
        self.process.stdin.close()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return -1
        finally:
            self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        if not self.process.stdin.closed:
            self.quit()
