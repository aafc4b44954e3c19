"""Loops from one end of their type to the other: bounds that are constants are further apart than its numbers go."""

import numpy as np
import pytest
from compiling import on_host

LOOP = """
    %lo = arith.constant {lo} : {kind}
    %hi = arith.constant {hi} : {kind}
    %st = arith.constant {st} : {kind}
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %count, %last = scf.for %i = %lo to %hi step %st iter_args(%n = %zero, %before = %zero) -> (i64, i64) : {kind} {{
      %more = arith.addi %n, %one : i64
      %here = arith.{extend} %i : {kind} to i64
      scf.yield %more, %here : i64, i64
    }}"""
PROGRAM = """
gpu.module @m {{
  gpu.func @k(%x: memref<2xi64>) kernel {{{loop}
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    memref.store %count, %x[%c0] : memref<2xi64>
    memref.store %last, %x[%c1] : memref<2xi64>
    gpu.return
  }}
}}
func.func @f() -> (i64, i64) {{{loop}
  return %count, %last : i64, i64
}}
"""


@pytest.mark.parametrize(
    ("bits", "lo", "hi", "step"),
    [
        (8, -128, 127, 1), (8, -128, 127, 100), (8, -1, 127, 1), (8, 127, -128, 1), (16, -(2**15), 2**15 - 1, 7),
        (32, -(2**31), 2**31 - 1, 2**28), (64, -(2**63), 2**63 - 1, 2**60),
    ],
)  # fmt: skip
def test_constant_bounds(bits: int, lo: int, hi: int, step: int) -> None:
    loop = LOOP.format(kind=f"i{bits}", lo=lo, hi=hi, st=step, extend="bitcast" if bits == 64 else "extsi")
    library = on_host(PROGRAM.format(loop=loop))
    expected = (len(range(lo, hi, step)), range(lo, hi, step)[-1] if lo < hi else 0)
    assert library.f() == expected
    out = np.zeros(2, np.int64)
    library.kernels.k[1, 1](out)
    assert tuple(out) == expected
