"""The examples, as machine code for sm_90 and sm_90a, as PTX that the driver compiles, and as a bundle of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from device.checks import Check, Program
from offload.runtime import Library

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
IMAGES = {
    "sm_90": "nvvm:sm_90",
    "sm_90a": "nvvm:sm_90a",
    "PTX": "nvvm:sm_90,format=isa",
    "fatbin": "nvvm:sm_90,format=fatbin",
    "debug": "nvvm:sm_90,debug",
    "O0": "nvvm:sm_90,O=0",
    "32-bit indices": "nvvm:sm_90,index=32",
}


def numbers(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def saxpy(library: Library) -> None:
    for n in (1, 257, 100_003):
        x, y = numbers(n), numbers(n)[::-1].copy()
        there = library.device.array(y)
        library.saxpy(2.5, library.device.array(x), there)
        np.testing.assert_allclose(there.numpy(), np.float32(2.5) * x + y, rtol=1e-6, atol=1e-6)


def transpose(library: Library) -> None:
    for shape in ((1, 1), (33, 65), (257, 300)):
        x = numbers(*shape)
        there, out = library.device.array(x), library.device.zeros(shape[::-1], np.float32)
        library.transpose(there, out)
        np.testing.assert_array_equal(out.numpy(), x.T)
        again = library.device.zeros(shape[::-1], np.float32)
        library.kernels.transpose_tile[(-(-shape[1] // 32), -(-shape[0] // 32)), (32, 8)](there, again)
        np.testing.assert_array_equal(again.numpy(), x.T)


def reduce(library: Library) -> None:
    for n in (1, 256, 12_345):
        x = numbers(n)
        out = library.device.zeros((-(-n // 256),), np.float32)
        library.block_sums(library.device.array(x), out)
        np.testing.assert_allclose(out.numpy(), np.add.reduceat(x, np.arange(0, n, 256)), rtol=1e-4, atol=1e-4)


def linear(library: Library) -> None:
    for rows, inner, cols in ((1, 1, 1), (33, 17, 65)):
        x, w, bias = numbers(rows, inner), numbers(inner, cols), numbers(cols)
        out = library.device.zeros((rows, cols), np.float32)
        library.linear_relu(*map(library.device.array, (x, w, bias)), out)
        np.testing.assert_allclose(out.numpy(), np.maximum(x @ w + bias, 0), rtol=1e-4, atol=1e-4)


def scale(library: Library) -> None:
    x = numbers(33, 65)
    there = library.device.array(x)
    library.scale(-3, there)
    np.testing.assert_array_equal(there.numpy(), np.float32(-3) * x)


RUNS: dict[str, Callable[[Library], None]] = {
    "saxpy": saxpy, "transpose": transpose, "reduce": reduce, "linear": linear, "scale": scale,
}  # fmt: skip


def program(name: str, target: str = "nvvm:sm_90") -> Program:
    """One of examples/, for one of NVIDIA's targets and the CPU."""
    return Program((EXAMPLES / f"{name}.mlir").read_text(), (target, "host"))


def checks() -> Iterator[Check]:
    for name, run in RUNS.items():
        for image, target in IMAGES.items():
            yield Check("examples", f"{name}, {image}", [program(name, target)], run)
