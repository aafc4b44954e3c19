"""The main job, shown: builds the examples for three targets, runs them here, compares with NumPy, prints a table."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import offload
from offload import artifact

TARGETS = ("nvvm:sm_90", "rocdl:gfx942", "host")
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
OUTPUT = Path(__file__).resolve().parent.parent / "build" / "demo"


@dataclass
class Case:
    """An example: the function, its arguments, which of them is written, and NumPy's answer."""

    example: str
    function: str
    arguments: list[Any]
    written: int
    expected: np.ndarray
    tolerance: float


def cases() -> list[Case]:
    """One per example; no size divides a block."""
    rng = np.random.default_rng(2026)

    def random(*shape: int) -> np.ndarray:
        return rng.random(shape, dtype=np.float32) - np.float32(0.5)

    x, y = random(1_000_003), random(1_000_003)
    image = random(1001, 777)
    values = random(1_000_003)
    starts = np.arange(0, values.size, 256)
    sums = np.zeros(starts.size, np.float32)
    data, weights, bias = random(301, 203), random(203, 107), random(107)
    linear = np.zeros((301, 107), np.float32)
    table = random(333, 555)
    return [
        Case("saxpy", "saxpy", [np.float32(2), x, y], 2, 2 * x + y, 1e-6),
        Case("transpose", "transpose", [image, np.zeros(image.T.shape, np.float32)], 1, image.T, 0),
        Case("reduce", "block_sums", [values, sums], 1, np.add.reduceat(values, starts), 1e-4),
        Case("linear", "linear_relu", [data, weights, bias, linear], 3, np.maximum(data @ weights + bias, 0), 1e-4),
        Case("scale", "scale", [np.float32(3), table], 1, 3 * table, 1e-6),
    ]


def run(library: Any, case: Case) -> tuple[bool, float]:
    """Calls the function on the library's best backend; returns whether it agrees with NumPy, and the best time."""
    on_host = library.backend == "host"
    place = np.copy if on_host else library.device.array
    arguments = [place(argument) if isinstance(argument, np.ndarray) else argument for argument in case.arguments]
    function: Callable[..., None] = getattr(library, case.function)
    function(*arguments)
    result = arguments[case.written]
    result = np.array(result if on_host else result.numpy())
    right = np.allclose(result, case.expected, rtol=case.tolerance, atol=case.tolerance)
    times = []
    for _ in range(5):
        started = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - started)
    return bool(right), min(times)


def main() -> int:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    all_right = True
    built: list[tuple[Case, Path, float]] = []
    for case in cases():
        source, output = EXAMPLES / f"{case.example}.mlir", OUTPUT / f"{case.example}.so"
        print(f"building {source.name} for {', '.join(TARGETS)}")
        started = time.perf_counter()
        offload.build(source, output, targets=TARGETS, progress=lambda step: print(f"    {step}"))
        built.append((case, output, time.perf_counter() - started))

    print()
    for case, output, build_time in built:
        library = offload.load(output)
        right, run_time = run(library, case)
        all_right &= right
        print(f"{case.example}: {output.stat().st_size:,} bytes, built in {build_time:.2f} s")
        for image in artifact.read(output).images:
            print(f"    image     {image.target:<6} {image.chip:<10} {image.module:<22} {len(image.data):>8,} bytes")
        print(f"    function  {library.functions[case.function].__doc__.splitlines()[0]}")
        verdict = "equals NumPy" if right else "DIFFERS FROM NUMPY"
        print(f"    result    {verdict} on backend {library.backend}, {run_time * 1e3:.3f} ms a call")
    print("\nall right" if all_right else "\nsomething is wrong")
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
