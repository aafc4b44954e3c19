"""The operations' table on emulated devices: the same calls and comparisons with NumPy as on the CPU."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import pytest
from device.groups.operations_table import accuracy
from expectations import expecting
from operations import Case, all_cases

from emulator.driver import Driver, shared
from emulator.errors import AbortedError
from emulator.on_device import OnDevice, compiled, emulated

LEFT_OUT = {
    "in a loop of 100,000": "100,000 launches, for the host's side of them",
    "cf.assert": "what a failed assertion makes of the CPU's launch; the emulators' tests have the devices'",
    "gpu.printf": "processes of their own; the emulators' tests have the devices'",
}
"""Cases that say nothing about a device, with the reason."""

_EACH = 24
"""Of so many cases a run that is not full takes one for one of the chips."""


@dataclass(frozen=True)
class Table:
    """The cases for one target's chips, which come with the size of their waves; ``left_out`` are parts of names of
    cases that cannot run there, with the reason; ``always`` are operations and forms that every run has."""

    target: str
    lanes: Mapping[str, int]
    left_out: Mapping[str, str]
    always: Collection[tuple[str, str]] = ()

    @functools.cached_property
    def cases(self) -> list[Case]:
        left_out = (*LEFT_OUT, *self.left_out)
        return [
            case
            for case in all_cases()
            if case.run and case.has_kernels and self.target not in case.refused
            if not any(part in f"{case.op}, {case.form}" for part in left_out)
        ]

    def part(self, everything: bool) -> list[tuple[str, Case]]:
        """Another share of the table for every chip, and all of what is for one chip alone."""
        chosen = []
        for index, case in enumerate(self.cases):
            wanted = case.chips.get(self.target)
            always = everything or wanted or (case.op, case.form) in self.always
            for place, chip in enumerate(self.lanes):
                if wanted in (None, chip) and (always or index % (_EACH * len(self.lanes)) == _EACH * place):
                    chosen.append((chip, case))
        return chosen

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Arguments ``chip`` and ``case`` of a test."""
        chosen = self.part(metafunc.config.getoption("--full"))
        names = [f"{chip}-{case.op}-{case.form}".replace(" ", "_") for chip, case in chosen]
        metafunc.parametrize(("chip", "case"), chosen, ids=names)

    def run(self, case: Case, chip: str) -> None:
        """Runs the case on the chip."""
        driver = shared(emulated(chip)[1])
        with driver.chip(chip.split(",")[0]):
            run_case(case, driver, chip, self.lanes[chip])


def allowed(case: Case, chip: str) -> Callable[[float], float]:
    """By how many units of the last place a function may be off, where the CPU's may be off by so many."""
    if chip.startswith("sm_"):
        return accuracy(case)
    return lambda ulps: ulps + 1  # AMD's device libraries may be one further away than the CPU's


def run_case(case: Case, driver: Driver, chip: str, lanes: int) -> None:
    """Compiles the case for the chip and runs it; raises what the emulator found first, then what the case did."""
    assert case.run
    driver.failures.clear()
    library = compiled(case.source, chip, **case.options)
    before = driver.launches
    with expecting(case, allowed(case, chip), lanes):
        try:
            case.run(OnDevice(library))
        except Exception:
            if not all(isinstance(error, AbortedError) for error in driver.failures):
                driver.check()
            raise
    driver.failures = [error for error in driver.failures if not isinstance(error, AbortedError)]  # the case wanted it
    driver.check()
    assert driver.launches > before, "no kernel ran"
