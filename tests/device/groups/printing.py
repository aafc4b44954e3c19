"""gpu.printf: what appears on the process's output."""

from __future__ import annotations

import contextlib
import ctypes
import os
import tempfile
from collections.abc import Callable, Iterator

from operations import device_gpu_prints as prints

from device.checks import Check, Program
from offload.runtime import Library

LINES = [
    "1 -5 -300 -70000 -5000000000 6000000000 0.500000 1.500000 2.500000 0.001",
    "251 251 65236",
    "-112 ee90 65236",
    "-70000 -5 6000000000 fed4",
]


@contextlib.contextmanager
def output() -> Iterator[list[str]]:
    """The lines that C code and drivers print inside, once it is over."""
    lines: list[str] = []
    libc = ctypes.CDLL(None)
    with tempfile.TemporaryFile() as file:
        libc.fflush(None)
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            yield lines
        finally:
            libc.fflush(None)
            os.dup2(kept, 1)
            os.close(kept)
        file.seek(0)
        lines += file.read().decode().splitlines()


def printing(lines: list[str], blocks: int = 1, threads: int = 1) -> Callable[[Library], None]:
    def run(library: Library) -> None:
        with output() as found:
            library.kernels.k[blocks, threads]()
        assert sorted(found) == sorted(lines), found[:10]

    return run


def checks() -> Iterator[Check]:
    for name, source, run in (
        ("no arguments", prints.NONE, printing(["100%, no arguments"])),
        ("every type", prints.KINDS, printing(LINES)),
        ("widths", prints.WIDTHS, printing(["[65   ][00065][+65][  3.14][A][41][0101]"])),
        ("between barriers", prints.SUSPENDED, printing([f"thread {i}" for i in range(80)], 2, 40)),
        (
            "many threads",
            prints.THREADS,
            printing([f"block {b} thread {t} of 33" for b in range(50) for t in range(33)], 50, 33),
        ),
    ):
        yield Check("printf", name, [Program(source)], run)
