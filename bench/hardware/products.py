"""Products of matrices of 16-bit floats with sums in 32 bits: ours, by hand and of linalg, beside cuBLAS, on random
numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
from device.checks import HOST
from device.store import Store

from hardware.memory import engines, recorded
from hardware.ours import ELEMENTS, Linalg, Ours
from hardware.timing import figures, seconds

SIDES = {"large": (2048, 4096, 8192), "small": (512,)}
KINDS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
ROUNDING = {"f16": 2e-3, "bf16": 2e-2}
"""How far, of the largest value, a result may be off; cuBLAS rounds to the factors' type."""
ROWS = 64
"""Of a result, which are checked."""


def check(found: Any, a: Any, b: Any, element: str) -> None:
    """Raises ValueError where a sample of rows differs from NumPy's."""
    rows = np.linspace(0, a.shape[0] - 1, ROWS).astype(int)
    right = a[rows].astype(np.float32) @ b.astype(np.float32)
    worst = float(np.abs(found[rows] - right).max())
    allowed = ROUNDING[element] * float(np.abs(right).max())
    if not worst <= allowed:
        raise ValueError(f"off by {worst}, allowed are {allowed}")


def report(store: Store, backend: str, size: str, turns: int) -> Iterator[dict[str, Any]]:
    """As `hardware.memory.report`."""
    peers, missing = engines(("with_torch",))
    found: dict[str, Any] = {"size": size, "problems": [], "missing": missing, "wrong": []}
    if backend == HOST:
        missing["offload"] = "the kernel is made of a vendor's instructions"
    for element in ELEMENTS:
        halves = [Linalg(store, backend)] if element == "f16" else []
        present = halves if backend == HOST else [Ours(store, backend), *halves, *peers]
        for side in SIDES[size]:
            random = np.random.default_rng(side)
            a, b = (random.standard_normal((side, side), np.float32).astype(KINDS[element]) for _ in range(2))
            row: dict[str, Any] = {}
            for engine in present:
                with recorded(found, row, engine, f"{element}, {side}"):
                    run, outputs = engine.product(element, a, b)
                    run(1)
                    check(outputs(), a, b, element)
                    taken = figures(seconds(run, turns))
                    row[engine.name] = {**taken, "teraflops": 2 * side**3 / taken["median"] / 1e12}
            found["problems"].append({"kernel": f"matmul {element}", "side": side, "engines": row})
            print(element, side, *(f"{name} {each.get('teraflops', 0):.0f}" for name, each in row.items()), flush=True)
            yield found
