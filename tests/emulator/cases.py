"""The operations' table on emulated devices: the same calls and comparisons with NumPy as on the CPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from operations import Case

import offload
from emulator.driver import Driver
from emulator.errors import AbortedError
from emulator.on_device import OnDevice

_WARP_MODULES = ("device_gpu_ids", "device_gpu_lanes", "device_gpu_reduce")

# Cases that say nothing about a device, with the reason.
LEFT_OUT = {
    "in a loop of 100,000": "100,000 launches, for the host's side of them",
    "cf.assert": "what a failed assertion makes of the CPU's launch; test_emulated_programs.py has AMD's",
    "gpu.printf": "processes of their own; test_emulated_programs.py has AMD's",
}

# Forms that read the lane beside the first of 32, whose value is open where there is none.
_NEIGHBOURS = ("in a branch, then for all",)


def chips_of(case: Case) -> str | None:
    """The chip that the case asks for, "" for any, None where it cannot run on AMD."""
    if not case.run or "rocdl" in case.refused or any(part in f"{case.op}, {case.form}" for part in LEFT_OUT):
        return None
    return case.chips.get("rocdl", "")


@contextmanager
def _changed(changes: list[tuple[Any, str, Any]]) -> Iterator[None]:
    kept = [(where, name, getattr(where, name)) for where, name, _ in changes]
    try:
        for where, name, value in changes:
            setattr(where, name, value)
        yield
    finally:
        for where, name, value in kept:
            setattr(where, name, value)


def _loosely(within: Callable[..., None]) -> Callable[..., None]:
    """AMD's device libraries may be one unit of the last place further away than the CPU's."""

    def run(got: Any, exact: Any, ulps: float, *arguments: Any, **named: Any) -> None:
        within(got, exact, ulps + 1 if ulps >= 1 else ulps, *arguments, **named)

    return run


@contextmanager
def as_on(case: Case, lanes: int) -> Iterator[None]:
    """The case expects waves of this size and AMD's accuracy."""
    changes: list[tuple[Any, str, Any]] = []
    if case.form in _NEIGHBOURS:
        module = sys.modules["operations.device_gpu_lanes"]
        changes.append((module, "BLOCKS", [block for block in module.BLOCKS if block not in ((1, 1, 1), (33, 1, 1))]))
    for name, module in list(sys.modules.items()):
        if name.startswith("operations."):
            if name.rpartition(".")[2] in _WARP_MODULES:
                changes.append((module, "WARP", lanes))
            if hasattr(module, "within"):
                changes.append((module, "within", _loosely(module.within)))
    with _changed(changes):
        yield


def run_case(case: Case, driver: Driver, target: str, lanes: int) -> None:
    """Compiles the case for the target and runs it; raises what the emulator found first, then what the case did."""
    assert case.run
    driver.failures.clear()
    library = offload.compile(case.source, targets=[target], **case.options)
    library.use("hip")
    with as_on(case, lanes):
        try:
            case.run(OnDevice(library))
        except Exception:
            if not all(isinstance(error, AbortedError) for error in driver.failures):
                driver.check()
            raise
    driver.failures = [error for error in driver.failures if not isinstance(error, AbortedError)]  # the case wanted it
    driver.check()
