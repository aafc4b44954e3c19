"""Kernels that were built for some blocks and grids: launches with others are refused, wherever they would run."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, emit_text, on_host, program

import offload
from offload.artifact.meta import KernelSignature
from offload.errors import ArtifactError, CompileError, DeviceError, SignatureError

LAUNCH = """
func.func @numbers(%x: memref<?xindex>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%nx = %c32, %ny = %c1, %nz = %c1) {
    %base = arith.muli %bx, %nx : index
    %i = arith.addi %base, %tx : index
    %inside = arith.cmpi ult, %bx, %c2 : index
    scf.if %inside {
      memref.store %i, %x[%i] : memref<?xindex>
    }
    gpu.terminator
  }
  return
}
"""
DECLARED = """
gpu.module @device {
  gpu.func @numbers(%x: memref<?xindex>) kernel attributes {known_block_size = array<i32: 8, 4, 1>} {
    %i = gpu.thread_id x
    memref.store %i, %x[%i] : memref<?xindex>
    gpu.return
  }
}
"""


def test_constants_of_a_launch() -> None:
    """The code has no condition left: a third block would write."""
    library = on_host(LAUNCH)
    there = library.device.array(np.zeros(96, np.int64))
    kernel = library.kernels.numbers_kernel
    assert (kernel.signature.known_block_size, kernel.signature.known_grid_size) == ((32, 1, 1), (2, 1, 1))
    for grid, block, what, wrong, known in (
        (3, 32, "grid", "(3, 1, 1)", "(2, 1, 1)"),
        ((2, 2), 32, "grid", "(2, 2, 1)", "(2, 1, 1)"),
        (2, 64, "block", "(64, 1, 1)", "(32, 1, 1)"),
        (2, (16, 2), "block", "(16, 2, 1)", "(32, 1, 1)"),
    ):
        with pytest.raises(SignatureError) as caught:
            kernel[grid, block](there)
        assert f"with a {what} of {wrong}; its code counts on {known}, its known_{what}_size" in str(caught.value)
    np.testing.assert_array_equal(there.numpy(), np.zeros(96))
    kernel[2, 32](there)
    kernel[(2, 1), (32, 1, 1)](there)
    np.testing.assert_array_equal(there.numpy(), [*range(64), *[0] * 32])


def test_a_declared_block_and_any_grid() -> None:
    kernel = on_host(DECLARED).kernels.numbers
    x = np.zeros(8, np.int64)
    with pytest.raises(SignatureError, match=r"its known_block_size: launch it with that, or build it without"):
        kernel[1, 32](x)
    for grid in 1, 3:
        kernel[grid, (8, 4)](x)
        np.testing.assert_array_equal(x, range(8))


@pytest.mark.parametrize("target", ALL_TARGETS)
def test_a_grid_that_a_launch_contradicts_is_not_believed(target: str) -> None:
    """MLIR's lowering believes it in any case, and leaves nothing of the kernel."""
    text = emit_text(PROGRAMS / "known_sizes.mlir", "llvm", [target])
    assert "store i32 3" in text


def test_older_names_are_known_sizes() -> None:
    library = program("known_sizes")
    known = {name: library.kernels[name].signature.known_block_size[0] for name in library.kernels}
    assert known == {"agreed": 32, "contradicted": 32, "own": 8}
    assert library.kernels.contradicted.signature.known_grid_size == ()
    x = np.zeros(128, np.int32)
    library.run(x)
    np.testing.assert_array_equal(x, [32] * 32 + [0] * 64 + [3] * 32)
    library.kernels.own[1, 8](x)
    np.testing.assert_array_equal(x[:9], [8] * 8 + [32])


def test_the_form_of_functions_of_the_llvm_dialect() -> None:
    source = """
gpu.module @device {
  llvm.func @k() attributes {gpu.kernel, gpu.known_block_size = array<i32: 32, 1, 1>} {
    llvm.return
  }
}
func.func @run() {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch_func @device::@k blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
  return
}
"""
    assert on_host(source).kernels.k.signature.known_block_size == (32, 1, 1)
    with pytest.raises(CompileError, match="a block of 16 along x, but its kernel says gpu") as caught:
        offload.compile(source.replace("constant 32", "constant 16"), targets=["host"])
    assert caught.value.diagnostics[0].line == 10


def test_a_launch_of_no_blocks_may_have_any_sizes() -> None:
    library = on_host(
        (PROGRAMS / "known_sizes.mlir").read_text().replace("%c4 = arith.constant 4", "%c4 = arith.constant 0")
    )
    x = np.zeros(128, np.int32)
    library.run(x)
    np.testing.assert_array_equal(x, [32] * 32 + [0] * 96)


def test_launches_of_sizes_that_show_at_run_time() -> None:
    source = """
gpu.module @device {
  gpu.func @k(%x: memref<?xi32>) kernel
      attributes {known_block_size = array<i32: 8, 1, 1>, known_grid_size = array<i32: 2, 1, 1>} {
    %one = arith.constant 1 : i32
    %i = gpu.global_id x
    memref.store %one, %x[%i] : memref<?xi32>
    gpu.return
  }
}
func.func @run(%x: memref<?xi32>, %grid: index, %block: i32) {
  %c1 = arith.constant 1 : index
  %b = arith.index_cast %block : i32 to index
  gpu.launch_func @device::@k blocks in (%grid, %c1, %c1) threads in (%b, %c1, %c1) args(%x : memref<?xi32>)
  return
}
"""
    x = np.zeros(64, np.int32)
    run = on_host(source).run
    for grid, block, what, known in (4, 8, "grid", 2), (2, 16, "block", 8):
        message = f"the {what} along x has to be the kernel's known_{what}_size: {2 * known} and {known}"
        with pytest.raises(DeviceError, match=f"<string>:14: .*{message}"):
            run(x, grid, block)
    run(x, 0, 8)
    run(x, 0, 64)
    np.testing.assert_array_equal(x, np.zeros(64))
    run(x, 2, 8)
    np.testing.assert_array_equal(x, [*[1] * 16, *[0] * 48])


@pytest.mark.parametrize("sizes", [[1, 2], [1, 2, "3"], [1.0, 2, 3], {}, 7])
def test_sizes_that_are_none(sizes: object) -> None:
    with pytest.raises(ArtifactError, match="known_block_size"):
        KernelSignature.from_json({"name": "k", "module": "m", "args": [], "known_block_size": sizes})
