"""Products of matrices with sums in 32 bits: ours, by hand and of linalg, beside cuBLAS, on random numbers; and layers,
few rows with many rows of weights, which memory bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
from device.checks import HOST
from device.store import Store

from hardware.memory import engines, recorded
from hardware.ours import ELEMENTS, LAYER_ELEMENTS, LINALG_ELEMENTS, Linalg, Ours
from hardware.timing import figures, seconds

SIDES = {"large": (2048, 4096, 8192), "small": (512,)}
LAYERS = {"large": (1, 4, 16, 32, 64), "small": (2,)}
"""Rows that meet a square matrix of weights."""
WEIGHTS = {"large": 8192, "small": 256}
KINDS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "i8": np.int8}
ROUNDING = {"f16": 2e-3, "bf16": 2e-2, "f32": 1e-5, "i8": 0.0}
"""How far, of the largest value, a result may be off; cuBLAS rounds to the factors' type."""
ROWS = 64
"""Of a result, which are checked."""


def draw(element: str, seed: int, *shape: int) -> Any:
    random = np.random.default_rng(seed)
    if element == "i8":
        return random.integers(-128, 128, shape, np.int8)
    return random.standard_normal(shape, np.float32).astype(KINDS[element])


def check(found: Any, a: Any, b: Any, element: str) -> None:
    """Raises ValueError where a sample of rows differs from NumPy's."""
    rows = np.linspace(0, a.shape[0] - 1, ROWS).astype(int)
    # Sums of bytes are whole numbers that doubles hold, but not all floats.
    wide = np.float64 if element == "i8" else np.float32
    right = a[rows].astype(wide) @ b.astype(wide)
    worst = float(np.abs(found[rows] - right).max())
    allowed = ROUNDING[element] * float(np.abs(right).max())
    if not worst <= allowed:
        raise ValueError(f"off by {worst}, allowed are {allowed}")


def report(store: Store, backend: str, size: str, turns: int) -> Iterator[dict[str, Any]]:
    """As `hardware.memory.report`."""
    peers, missing = engines(("with_torch",))
    found: dict[str, Any] = {"size": size, "problems": [], "layers": [], "missing": missing, "wrong": []}
    if backend == HOST:
        missing["offload"] = "the kernel is made of a vendor's instructions"
    made = Linalg(store, backend)
    for element in LINALG_ELEMENTS:
        written = [Ours(store, backend)] if element in ELEMENTS and backend != HOST else []
        for side in SIDES[size]:
            a, b = draw(element, side, side, side), draw(element, side + 1, side, side)
            row: dict[str, Any] = {}
            for engine in [*written, made, *peers]:
                with recorded(found, row, engine, f"{element}, {side}"):
                    run, outputs = engine.product(element, a, b)
                    run(1)
                    check(outputs(), a, b, element)
                    taken = figures(seconds(run, turns))
                    row[engine.name] = {**taken, "teraflops": 2 * side**3 / taken["median"] / 1e12}
            found["problems"].append({"kernel": f"matmul {element}", "side": side, "engines": row})
            print(element, side, *(f"{name} {each.get('teraflops', 0):.0f}" for name, each in row.items()), flush=True)
            yield found
    for element in LAYER_ELEMENTS:
        weights = draw(element, 1, WEIGHTS[size], WEIGHTS[size])
        for rows in LAYERS[size]:
            x, row = draw(element, rows, rows, WEIGHTS[size]), {}
            for engine in [made, *peers]:
                with recorded(found, row, engine, f"{element}, {rows} rows"):
                    run, outputs = engine.layer(element, x, weights)
                    run(1)
                    check(outputs(), x, weights.T, element)
                    taken = figures(seconds(run, turns))
                    row[engine.name] = {**taken, "gigabytes_per_second": weights.nbytes / taken["median"] / 1e9}
            found["layers"].append({"kernel": f"layer {element}", "rows": rows, "engines": row})
            speeds = (f"{name} {each.get('gigabytes_per_second', 0):.0f}" for name, each in row.items())
            print(element, rows, "rows", *speeds, flush=True)
            yield found
