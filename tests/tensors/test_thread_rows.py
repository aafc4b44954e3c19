"""Rows that a thread each works on as a program for one row does: sorted, solved, decoded, in memory of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, emit_text, on_host
from emulator.on_device import OnDevice
from emulator.running import running_on

import offload

PROGRAM = PROGRAMS / "thread_rows.mlir"

_random = np.random.default_rng(7)
X = _random.standard_normal((6, 16)).astype(np.float32)
POSITIVE = np.abs(X) + np.float32(0.5)
LENGTHS = np.array([1, 16, 3, 7, 9, 2], np.int32)
PADDED = np.pad(X, ((0, 0), (1, 1)))
MATRICES = (X.reshape(6, 4, 4) @ X.reshape(6, 4, 4).transpose(0, 2, 1) + 4 * np.eye(4)).astype(np.float32)
TRIDIAGONAL = 2.5 * np.eye(16) - np.eye(16, k=1) - np.eye(16, k=-1)
WIDE = np.arange(64 * 64, dtype=np.int32).reshape(64, 64)
LONG = _random.standard_normal((4, 20000)).astype(np.float32)
SIGNALS = (3 * _random.random((6, 16))).astype(np.float32)


def smoothed(rows: Any, steps: int = 6) -> Any:
    for _ in range(steps):
        rows = np.concatenate([rows[:, :1], (rows[:, :-2] + rows[:, 2:]) / 2, rows[:, -1:]], 1)
    return rows


def likeliest(signals: Any) -> Any:
    states = np.arange(4)
    found = np.zeros(signals.shape, np.int32)
    for row, signal in zip(found, signals, strict=True):
        scores, came = -abs(signal[0] - states), []
        for value in signal[1:]:
            ways = scores[:, None] - abs(states[:, None] - states)
            came.append(ways.argmax(0))
            scores = ways.max(0) - abs(value - states)
        row[-1] = scores.argmax()
        for t in reversed(range(15)):
            row[t] = came[t][row[t + 1]]
    return found


def exchanged(a: Any, steps: int = 6) -> Any:
    b = a[:, ::-1]
    for _ in range(steps):
        a, b = b, a + b
    return a


def ragged(rows: Any, lengths: Any) -> Any:
    return np.array([[*(2 * row[:n][::-1]), *row[n:]] for row, n in zip(rows, lengths, strict=True)])


def stepped(rows: Any) -> Any:
    for _ in range(4):
        rows = rows - (rows - rows * 0.05) * 0.1
    return rows


def with_whole_parts(rows: Any, steps: int = 2) -> Any:
    for _ in range(steps):
        rows = rows + np.trunc(rows)
    return np.trunc(rows).astype(np.int32)


CASES: list[tuple[str, tuple[Any, ...], Any]] = [
    ("sorted", (X,), np.sort(X, 1)),
    ("sorted_any", (X,), np.sort(X, 1)),
    ("sorted_any", (X[:, :3].copy(),), np.sort(X[:, :3], 1)),
    ("largest", (X,), -np.sort(-X, 1)[:, :4]),
    ("factors", (MATRICES.reshape(6, 16),), np.linalg.cholesky(MATRICES).reshape(6, 16)),
    ("smoothed", (X,), smoothed(X)),
    ("smoothed_any", (X,), smoothed(X)),
    ("likeliest", (SIGNALS,), likeliest(SIGNALS)),
    ("roots", (POSITIVE,), np.sqrt(POSITIVE)),
    ("exchanged", (X,), exchanged(X)),
    ("reversed", (X,), (X * X)[:, ::-1]),
    ("reversed", (X[:0],), X[:0]),
    ("reversed", (X[:, :5].copy(),), (X * X)[:, 4::-1]),
    ("solved", (X,), np.linalg.solve(TRIDIAGONAL, X.T).T),
    ("ragged", (X, LENGTHS), ragged(X, LENGTHS)),
    ("stepped", (X,), stepped(X)),
    ("whole_parts", (SIGNALS,), with_whole_parts(SIGNALS)),
    ("of_24_bits", (WIDE,), WIDE[:, ::-1]),
    ("window", (LONG, 5), (LONG * LONG)[:, 4::-1]),
    ("part_of_part", (X, LENGTHS, np.minimum(LENGTHS + 2, 16).astype(np.int32)), ragged(X, LENGTHS)),
    ("neighbours", (X,), PADDED[:, :-2] + PADDED[:, 2:]),
    ("sharpened", (POSITIVE,), POSITIVE**2 / np.sum(POSITIVE**2, 1, keepdims=True)),
]


def check(library: offload.Library | OnDevice) -> None:
    for name, arguments, expected in CASES:
        found = getattr(library, name)(*arguments)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("opt", [0, 3])
def test_on_the_cpu(opt: int) -> None:
    check(on_host(PROGRAM, opt=opt))


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100", "sm_90"])
def test_on_devices(chip: str) -> None:
    with running_on(chip, PROGRAM) as library:
        check(library)


def test_for_each_target() -> None:
    offload.compile(PROGRAM, targets=ALL_TARGETS)


WRITTEN = """
func.func @f(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32>
  %w = memref.dim %x, %c1 : memref<?x?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %row = memref.alloc(%w) : memref<?xf32>
    scf.for %j = %c0 to %w step %c1 {
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      memref.store %v, %row[%j] : memref<?xf32>
    }
    scf.for %j = %c0 to %w step %c1 {
      %j1 = arith.addi %j, %c1 : index
      %k = arith.subi %w, %j1 : index
      %v = memref.load %row[%k] : memref<?xf32>
      memref.store %v, %y[%i, %j] : memref<?x?xf32>
    }
    memref.dealloc %row : memref<?xf32>
  }
  return
}
"""


@pytest.mark.parametrize("chip", ["host", "gfx942"])
def test_what_is_allocated_before_the_loop_is_freed_after_it(chip: str) -> None:
    text = emit_text(WRITTEN, "kernels")
    assert text.count("gpu.alloc") == text.count("gpu.dealloc") == 1
    with running_on(chip, WRITTEN) as library:
        for shape in ((6, 16), (1, 1), (0, 4), (5, 0)):
            x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
            y = np.zeros_like(x)
            library.f(x, y)
            np.testing.assert_array_equal(y, x[:, ::-1])


def test_functions_of_threads_are_there_for_others() -> None:
    """What threads call is a part of them, and stays where something else calls it; recursion is refused."""
    source = PROGRAM.read_text()
    assert "@shares" not in emit_text(source, "kernels")
    kept = source.replace("func.func private @shares", "func.func @shares")
    row = np.arange(1, 5, dtype=np.float32)
    library = on_host(kept)
    np.testing.assert_allclose(library.shares(row, 4).numpy(), row / 10)
    check(library)
    again = source.replace("func.call @shares(%row, %w)", "func.call @squared_shares(%row, %w)")
    with pytest.raises(offload.CompileError, match="so it must not call itself"):
        on_host(again)


@pytest.mark.parametrize("chip", ["host", "gfx942"])
def test_each_piece_of_it_is_aligned_as_its_author_says(chip: str) -> None:
    text = (
        WRITTEN.replace("%y: memref<?x?xf32>)", "%y: memref<?x?xf32>, %at: memref<?xindex>)")
        .replace("alloc(%w)", "alloc(%w) {alignment = 256}")
        .replace(
            "    memref.dealloc",
            "    %a = memref.extract_aligned_pointer_as_index %row : memref<?xf32> -> index\n"
            "    memref.store %a, %at[%i] : memref<?xindex>\n    memref.dealloc",
        )
    )
    with running_on(chip, text) as library:
        x, at = np.ones((6, 3), np.float32), np.zeros(6, np.int64)
        library.f(x, np.zeros_like(x), at)
    assert at.all()
    assert not (at % 256).any()
    assert len(set(at)) == 6
