# SPDX-License-Identifier: GPL-2.0
"""Plots of results, as PNG and SVG. Runs where matplotlib is: `plots.py FOLDER`."""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

COLOURS = {"irdma_rs": "#b7410e", "irdma": "#4a6a8a"}
LABELS = {"irdma_rs": "irdma_rs", "irdma": "stock irdma"}


def pick(series, name, **conditions) -> list:
    return [s for s in series if s["name"] == name
            and all(s.get(k) == v for k, v in conditions.items())]


def line(axes, found, x: str, scale: float = 1.0) -> None:
    """One line per driver: medians over `x`, with the middle half."""
    for driver in LABELS:
        points = sorted((s for s in found if s["driver"] == driver), key=lambda s: s[x])
        if not points:
            continue
        middle = [p["median"] * scale for p in points]
        spread = [[(p["median"] - p["q1"]) * scale for p in points],
                  [(p["q3"] - p["median"]) * scale for p in points]]
        axes.errorbar([p[x] for p in points], middle, yerr=spread, marker="o", capsize=3,
                      color=COLOURS[driver], label=LABELS[driver])
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()


def costs(folder: Path, series, name: str, stem: str, label: str, scale: float) -> None:
    titles = {"attach": "attach", "detach": "detach", "lookup_oldest": "lookup, oldest group",
              "lookup_newest": "lookup, newest group"}
    if not pick(series, name):
        return
    figure, places = pyplot.subplots(2, 2, figsize=(10, 7), layout="constrained")
    for axes, (op, title) in zip(places.flat, titles.items()):
        line(axes, pick(series, name, op=op), "groups", scale)
        axes.set(title=title, xlabel="groups in the device", ylabel=label, xscale="log")
    save(figure, folder, stem)


def rates(folder: Path, series) -> None:
    if not pick(series, "rate"):
        return
    figure, places = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axes, one_group, title in zip(places, (False, True),
                                      ("groups of their own", "all on one group")):
        line(axes, pick(series, "rate", one_group=one_group), "threads")
        axes.set(title=title, xlabel="threads", ylabel="attach/detach pairs per second")
    save(figure, folder, "rates")


def bars(axes, series, names, labels) -> None:
    """Groups of bars, one bar per driver."""
    for offset, driver in enumerate(LABELS):
        heights = []
        for name, conditions in names:
            found = [s for s in pick(series, name, **conditions) if s["driver"] == driver]
            heights.append(found[0]["median"] if found else 0)
        axes.barh([i + offset * 0.4 for i in range(len(names))], heights, height=0.38,
                  color=COLOURS[driver], label=LABELS[driver])
    axes.set_yticks([i + 0.2 for i in range(len(names))], labels)
    axes.invert_yaxis()
    axes.grid(alpha=0.3, axis="x")
    axes.legend()


def steps(folder: Path, series) -> None:
    found = list(dict.fromkeys(s["step"] for s in pick(series, "step.cqp")))
    if not found:
        return
    figure, places = pyplot.subplots(3, 1, figsize=(9, 10), layout="constrained")
    for axes, (name, title) in zip(places, (
            ("step.cqp", "CQP operations"), ("step.doorbells", "doorbell writes"),
            ("step.coherent", "coherent memory taken, bytes"))):
        bars(axes, series, [(name, {"step": step}) for step in found], found)
        axes.set_title(f"{title}, per attach or detach")
    save(figure, folder, "steps")


def memory(folder: Path, series) -> None:
    if not pick(series, "group.coherent"):
        return
    figure, places = pyplot.subplots(1, 2, figsize=(10, 3.5), layout="constrained")
    bars(places[0], series, [("group.coherent", {}), ("group.slab", {}),
                             ("group.slab_core", {})],
         ["coherent", "slab, driver", "slab, RDMA core"])
    places[0].set_title("memory per group, bytes")
    bars(places[1], series, [("load.available", {})], ["MemAvailable"])
    places[1].set_title("taken by loading, kB")
    save(figure, folder, "memory")


def interrupts(folder: Path, series) -> None:
    if not pick(series, "off.lock"):
        return
    figure, places = pyplot.subplots(1, 3, figsize=(15, 4), layout="constrained")
    for axes, op, title in zip(places, ("pair", "lookup_oldest"),
                               ("attach and detach", "lookup of the oldest group")):
        line(axes, pick(series, "off.lock", op=op), "groups")
        axes.set(title=f"{title}: longest time with interrupts off", xscale="log",
                 xlabel="groups in the device", ylabel="instructions")
    # Here the groups are threads.
    line(places[2], pick(series, "off.interrupt", op="rate"), "groups")
    places[2].set(title="attach and detach: longest hard interrupt", xlabel="threads",
                  ylabel="instructions")
    save(figure, folder, "interrupts-off")


def save(figure, folder: Path, stem: str) -> None:
    for kind in ("png", "svg"):
        figure.savefig(folder / f"{stem}.{kind}", dpi=120)
    pyplot.close(figure)


def main(folder: Path) -> None:
    series = json.loads((folder / "results.json").read_text())["series"]
    costs(folder, series, "cost.work", "instructions", "instructions", 1.0)
    costs(folder, series, "cost.time", "times", "microseconds", 1e-3)
    rates(folder, series)
    steps(folder, series)
    memory(folder, series)
    interrupts(folder, series)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
