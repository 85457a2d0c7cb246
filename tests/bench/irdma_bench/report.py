# SPDX-License-Identifier: GPL-2.0
"""Results as text for people, and as JSON and CSV for programs."""

import csv
import json
from dataclasses import asdict
from pathlib import Path

from .analysis import KEYS, Results
from .plan import LEVELS, STEPS, THREADS

OURS, STOCK = "irdma_rs", "irdma"


def number(value: float) -> str:
    if value == int(value) or abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.2f}"


def _cell(series, scale: float = 1.0) -> str:
    """Median and, where there is one, the middle half."""
    if not series:
        return "-"
    low, high = (v * scale for v in series.quartiles())
    text = number(series.median * scale)
    return text if low == high else f"{text} ({number(low)}..{number(high)})"


def _ratio(value) -> str:
    return "-" if value is None else f"{value:.2f}"


def _table(title: str, head, rows) -> list:
    """Lines of a table in Markdown."""
    rows = [list(map(str, row)) for row in rows]
    widths = [max(len(r[i]) for r in [list(head), *rows]) for i in range(len(head))]

    def line(cells) -> str:
        return "| " + " | ".join(c.ljust(w) for c, w in zip(cells, widths)) + " |"

    return ["", f"### {title}", "", line(head),
            "|" + "|".join("-" * (w + 2) for w in widths) + "|", *map(line, rows)]


def _compare(results: Results, name: str, label: str, scale: float = 1.0, **conditions) -> list:
    ours, stock = (results.get(name, d, **conditions) for d in (OURS, STOCK))
    return [label, _cell(ours, scale), _cell(stock, scale),
            _ratio(results.ratio(name, **conditions))]


def _steps(results: Results) -> list:
    rows = []
    for step, _ in STEPS:
        for name, unit in (("step.cqp", "CQP operations"), ("step.doorbells", "doorbells"),
                           ("step.coherent", "coherent bytes")):
            rows.append([step, *_compare(results, name, unit, step=step)])
    return _table("One attach or detach", ("step", "what", OURS, STOCK, "ratio"), rows)


def _memory(results: Results) -> list:
    return _table("Memory", ("what", OURS, STOCK, "ratio"), [
        _compare(results, "group.coherent", "per group: coherent, whole pages, bytes"),
        _compare(results, "group.slab", "per group: slab, driver, bytes"),
        _compare(results, "group.slab_core", "per group: slab, RDMA core, bytes"),
        _compare(results, "load.coherent", "taken by loading: coherent, KiB", 1 / 1024),
        _compare(results, "load.available", "taken by loading: MemAvailable, KiB")])


def _costs(results: Results, name: str, title: str, scale: float = 1.0) -> list:
    rows = []
    for op in ("attach", "detach", "lookup_oldest", "lookup_newest"):
        for level in LEVELS:
            row = _compare(results, name, op, scale, op=op, groups=level)
            if row[1:3] != ["-", "-"]:
                growth = []
                for driver in (OURS, STOCK):
                    few, many = (results.get(name, driver, op=op, groups=n)
                                 for n in (LEVELS[0], level))
                    growth.append(_ratio(many.median / few.median
                                         if few and many and few.median else None))
                rows.append([row[0], level, *row[1:], *growth])
    head = ("operation", "groups", OURS, STOCK, "ratio", f"{OURS} to 1 group",
            f"{STOCK} to 1 group")
    return _table(title, head, rows) if rows else []


def _rates(results: Results) -> list:
    rows = []
    for one_group in (False, True):
        for threads in THREADS:
            where = "one group" if one_group else "groups of their own"
            conditions = {"threads": threads, "one_group": one_group}
            rows.append([where, threads, *_compare(results, "rate", "pairs/s",
                                                   **conditions)])
            row = _compare(results, "pair.work", "instructions per pair", **conditions)
            if row[1:3] != ["-", "-"]:
                rows.append([where, threads, *row])
                rows.append([where, threads, *_compare(
                    results, "pair.spin", "more of them spinning", **conditions)])
                rows.append([where, threads, *_compare(
                    results, "pair.own", "the driver's own", **conditions)])
                rows.append([where, threads, *_compare(
                    results, "pair.doorbells", "doorbells per pair", **conditions)])
            rows.append([where, threads, *_compare(
                results, "rate.idle", "idle part of the processors", **conditions)])
    return _table("Threads that attach and detach",
                  ("on", "threads", "what", OURS, STOCK, "ratio"), rows)


def _off(results: Results, places: dict) -> list:
    rows = []
    for op, levels in (("pair", LEVELS), ("lookup_oldest", LEVELS), ("rate", THREADS)):
        for level in levels:
            for kind in ("lock", "interrupt"):
                row = _compare(results, f"off.{kind}", kind, op=op, groups=level)
                if row[1:3] == ["-", "-"]:
                    continue
                longest = [max(s.values) if (s := results.get(f"off.{kind}", d, op=op,
                                                              groups=level)) else "-"
                           for d in (OURS, STOCK)]
                begins = [places.get((d, kind, op, level), "-") for d in (OURS, STOCK)]
                rows.append([op, level, kind, *longest, *begins])
    head = ("while", "groups or threads", "begins with", OURS, STOCK, f"{OURS} in",
            f"{STOCK} in")
    return _table("Longest time with interrupts off in which the driver ran, instructions "
                  "without spinning", head, rows) if rows else []


def text(results: Results, goals, about: dict, places: dict) -> str:
    """The whole report."""
    lines = ["# irdma_rs beside stock irdma", "",
             "Medians, the middle half of the values in brackets; ratios are "
             f"{OURS} by {STOCK}.", ""]
    lines += [f"- {name}: {value}" for name, value in about.items()]
    lines += ["", "## Goals", ""]
    lines += [f"- **{g.verdict}**: {g.about}. {g.measured}." for g in goals]
    lines += ["", "## Numbers"]
    lines += _steps(results) + _memory(results)
    lines += _costs(results, "cost.work", "Instructions of the guest until the call returns, "
                    "without spinning")
    lines += _costs(results, "cost.own", "Of these, instructions of the driver's modules")
    lines += _costs(results, "cost.time", "Time, microseconds", 1e-3)
    lines += _rates(results) + _off(results, places)
    lines += ["", *(f"- {note}" for note in results.notes)]
    if results.failures:
        lines += ["", "## What failed", ""]
        lines += [f"- {f.get('driver', '')} round {f.get('round', '-')}: {f['of']}: "
                  + (f["error"] or "failed")
                  + (f" ({f['failures']} times)" if f.get("failures") else "")
                  for f in results.failures]
    return "\n".join(lines) + "\n"


def write(folder: Path, results: Results, goals, about: dict, places: dict) -> None:
    """report.md, results.json and results.csv in `folder`."""
    series = [s.as_dict() for s in results.series()]
    (folder / "report.md").write_text(text(results, goals, about, places), encoding="utf-8")
    (folder / "results.json").write_text(json.dumps(
        {"about": about, "goals": [asdict(g) for g in goals], "series": series,
         "notes": results.notes, "failures": results.failures}, indent=1) + "\n",
        encoding="utf-8")
    columns = ["name", "unit", "driver", *KEYS, "count", "median", "min", "max", "q1", "q3"]
    with open(folder / "results.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(series)
