"""Programs that run on emulated devices, or on the CPU, for a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compiling import on_host

from emulator.driver import shared
from emulator.on_device import OnDevice, compiled, emulated
from offload.runtime import Library


@contextmanager
def running_on(chip: str, source: str | Path) -> Iterator[OnDevice | Library]:
    """A program on emulated devices of a chip, whose driver has nothing to object to at the end, or for "host" and what
    else begins so on the CPU."""
    if chip.startswith("host"):
        yield on_host(source, target=chip)
        return
    driver = shared(emulated(chip)[1])
    with driver.chip(chip.split(",")[0]):
        yield OnDevice(compiled(source, chip))
    driver.check()
