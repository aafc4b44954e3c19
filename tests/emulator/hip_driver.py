"""Emulated AMD devices: code objects behind the stand-in HIP library."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

from emulator.code_object import CodeObject
from emulator.dispatch import Launch
from emulator.driver import Driver, Params
from emulator.hostcalls import Hostcalls
from emulator.program import Program


class DRIVER(Driver):
    """AMD's."""

    LIBRARY = ("libamdhip64.c", "libamdhip64.so.6")
    INVALID_IMAGE = 200

    def __init__(self) -> None:
        super().__init__()
        self._hostcalls = Hostcalls(self.memory)

    @property
    def output(self) -> str:
        return self._hostcalls.output

    @output.setter
    def output(self, text: str) -> None:
        self._hostcalls.output = text

    def described(self, chip: str) -> tuple[str, int]:
        return (f"{chip}:sramecc+:xnack-", 64) if chip.startswith("gfx9") else (chip, 32)

    def program(self, image: int) -> Program:
        sections, count = struct.unpack("<Q", ctypes.string_at(image + 40, 8))[0], ctypes.string_at(image + 60, 2)
        size = sections + 64 * struct.unpack("<H", count)[0]
        return Program(CodeObject(ctypes.string_at(image, size), self.memory), self._hostcalls)

    def workgroup_memory(self, kernel: Any) -> int:
        size: int = kernel.word(0)
        return size

    def run(self, program: Program, kernel: Any, sizes: Sequence[Sequence[int]], dynamic: int, params: Params) -> int:
        grid, block, _ = sizes  # HIP has no clusters
        return Launch(program, kernel, grid, block, dynamic, params).run()
