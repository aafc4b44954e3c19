"""bufferization.to_tensor without `restrict`, as conversions from tensors to loops leave it: the memory's only tensor,
in front of the stores that fill it. Where more than that is done with the memory, nobody says what the tensor shows."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import emit, emit_text
from emulator.running import running_on

from offload.errors import CompileError

PROGRAM = """
func.func @f(%x: tensor<8xf32>, %y: memref<8xf32>) -> tensor<8xf32> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %seven = arith.constant 7.0 : f32
  %m = memref.alloc() : memref<8xf32>
  {before}
  scf.for %i = %c0 to %c8 step %c1 {{
    %v = tensor.extract %x[%i] : tensor<8xf32>
    memref.store %v, %m[%i] : memref<8xf32>
  }}
  {behind}
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.add ins(%t, %t : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  {end}
  return %r : tensor<8xf32>
}}
"""
TENSOR = "%t = bufferization.to_tensor %m : memref<8xf32> to tensor<8xf32>"


def _program(before: str = "", behind: str = "", end: str = "") -> str:
    return PROGRAM.format(before=before, behind=behind, end=end)


@pytest.mark.parametrize("chip", ["host", "sm_90", "gfx942"])
@pytest.mark.parametrize("place", ["before", "behind"])
def test_the_only_tensor_of_an_allocation(chip: str, place: str) -> None:
    source = _program(**{place: TENSOR}, end="memref.copy %m, %y : memref<8xf32> to memref<8xf32>")
    assert emit_text(source, "kernels").count("gpu.memcpy") == 1
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    with running_on(chip, source) as library:
        np.testing.assert_array_equal(library.f(x, y).numpy(), 2 * x)
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize(
    "source",
    [
        _program(behind=TENSOR, end="memref.store %seven, %m[%c0] : memref<8xf32>"),
        _program(behind=f"{TENSOR}\n  %u = bufferization.to_tensor %m : memref<8xf32> to tensor<8xf32>"),
        _program(behind=f"%view = memref.cast %m : memref<8xf32> to memref<?xf32>\n  {TENSOR}"),
        _program(behind=TENSOR.replace("%m", "%y")),
        _program(behind=TENSOR.replace(" :", " writable :")),
        _program(behind=f"{TENSOR}\n  %back = bufferization.to_buffer %t : tensor<8xf32> to memref<8xf32>"),
    ],
    ids=["stored later", "two tensors", "a view", "an argument", "writable", "memory again"],
)
def test_what_nobody_says(source: str) -> None:
    with pytest.raises(CompileError, match="write `restrict` behind its operand") as caught:
        emit(source, "kernels")
    assert "to_tensor" in source.splitlines()[caught.value.diagnostics[0].line - 1]
