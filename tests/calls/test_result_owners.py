"""Results that lie in arguments: whoever owns the memory, it stays as long as they do, and nobody frees it twice."""

from __future__ import annotations

import array
import gc
import mmap
from typing import Any

import numpy as np
import pytest
from compiling import on_host

PROGRAM = """
func.func @same(%x: memref<?xf32>) -> memref<?xf32> {
  return %x : memref<?xf32>
}
func.func @tail(%x: memref<?xf32, strided<[1], offset: 8>>, %n: index) -> memref<?xf32, strided<[1], offset: ?>> {
  %c = arith.constant 0 : index
  %d = memref.dim %x, %c : memref<?xf32, strided<[1], offset: 8>>
  %r = arith.subi %d, %n : index
  %s = memref.subview %x[%n][%r][1]
      : memref<?xf32, strided<[1], offset: 8>> to memref<?xf32, strided<[1], offset: ?>>
  return %s : memref<?xf32, strided<[1], offset: ?>>
}
func.func @described(%p: !llvm.ptr) -> memref<?xf32> {
  %z = llvm.mlir.constant(0 : i64) : i64
  %o = llvm.mlir.constant(1 : i64) : i64
  %n = llvm.mlir.constant(4 : i64) : i64
  %u = llvm.mlir.undef : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
  %1 = llvm.insertvalue %p, %u[0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
  %2 = llvm.insertvalue %p, %1[1] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
  %3 = llvm.insertvalue %z, %2[2] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
  %4 = llvm.insertvalue %n, %3[3, 0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
  %5 = llvm.insertvalue %o, %4[4, 0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
  %m = builtin.unrealized_conversion_cast %5
      : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> to memref<?xf32>
  return %m : memref<?xf32>
}
"""


def test_what_exports_a_buffer_cannot_move_it_while_a_result_lies_there() -> None:
    numbers = array.array("f", range(1000))
    result = on_host(PROGRAM).same(numbers)
    with pytest.raises(BufferError):
        numbers.extend(range(500_000))
    assert result[3] == 3
    del result
    numbers.extend(range(5))


def test_a_memoryview_that_has_been_released() -> None:
    memory = mmap.mmap(-1, 4096)
    with memoryview(memory) as view, view.cast("f") as floats:
        result = on_host(PROGRAM).same(floats)
    with pytest.raises(BufferError):
        memory.close()
    assert not result.any()
    del result
    gc.collect()
    memory.close()


class Lender:
    """Its tensor is made for each call, and belongs to the capsule."""

    def __init__(self) -> None:
        self.numbers = np.arange(200_000, dtype=np.float32)

    def __dlpack__(self, **options: Any) -> object:
        return self.numbers.copy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_a_tensor_that_only_its_capsule_keeps() -> None:
    library = on_host(PROGRAM)
    for _ in range(3):
        result = library.same(Lender())
        np.testing.assert_array_equal(result[:4], [0, 1, 2, 3])
        assert result[-1] == 199_999


def test_nothing_at_the_end_of_an_argument_is_a_part_of_it() -> None:
    library = on_host(PROGRAM)
    x = np.arange(1000, dtype=np.float32)
    for first in (996, 1000):
        result = library.tail(x, first)
        np.testing.assert_array_equal(result, x[first:])
        del result
    assert x.sum() == 499_500


def test_a_result_at_a_pointer_that_was_passed() -> None:
    x = np.arange(4000, dtype=np.float32)
    result = on_host(PROGRAM).described(x)
    np.testing.assert_array_equal(result, [0, 1, 2, 3])
    result[0] = 7
    assert x[0] == 7
    del result
    assert x.sum() == 4000 * 3999 // 2 + 7
