"""Long code in which each number is made of the last: LLVM 22's code generator for x86 followed each of them to the
end of the code, which took a quarter of a minute for 10,000."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import emit_text, on_host

STEPS = {
    "f32": ("arith.addf", "arith.mulf", "arith.subf"),
    "f64": ("arith.addf", "arith.mulf", "arith.subf"),
    "i32": ("arith.addi", "arith.muli", "arith.xori"),
    "i64": ("arith.addi", "arith.muli", "arith.xori"),
}
NUMPY = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}
MADE = {
    "arith.addf": np.add,
    "arith.mulf": np.multiply,
    "arith.subf": np.subtract,
    "arith.addi": np.add,
    "arith.muli": np.multiply,
    "arith.xori": np.bitwise_xor,
}


def steps(kind: str, number: int) -> str:
    return "".join(f"\n  %v{k + 1} = {STEPS[kind][k % 3]} %v{k}, %y : {kind}" for k in range(number))


def in_function(kind: str, number: int) -> str:
    return f"func.func @f(%v0: {kind}, %y: {kind}) -> {kind} {{{steps(kind, number)}\n  return %v{number} : {kind}\n}}"


def in_kernel(kind: str, number: int) -> str:
    return f"""
func.func @f(%x: memref<?x{kind}>, %y: {kind}, %n: index) {{
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%i, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {{
  %v0 = memref.load %x[%i] : memref<?x{kind}>{steps(kind, number)}
  memref.store %v{number}, %x[%i] : memref<?x{kind}>
  gpu.terminator
  }}
  return
}}
"""


def computed(kind: str, begin: np.ndarray, y: float, number: int) -> np.ndarray:
    value, other = begin.astype(NUMPY[kind]), NUMPY[kind](y)
    for k in range(number):
        value = MADE[STEPS[kind][k % 3]](value, other)
    return value


@pytest.mark.parametrize("kind", STEPS)
def test_in_functions(kind: str) -> None:
    """Bit for bit, over several borders."""
    y = 0.75 if kind.startswith("f") else 12345
    (wanted,) = computed(kind, np.array([3]), y, 1700)
    assert on_host(in_function(kind, 1700)).f(NUMPY[kind](3), NUMPY[kind](y)) == wanted


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("target", ["host", "host:x86-64-v3"])
def test_in_kernels(kind: str, target: str) -> None:
    """In registers of several threads, too."""
    y = 0.75 if kind.startswith("f") else 12345
    x = np.arange(37).astype(NUMPY[kind])
    wanted = computed(kind, x, y, 1700)
    on_host(in_kernel(kind, 1700), target=target).f(x, NUMPY[kind](y), len(x))
    np.testing.assert_array_equal(x, wanted)


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize(("number", "borders"), [(500, 0), (1700, 3)])
def test_chains_end(kind: str, number: int, borders: int) -> None:
    """With an instruction that is none, each of 512."""
    assert emit_text(in_function(kind, number), "host-llvm").count("asm") == borders
