"""The kernels that are measured: their data, drawn from a fixed seed, and their right answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from host.problem import Array, Arrays, Problem

F32 = np.float32
RUN = 2048
"""Elements that one block scans; as in programs/scan.mlir."""
MOST_PARTS = 256
"""Blocks of the first launch of the reduction, where there is enough for them to do."""


def problem(kernel: str, size: str) -> Problem:
    """One of KERNELS, or the yardstick ``copy``, at one of SIZES."""
    return copy(size) if kernel == copy.__name__ else KERNELS[kernel](size)


def draw(*shape: int, seed: int = 1) -> Array:
    """Numbers between 0 and 1, in single precision."""
    return np.random.default_rng(seed).random(shape, dtype=F32)


def wide(array: Array) -> Array:
    """In double precision."""
    return array.astype(np.float64)


def copy(size: str) -> Problem:
    n = 1 << (24 if size == "large" else 12)
    x = draw(n)
    return Problem("copy", size, {"x": x}, {"out": np.empty_like(x)}, lambda: {"out": x}, traffic=8 * n, operations=0)


def triad(size: str) -> Problem:
    n = 1 << (24 if size == "large" else 12)
    b, c = draw(n), draw(n, seed=2)
    return Problem(
        "triad", size, {"b": b, "c": c}, {"a": np.empty_like(b)},
        expected=lambda: {"a": wide(b) + 3 * wide(c)},
        scalars={"s": 3.0}, tolerance=1e-6, traffic=12 * n, operations=2 * n,
    )  # fmt: skip


def softmax(size: str) -> Problem:
    rows, cols = (4096, 1024) if size == "large" else (8, 256)
    x = 8 * draw(rows, cols)

    def expected() -> Arrays:
        e = np.exp(wide(x) - x.max(axis=1, keepdims=True))
        return {"out": e / e.sum(axis=1, keepdims=True)}

    return Problem(
        "softmax", size, {"x": x}, {"out": np.empty_like(x)}, expected,
        tolerance=5e-6, traffic=8 * x.size, operations=5 * x.size,
    )  # fmt: skip


def layer_norm(size: str) -> Problem:
    rows, cols = (4096, 1024) if size == "large" else (8, 256)
    x, gamma, beta = draw(rows, cols), draw(cols, seed=2), draw(cols, seed=3)

    def expected() -> Arrays:
        centred = wide(x) - wide(x).mean(axis=1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        return {"out": centred / deviation * gamma + beta}

    return Problem(
        "layer_norm", size, {"x": x, "gamma": gamma, "beta": beta}, {"out": np.empty_like(x)}, expected,
        scalars={"epsilon": 1e-5}, tolerance=5e-6, traffic=8 * x.size, operations=7 * x.size,
    )  # fmt: skip


def transpose(size: str) -> Problem:
    side = 4096 if size == "large" else 64
    x = draw(side, side)
    return Problem(
        "transpose", size, {"x": x}, {"out": np.empty_like(x)}, lambda: {"out": x.T},
        traffic=8 * x.size, operations=0,
    )  # fmt: skip


def histogram(size: str) -> Problem:
    n = 1 << (24 if size == "large" else 12)
    x = np.random.default_rng(1).integers(0, 256, n, dtype=np.int32)
    return Problem(
        "histogram", size, {"x": x}, {"bins": np.empty(256, np.int32)}, lambda: {"bins": np.bincount(x, minlength=256)},
        traffic=4 * n, operations=n,
    )  # fmt: skip


def stencil(size: str) -> Problem:
    side = 4096 if size == "large" else 64
    x = draw(side, side)

    def expected() -> Arrays:
        v = wide(x)
        out = np.zeros_like(v)
        around = v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:]
        out[1:-1, 1:-1] = 0.5 * v[1:-1, 1:-1] + 0.125 * around
        return {"out": out}

    return Problem(
        "stencil", size, {"x": x}, {"out": np.zeros_like(x)}, expected,
        scalars={"center": 0.5, "side": 0.125}, tolerance=1e-6, traffic=8 * x.size, operations=6 * x.size,
    )  # fmt: skip


def reduction(size: str) -> Problem:
    n = 1 << (24 if size == "large" else 12)
    x = draw(n)
    return Problem(
        "reduction", size, {"x": x}, {"sum": np.empty(1, F32)}, lambda: {"sum": np.array([wide(x).sum()])},
        scratch={"partial": np.empty(min(MOST_PARTS, -(-n // 1024)), F32)}, tolerance=2e-5, traffic=4 * n, operations=n,
    )  # fmt: skip


def scan(size: str) -> Problem:
    n = 1 << (24 if size == "large" else 12)
    x = np.random.default_rng(1).integers(-100, 100, n, dtype=np.int32)
    return Problem(
        "scan", size, {"x": x}, {"out": np.empty_like(x)}, lambda: {"out": np.cumsum(x, dtype=np.int64)},
        scratch={"sums": np.empty(-(-n // RUN), np.int32)}, traffic=8 * n, operations=n,
    )  # fmt: skip


def matmul(size: str) -> Problem:
    side = 1024 if size == "large" else 64
    a, b = draw(side, side), draw(side, side, seed=2)
    return Problem(
        "matmul", size, {"a": a, "b": b}, {"c": np.empty_like(a)}, lambda: {"c": wide(a) @ wide(b)},
        tolerance=1e-5, traffic=12 * side**2, operations=2 * side**3,
    )  # fmt: skip


def n_body(size: str) -> Problem:
    n = 4096 if size == "large" else 256
    softening = 1e-2
    place = {name: draw(n, seed=seed) for seed, name in enumerate("xyz", 1)}
    mass = draw(n, seed=4)

    def expected() -> Arrays:
        out: Arrays = {f"a{name}": np.empty(n) for name in place}
        for first in range(0, n, 64):  # of 4096 x 4096 distances, as many as the caches hold
            part = slice(first, first + 64)
            away = {name: wide(p) - wide(p)[part, None] for name, p in place.items()}
            square = sum(d * d for d in away.values()) + softening
            pull = mass / (square * np.sqrt(square))
            for name, d in away.items():
                out[f"a{name}"][part] = (pull * d).sum(axis=1)
        return out

    return Problem(
        "n_body", size, {**place, "mass": mass}, {f"a{name}": np.empty(n, F32) for name in place}, expected,
        scalars={"softening": softening}, tolerance=5e-5, traffic=28 * n, operations=20 * n * n,
    )  # fmt: skip


def spmv(size: str) -> Problem:
    """Rows of 4 to 28 entries (16 on average) at random places of a square matrix."""
    rows = 1 << (18 if size == "large" else 9)
    random = np.random.default_rng(1)
    lengths = random.integers(4, 29, rows)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    entries = int(starts[-1])
    columns = random.integers(0, rows, entries, dtype=np.int32)
    values, x = draw(entries), draw(rows, seed=2)
    return Problem(
        "spmv", size, {"starts": starts, "columns": columns, "values": values, "x": x}, {"y": np.empty(rows, F32)},
        lambda: {"y": np.add.reduceat(wide(values) * x[columns], starts[:-1])},
        tolerance=1e-5, traffic=8 * entries + 12 * rows, operations=2 * entries,
    )  # fmt: skip


KERNELS: dict[str, Callable[[str], Problem]] = {
    make.__name__: make
    for make in (triad, softmax, layer_norm, transpose, histogram, stencil, reduction, scan, matmul, n_body, spmv)
}
