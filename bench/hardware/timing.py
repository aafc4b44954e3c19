"""How long one of many repetitions takes, without what comes once."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

WANTED = 0.02
"""Seconds that the shorter of two measured runs takes at least."""
MOST = 20000


def seconds(run: Callable[[int], object], turns: int) -> list[float]:
    """For each turn: the time of one repetition, from two runs of different length. ``run`` waits for its work. A
    single turn is a trial, whose figure is worth nothing."""
    wanted = WANTED if turns > 1 else WANTED / 20
    run(2)  # what comes once: modules, plans, caches
    count = 1
    while (taken := timed(run, count)) < wanted and count < MOST:
        count = min(MOST, max(2 * count, int(1.2 * count * wanted / max(taken, 1e-6))))
    found = []
    for _ in range(turns):
        short, long = timed(run, count), timed(run, 3 * count)
        found.append((long - short) / (2 * count) if long > short else long / (3 * count))
    return found


def timed(run: Callable[[int], object], count: int) -> float:
    start = time.perf_counter()
    run(count)
    return time.perf_counter() - start


def figures(turns: list[float]) -> dict[str, float]:
    """Seconds: the median, the least and the most."""
    return {"median": statistics.median(turns), "min": min(turns), "max": max(turns)}
