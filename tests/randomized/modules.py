"""Modules of random kernels, and where tests run them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from emulator.driver import shared
from emulator.on_device import OnDevice

import offload


class Written(Protocol):
    """A kernel as MLIR text."""

    @property
    def text(self) -> str: ...


Kernel = TypeVar("Kernel", bound=Written)


def module(kernels: Sequence[Written]) -> str:
    """The program that has them."""
    return "gpu.module @m {\n" + "".join(kernel.text for kernel in kernels) + "}\n"


def check_emulated(kernels: Sequence[Kernel], target: str, check: Callable[[Sequence[Kernel], Any], None]) -> None:
    """Hands `check` a library that runs on an emulated AMD GPU; ``target`` is its chip, with options."""
    library = offload.compile(module(kernels), targets=[f"rocdl:{target}"])
    with shared().chip(target.split(",")[0]):
        library.use("hip")
        check(kernels, OnDevice(library))
    shared().check()
