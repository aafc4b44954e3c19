"""Kernels that memory bounds: every engine on every problem, its answers checked, as shares of a copy's bandwidth."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from device.store import Store
from host.engine import LeftOut, Missing
from host.problem import Problem

from hardware.ours import Ours, Tensors
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
        except Exception as error:  # another package's failure is not ours, and is told
            missing[module.Solver.name] = failure(error)
    return found, missing


def failure(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]


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


@contextlib.contextmanager
def recorded(found: dict[str, Any], row: dict[str, Any], engine: Any, problem: str) -> Iterator[None]:
    """What fails inside of the ``with`` is ``wrong`` where it is an answer, or ours; else it is ``missing``."""
    try:
        yield
    except Exception as error:
        row[engine.name] = {"failed": failure(error)}
        if isinstance(error, ValueError) or isinstance(engine, Ours):
            found["wrong"].append(f"{problem}: {engine.name}: {error}")
        else:
            found["missing"][f"{engine.name}, {problem}"] = failure(error)


def report(store: Store, backend: str, size: str, turns: int) -> Iterator[dict[str, Any]]:
    """What is known after each problem; ``wrong`` names engines whose answers are, which have no figures."""
    peers, missing = engines(PEERS)
    found: dict[str, Any] = {"size": size, "copy": 0.0, "problems": [], "missing": missing, "wrong": []}
    for kernel, make in MEMORY.items():
        problem = make(size)
        right = {name: np.ascontiguousarray(values) for name, values in problem.expected().items()}
        problem = dataclasses.replace(problem, expected=lambda right=right: right)
        row: dict[str, Any] = {}
        own = [] if kernel == YARDSTICK else [Ours(store, backend), Tensors(store, backend)]
        for engine in [*own, *peers]:
            with recorded(found, row, engine, kernel):
                row[engine.name] = measured(engine, problem, turns)
        speeds = [each["gigabytes_per_second"] for each in row.values() if "median" in each]
        if kernel == YARDSTICK:
            found["copy"] = max(speeds, default=0.0)
        told = {"kernel": kernel, "traffic": problem.traffic, "operations": problem.operations, "engines": row}
        found["problems"].append(told)
        print(kernel, *(f"{name} {each.get('gigabytes_per_second', 0):.0f}" for name, each in row.items()), flush=True)
        yield found
