"""Kernels that memory bounds: every engine on every problem, its answers checked, as shares of a copy's bandwidth."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Sequence
from typing import Any

from device.store import Store
from host.engine import LeftOut, Missing
from host.problem import Problem

from hardware.ours import Ours
from hardware.problems import MEMORY
from hardware.timing import figures, seconds

PEERS = ("with_nvcc", "with_torch", "with_cupy", "with_triton")
YARDSTICK = "copy"


def engines(names: Sequence[str]) -> tuple[list[Any], dict[str, str]]:
    """The peers that are here, and why the others are not."""
    found, missing = [], {}
    for name in names:
        module = importlib.import_module(f"hardware.{name}")
        try:
            found.append(module.Solver())
        except Missing as why:
            missing[module.Solver.name] = str(why)
    return found, missing


def measured(engine: Any, problem: Problem, turns: int) -> dict[str, Any]:
    """One engine on one problem; its answer must be right before and after it is timed. Raises ValueError for a wrong
    one."""
    try:
        run, outputs = engine.prepare(problem)
    except LeftOut as why:
        return {"left_out": str(why)}
    run(1)
    problem.check(outputs())
    taken = figures(seconds(run, turns))
    problem.check(outputs())
    return {**taken, "gigabytes_per_second": problem.traffic / taken["median"] / 1e9}


def report(store: Store, backend: str, size: str, turns: int) -> dict[str, Any]:
    """All problems; ``wrong`` names engines whose answers are, which have no figures."""
    peers, missing = engines(PEERS)
    problems, wrong = [], []
    bandwidth = 0.0
    for kernel, make in MEMORY.items():
        problem = make(size)
        right = problem.expected()
        problem = dataclasses.replace(problem, expected=lambda right=right: right)
        row: dict[str, Any] = {}
        for engine in [*([] if kernel == YARDSTICK else [Ours(store, backend)]), *peers]:
            try:
                row[engine.name] = measured(engine, problem, turns)
            except (ValueError, RuntimeError) as error:
                row[engine.name] = {"failed": str(error)[:500]}
                wrong.append(f"{kernel}: {engine.name}: {error}")
        speeds = [each["gigabytes_per_second"] for each in row.values() if "median" in each]
        if kernel == YARDSTICK:
            bandwidth = max(speeds, default=0.0)
        told = {"kernel": kernel, "traffic": problem.traffic, "operations": problem.operations, "engines": row}
        problems.append(told)
        print(kernel, *(f"{name} {each.get('gigabytes_per_second', 0):.0f}" for name, each in row.items()), flush=True)
    return {"size": size, "copy": bandwidth, "problems": problems, "missing": missing, "wrong": wrong}
