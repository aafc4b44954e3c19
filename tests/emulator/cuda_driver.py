"""Emulated NVIDIA devices: PTX behind the stand-in CUDA driver."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, ClassVar

from ptx.program import Program

from emulator.driver import Driver, Params
from emulator.errors import AbortedError, AccessError, EmulationError


class DRIVER(Driver):
    """NVIDIA's."""

    LIBRARY = ("libcuda.c", "libcuda.so.1")
    INVALID_IMAGE = 218
    CODES: ClassVar = {AccessError: 700, AbortedError: 710}

    def __init__(self) -> None:
        super().__init__()
        self.output = ""

    def described(self, chip: str) -> tuple[str, int]:
        return chip, 32

    def program(self, image: int) -> Program:
        if ctypes.string_at(image, 4) == b"\x7fELF":
            raise EmulationError("the image is machine code, and only PTX is emulated: build it with format=isa")
        return Program(ctypes.string_at(image).decode(), self.memory, self._print)

    def _print(self, text: str) -> None:
        self.output += text

    def workgroup_memory(self, kernel: Any) -> int:
        size: int = kernel.shared_size
        return size

    def failed(self, code: int) -> int:
        self._library.standin_fail(code)  # the context is lost: every later call tells it, until the chip is gone
        return 0

    def run(self, program: Program, kernel: Any, sizes: Sequence[Sequence[int]], dynamic: int, params: Params) -> int:
        grid, block, cluster = sizes
        return program.launch(kernel, grid, block, dynamic, cluster, params)
