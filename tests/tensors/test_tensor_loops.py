"""Loops in the bodies of parallel loops that hand tensors on, for the CPU and on emulated devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, emit, on_host
from emulator.driver import shared

import offload
from offload import CompileError

PROGRAM = PROGRAMS / "tensor_loops.mlir"

_random = np.random.default_rng(5)
ROWS = _random.standard_normal((4, 16)).astype(np.float32)
X, Y = _random.standard_normal((2, 21)).astype(np.float32)
COUNTS = np.arange(1, 17, dtype=np.int32).reshape(4, 4)


def attention(count: int) -> tuple[tuple[Any, ...], Any]:
    q, k, v = (_random.standard_normal((n, 16)).astype(np.float32) for n in (32, count, count))
    weights = np.exp(q @ k.T - (q @ k.T).max(1, keepdims=True))
    return (q, k, v), weights @ v / weights.sum(1, keepdims=True)


def doubled(row: Any, limit: int) -> Any:
    while row[0] < limit:
        row = row + row[::-1]
    return row


def kept(row: Any, count: int, limit: float) -> tuple[Any, Any]:
    below = row
    for _ in range(count):
        row = row + row
        below = row if row[0] < limit else below
    return row, below


def anew(row: Any, begin: Any, count: int, limit: float) -> Any:
    last = begin
    for _ in range(count):
        last = 2 * (last if last[0] < limit else row)
    return last


POSITIVE = np.abs(ROWS) + np.float32(0.5)
ONES = np.ones(16, np.float32)

CASES = [
    ("attention", *attention(24)),
    ("attention", *attention(13)),
    ("swapped", (ROWS, 3), ROWS.reshape(4, 8, 2)[:, :, ::-1].reshape(4, 16)),
    ("swapped", (ROWS, 2), ROWS),
    ("swapped", (ROWS, 0), ROWS),
    ("exchanged", (X, Y, 0), X),
    ("exchanged", (X, Y, 1), Y),
    ("exchanged", (X, Y, 6), 5 * X + 8 * Y),
    ("until", (COUNTS, 40), np.array([doubled(row, 40) for row in COUNTS])),
    *(("kept", (POSITIVE, n, 9.0), np.stack([kept(row, n, 9.0) for row in POSITIVE], 1)) for n in (0, 1, 5)),
    *(("anew", (ROWS, ONES, n, 9.0), np.array([anew(row, ONES, n, 9.0) for row in ROWS])) for n in (0, 7)),
]


def check(library: offload.Library) -> None:
    for name, arguments, expected in CASES:
        found = getattr(library, name)(*arguments)
        arrays = np.array([each.numpy() for each in found]) if isinstance(found, tuple) else found.numpy()
        np.testing.assert_allclose(arrays, expected, rtol=1e-5, atol=1e-6)


def test_on_the_cpu() -> None:
    check(on_host(PROGRAM))


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
def test_on_devices(chip: str) -> None:
    library = offload.compile(PROGRAM, targets=[f"rocdl:{chip}"])
    library.auto_stage = True
    with shared().chip(chip):
        library.use("hip")
        check(library)
    shared().check()


def test_for_each_target() -> None:
    offload.compile(PROGRAM, targets=ALL_TARGETS)


HALVED = """
func.func @f(%x: tensor<4x16xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %e = tensor.empty() : tensor<4xf32>
  %r = scf.forall (%i) in (4) shared_outs(%o = %e) -> tensor<4xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, 16][1, 1] : tensor<4x16xf32> to tensor<16xf32>
    %u = tensor.cast %s : tensor<16xf32> to tensor<?xf32>
    %p = scf.for %k = %c0 to %n step %c1 iter_args(%a = %u) -> tensor<?xf32> {
      %d = tensor.dim %a, %c0 : tensor<?xf32>
      %h = arith.divui %d, %c2 : index
      %q = tensor.generate %h {
      ^bb0(%j: index):
        %other = arith.addi %j, %h : index
        %v = tensor.extract %a[%j] : tensor<?xf32>
        %w = tensor.extract %a[%other] : tensor<?xf32>
        %z = arith.addf %v, %w : f32
        tensor.yield %z : f32
      } : tensor<?xf32>
      scf.yield %q : tensor<?xf32>
    }
    %sum = tensor.extract_slice %p[0][1][1] : tensor<?xf32> to tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %sum into %o[%i][1][1] : tensor<1xf32> into tensor<4xf32>
    }
  }
  return %r : tensor<4xf32>
}
"""


def test_what_changes_its_size_from_iteration_to_iteration_is_not_private() -> None:
    with pytest.raises(CompileError, match="threads have no allocator"):
        emit(HALVED, "so")
