"""What an engine is: something that solves problems, and says why where it cannot."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from host.problem import Array, Problem


class Missing(Exception):
    """The engine is not installed here; the text says what is missing and how to install it."""


class LeftOut(Exception):
    """The engine has no reasonable program for the kernel; the text says why."""


@dataclass(frozen=True)
class Program:
    """A problem made ready: ``run`` solves it and returns when the outputs are there, ``outputs`` gives them."""

    run: Callable[[], object]
    outputs: Callable[[], Mapping[str, Array]]


class Engine(Protocol):
    """Built in a process of its own. Raises Missing."""

    versions: dict[str, str]

    def prepare(self, problem: Problem) -> Program:
        """Compiles for one problem. Raises LeftOut."""


ENGINES = {
    "offload": "ours",
    "linalg": "ours_linalg",
    "numpy": "with_numpy",
    "c": "with_c",
    "numba": "with_numba",
    "pocl": "with_pocl",
    "iree": "with_iree",
}
"""Engines by name, each a module of this package with a class ``Solver``. The first is the one that is judged."""


def make(name: str) -> Engine:
    """The engine of a name. Raises Missing."""
    engine: Engine = importlib.import_module(f"host.{ENGINES[name]}").Solver()
    return engine
