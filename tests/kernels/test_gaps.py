"""Vectors of memory whose elements have gaps behind them, as i24 in four bytes: LLVM's vectors have none."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import emit_text, on_host

from offload.errors import CompileError

HOST_CODE = """
func.func @f(%x: memref<?xf32>, %y: memref<?xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %m = memref.alloca() : memref<4x{kind}>
  scf.for %i = %c0 to %c4 step %c1 {{
    %a = memref.load %x[%i] : memref<?xf32>
    {to}
    memref.store %b, %m[%i] : memref<4x{kind}>
  }}
  {get}
  {back}
  vector.store %w, %y[%c0] : memref<?xf32>, vector<4xf32>
  return
}}
"""
NEIGHBOURS = "%v = vector.load %m[%c0] : memref<4x{kind}>, vector<4x{kind}>"
READ = """%z = ub.poison : {kind}
  %v = vector.transfer_read %m[%c0], %z : memref<4x{kind}>, vector<4x{kind}>"""
ONE_BY_ONE = """%places = arith.constant dense<[3, 1, 2, 0]> : vector<4xindex>
  %all = arith.constant dense<true> : vector<4xi1>
  %none = ub.poison : vector<4x{kind}>
  %v = vector.gather %m[%c0] [%places], %all, %none
      : memref<4x{kind}>, vector<4xindex>, vector<4xi1>, vector<4x{kind}> into vector<4x{kind}>"""


def _host_code(kind: str, get: str) -> str:
    to, back = ("extf", "truncf") if kind[0] == "f" else ("fptoui", "uitofp")
    return HOST_CODE.format(
        kind=kind,
        to=f"%b = arith.{to} %a : f32 to {kind}",
        get=get.format(kind=kind),
        back=f"%w = arith.{back} %v : vector<4x{kind}> to vector<4xf32>",
    )


@pytest.mark.parametrize("get", [NEIGHBOURS, READ])
@pytest.mark.parametrize("kind", ["i2", "i4", "i12", "i24", "i48", "f80"])
def test_they_are_refused_in_host_code(kind: str, get: str) -> None:
    """Where other elements were read, as in kernels."""
    with pytest.raises(CompileError, match=rf"error: memory of '{kind}' has gaps that no vector has: load and store"):
        emit_text(_host_code(kind, get), "host-llvm")


@pytest.mark.parametrize(
    ("kind", "get"), [("i24", ONE_BY_ONE), ("i8", NEIGHBOURS), ("i64", READ), ("i128", NEIGHBOURS), ("f64", READ)]
)
def test_others_are_right(kind: str, get: str) -> None:
    x, y = np.array([1, 0, 3, 2], np.float32), np.zeros(4, np.float32)
    on_host(_host_code(kind, get)).f(x, y)
    np.testing.assert_array_equal(y, x[[3, 1, 2, 0]] if get == ONE_BY_ONE else x)
