"""The kernels that are measured: data, right answers, and the bytes that must move at least."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from host.problem import Arrays, Problem
from host.problems import draw, wide

F32 = np.float32
COLS = 4096
"""The length of rows of softmax and layer_norm; as in their programs."""
RUN = 8192
"""Elements that one block scans; as in programs/scan.mlir."""
PARTS = 528
"""Blocks of the reduction's first launch: four for each of 132 multiprocessors, so that all of them run at a time."""


def shape(kernel: str, size: str) -> tuple[int, ...]:
    """Of a problem's first input: a vector of a quarter of a gigabyte, or of few elements; or a matrix."""
    if kernel in ("transpose", "stencil"):
        return (8192, 8192) if size == "large" else (128, 128)
    if kernel in ("softmax", "layer_norm"):
        return (16384 if size == "large" else 8, COLS)
    return (1 << (26 if size == "large" else 14),)


def copy(size: str) -> Problem:
    x = draw(*shape("copy", size))
    return Problem("copy", size, {"x": x}, {"out": np.empty_like(x)}, lambda: {"out": x}, 8 * x.size, 0)


def triad(size: str) -> Problem:
    b, c = (draw(*shape("triad", size), seed=seed) for seed in (1, 2))
    return Problem(
        "triad", size, {"b": b, "c": c}, {"a": np.empty_like(b)}, lambda: {"a": wide(b) + 3 * wide(c)},
        scalars={"s": 3.0}, tolerance=1e-6, traffic=12 * b.size, operations=2 * b.size,
    )  # fmt: skip


def transpose(size: str) -> Problem:
    x = draw(*shape("transpose", size))
    return Problem("transpose", size, {"x": x}, {"out": np.empty_like(x)}, lambda: {"out": x.T}, 8 * x.size, 0)


def reduction(size: str) -> Problem:
    x = draw(*shape("reduction", size))
    return Problem(
        "reduction", size, {"x": x}, {"sums": np.empty(1, F32)}, lambda: {"sums": np.array([wide(x).sum()])},
        scratch={"parts": np.empty(PARTS if size == "large" else 4, F32)}, tolerance=2e-5,
        traffic=4 * x.size, operations=x.size,
    )  # fmt: skip


def softmax(size: str) -> Problem:
    x = 8 * draw(*shape("softmax", size))

    def expected() -> Arrays:
        e = np.exp(x - x.max(axis=1, keepdims=True), dtype=np.float64)
        return {"out": e / e.sum(axis=1, keepdims=True)}

    return Problem("softmax", size, {"x": x}, {"out": np.empty_like(x)}, expected, 8 * x.size, 5 * x.size,
                   tolerance=1e-5)  # fmt: skip


def layer_norm(size: str) -> Problem:
    x, gamma, beta = draw(*shape("layer_norm", size)), draw(COLS, seed=2), draw(COLS, seed=3)

    def expected() -> Arrays:
        centred = x - x.mean(axis=1, keepdims=True, dtype=np.float64)
        deviation = np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        return {"out": centred / deviation * gamma + beta}

    return Problem(
        "layer_norm", size, {"x": x, "gamma": gamma, "beta": beta}, {"out": np.empty_like(x)}, expected,
        scalars={"epsilon": 1e-5}, tolerance=1e-5, traffic=8 * x.size, operations=7 * x.size,
    )  # fmt: skip


def scan(size: str) -> Problem:
    (n,) = shape("scan", size)
    x = np.random.default_rng(1).integers(-100, 100, n, dtype=np.int32)
    return Problem(
        "scan", size, {"x": x}, {"out": np.empty_like(x)}, lambda: {"out": np.cumsum(x, dtype=np.int32)},
        scratch={"states": np.zeros(1 + -(-n // RUN), np.int64)}, traffic=8 * n, operations=n,
    )  # fmt: skip


def histogram(size: str) -> Problem:
    (n,) = shape("histogram", size)
    x = np.random.default_rng(1).integers(0, 256, n, dtype=np.int32)
    return Problem("histogram", size, {"x": x}, {"bins": np.empty(256, np.int32)},
                   lambda: {"bins": np.bincount(x, minlength=256)}, 4 * n, n)  # fmt: skip


def stencil(size: str) -> Problem:
    x = draw(*shape("stencil", size))

    def expected() -> Arrays:
        out = np.zeros_like(x)
        around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        out[1:-1, 1:-1] = F32(0.5) * x[1:-1, 1:-1] + F32(0.125) * around
        return {"out": out}

    return Problem(
        "stencil", size, {"x": x}, {"out": np.zeros_like(x)}, expected, scalars={"center": 0.5, "side": 0.125},
        tolerance=1e-6, traffic=8 * x.size, operations=6 * x.size,
    )  # fmt: skip


def spmv(size: str) -> Problem:
    """Rows of 4 to 28 entries (16 on average) near the diagonal of a square matrix."""
    count = 1 << (21 if size == "large" else 9)
    random = np.random.default_rng(1)
    lengths = random.integers(4, 29, count)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    entries = int(starts[-1])
    near = np.repeat(np.arange(count), lengths) + random.integers(-200, 200, entries)
    columns = np.clip(near, 0, count - 1).astype(np.int32)
    values, x = draw(entries), draw(count, seed=2)
    return Problem(
        "spmv", size, {"starts": starts, "columns": columns, "values": values, "x": x}, {"y": np.empty(count, F32)},
        lambda: {"y": np.add.reduceat(wide(values) * x[columns], starts[:-1])},
        tolerance=1e-5, traffic=8 * entries + 12 * count, operations=2 * entries,
    )  # fmt: skip


MEMORY: dict[str, Callable[[str], Problem]] = {
    make.__name__: make
    for make in (copy, triad, transpose, reduction, softmax, layer_norm, scan, histogram, stencil, spmv)
}
"""Kernels that memory bounds, by name; the first is the yardstick."""
