"""Modules of random kernels, and where tests run them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from emulator.driver import shared
from emulator.on_device import OnDevice, compiled, emulated


class Written(Protocol):
    """A kernel as MLIR text."""

    @property
    def text(self) -> str: ...


Kernel = TypeVar("Kernel", bound=Written)


def module(kernels: Sequence[Written]) -> str:
    """The program that has them."""
    return "gpu.module @m {\n" + "".join(kernel.text for kernel in kernels) + "}\n"


def check_emulated(kernels: Sequence[Kernel], target: str, check: Callable[[Sequence[Kernel], Any], None]) -> None:
    """Hands `check` a library that runs on an emulated GPU; ``target`` is its chip, with options."""
    driver = shared(emulated(target)[1])
    with driver.chip(target.split(",")[0]):
        check(kernels, OnDevice(compiled(module(kernels), target)))
    driver.check()
