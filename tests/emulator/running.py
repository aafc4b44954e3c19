"""Programs that run on emulated devices, for a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from emulator.driver import shared
from emulator.on_device import OnDevice, compiled, emulated


@contextmanager
def running_on(chip: str, source: object) -> Iterator[OnDevice]:
    """A program on emulated devices of a chip, whose driver has nothing to object to at the end."""
    driver = shared(emulated(chip)[1])
    with driver.chip(chip.split(",")[0]):
        yield OnDevice(compiled(source, chip))
    driver.check()
