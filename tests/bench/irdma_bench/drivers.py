# SPDX-License-Identifier: GPL-2.0
"""In a guest: one driver after the other on the same card."""

import re
import subprocess
from pathlib import Path

from .plan import MODULES

PAGE = 4096
#: Functions of the kernel that do nothing but wait for another processor.
SPINS = ("native_queued_spin_lock_slowpath", "osq_lock", "mutex_spin_on_owner",
         "rwsem_spin_on_owner", "smp_call_function_many_cond", "csd_lock_wait",
         "queued_read_lock_slowpath", "queued_write_lock_slowpath")


class Code:
    """Which code lies where in this kernel now."""

    def __init__(self):
        with open("/proc/kallsyms", encoding="ascii", errors="replace") as lines:
            self._lines = [line for line in lines if line.split(" ", 2)[1] in "tTwW"]

    def keep(self, target: Path) -> None:
        """Write it down, for profiles and for places in results."""
        target.write_text("".join(self._lines), encoding="ascii", errors="replace")

    def options(self, driver: str) -> list:
        """Options that tell a program about the code of `driver`, and of waiting."""
        options, own, functions = [], {name: [] for name in MODULES[driver]}, []
        for line in self._lines:
            words = line.split()
            address, module = int(words[0], 16), words[3].strip("[]") if words[3:] else ""
            if module in own:
                own[module].append(address)
            elif not module:
                functions.append((address, words[2]))
        for name, addresses in own.items():
            if not addresses:
                raise RuntimeError(f"module {name} has no symbols in /proc/kallsyms")
            start, end = min(addresses) & ~(PAGE - 1), (max(addresses) | (PAGE - 1)) + 1
            options += ["--code", f"{start:#x}-{end:#x}"]
        functions.sort()
        for (start, name), (end, _) in zip(functions, functions[1:]):
            if name in SPINS and start < end:
                options += ["--spin", f"{start:#x}-{end:#x}"]
        return options


def load(g, driver: str) -> None:
    """Load `driver` and wait until its device can be used."""
    words = ["lab-driver", "load"] if driver == g.driver else ["modprobe", driver]
    done = g.run(*words, timeout=120)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stdout.strip()}")
    if not g.wait(g.device_ready, 90):
        raise RuntimeError(f"{driver}: no usable device 90 s after it was loaded")


def unload(g, driver: str) -> None:
    words = ["lab-driver", "unload"] if driver == g.driver else ["rmmod", driver]
    done = g.run(*words, timeout=120)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stdout.strip()}")


def route_interrupts(pci: str, cpu: int = None) -> None:
    """Send all interrupts of a card to one processor, or let any have them."""
    mask = "ff" if cpu is None else f"{1 << cpu:x}"
    for entry in Path(f"/sys/bus/pci/devices/{pci}/msi_irqs").iterdir():
        try:
            Path(f"/proc/irq/{entry.name}/smp_affinity").write_text(mask)
        except OSError:
            # One that nobody has requested.
            continue


def available_kb(g) -> int:
    """MemAvailable once it has settled: much is given back with a delay."""
    readings = []

    def settled() -> bool:
        subprocess.run(["sync"], check=False)
        Path("/proc/sys/vm/drop_caches").write_text("3")
        text = Path("/proc/meminfo").read_text()
        readings.append(int(re.search(r"MemAvailable:\s+(\d+)", text).group(1)))
        return len(readings) > 1 and abs(readings[-1] - readings[-2]) < 256

    g.wait(settled, 10)
    return readings[-1]
