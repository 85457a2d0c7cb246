# SPDX-License-Identifier: GPL-2.0
"""Which functions the instructions of a measurement belong to."""

import bisect
from pathlib import Path


class Symbols:
    """Code of a guest's kernel and modules by address."""

    def __init__(self, file: Path):
        found = []
        with open(file, encoding="ascii", errors="replace") as lines:
            for line in lines:
                words = line.split()
                if len(words) < 3 or words[2].startswith(".L"):
                    continue
                module = words[3].strip("[]") if len(words) > 3 else ""
                found.append((int(words[0], 16), words[2], module))
        found.sort()
        self._addresses = [address for address, _, _ in found]
        self._names = [(name, module) for _, name, module in found]

    def at(self, address: int) -> tuple:
        """(function, module) at an address; the module is empty for the kernel itself."""
        place = bisect.bisect_right(self._addresses, address) - 1
        return self._names[place] if place >= 0 else ("?", "")


def functions(profile: Path, symbols: Symbols) -> dict:
    """(function, module) -> instructions."""
    total = {}
    with open(profile, encoding="ascii") as lines:
        for line in lines:
            address, count = line.split()
            where = symbols.at(int(address, 16))
            total[where] = total.get(where, 0) + int(count)
    return total


def text(counts: dict, pairs: int, readable: dict, limit: int = 60) -> str:
    """The functions with most instructions, per pair of attach and detach.

    Without a number of pairs (0) the instructions are those of all.
    """
    whole = sum(counts.values())
    about = "per pair of attach and detach" if pairs else "in all"
    pairs = pairs or 1
    lines = [f"{whole / pairs:12.0f}  kernel instructions {about}"]
    modules = {}
    for (_, module), count in counts.items():
        modules[module] = modules.get(module, 0) + count
    for module, count in sorted(modules.items(), key=lambda m: -m[1]):
        lines.append(f"{count / pairs:12.0f}  {count / whole:6.1%}  {module or 'kernel'}")
    lines.append("")
    for (name, module), count in sorted(counts.items(), key=lambda f: -f[1])[:limit]:
        lines.append(f"{count / pairs:12.0f}  {count / whole:6.1%}  "
                     f"{readable.get(name, name)}" + (f" [{module}]" if module else ""))
    return "\n".join(lines) + "\n"
