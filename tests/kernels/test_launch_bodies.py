"""What stands in a gpu.launch is run by each of its threads: there, loops and linalg operations are no kernels."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import ALL_TARGETS, emit, emit_text, on_host

from offload import CompileError

ROW = "memref<5xf32, strided<[1], offset: ?>>"
STEP = """
      %v = memref.load %x[%t, %i] : memref<3x5xf32>
      %r = arith.addf %v, %a : f32
      memref.store %r, %x[%t, %i] : memref<3x5xf32>
    }
"""
BODIES = {
    "linalg": f"""
    %row = memref.subview %x[%t, 0] [1, 5] [1, 1] : memref<3x5xf32> to {ROW}
    linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}} outs(%row : {ROW}) {{
    ^bb0(%v: f32):
      %r = arith.addf %v, %a : f32
      linalg.yield %r : f32
    }}
""",
    "scf.parallel": "scf.parallel (%i) = (%c0) to (%c5) step (%c1) {" + STEP,
    "scf.forall": "scf.forall (%i) in (5) {" + STEP,
    "affine.parallel": "affine.parallel (%i) = (0) to (5) {" + STEP,
    "affine.for": "affine.for %i = 0 to 5 {" + STEP,
}
SIZES = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 3, 5))


def launch(body: str) -> str:
    return f"""
func.func @f(%x: memref<3x5xf32>, %a: f32) {{
  {SIZES}
  linalg.fill ins(%a : f32) outs(%x : memref<3x5xf32>)
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%sx = %c3, %sy = %c1, %sz = %c1) {{
    {body}
    gpu.terminator
  }}
  return
}}
"""


def kernel(body: str) -> str:
    return f"""
module attributes {{gpu.container_module}} {{
gpu.module @m {{
  gpu.func @k(%x: memref<3x5xf32>, %a: f32) kernel {{
    {SIZES}
    %t = gpu.thread_id x
    {body}
    gpu.return
  }}
}}
func.func @f(%x: memref<3x5xf32>, %a: f32) {{
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  linalg.fill ins(%a : f32) outs(%x : memref<3x5xf32>)
  gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c3, %c1, %c1) args(%x : memref<3x5xf32>, %a : f32)
  return
}}
}}
"""


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("where", [launch, kernel], ids=["gpu.launch", "gpu.func"])
def test_each_thread_runs_its_body(where: object, name: str) -> None:
    program = where(BODIES[name])  # type: ignore[operator]
    x = np.zeros((3, 5), np.float32)
    on_host(program).f(x, 2.0)
    np.testing.assert_array_equal(x, 4 * np.ones((3, 5)))
    assert emit_text(program, "kernels").count("gpu.launch_func") == 2  # that of linalg.fill, and the author's
    assert len(emit(program, "object", ALL_TARGETS)) == 6


HELPED = """
func.func VISIBILITY @reversed(%n: index) -> index {
  %one = arith.constant 1 : index
  %t = gpu.thread_id x
  %last = arith.subi %n, %one : index
  %r = arith.subi %last, %t : index
  return %r : index
}
func.func @f(%x: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xindex>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %r = func.call @reversed(%n) : (index) -> index
    memref.store %r, %x[%tx] : memref<?xindex>
    gpu.terminator
  }
  return
}
"""


def test_functions_that_kernels_alone_call() -> None:
    """They may hold what only kernels can do; nothing of them is left in the host's code."""
    x = np.zeros(9, np.int64)
    on_host(HELPED.replace("VISIBILITY", "private")).f(x)
    np.testing.assert_array_equal(x, np.arange(9)[::-1])
    with pytest.raises(CompileError, match=r"'gpu\.thread_id' is for kernels, and this is host code.*must be private"):
        on_host(HELPED.replace("VISIBILITY", ""))


SUM = """
func.func private @sum(%x: memref<3x5xf32>, %t: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.parallel (%i) = (%c0) to (%c5) step (%c1) init (%zero) -> f32 {
    %v = memref.load %x[%t, %i] : memref<3x5xf32>
    scf.reduce(%v : f32) {
    ^bb0(%p: f32, %q: f32):
      %r = arith.addf %p, %q : f32
      scf.reduce.return %r : f32
    }
  }
  return %sum : f32
}
"""
CALL = """
    %s = func.call @sum(%x, %t) : (memref<3x5xf32>, index) -> f32
    memref.store %s, %x[%t, %c0] : memref<3x5xf32>
"""


def test_loops_of_functions_that_kernels_alone_call() -> None:
    """They are the kernels', and make none of their own."""
    program = SUM + launch(CALL)
    x = np.zeros((3, 5), np.float32)
    on_host(program).f(x, 2.0)
    np.testing.assert_array_equal(x, [[10, 2, 2, 2, 2]] * 3)
    assert sorted(on_host(program).kernels) == ["f_kernel", "f_kernel_0"]
    assert len(emit(program, "object", ALL_TARGETS)) == 6
    # One that the host calls, too, has kernels of its own besides its copy in theirs.
    public = on_host(program.replace("private @sum", "@sum"))
    assert sorted(public.kernels) == ["f_kernel", "f_kernel_0", "sum_kernel", "sum_kernel_0"]
    x[:] = 0
    public.f(x, 2.0)
    np.testing.assert_array_equal(x, [[10, 2, 2, 2, 2]] * 3)
    assert public.sum(x, 1) == 18
