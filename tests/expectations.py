"""What the operations' table expects of devices other than the CPU, which its cases are written for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from operations import Case

_NEIGHBOURS = ("in a branch, then for all",)
"""Forms that read the lane beside the first of 32, whose value is open where there is none."""


@contextmanager
def expecting(case: Case, allowed: Callable[[float], float], lanes: int = 32) -> Iterator[None]:
    """Inside, functions may be off by ``allowed`` of the units of the last place that the CPU's may be off by, where
    these are rounded at all, and warps have so many lanes."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("operations.")]
    with ExitStack() as stack:

        def change(module: Any, name: str, value: Any) -> None:
            if hasattr(module, name):
                stack.enter_context(mock.patch.object(module, name, value))

        for module in modules:
            change(module, "WARP", lanes)
            change(module, "within", _within(getattr(module, "within", None), allowed))
            if case.form in _NEIGHBOURS and hasattr(module, "BLOCKS"):
                change(module, "BLOCKS", [block for block in module.BLOCKS if block not in ((1, 1, 1), (33, 1, 1))])
        yield


def _within(within: Any, allowed: Callable[[float], float]) -> Callable[..., None]:
    def run(got: Any, exact: Any, ulps: float, *arguments: Any, **named: Any) -> None:
        within(got, exact, allowed(ulps) if ulps >= 1 else ulps, *arguments, **named)

    return run
