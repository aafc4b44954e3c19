"""Wrong results and surprises that were found once, each with the program that showed it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from compiling import ALL_TARGETS, EXAMPLES, command, emit_text, on_host, tool
from emulator.driver import Driver
from emulator.on_device import OnDevice, compiled

import offload

MATH = """
func.func @f(%x: memref<?xf32>, %e: memref<?xf32>, %l: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<?xf32>
    %a = math.expm1 %v : f32
    %b = math.log1p %v : f32
    memref.store %a, %e[%i] : memref<?xf32>
    memref.store %b, %l[%i] : memref<?xf32>
  }
  return
}
"""


def test_expm1_and_log1p_keep_their_precision_near_zero() -> None:
    x = np.array([1e-10, -1e-7, 1e-3, 0.5, 3], np.float32)
    powers, logs = np.zeros_like(x), np.zeros_like(x)
    on_host(MATH).f(x, powers, logs)
    np.testing.assert_allclose(powers, np.expm1(x), rtol=1e-6)
    np.testing.assert_allclose(logs, np.log1p(x), rtol=1e-6)


def test_loops_that_end_before_they_start_run_nothing() -> None:
    library = on_host("""
      func.func @f(%n: index, %x: memref<?xi32>) {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %v = arith.constant 7 : i32
        scf.parallel (%i) = (%c0) to (%n) step (%c1) {
          memref.store %v, %x[%i] : memref<?xi32>
        }
        return
      }
    """)
    x = np.zeros(4, np.int32)
    library.f(-1000, x)
    assert x.tolist() == [0, 0, 0, 0]
    library.f(2, x)
    assert x.tolist() == [7, 7, 0, 0]


def test_shuffles_of_amd_have_widths_that_are_powers_of_two() -> None:
    """The lowering masks with -width: all_reduce's number of active lanes would be masked to something else."""
    text = emit_text(EXAMPLES / "reduce.mlir", "llvm", ["rocdl:gfx942"])
    assert "ds.bpermute" in text
    assert not re.search(r"sub( nsw| nuw)* i32 0, %", text)


def test_square_roots_are_exact_unless_fast() -> None:
    text = MATH.replace("math.expm1", "math.sqrt").replace("math.log1p", "math.absf")
    assert "sqrt.rn.f32" in emit_text(text, "isa", ["nvvm:sm_90"])
    assert "sqrt.approx" in emit_text(text, "isa", ["nvvm:sm_90,fast"])


@pytest.mark.parametrize("target", ["host", "rocdl:gfx942"])
def test_operations_of_another_vendor_are_refused_at_their_line(target: str) -> None:
    text = """gpu.module @m {
      llvm.func @k(%x: !llvm.ptr) attributes {gpu.kernel} {
        %i = nvvm.read.ptx.sreg.tid.x : i32
        llvm.store %i, %x : i32, !llvm.ptr
        llvm.return
      }
    }"""
    with pytest.raises(
        offload.CompileError, match=r"<string>:3:14: error: 'nvvm.read.ptx.sreg.tid.x' is an operation of NVIDIA GPUs"
    ):
        offload.compile(text, targets=[target])


def test_functions_of_the_llvm_dialect_are_exported() -> None:
    library = offload.compile("llvm.func @f(%x: i32) -> i32 {\n  llvm.return %x : i32\n}\n", targets=["host"])
    assert library.f(5) == 5


def test_outputs_that_are_no_files_or_sources_stay_as_they_are(tmp_path: Path) -> None:
    source = tmp_path / "own.mlir"
    source.write_bytes((EXAMPLES / "saxpy.mlir").read_bytes())
    done = command("build", source, "-q", "-o", source, cwd=tmp_path)
    assert done.returncode == 1
    assert "it is one of the sources" in done.stderr
    assert source.read_bytes() == (EXAMPLES / "saxpy.mlir").read_bytes()
    (tmp_path / "folder").mkdir()
    assert "no regular file" in command("build", source, "-q", "-o", "folder", cwd=tmp_path).stderr
    (tmp_path / "link.so").symlink_to(tmp_path / "real.so")
    assert command("build", source, "-q", "-o", "link.so", cwd=tmp_path).returncode == 0
    assert (tmp_path / "link.so").is_symlink()
    assert (tmp_path / "real.so").stat().st_size > 1000


def test_targets_that_are_no_targets_are_refused() -> None:
    with pytest.raises(offload.TargetError, match="not 3"):
        offload.compile(EXAMPLES / "saxpy.mlir", targets=[3])  # type: ignore[list-item]


def test_a_program_without_positions(tmp_path: Path) -> None:
    """Front ends that keep no positions were refused: LLVM's verifier asks for one at every call."""
    stripped = tool("mlir-opt", "--strip-debuginfo", "--mlir-print-debuginfo", EXAMPLES / "saxpy.mlir")
    assert "loc(unknown)" in stripped
    x, y = np.arange(9, dtype=np.float32), np.ones(9, np.float32)
    on_host(stripped).saxpy(2, x, y)
    np.testing.assert_array_equal(y, 2 * x + 1)
    (tmp_path / "stripped.mlir").write_text(stripped)
    done = command(
        "build", "stripped.mlir", "-g", "-q", "-o", "out.so", *(f"-t{target}" for target in ALL_TARGETS), cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("lowering", "target"),
    [("convert-gpu-to-nvvm", "nvvm:sm_90"), ("convert-gpu-to-rocdl{chipset=gfx942}", "rocdl:gfx942")],
)
def test_a_lowered_kernel_of_several_blocks(lowering: str, target: str, tmp_path: Path) -> None:
    """Taking the body of such a kernel out of the host's module wrote to freed memory and ended the process."""
    passes = f"gpu-kernel-outlining,gpu.module(convert-scf-to-cf,{lowering},reconcile-unrealized-casts)"
    lowered = tool("mlir-opt", f"--pass-pipeline=builtin.module({passes})", EXAMPLES / "saxpy.mlir")
    assert "llvm.cond_br" in lowered
    (tmp_path / "lowered.mlir").write_text(lowered)
    done = command("build", "lowered.mlir", "-q", "-o", "out.so", "-t", target, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


LOOP = """
gpu.module @m { gpu.func @k(%x: memref<?xi32>, %rounds: index, %out: memref<?xi32>) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %t = gpu.thread_id x
  %v = memref.load %x[%t] : memref<?xi32>
  %r = scf.for %i = %c0 to %rounds step %c1 iter_args(%sum = %zero) -> i32 {
    %own = memref.alloca() : memref<1024xi32>
    %place = arith.addi %t, %i : index
    %other = arith.muli %t, %i : index
    memref.store %v, %own[%place] : memref<1024xi32>
    memref.store %zero, %own[%other] : memref<1024xi32>
    %w = memref.load %own[%place] : memref<1024xi32>
    %next = arith.addi %sum, %w : i32
    scf.yield %next : i32
  }
  memref.store %r, %out[%t] : memref<?xi32>
  gpu.return
} }
"""


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("target", ["nvvm:sm_90", "rocdl:gfx942"])
def test_a_loop_takes_private_memory_once(target: str, level: int) -> None:
    """Memory that a GPU reserves for a thread has the size of the frame, which alloca in a loop is not part of."""
    text = emit_text(LOOP, "llvm", [f"{target},O={level}"])
    assert " = alloca " in text
    entry, _, loops = text[text.index("define ") :].partition("\n\n")
    assert " = alloca " in entry
    assert " = alloca " not in loops


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1100,O=0"])
def test_a_loop_takes_private_memory_once_on_emulated_devices(driver: Driver, target: str) -> None:
    """More rounds than there is scratch memory for, if each took its own."""
    x, out, lane, rounds = np.arange(7, 39, dtype=np.int32), np.zeros(32, np.int32), np.arange(32), 30
    with driver.chip(target.split(",")[0]):
        OnDevice(compiled(LOOP, target)).kernels.k[1, 32](x, rounds, out)
    np.testing.assert_array_equal(out, sum(np.where(lane + i == lane * i, 0, x) for i in range(rounds)))


@pytest.mark.parametrize("target", ALL_TARGETS)
def test_vectors_in_memory_with_narrow_indices(target: str) -> None:
    source = """gpu.module @m { gpu.func @k(%x: memref<?xf32>, %y: memref<?x?xi1>) kernel {
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %v = vector.transfer_read %x[%t], %zero : memref<?xf32>, vector<4xf32>
      vector.store %v, %x[%t] : memref<?xf32>, vector<4xf32>
      %f = vector.load %y[%t, %t] : memref<?x?xi1>, vector<2xi1>
      vector.store %f, %y[%t, %t] : memref<?x?xi1>, vector<2xi1>
      gpu.return
    } }"""
    offload.compile(source, targets=[f"{target},index=32"])
