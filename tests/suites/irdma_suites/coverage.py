# SPDX-License-Identifier: GPL-2.0
"""Line coverage of the modules: from counters that guests kept to a table and HTML."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from . import profile

TREE = Path(__file__).resolve().parents[3]
sys.path.insert(0, os.fspath(TREE / "scripts"))

#: Where each file has to have GOAL of its lines covered, or reasons for the others.
STRICT = "drivers/infiniband/hw/irdma_rs/mcast/"
GOAL = 0.95
#: Lines that no run reaches, with reasons.
EXPLAINED = TREE / "tests/suites/uncovered.txt"


@dataclass
class File:
    """Lines of a source file that are code, and how often each ran."""

    name: str
    lines: dict = field(default_factory=dict)

    @property
    def missing(self) -> list:
        return sorted(n for n, count in self.lines.items() if not count)

    @property
    def share(self) -> float:
        return 1 - len(self.missing) / len(self.lines) if self.lines else 1.0


def without_tests(name: str, text: str, lines: dict) -> dict:
    """Those of `lines` that are no test: KUnit's suites stand at a file's end."""
    if name.endswith("/tests.rs") or "/tests/" in name:
        return {}
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(r"^#\[(.*::)?kunit_tests\(|^#\[cfg\(CONFIG_KUNIT", line):
            # `mod tests;` is a line of its own, and code may follow.
            if re.search(r"\bmod \w+;", "\n".join(text.splitlines()[number:number + 3])):
                continue
            return {n: c for n, c in lines.items() if n < number}
    return lines


def read_lcov(text: str, top: str) -> dict:
    """Name below `top` -> File, of a trace in lcov's form."""
    files, current = {}, None
    for line in text.splitlines():
        kind, _, rest = line.partition(":")
        if kind == "SF":
            inside = rest.startswith(top + "/")
            name = rest[len(top) + 1:]
            current = files.setdefault(name, File(name)) if inside else None
        elif kind == "DA" and current:
            number, count = map(int, rest.split(",")[:2])
            current.lines[number] = max(current.lines.get(number, 0), count)
    return files


def read_reasons(text: str) -> list:
    """(file, piece of the line, reason) of each entry: `FILE: PIECE # REASON`."""
    found = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        file, _, rest = line.partition(": ")
        piece, _, reason = rest.rpartition(" # ")
        if not piece.strip() or not reason.strip():
            raise ValueError(f"{EXPLAINED.name}: not `FILE: PIECE # REASON`: {line}")
        found.append((file.strip(), piece.strip(), reason.strip()))
    return found


def unexplained(files: dict, reasons: list, sources) -> list:
    """Complaints about STRICT files; `sources(name)` gives a file's text.

    A file below the goal has to have a reason for every line that did not run; a
    reason that fits no such line is out of date.
    """
    complaints, used = [], set()
    for name, file in sorted(files.items()):
        if not name.startswith(STRICT):
            continue
        text, bare = sources(name).splitlines(), []
        for number in file.missing:
            line = text[number - 1].strip() if number <= len(text) else ""
            fits = [i for i, (where, piece, _) in enumerate(reasons)
                    if where == name and piece in line]
            used.update(fits)
            if not fits:
                bare.append(f"{name}:{number}: {line}")
        if file.share < GOAL and bare:
            complaints.append(f"{name}: {file.share:.1%} of its lines ran, and these have no "
                              "reason not to:")
            complaints += ["  " + b for b in bare]
    for i, (name, piece, _) in enumerate(reasons):
        if i not in used and name.startswith(STRICT):
            complaints.append(f"{EXPLAINED.name}: no line of {name} that did not run has "
                              f"`{piece}` in it")
    return complaints


def table(files: dict) -> str:
    """One line for each file, and a sum for each folder and all."""
    rows, sums = [], {}
    for name, file in sorted(files.items()):
        if file.lines:
            rows.append((name, len(file.lines), len(file.missing)))
            for key in ("total", f"{os.path.dirname(name)}/"):
                known = sums.setdefault(key, [0, 0])
                known[0] += len(file.lines)
                known[1] += len(file.missing)
    rows += [(key, *pair) for key, pair in sorted(sums.items()) if key != "total"]
    rows += [("total", *pair) for key, pair in sums.items() if key == "total"]
    width = max([len(r[0]) for r in rows] or [1])
    lines = [f"{'file':{width}}  lines  not run  share"]
    lines += [f"{name:{width}}  {count:5}  {missing:7}  {1 - missing / count:6.1%}"
              for name, count, missing in rows]
    return "\n".join(lines)


class Maker:
    """Makes the report of one run in `out`, with the tools of the build root."""

    def __init__(self, out: Path):
        from irdma_env.catalog import Catalog
        from irdma_env.paths import cache_dir
        self.out = out
        self._catalog = Catalog(cache_dir())
        self._modules = self._catalog["coverage-modules"]
        self._objects = self._modules.path()

    def _tool(self, *words) -> str:
        command = self._catalog["root"].enter(
            words, binds=[self.out, self._objects, TREE], cwd=self.out)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{words[0]}: status {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def make(self, folders) -> dict:
        """The report of what lies in guests' shared folders; name -> File."""
        shutil.rmtree(self.out, ignore_errors=True)
        (self.out / "html").mkdir(parents=True)
        texts = self.out / "profiles"
        texts.mkdir()
        images = {m.stem: m.read_bytes() for m in self._objects.glob("*.ko")}
        count = 0
        for folder in folders:
            for file in sorted(Path(folder).glob("coverage/*.counters")):
                module = file.stem.split("-", 2)[2]
                count += 1
                (texts / f"{count}.proftext").write_text(
                    profile.profile(images[module], file.read_bytes()))
        if not count:
            raise RuntimeError("no guest kept any counters")
        merged = self.out / "merged.profdata"
        self._tool("llvm-profdata", "merge", "-o", merged, *sorted(texts.iterdir()))
        first, *others = sorted(self._objects.glob("*.ko"))
        objects = [first, *(f"-object={o}" for o in others)]
        built = self._modules.catalog.cache / "kbuild" / (
            self._catalog["debug-kernel"].key + self._modules.suffix)
        common = [*objects, f"-instr-profile={merged}",
                  f"-path-equivalence={built},{TREE}"]
        # What came from the kernel's own crates and generated files is not ours.
        ours = [TREE / "rust", TREE / "drivers"]
        trace = self._tool("llvm-cov", "export", "-format=lcov", *common)
        (self.out / "lcov.info").write_text(trace)
        self._tool("llvm-cov", "show", "-format=html", f"-output-dir={self.out / 'html'}",
                   "-show-line-counts-or-regions", *common, "-sources", *ours)
        files = read_lcov(trace.replace(f"SF:{built}/", f"SF:{TREE}/"), os.fspath(TREE))
        for file in files.values():
            source = TREE / file.name
            text = source.read_text() if source.is_file() else ""
            file.lines = without_tests(file.name, text, file.lines) if text else {}
        return files


def report(folders, out: Path, say) -> bool:
    """Make and show the report; whether the goal is reached."""
    files = Maker(out).make(folders)
    shown = table(files)
    (out / "table.txt").write_text(shown + "\n")
    say(shown)
    reasons = read_reasons(EXPLAINED.read_text())
    complaints = unexplained(files, reasons, lambda name: (TREE / name).read_text())
    for line in complaints:
        say(line)
    say(f"coverage: {out}/html/index.html, {out}/table.txt")
    return not complaints
