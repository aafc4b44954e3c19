"""The kernels of tests/conformance executed as AMD machine code on the CPU (tests/emulator), against NumPy.

Every run takes each kernel on another chip; ``--full`` takes all of them on all.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conformance import Kernel, all_kernels, all_themes, judge
from emulator.driver import Driver, shared
from emulator.on_device import OnDevice
from test_conformance import copied

import offload

TARGETS = {
    "gfx90a": 64, "gfx942": 64, "gfx1100": 32, "gfx1201": 32, "gfx1201,wave64": 64,
    "gfx9-4-generic": 64, "gfx11-generic": 32, "gfx12-generic": 32,
}  # fmt: skip
GENERIC = {"gfx9-4-generic": "gfx942", "gfx11-generic": "gfx1100", "gfx12-generic": "gfx1201"}
"""Targets of many chips, and the one of these that they run on."""
EVERYWHERE = {"narrowed", "memory_passed_on", "two_of_a_size"}
SMALL = 300  # threads of a launch: the first with no more, or the one with the fewest
KERNELS = [kernel for kernel in all_kernels() if not kernel.cpu_only]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    everything = metafunc.config.getoption("--full")
    chosen = [
        (target, kernel)
        for index, kernel in enumerate(KERNELS)
        for place, target in enumerate(TARGETS)
        if everything or kernel.name in EVERYWHERE or index % len(TARGETS) == place
    ]
    names = [f"{target}-{kernel.theme}.{kernel.name}" for target, kernel in chosen]
    metafunc.parametrize(("devices", "kernel"), chosen, indirect=["devices"], ids=names)


@pytest.fixture
def devices(request: pytest.FixtureRequest) -> Iterator[Driver]:
    target = request.param.split(",")[0]
    with shared().chip(GENERIC.get(target, target)) as driver:
        yield driver
    driver.check()


def test_kernel(devices: Driver, kernel: Kernel, request: pytest.FixtureRequest) -> None:
    target = request.node.callspec.params["devices"]
    (theme,) = [theme for theme in all_themes() if theme.name == kernel.theme]
    library = offload.compile(theme.source, targets=[f"rocdl:{target}"])
    library.use("hip")
    launches = kernel.launches(TARGETS[target], count=8)
    launch, answer = min(launches, key=lambda pair: max(pair[0].total, SMALL))
    given, arrays = copied(answer.arguments)
    OnDevice(library).kernels[kernel.name][launch.grid, launch.block, None, answer.shared](*given)
    judge(arrays, answer)
