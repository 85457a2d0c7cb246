# SPDX-License-Identifier: GPL-2.0
"""In a guest: what the kernel's own trace events say of memory.

`dma:dma_alloc` and `dma:dma_free` tell of coherent memory, whoever asks for it,
so both drivers are looked at in the same way; `kmem` events tell of slab memory.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

TRACEFS = Path("/sys/kernel/tracing")
#: KiB of buffer per processor.
BUFFER_KB = 24 * 1024
PAGE = 4096

DMA = ("dma/dma_alloc", "dma/dma_free")
SLAB = ("kmem/kmalloc", "kmem/kmem_cache_alloc", "kmem/kfree", "kmem/kmem_cache_free")

_EVENT = re.compile(r": (dma_alloc|dma_free|kmalloc|kmem_cache_alloc|kfree|kmem_cache_free): (.*)$")
_FIELD = re.compile(r"(\w+)=(\S+)")


@dataclass
class Seen:
    """Memory taken and given back while tracing."""

    #: Coherent memory: bytes asked for, bytes in whole pages, calls.
    coherent_bytes: int = 0
    coherent_pages_bytes: int = 0
    coherent_allocs: int = 0
    coherent_frees: int = 0
    #: Slab memory not given back: bytes by the function that asked for it.
    slab: dict = field(default_factory=dict)

    def add(self, line: str, live: dict) -> None:
        match = _EVENT.search(line)
        if not match:
            return
        event, values = match.group(1), dict(_FIELD.findall(match.group(2)))
        if event.startswith("dma"):
            sign = 1 if event == "dma_alloc" else -1
            size = int(values["size"])
            self.coherent_bytes += sign * size
            self.coherent_pages_bytes += sign * ((size + PAGE - 1) // PAGE) * PAGE
            self.coherent_allocs += event == "dma_alloc"
            self.coherent_frees += event == "dma_free"
        elif event in ("kmalloc", "kmem_cache_alloc"):
            live[values["ptr"]] = (int(values["bytes_alloc"]), values["call_site"])
        else:
            live.pop(values["ptr"], None)


class Trace:
    """Traces events of one device and one process."""

    def __init__(self, device: str, events=DMA, pid: int = 0):
        self._events, self._device, self._pid = events, device, pid

    @classmethod
    def reserve(cls) -> None:
        """Take the buffers' memory, once, so that no measurement meets it."""
        cls._write("tracing_on", "0")
        cls._write("buffer_size_kb", str(BUFFER_KB))

    def __enter__(self):
        self._write("tracing_on", "0")
        self._write("trace", "")
        for event in self._events:
            condition = "0"
            if event in DMA:
                condition = f'device == "{self._device}"'
            elif "alloc" in event and self._pid:
                condition = f"common_pid == {self._pid}"
            self._write(f"events/{event}/filter", condition)
            self._write(f"events/{event}/enable", "1")
        self._write("tracing_on", "1")
        return self

    def __exit__(self, *_):
        self._write("tracing_on", "0")
        for event in self._events:
            self._write(f"events/{event}/enable", "0")
            self._write(f"events/{event}/filter", "0")

    @staticmethod
    def _write(name: str, text: str) -> None:
        (TRACEFS / name).write_text(text + "\n" if text else "")

    def seen(self) -> Seen:
        """What happened since the start, or since this was last called."""
        self._write("tracing_on", "0")
        for folder in (TRACEFS / "per_cpu").glob("cpu*"):
            lost = re.search(r"overrun: (\d+)", (folder / "stats").read_text())
            if lost and int(lost.group(1)):
                raise RuntimeError(f"trace buffer too small, {lost.group(1)} events lost")
        seen, live = Seen(), {}
        with open(TRACEFS / "trace", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                seen.add(line, live)
        for size, site in live.values():
            seen.slab[site] = seen.slab.get(site, 0) + size
        self._write("trace", "")
        self._write("tracing_on", "1")
        return seen
