"""Many kernels for the CPU are compiled in parts, side by side; the library is the same however many at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from compiling import emit_text, on_host

import offload
from offload.api import make_request
from offload.compiler.driver import Program
from offload.compiler.request import Source

KERNEL = """
  gpu.func @k{number}(%x: memref<?xf32>, %n: index) kernel {{
    %i = gpu.global_id x
    %inside = arith.cmpi ult, %i, %n : index
    scf.if %inside {{
      %v = memref.load %x[%i] : memref<?xf32>
      %c = arith.constant {number}.0 : f32
      %s = func.call @shared(%v, %c) : (f32, f32) -> f32
      memref.store %s, %x[%i] : memref<?xf32>
    }}
    gpu.return
  }}"""
CALL = """
func.func @f{number}(%x: memref<?xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %blocks = arith.ceildivui %n, %c64 : index
  gpu.launch_func @m::@k{number} blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%x : memref<?xf32>, %n : index)
  return
}}"""
SHARED = """
  func.func private @shared(%v: f32, %c: f32) -> f32 {
    %e = math.sin %v : f32
    %s = arith.addf %e, %c : f32
    return %s : f32
  }"""
COUNTER = """
  memref.global "private" @counter : memref<1xi32> = dense<0>"""


def text_of(count: int, shared: str = SHARED) -> str:
    kernels = "".join(KERNEL.format(number=i) for i in range(count))
    calls = "".join(CALL.format(number=i) for i in range(count))
    return f"module attributes {{gpu.container_module}} {{\ngpu.module @m {{{shared}{kernels}\n}}{calls}\n}}\n"


def objects_of(text: str) -> int:
    """The object files of the module's kernels."""
    with Program(make_request([Source("<string>", text.encode())], ["host"])) as program:
        program.make_kernels()
        (build,) = program._device_builds()
        return len(build.stage("llvm").emit_objects())


def test_all_kernels_are_there_and_right() -> None:
    library = on_host(text_of(24))
    x = np.linspace(-3, 3, 100, dtype=np.float32)
    for number in range(24):
        y = x.copy()
        getattr(library, f"f{number}")(y)
        np.testing.assert_allclose(y, np.sin(x) + np.float32(number), rtol=1e-6, atol=1e-6)


def test_few_stay_together() -> None:
    assert objects_of(text_of(2)) == 1
    assert objects_of(text_of(24)) > 1


def test_stages_show_them_all() -> None:
    text = text_of(24)
    for stage in ("llvm", "isa"):
        shown = emit_text(text, stage)
        assert all(f"k{number}.info" in shown for number in range(24))


def test_the_number_of_processors_changes_nothing(tmp_path: Path) -> None:
    source = tmp_path / "many.mlir"
    source.write_text(text_of(24))
    made = []
    for name, processors in (("one.so", {min(os.sched_getaffinity(0))}), ("all.so", os.sched_getaffinity(0))):
        code = f"import os, sys; os.sched_setaffinity(0, {processors}); import offload; offload.build(*sys.argv[1:3])"
        environment = os.environ | {"OFFLOAD_CACHE_DIR": "", "OFFLOAD_TARGETS": "host"}
        output = tmp_path / name
        subprocess.run([sys.executable, "-c", code, source, output], check=True, env=environment, cwd=tmp_path)
        made.append(output.read_bytes())
    assert made[0] == made[1]


def test_memory_that_kernels_share_is_one() -> None:
    """A variable of the module: kernels that use it stay together."""
    kernel = """
  gpu.func @add{number}(%to: memref<1xi32>) kernel {{
    %c0 = arith.constant 0 : index
    %counter = memref.get_global @counter : memref<1xi32>
    %by = arith.constant {number} : i32
    %old = memref.load %counter[%c0] : memref<1xi32>
    %new = arith.addi %old, %by : i32
    memref.store %new, %counter[%c0] : memref<1xi32>
    memref.store %new, %to[%c0] : memref<1xi32>
    gpu.return
  }}"""
    call = """
func.func @count{number}(%to: memref<1xi32>) {{
  %c1 = arith.constant 1 : index
  gpu.launch_func @m::@add{number} blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%to : memref<1xi32>)
  return
}}"""
    adding = "".join(kernel.format(number=i) for i in (1, 2, 3))
    text = (
        text_of(24, SHARED + COUNTER + adding).rstrip()[:-1] + "".join(call.format(number=i) for i in (1, 2, 3)) + "}"
    )
    assert objects_of(text) > 1
    library = offload.compile(text, targets=["host"])
    library.use("host")
    to, sum_of_all = np.zeros(1, np.int32), 0
    for number in (1, 2, 3, 3, 1):
        getattr(library, f"count{number}")(to)
        sum_of_all += number
        assert to[0] == sum_of_all
