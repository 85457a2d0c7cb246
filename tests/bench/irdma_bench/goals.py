# SPDX-License-Identifier: GPL-2.0
"""What irdma_rs is to reach, held against what was measured."""

from dataclasses import dataclass

from .analysis import Results
from .plan import LEVELS, STEPS, THREADS

MET, MISSED, UNKNOWN = "met", "NOT MET", "not measured"


@dataclass
class Goal:
    """One goal and its verdict."""

    about: str
    verdict: str
    measured: str


def _judge(about: str, met, measured: str) -> Goal:
    if met is None:
        return Goal(about, UNKNOWN, measured)
    return Goal(about, MET if met else MISSED, measured)


def _flat(results: Results) -> Goal:
    about = f"attach at {LEVELS[-1]} groups costs at most 1.3 times attach at 1 group"
    said, verdict = [], None
    for name, unit in (("cost.work", "instructions"), ("cost.time", "time")):
        for driver in ("irdma_rs", "irdma"):
            few = results.get(name, driver, op="attach", groups=LEVELS[0])
            many = results.get(name, driver, op="attach", groups=LEVELS[-1])
            if not (few and many):
                continue
            ratio = many.median / few.median
            said.append(f"{driver}: {ratio:.2f} ({unit})")
            # Instructions decide; time is for machines that cannot count them.
            if driver == "irdma_rs" and verdict is None:
                verdict = ratio <= 1.3
    return _judge(about, verdict, "; ".join(said) or "no numbers")


def _operations(results: Results) -> Goal:
    about = "no attach or detach takes more CQP operations than with stock irdma"
    more, seen = [], 0
    for step, _ in STEPS:
        ours, stock = (results.get("step.cqp", d, step=step) for d in ("irdma_rs", "irdma"))
        if not (ours and stock):
            continue
        seen += 1
        # Other work of the driver may fall into one round, but not into all.
        if min(ours.values) > min(stock.values):
            more.append(f"{step}: {min(ours.values):g} against {min(stock.values):g}")
    if not seen:
        return _judge(about, None, "no numbers")
    return _judge(about, not more, "; ".join(more) or f"so in all {seen} kinds")


def _memory(results: Results) -> Goal:
    about = "a group takes at most 1/16 of stock irdma's coherent memory"
    ours, stock = (results.get("group.coherent", d) for d in ("irdma_rs", "irdma"))
    if not (ours and stock and stock.median):
        return _judge(about, None, "no numbers")
    return _judge(about, ours.median * 16 <= stock.median,
                  f"{ours.median:g} against {stock.median:g} bytes")


def _rate(results: Results) -> Goal:
    threads = THREADS[-1]
    about = f"{threads} threads on groups of their own do at least twice stock irdma's pairs"
    ours, stock = (results.get("rate", d, threads=threads, one_group=False)
                   for d in ("irdma_rs", "irdma"))
    if not (ours and stock and stock.median):
        return _judge(about, None, "no numbers")
    ratio = ours.median / stock.median
    said = f"{ours.median:.0f} against {stock.median:.0f} pairs/s, ratio {ratio:.2f}"
    work = [results.get("pair.work", d, threads=threads, one_group=False)
            for d in ("irdma_rs", "irdma")]
    if all(work):
        said += (f"; a pair takes {work[0].median:.0f} against {work[1].median:.0f} "
                 "instructions")
    for name, what in (("pair.own", "of them the driver's"), ("pair.doorbells", "doorbells"),
                       ("rate.idle", "idle part of the processors")):
        found = [results.get(name, d, threads=threads, one_group=False)
                 for d in ("irdma_rs", "irdma")]
        if all(found):
            said += f", {what} {found[0].median:.4g} against {found[1].median:.4g}"
    return _judge(about, ratio >= 2, said)


def judge(results: Results) -> list:
    return [_flat(results), _operations(results), _memory(results), _rate(results)]
