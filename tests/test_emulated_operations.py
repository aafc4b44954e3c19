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
TARGETS = {
    "gfx90a": 64,
    "gfx942": 64,
    "gfx950": 64,
    "gfx1100": 32,
    "gfx1100,wave64": 64,
    "gfx1201": 32,
    "gfx1201,wave64": 64,
}
PART = 24 * len(TARGETS)
# Where AMD's libraries, the lowering or the emulator were once wrong.
ALWAYS = {("arith.remf", "f16"), ("math.expm1", "f32"), ("math.log1p", "f64"), ("gpu.shuffle", "xor up down idx, i32")}
CASES = [case for case in all_cases() if cases.chips_of(case) is not None and case.has_kernels]


def runs_on(case: Case, target: str) -> bool:
    """Is the case for the target? Some cases are for one chip alone."""
    wanted = cases.chips_of(case)
    return wanted in ("", target)


def part(everything: bool) -> list[tuple[str, Case]]:
    """Another share of the table for every target, and what is for one chip alone."""
    chosen = []
    for index, case in enumerate(CASES):
        for place, target in enumerate(TARGETS):
            always = everything or case.chips.get("rocdl") or (case.op, case.form) in ALWAYS
            if runs_on(case, target) and (always or index % PART == 24 * place):
                chosen.append((target, case))
    return chosen


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chosen = part(metafunc.config.getoption("--full"))
    names = [f"{target}-{case.op}-{case.form}".replace(" ", "_") for target, case in chosen]
    metafunc.parametrize(("devices", "case"), chosen, indirect=["devices"], ids=names)


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


def test_operation(devices: Driver, case: Case, request: pytest.FixtureRequest) -> None:
    run(devices, request.node.callspec.params["devices"], case)
