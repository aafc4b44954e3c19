"""The operations' table executed as AMD machine code, instruction by instruction, on the CPU (tests/emulator).

Every run takes a part of the cases for each family of chips; ``--full`` takes all of them for all families.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from emulator import cases
from emulator.driver import Driver, shared
from operations import Case, all_cases

# Target and the size of its waves; one of a family each.
TARGETS = {"gfx942": 64, "gfx950": 64, "gfx1100": 32, "gfx1100,wave64": 64, "gfx1201": 32}
PART = 24 * len(TARGETS)
CASES = [case for case in all_cases() if cases.chips_of(case) is not None and case.has_kernels]


def runs_on(case: Case, target: str) -> bool:
    """Is the case for the target? Some cases are for one chip alone."""
    wanted = cases.chips_of(case)
    return wanted in ("", target)


def part() -> list[tuple[str, Case]]:
    """Another share of the table for every target, and what is for one chip alone."""
    chosen = []
    for index, case in enumerate(CASES):
        for place, target in enumerate(TARGETS):
            if runs_on(case, target) and (case.chips.get("rocdl") or index % PART == 24 * place):
                chosen.append((target, case))
    return chosen


ALL = part()


@pytest.fixture(scope="module")
def driver() -> Driver:
    return shared()


@pytest.fixture
def devices(driver: Driver, request: pytest.FixtureRequest) -> Iterator[Driver]:
    with driver.chip(request.param.split(",")[0]):
        yield driver


def run(driver: Driver, target: str, case: Case) -> None:
    before = driver.launches
    cases.run_case(case, driver, f"rocdl:{target}", TARGETS[target])
    assert driver.launches > before, "no kernel ran"


@pytest.mark.parametrize(
    ("devices", "case"),
    ALL,
    indirect=["devices"],
    ids=[f"{target}-{case.op}-{case.form}".replace(" ", "_") for target, case in ALL],
)
def test_operation(devices: Driver, case: Case, request: pytest.FixtureRequest) -> None:
    run(devices, request.node.callspec.params["devices"], case)


@pytest.mark.parametrize("target", TARGETS)
def test_all_operations(driver: Driver, target: str, full: bool) -> None:
    """All cases in one test, which lists those that fail."""
    failed = []
    chosen = [case for case in CASES if runs_on(case, target)]
    with driver.chip(target.split(",")[0]):
        for case in chosen if full else []:
            try:
                run(driver, target, case)
            except Exception as error:
                failed.append(f"{case.op}, {case.form}: {type(error).__name__}: {str(error)[:300]}")
    assert not failed, f"{len(failed)} of {len(chosen)}:\n" + "\n".join(failed)
