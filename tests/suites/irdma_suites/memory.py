# SPDX-License-Identifier: GPL-2.0
"""What the kernel has allocated, for suites that look for what does not come back."""

import re
import subprocess
import time
from pathlib import Path

TRACING = Path("/sys/kernel/tracing")


def slab_bytes() -> dict:
    """Bytes of objects in use, by slab cache."""
    used = {}
    for line in Path("/proc/slabinfo").read_text().splitlines()[2:]:
        name, objects, _all, size = line.split()[:4]
        used[name] = int(objects) * int(size)
    return used


def settled_slab() -> dict:
    """The same once it has settled: much is given back with a delay."""
    last = None
    for _ in range(25):
        Path("/proc/sys/vm/drop_caches").write_text("3")
        now = slab_bytes()
        if last is not None and abs(sum(now.values()) - sum(last.values())) < 16384:
            return now
        last = now
        time.sleep(0.2)
    return last


def grown(before: dict, after: dict) -> list:
    """The five caches that grew most: (name, bytes)."""
    more = {name: after[name] - before.get(name, 0) for name in after}
    return sorted(((n, b) for n, b in more.items() if b > 0), key=lambda x: -x[1])[:5]


class Coherent:
    """Counts allocations of DMA-coherent memory, and how many were given back.

    The kernel's own events are counted, so it counts for every driver alike. Used as a
    context.
    """

    EVENTS = ("dma_alloc", "dma_free")
    #: Giving back nothing, which some do, counts for nothing.
    _COUNT = "hist:keys=size if virt_addr != 0"

    @staticmethod
    def available() -> bool:
        """Whether this kernel can count its events."""
        if not (TRACING / "events").exists():
            subprocess.run(["mount", "-t", "tracefs", "none", TRACING], check=False)
        return (TRACING / "events/dma/dma_alloc/hist").exists()

    def __enter__(self):
        for event in self.EVENTS:
            self._trigger(event, self._COUNT)
        return self

    def __exit__(self, *_error):
        for event in self.EVENTS:
            self._trigger(event, "!" + self._COUNT)

    @staticmethod
    def _trigger(event: str, text: str) -> None:
        (TRACING / f"events/dma/{event}/trigger").write_text(text + "\n")

    def counts(self) -> tuple:
        """Allocations and releases since the start."""
        hits = []
        for event in self.EVENTS:
            said = (TRACING / f"events/dma/{event}/hist").read_text()
            hits.append(int(re.search(r"Hits: (\d+)", said).group(1)))
        return tuple(hits)
