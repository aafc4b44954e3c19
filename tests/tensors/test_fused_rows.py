"""Operations one after another on the same rows are one kernel: results as NumPy has them, also on emulated devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, emit_text, on_host
from emulator.on_device import OnDevice
from emulator.running import running_on

import offload

PROGRAM = PROGRAMS / "fused_rows.mlir"

_random = np.random.default_rng(17)


def floats(*shape: int) -> np.ndarray:
    return _random.standard_normal(shape).astype(np.float32)


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def numpy_of(result: Any) -> np.ndarray:
    return result if isinstance(result, np.ndarray) else result.numpy()


def check(library: offload.Library | OnDevice, lengths: tuple[int, ...]) -> None:
    for rows in (1, 3, 9):
        for length in lengths:
            x = floats(rows, length)
            np.testing.assert_allclose(numpy_of(library.softmax(x)), softmax(x), rtol=1e-5, atol=1e-7)
    x, gamma, beta = floats(3, 5, 96), floats(96), floats(96)
    normalized = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5) * gamma + beta
    np.testing.assert_allclose(numpy_of(library.normalized(x, gamma, beta)), normalized, rtol=1e-4, atol=1e-5)
    a, sums = _random.standard_normal((9, 70)), _random.standard_normal(9)
    first = sums + a.sum(1)
    changed = first[:, None] - a
    library.in_place(a, sums)
    np.testing.assert_allclose(a, changed, rtol=1e-12)
    np.testing.assert_allclose(sums, np.maximum(first, changed.max(1)), rtol=1e-12)
    numbers = _random.integers(-(2**31), 2**31, (2, 5000), np.int32)
    y, most, rest = map(numpy_of, library.long(numbers))
    np.testing.assert_array_equal(y, numbers ^ np.arange(5000, dtype=np.int32))
    np.testing.assert_array_equal(most, y.max(1))
    np.testing.assert_array_equal(rest, (y.sum(1, dtype="i8") - most).astype(np.int32))
    x = floats(3, 2, 2500)
    parts = softmax(x.reshape(6, 2500) * np.float32(0.125)).reshape(x.shape)
    np.testing.assert_allclose(numpy_of(library.shares(x)), parts, rtol=1e-4)
    x, y = _random.random((1, 4000), np.float32), np.zeros(4000, np.float32)
    library.alone(x, y)
    np.testing.assert_allclose(y, x[0] / x.sum(), rtol=1e-4)
    x, y = floats(70, 9), floats(9, 70)
    expected = x.T + y.sum(1, keepdims=True)
    library.across(x, y)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


def test_on_the_cpu() -> None:
    library = on_host(PROGRAM)
    check(library, (1, 63, 64, 65, 1000, 32768, 32769))
    assert library.softmax(floats(0, 100)).shape == (0, 100)
    memory = floats(10, 70)
    x, y, before = memory[1:], memory[:-1], memory.copy()
    library.apart(x, y)
    np.testing.assert_allclose(y, np.repeat(before[1:].sum(1, keepdims=True), 70, 1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx1100", "sm_80"])
def test_on_devices(chip: str) -> None:
    with running_on(chip, PROGRAM) as library:
        check(library, (2, 64, 70))


def test_for_each_target() -> None:
    offload.compile(PROGRAM, targets=ALL_TARGETS)


GATHERED = """
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @f(%x: tensor<?x?xf32>, %rows: tensor<?xi32>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %z = linalg.generic {indexing_maps = [#row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%rows : tensor<?xi32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%row: i32, %out: f32):
    %i = arith.index_cast %row : i32 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %y[%i, %j] : tensor<?x?xf32>
    linalg.yield %v : f32
  } -> tensor<?x?xf32>
  return %y, %z : tensor<?x?xf32>, tensor<?x?xf32>
}
"""


def check_gathered(library: offload.Library | OnDevice) -> None:
    x = floats(60, 96)
    rows = _random.permutation(60).astype(np.int32)
    y, z = map(numpy_of, library.f(x, rows))
    np.testing.assert_allclose(y, softmax(x), rtol=1e-5)
    np.testing.assert_array_equal(z, y[rows])


def test_what_reads_any_row_is_another_kernel() -> None:
    """It read rows that no thread had written."""
    check_gathered(on_host(GATHERED))


@pytest.mark.parametrize("chip", ["sm_90", "gfx942"])
def test_what_reads_any_row_on_devices(chip: str) -> None:
    with running_on(chip, GATHERED) as library:
        check_gathered(library)


def test_a_kernel_has_so_many_steps_and_not_more() -> None:
    """Each sum has a register, and the time to find out what may go together grows with the steps."""
    sums = 70
    steps = "".join(
        f"""  %y{i} = linalg.generic {{indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}}
      ins(%x : tensor<3x100xf32>) outs(%from : tensor<3xf32>) {{
  ^bb0(%v: f32, %sum: f32):
    %factor = arith.constant {i}.0 : f32
    %part = arith.mulf %v, %factor : f32
    %more = arith.addf %sum, %part : f32
    linalg.yield %more : f32
  }} -> tensor<3xf32>
"""
        for i in range(sums)
    )
    results, types = ", ".join(f"%y{i}" for i in range(sums)), ", ".join(["tensor<3xf32>"] * sums)
    program = f"""
#all = affine_map<(i, k) -> (i, k)>
#row = affine_map<(i, k) -> (i)>
func.func @f(%x: tensor<3x100xf32>) -> ({types}) {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3xf32>
  %from = linalg.fill ins(%zero : f32) outs(%empty : tensor<3xf32>) -> tensor<3xf32>
{steps}  return {results} : {types}
}}
"""
    x = floats(3, 100)
    y = [numpy_of(each) for each in on_host(program).f(x)]
    np.testing.assert_allclose(y, np.arange(sums)[:, None] * x.sum(1), rtol=1e-3, atol=1e-3)
    assert -(-sums // 32) <= emit_text(program, "kernels").count("gpu.launch_func") <= sums // 10


SHARES = """
#e = affine_map<(r, j) -> (r, j)>
#n = affine_map<(r, j) -> (r)>
#o = affine_map<(r) -> (r)>
func.func @shares(%x: memref<?x64xi32>, %m: memref<?xi32>, %y: memref<?x64xi32>) {
  %zero = arith.constant 0 : i32
  %whole = arith.constant 6400 : i32
  linalg.fill ins(%zero : i32) outs(%m : memref<?xi32>)
  linalg.generic {indexing_maps = [#e, #n], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x64xi32>) outs(%m : memref<?xi32>) {
    ^bb0(%a: i32, %b: i32):
      %t = arith.addi %b, %a : i32
      linalg.yield %t : i32 }
  linalg.generic {indexing_maps = [#o], iterator_types = ["parallel"]} outs(%m : memref<?xi32>) {
    ^bb0(%a: i32):
      %t = arith.divsi %whole, %a : i32
      linalg.yield %t : i32 }
  linalg.generic {indexing_maps = [#e, #n, #e], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : memref<?x64xi32>, memref<?xi32>) outs(%y : memref<?x64xi32>) {
    ^bb0(%a: i32, %q: i32, %b: i32):
      %t = arith.muli %a, %q : i32
      linalg.yield %t : i32 }
  return
}
"""


def test_no_row_that_is_not_there_is_divided_by() -> None:
    """A block has four rows; what is left of the last one sums nothing."""
    library = on_host(SHARES)
    for rows in (1, 4, 5, 7, 301):
        x, y, m = np.ones((rows, 64), np.int32), np.zeros((rows, 64), np.int32), np.zeros(rows, np.int32)
        library.shares(x, m, y)
        np.testing.assert_array_equal(m, np.full(rows, 100))
        np.testing.assert_array_equal(y, np.full((rows, 64), 100))
