"""Programs on tensors that are refused: what is wrong is said in its place, with what to write instead."""

from __future__ import annotations

import pytest
from compiling import emit

from offload import CompileError

POISON = """
func.func @f(%x: tensor<9xf32>) -> tensor<9xf32> {
  %r = ub.poison : tensor<9xf32>
  return %r : tensor<9xf32>
}
"""
FREED = """
func.func @f(%x: tensor<9xf32>, %m: memref<4xf32>) -> tensor<9xf32> {
  memref.dealloc %m : memref<4xf32>
  return %x : tensor<9xf32>
}
"""
ITSELF = """
func.func private @again(%x: tensor<4xf32>, %more: i1) -> tensor<4xf32> {
  %false = arith.constant false
  %r = scf.if %more -> tensor<4xf32> {
    %y = func.call @through(%x, %false) : (tensor<4xf32>, i1) -> tensor<4xf32>
    scf.yield %y : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
func.func private @through(%x: tensor<4xf32>, %more: i1) -> tensor<4xf32> {
  %r = func.call @again(%x, %more) : (tensor<4xf32>, i1) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @f(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %true = arith.constant true
  %r = scf.forall (%i) in (8) shared_outs(%o = %x) -> tensor<8x4xf32> {
    %row = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<4xf32>
    %s = func.call @again(%row, %true) : (tensor<4xf32>, i1) -> tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<8x4xf32>
    }
  }
  return %r : tensor<8x4xf32>
}
"""


WHOLE = """func.func @f(%x: tensor<2x4xi32>, %e: tensor<2x4xi32>) -> tensor<2x4xi32> {
  %r = linalg.softmax dimension(1) ins(%x : tensor<2x4xi32>) outs(%e : tensor<2x4xi32>) -> tensor<2x4xi32>
  return %r : tensor<2x4xi32>
}
"""


@pytest.mark.parametrize(
    ("source", "place", "advice"),
    [
        (POISON, (3, 8), "write it as linalg.generic, or on memrefs"),
        (FREED, (3, 3), "leave the deallocation out"),
        (ITSELF, (13, 8), "leads to 'again' again: .* so it must not call itself; write a loop"),
        (WHOLE, (2, 8), "exponentials, of floating-point numbers alone"),
    ],
)
def test_what_is_not_compiled_is_said_in_its_place(source: str, place: tuple[int, int], advice: str) -> None:
    with pytest.raises(CompileError, match=advice) as caught:
        emit(source, "kernels")
    found = caught.value.diagnostics[0]
    assert (found.line, found.column) == place


@pytest.mark.parametrize(
    ("encoding", "reason"),
    [("#sparse_tensor.encoding<{map = (i) -> (i : compressed)}>", "sparse tensors"), ("1 : i32", "with an encoding")],
)
def test_other_tensors_are_refused(encoding: str, reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        emit(f"func.func @f(%x: tensor<?xf32, {encoding}>) {{ return }}", "kernels")


SPARSE = """#csr = #sparse_tensor.encoding<{map = (i, j) -> (i : dense, j : compressed)}>
func.func @f(%x: tensor<?x?xf64>) -> tensor<?x?xf64> {
  %a = sparse_tensor.convert %x : tensor<?x?xf64> to tensor<?x?xf64, #csr>
  %r = sparse_tensor.convert %a : tensor<?x?xf64, #csr> to tensor<?x?xf64>
  return %r : tensor<?x?xf64>
}"""


def test_a_sparse_tensor_of_a_function_s_own_is_told_where_it_is() -> None:
    """Not where the first tensor is, which is dense."""
    with pytest.raises(CompileError, match=r"mlir-opt --linalg-generalize-named-ops --sparsif") as caught:
        emit(SPARSE, "kernels")
    found = caught.value.diagnostics[0]
    assert (found.line, found.column) == (3, 8)
