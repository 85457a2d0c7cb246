# SPDX-License-Identifier: GPL-2.0
"""The judge of kernel logs: which lines mean that something is wrong."""

import re
from dataclasses import dataclass
from pathlib import Path

#: What makes a kernel log bad: (name, pattern).
SIGNS = [(name, re.compile(pattern)) for name, pattern in (
    ("warning", r"\bWARNING\b"),
    ("bug", r"\bBUG\b"),
    ("oops", r"\bOops\b|general protection fault|Unable to handle kernel"),
    ("panic", r"Kernel panic"),
    ("call trace", r"\bCall Trace:"),
    ("sanitizer", r"\b(KASAN|KCSAN|KMSAN|UBSAN|KFENCE)\b: (?!.*(initialized|enabled|using))"),
    ("locking", r"possible (recursive|circular) locking|inconsistent lock state"
                r"|suspicious RCU usage|lock held when returning|bad unlock balance"),
    ("context", r"sleeping function called from invalid|scheduling while atomic"),
    ("lockup", r"soft lockup|hard LOCKUP|rcu.*(detected .*stalls|self-detected stall)"),
    ("hung task", r"INFO: task .* blocked for more than|hung_task"),
    ("leak", r"unreferenced object|kmemleak: [1-9]\d* new suspected|\b[Ll]eak(ed|s|ing)?\b"),
    ("corruption", r"refcount_t:|list_(add|del) corruption|Bad page|slab.*corrupt"
                   r"|Object already free|double free"),
    ("dma", r"DMA-API: .*(error|warn|not freed|device driver|cacheline|overlapping)"),
    ("object", r"\bODEBUG: (?!selftest passed)"),
    # A detector that gave up finds nothing more, and silence would look like success.
    ("detector", r"turning off the locking correctness|lockdep is turned off"
                 r"|DMA-API: (debugging out of memory|.*disabling)"
                 r"|kmemleak: (.*[Oo]ut of memory|Cannot |Disabling)"),
    ("memory", r"page allocation failure|Out of memory"),
    # The kernel goes on without it, and the run would not be what was asked for.
    ("parameter", r"unknown parameter '.*' ignored"),
)]

#: Lines that look bad and are not: (pattern, why).
HARMLESS = [(re.compile(pattern), why) for pattern, why in (
    (r"kmemleak: (Kernel memory leak detector|Automatic memory scanning)",
     "a debug kernel says that its leak detector runs"),
    (r"data leak possible|Spectre|MDS|MMIO Stale Data",
     "remarks on the emulated processor's speculation"),
    (r"Command line:|Kernel command line:|Unknown kernel command line",
     "our own parameters, repeated"),
    (r"TSC doesn't count with P0 frequency", "the emulated processor's clock"),
)]

#: How a kernel dies of the emulator's making, before any program runs: two processors, of which
#: one patches the code that the other is in. Seen of the stock kernel on a busy machine.
_EMULATOR = re.compile(r"\bOops: int3\b")


@dataclass(frozen=True)
class Finding:
    """One bad line of a kernel log."""

    sign: str
    number: int
    line: str

    def __str__(self) -> str:
        return f"line {self.number} ({self.sign}): {self.line}"


def scan(text: str, allowed=()) -> list:
    """All bad lines of a kernel log, but those that match a pattern in `allowed`.

    An allowed line also takes with it the call trace that belongs to it, up to its end mark.
    Traces of two processors may be mixed.
    """
    findings, excused = [], 0
    for number, line in enumerate(text.splitlines(), 1):
        line = line.rstrip("\r")
        if any(pattern.search(line) for pattern in allowed):
            # Only the trace of a WARN() has an end mark.
            if re.search(r"WARNING: .* at ", line):
                excused += 1
            elif "WARNING" in line or "BUG" in line:
                excused = max(excused, 1)
            continue
        if re.search(r"---\[ end trace", line):
            excused = max(0, excused - 1)
            continue
        sign = next((name for name, pattern in SIGNS if pattern.search(line)), None)
        if not sign or any(pattern.search(line) for pattern, _ in HARMLESS):
            continue
        if excused and sign == "call trace":
            continue
        findings.append(Finding(sign, number, line))
    return findings


def scan_file(path: Path, allowed=()) -> list:
    """As `scan`, of a file; a log that cannot be read is bad, too."""
    try:
        data = path.read_bytes()
    except OSError as error:
        return [Finding("no log", 0, f"{path}: {error.strerror}")]
    return scan(data.decode(errors="replace"), allowed)


def died_of_emulator(path: Path) -> bool:
    """Whether this is the log of a kernel that the emulator brought down.

    To be asked only of a guest that has not come to its first program.
    """
    try:
        return bool(_EMULATOR.search(path.read_text(errors="replace")))
    except OSError:
        return False
