"""Programs that carry their own schedule, in the transform dialect: it runs first, and is gone from what is built."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from compiling import command, emit, emit_text, on_host

import offload

PACKED = """
module attributes {transform.with_named_sequence} {
  func.func @packed(%a: tensor<?x?xf32>, %b: tensor<?x?x8x2xf32>) -> tensor<?x?x8x2xf32> {
    %z = arith.constant 0.0 : f32
    %r = linalg.pack %a padding_value(%z : f32) inner_dims_pos = [0, 1] inner_tiles = [8, 2] into %b
      : tensor<?x?xf32> -> tensor<?x?x8x2xf32>
    return %r : tensor<?x?x8x2xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %m = transform.structured.match ops{["linalg.pack"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %m vector_sizes [2, 4, 8, 2] : !transform.any_op
    transform.yield
  }
}
"""

LOOPS = """
func.func @scaled(%x: memref<6x40xf32>, %by: f32) {
  scf.forall (%i) in (6) {
    scf.forall (%j) in (40) {
      %v = memref.load %x[%i, %j] : memref<6x40xf32>
      %r = arith.mulf %v, %by : f32
      memref.store %r, %x[%i, %j] : memref<6x40xf32>
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}
"""
SEQUENCE = """
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %f = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    %launch = transform.gpu.map_forall_to_blocks %f generate_gpu_launch : (!transform.any_op) -> !transform.any_op
    %mapped = transform.gpu.map_nested_forall_to_threads %launch block_dims = [64, 1, 1]
        : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
"""
MARKED = "module attributes {transform.with_named_sequence} {"
NESTED = LOOPS + MARKED + SEQUENCE + "}\n"
TOGETHER = MARKED + LOOPS + SEQUENCE + "}\n"

MATMUL = """
func.func @product(%a: memref<16x4xf32>, %b: memref<4x8xf32>, %c: memref<16x8xf32>) {
  %one = arith.constant 1 : index
  %warp = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %warp, %sy = %one, %sz = %one) {
    linalg.matmul ins(%a, %b : memref<16x4xf32>, memref<4x8xf32>) outs(%c : memref<16x8xf32>)
    gpu.terminator
  }
  return
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %m = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.nvgpu.rewrite_matmul_as_mma_sync %m : (!transform.any_op) -> ()
    transform.yield
  }
}
"""
TILED = """
module attributes {transform.with_named_sequence} {
  func.func @product(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %c: tensor<?x?xf32>) -> tensor<?x?xf32> {
    %r = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
    return %r : tensor<?x?xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %m = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:3 = transform.structured.tile_using_for %m tile_sizes [8, 8, 4]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
"""

MASKED = TILED.replace(
    "    transform.yield",
    "    transform.structured.vectorize %tiled vector_sizes [8, 8, 4] : !transform.any_op\n    transform.yield",
)

TAKEN = """
module attributes {transform.with_named_sequence} {
  func.func @two(%a: memref<?xf32>, %b: memref<?xf32>, %c: memref<?xf32>, %d: memref<?xf32>) {
    linalg.exp ins(%a : memref<?xf32>) outs(%b : memref<?xf32>)
    linalg.abs ins(%c : memref<?xf32>) outs(%d : memref<?xf32>)
    return
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %e = transform.structured.match ops{["linalg.exp"]} in %root : (!transform.any_op) -> !transform.any_op
    %loops = transform.structured.convert_to_loops %e : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
"""


@pytest.mark.parametrize("program", [NESTED, TOGETHER], ids=["module of its own", "module of the program"])
def test_the_schedule_runs_first(program: str) -> None:
    x = np.arange(240, dtype=np.float32).reshape(6, 40)
    expected = 2 * x
    on_host(program).scaled(x, 2.0)
    np.testing.assert_array_equal(x, expected)
    kernels = emit_text(program, "kernels")
    assert "transform" not in kernels
    assert kernels.count("gpu.launch_func") == 1  # the author's mapping, not a kernel per loop


def test_it_may_choose_instructions_of_a_vendor() -> None:
    (lowered,) = emit(MATMUL, "isa", ["nvvm:sm_80"])
    assert b"mma.sync.aligned.m16n8k4" in lowered.data
    with pytest.raises(offload.CompileError, match=r"'nvgpu\.mma\.sync' is an operation of NVIDIA GPUs"):
        emit(MATMUL, "so")


def test_sizes_are_those_of_what_is_tiled() -> None:
    """Of the tiles alone it would not show that a product's factors do not fit."""
    product = on_host(TILED).product
    a, b, c = (np.ones(shape, np.float32) for shape in ((10, 7), (7, 9), (10, 9)))
    np.testing.assert_array_equal(product(a, b, c).numpy(), np.full((10, 9), 8))
    assert "product(a: float32[n, m], b: float32[m, k], c: float32[n, k]) -> float32[n, k]" in repr(product)
    for wrong in ((a, b[:6], c), (a, np.ones((9, 9), np.float32), c), (a, b, c[:, :8]), (a[:8], b, c)):
        with pytest.raises(offload.SignatureError):
            product(*wrong)


def test_tiles_may_be_vectors_with_masks() -> None:
    """A tile's size is asserted in front of the mask that it is used in, which is around one operation alone."""
    rng = np.random.default_rng(3)
    a, b, c = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((7, 5), (5, 13), (7, 13)))
    np.testing.assert_array_equal(on_host(MASKED).product(a, b, c).numpy(), a @ b + c)


def test_what_is_written_under_a_mask_is_not_the_argument() -> None:
    a, b = np.arange(65, dtype=np.float32).reshape(13, 5), np.zeros((2, 3, 8, 2), np.float32)
    expected = np.pad(a, ((0, 3), (0, 1))).reshape(2, 8, 3, 2).transpose(0, 2, 1, 3)
    np.testing.assert_array_equal(on_host(PACKED).packed(a, b).numpy(), expected)
    assert not b.any()


def test_what_is_used_again_is_not_written_under_a_mask() -> None:
    again = """
func.func @f(%n: index, %v: vector<4xf32>, %e: f32) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %old = tensor.splat %e : tensor<4xf32>
  %mask = vector.create_mask %n : vector<4xi1>
  %new = vector.mask %mask {
    vector.transfer_write %v, COPY[%c0] {in_bounds = [true]} : vector<4xf32>, tensor<4xf32>
  } : vector<4xi1> -> tensor<4xf32>
  %a = tensor.extract %old[%c0] : tensor<4xf32>
  %b = tensor.extract %new[%c0] : tensor<4xf32>
  return %a, %b : f32, f32
}
"""
    with pytest.raises(offload.CompileError, match=r"used again, so copy it in front of the mask") as told:
        emit(again.replace("COPY", "%old"), "so")
    assert [diagnostic.line for diagnostic in told.value.diagnostics if diagnostic.severity == "error"] == [6]
    copied = again.replace("  %mask =", "  %own = bufferization.alloc_tensor() copy(%old) : tensor<4xf32>\n  %mask =")
    emit(copied.replace("COPY", "%own"), "so")


def test_what_a_schedule_leaves_does_not_hide_what_it_took() -> None:
    """The sizes of one operation are found before the schedule runs, those of the other one again behind it."""
    two = on_host(TAKEN).two
    assert "two(a: float32[n], b: float32[n], c: float32[m], d: float32[m])" in repr(two)
    a, b, c, d = (np.ones(size, np.float32) for size in (10, 10, 12, 12))
    two(a, b, c, d)
    np.testing.assert_allclose(b, np.full(10, np.e), rtol=1e-6)
    with pytest.raises(offload.SignatureError, match="dimension 0 has to be 10"):
        two(a, b[:4], c, d)


def test_a_schedule_that_does_not_apply_is_an_error_at_its_line(tmp_path: Path) -> None:
    wrong = NESTED.replace("[64, 1, 1]", "[32, 1, 1]")  # fewer threads than the loop needs
    (tmp_path / "p.mlir").write_text(wrong)
    done = command("build", "p.mlir", "-q", cwd=tmp_path)
    line = next(i for i, text in enumerate(wrong.splitlines(), 1) if "map_nested_forall" in text)
    assert done.returncode == 1
    assert f"p.mlir:{line}:" in done.stderr
    nameless = NESTED.replace("__transform_main", "my_schedule")
    (tmp_path / "p.mlir").write_text(nameless)
    done = command("build", "p.mlir", "-q", cwd=tmp_path)
    assert done.returncode == 1
    assert "__transform_main" in done.stderr


LIBRARY = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @marked(%op: !transform.any_op {transform.readonly}) {
    transform.debug.emit_remark_at %op, "found" : !transform.any_op
    transform.yield
  }
}
"""
USER = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @marked(%op: !transform.any_op {transform.readonly})
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %f = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.include @marked failures(propagate) (%f) : (!transform.any_op) -> ()
    transform.yield
  }
}
func.func @two() -> i32 {
  %c = arith.constant 2 : i32
  return %c : i32
}
"""


def test_a_library_and_remarks(tmp_path: Path) -> None:
    """What one source declares, another one defines; and what a schedule remarks is shown, at its line."""
    (tmp_path / "library.mlir").write_text(LIBRARY)
    (tmp_path / "p.mlir").write_text(USER)
    done = command("run", "p.mlir", "library.mlir", "--entry", "two", cwd=tmp_path)
    assert "p.mlir:10:1: remark: found" in done.stderr
    assert (done.returncode, done.stdout) == (0, "2\n")


def test_an_empty_module_is_left_behind() -> None:
    """As MLIR's transform-interpreter leaves one whose schedule was removed."""
    text = USER[USER.index("func.func @two") :] + "module attributes {transform.with_named_sequence} {\n}\n"
    assert on_host(text).two() == 2


def test_the_pipeline_names_it(tmp_path: Path) -> None:
    (tmp_path / "p.mlir").write_text(NESTED)
    done = command("build", "p.mlir", "--print-pipeline", cwd=tmp_path)
    steps = [line for line in done.stdout.splitlines() if line.startswith("builtin.module(")]
    passes = "offload-equal-sizes,offload-join-transforms,transform-interpreter,offload-erase-transforms"
    assert steps[0] == f"builtin.module({passes})"
    assert steps[2].startswith("builtin.module(offload-private-names,offload-check-input")


def test_a_sequence_without_a_name_is_told_where_schedules_are() -> None:
    nameless = """
transform.sequence failures(propagate) {
^bb0(%root: !transform.any_op):
  %f = transform.structured.match ops{["scf.forall"]} in %root : (!transform.any_op) -> !transform.any_op
  transform.annotate %f "seen" : !transform.any_op
}
"""
    with pytest.raises(offload.CompileError, match=r"a schedule is the transform\.named_sequence @__trans") as told:
        emit(LOOPS + nameless, "so")
    assert [diagnostic.line for diagnostic in told.value.diagnostics] == [13]
