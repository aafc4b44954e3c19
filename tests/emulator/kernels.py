"""The kernels of tests/conformance on emulated devices."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from conformance import Kernel, all_kernels, all_themes, copied, judge

from emulator.on_device import OnDevice, compiled

_SMALL = 300  # threads of a launch: the first with no more, or the one with the fewest
_EVERYWHERE = {"narrowed", "memory_passed_on", "two_of_a_size"}


def parametrize(metafunc: pytest.Metafunc, chips: Iterable[str]) -> None:
    """Arguments ``chip`` and ``kernel`` of a test: each kernel on another chip, with ``--full`` all of them on all."""
    everything, places = metafunc.config.getoption("--full"), list(chips)
    chosen = [
        (chip, kernel)
        for index, kernel in enumerate(kernel for kernel in all_kernels() if not kernel.cpu_only)
        for place, chip in enumerate(places)
        if everything or kernel.name in _EVERYWHERE or index % len(places) == place
    ]
    names = [f"{chip}-{kernel.theme}.{kernel.name}" for chip, kernel in chosen]
    metafunc.parametrize(("chip", "kernel"), chosen, ids=names)


def run_kernel(kernel: Kernel, chip: str, lanes: int) -> None:
    """Compiles the kernel's theme for the chip and compares a launch with its answer."""
    (theme,) = [theme for theme in all_themes() if theme.name == kernel.theme]
    library = compiled(theme.source, chip)
    launches = kernel.launches(lanes, count=8)
    launch, answer = min(launches, key=lambda pair: max(pair[0].total, _SMALL))
    given, arrays = copied(answer.arguments)
    OnDevice(library).kernels[kernel.name][launch.grid, launch.block, None, answer.shared](*given)
    judge(arrays, answer)
