# SPDX-License-Identifier: GPL-2.0
"""From the lines that guests wrote to series of numbers with a name each.

A series is what one driver gave for one thing under the same conditions: its
values, and of these median, extremes and quartiles.
"""

import json
import re
import statistics
from pathlib import Path

from irdma_lab import klog

from .plan import MARK

#: Results whose values are put together by these keys besides the driver.
KEYS = ("step", "op", "groups", "threads", "one_group")
#: How functions of the RDMA core begin.
CORE = ("ib_", "uverbs_", "rdma_")


class Series:
    """Values of one driver for one thing."""

    def __init__(self, name: str, unit: str, driver: str, **conditions):
        self.name, self.unit, self.driver = name, unit, driver
        self.conditions = conditions
        self.values = []

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def quartiles(self) -> tuple:
        if len(self.values) < 2:
            return self.values[0], self.values[0]
        cuts = statistics.quantiles(self.values, n=4, method="inclusive")
        return cuts[0], cuts[2]

    def as_dict(self) -> dict:
        low, high = self.quartiles()
        return {"name": self.name, "unit": self.unit, "driver": self.driver,
                **self.conditions, "count": len(self.values), "median": self.median,
                "min": min(self.values), "max": max(self.values), "q1": low, "q3": high,
                "values": self.values}


class Results:
    """All series of a run, the failures, and what is not a number."""

    def __init__(self):
        self._series = {}
        self.failures = []
        self.notes = []
        self.phases = set()
        self._pairs = 0
        #: Of each longest time with interrupts off: driver, round, how it began, when,
        #: groups or threads, instructions, address of its begin and its end.
        self.places = []

    def add(self, name: str, unit: str, driver: str, values, **conditions) -> None:
        key = (name, driver, *sorted(conditions.items()))
        if key not in self._series:
            self._series[key] = Series(name, unit, driver, **conditions)
        self._series[key].values += values

    def get(self, name: str, driver: str, **conditions):
        """The series, or None when nothing of it was measured."""
        found = self._series.get((name, driver, *sorted(conditions.items())))
        return found if found and found.values else None

    def ratio(self, name: str, **conditions):
        """Median of irdma_rs by that of stock, or None."""
        ours = self.get(name, "irdma_rs", **conditions)
        stock = self.get(name, "irdma", **conditions)
        return ours.median / stock.median if ours and stock and stock.median else None

    def series(self) -> list:
        return [s for s in self._series.values() if s.values]

    # -- reading ------------------------------------------------------------

    def read_log(self, file: Path) -> None:
        """What a guest's kernel complained of, and under which driver."""
        text = file.read_text(encoding="utf-8", errors="replace")
        marks = [(number, words) for number, line in enumerate(text.splitlines(), 1)
                 if (words := re.search(rf"{MARK} (\w+) round (\d+)", line))]
        for finding in klog.scan(text):
            before = [words for number, words in marks if number < finding.number]
            driver, number = before[-1].groups() if before else ("", "-")
            self.failures.append({"driver": driver, "round": number, "of": "kernel log",
                                  "error": f"{file.name}, {finding}"})

    def read(self, file: Path) -> None:
        with open(file, encoding="utf-8") as lines:
            for line in lines:
                # The last line may be cut when a guest died.
                try:
                    entry = json.loads(line)
                except ValueError:
                    self.failures.append({"of": file.name, "error": "a line is cut short"})
                    continue
                reader = getattr(self, "_" + entry["what"].replace(" ", "_"), None)
                if reader:
                    reader(entry)

    def _end(self, entry: dict) -> None:
        self.phases.add(entry["phase"])

    def _failure(self, entry: dict) -> None:
        self.failures.append(entry)

    def _load(self, entry: dict) -> None:
        driver = entry["driver"]
        self.add("load.available", "kB", driver, [entry["available_kb"]])
        self.add("load.coherent", "bytes", driver, [entry["coherent_pages_bytes"]])

    def _step(self, entry: dict) -> None:
        if entry["error"]:
            self.failures.append({**entry, "of": entry["step"]})
            return
        driver, step, groups = entry["driver"], entry["step"], entry["groups"]
        self.add("step.cqp", "operations", driver, [sum(entry["cqp"].values()) / groups],
                 step=step)
        self.add("step.doorbells", "writes", driver,
                 [sum(entry["doorbells"].values()) / groups], step=step)
        for register, count in entry["doorbells"].items():
            self.add(f"step.doorbells.{register}", "writes", driver, [count / groups],
                     step=step)
        self.add("step.coherent", "bytes", driver, [entry["coherent_pages_bytes"] / groups],
                 step=step)

    def _memory(self, entry: dict) -> None:
        if entry["error"]:
            self.failures.append({**entry, "of": "memory per group"})
            return
        driver, groups, slab = entry["driver"], entry["groups"], entry["slab"]
        core = sum(size for site, size in slab.items() if site.startswith(CORE))
        self.add("group.coherent", "bytes", driver, [entry["coherent_pages_bytes"] / groups])
        self.add("group.slab", "bytes", driver, [(sum(slab.values()) - core) / groups])
        self.add("group.slab_core", "bytes", driver, [core / groups])

    def _memory_after(self, entry: dict) -> None:
        self.add("group.coherent_kept", "bytes", entry["driver"],
                 [-entry["coherent_pages_bytes"] / entry["groups"]])

    def _cost(self, entry: dict) -> None:
        driver, conditions = entry["driver"], {k: entry[k] for k in ("op", "groups")}
        if entry["phase"] == "counts" and "all" in entry:
            work = [a - s for a, s in zip(entry["all"], entry["spin"])]
            self.add("cost.work", "instructions", driver, work, **conditions)
            self.add("cost.own", "instructions", driver, entry["own"], **conditions)
        if entry["phase"] == "times":
            self.add("cost.time", "ns", driver, entry["ns"], **conditions)

    def _off(self, entry: dict) -> None:
        conditions = {k: entry[k] for k in ("op", "groups")}
        for kind in ("lock", "interrupt"):
            self.add(f"off.{kind}", "instructions", entry["driver"], [entry[kind]],
                     **conditions)
            self.places.append((entry["driver"], entry["round"], kind, entry["op"],
                                entry["groups"], entry[kind], entry[f"{kind}_at"],
                                entry[f"{kind}_until"]))

    def _rate(self, entry: dict) -> None:
        driver, conditions = entry["driver"], {k: entry[k] for k in ("threads", "one_group")}
        if entry["failures"]:
            self.failures.append({**entry, "of": f"{entry['threads']} threads"
                                  + (", one group" if entry["one_group"] else "")})
        self._pairs = entry["pairs"]
        if entry["phase"] != "counts":
            self.add("rate.idle", "of the processors' time", driver, [entry["idle"]],
                     **conditions)
            self.add("rate", "pairs/s", driver, [entry["pairs"] * 1e9 / entry["ns"]],
                     **conditions)
        elif entry["pairs"]:
            for part, count in (("work", entry["all"] - entry["spin"]),
                                ("spin", entry["spin"]), ("own", entry["own"])):
                self.add(f"pair.{part}", "instructions", driver, [count / entry["pairs"]],
                         **conditions)

    def _rate_ops(self, entry: dict) -> None:
        """Comes after the rate it belongs to."""
        if self._pairs:
            self.add("pair.doorbells", "writes", entry["driver"],
                     [sum(entry["doorbells"].values()) / self._pairs],
                     threads=entry["threads"], one_group=False)

    def _churn(self, entry: dict) -> None:
        self.add("churn", "pairs", entry["driver"], [entry["pairs"]])
        said = entry["error"] or "no failure"
        self.notes.append(f"churn, {entry['driver']}: {entry['pairs']} of {entry['asked']} "
                          f"pairs, {said}")
