"""Loops of threads of which GPUs take several steps at once: what they load, store and hand on stays in order."""

from __future__ import annotations

import re

import numpy as np
import pytest
from compiling import PROGRAMS, emit_text, on_host
from emulator.on_device import OnDevice
from emulator.running import running_on

import offload

PROGRAM = PROGRAMS / "joined_steps.mlir"

_random = np.random.default_rng(29)


def integers(*shape: int) -> np.ndarray:
    return _random.integers(-(2**31), 2**31, shape, np.int32)


def check(library: offload.Library | OnDevice) -> None:
    x = integers(1000)
    for first, end in ((0, 1000), (3, 64), (7, 7), (900, 20), (5, 70), (0, 192), (0, 193), (1, 515)):
        sums = np.zeros(64, np.int32)
        library.kernels.added[1, 64](x, sums, first, end)
        for t in range(64):
            expected = np.int32(0)
            with np.errstate(over="ignore"):
                for value in x[t + first : max(end, 0) : 64]:
                    expected = expected * np.int32(3) + (value ^ np.int32(3))
            assert sums[t] == expected, (first, end, t)
    for first, end, step in (
        (0, 1000, 64),
        (-900, 31, 7),
        (-5, -5, 1),
        (-2000, -1000, 250),
        (0, 10, 100),
        (0, 10, 2**30),
        (5, -(2**31), 1),
    ):
        found = np.zeros((64, 2), np.int32)
        library.kernels.strided[1, 64](x, found, first, end, step)
        for t in range(64):
            numbers = np.arange(t + first, end, step)
            places = np.abs(np.fmod(numbers, 1000)).astype(int)
            assert found[t, 0] == x[places].sum(dtype=np.int32) and found[t, 1] == numbers.sum(), (first, end, step, t)
    y = integers(50)
    expected = np.cumsum(y, dtype=np.int32)
    library.kernels.stepwise[1, 1](y, 50)
    np.testing.assert_array_equal(y, expected)
    sums = np.zeros(32, np.int32)
    library.kernels.exchanging[1, 32](x, sums)
    np.testing.assert_array_equal(sums, [x[: t // 2].sum(dtype=np.int32) for t in range(32)])


def test_on_the_cpu() -> None:
    check(on_host(PROGRAM))


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx1100", "gfx1201", "sm_80"])
def test_on_devices(chip: str) -> None:
    with running_on(chip, PROGRAM) as library:
        check(library)


def test_what_an_author_says_of_a_loop_reaches_llvm() -> None:
    """In kernels and in host code; a loop that is not to be unrolled stays as it is."""
    kept = " {llvm.loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}"
    source = f"""
    func.func @host(%x: memref<?xi32>, %n: index) -> i32 attributes {{llvm.emit_c_interface}} {{
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0 : i32
      %sum = scf.for %i = %c1 to %n step %c1 iter_args(%s = %zero) -> i32 {{
        %v = memref.load %x[%i] : memref<?xi32>
        %r = arith.addi %s, %v : i32
        scf.yield %r : i32
      }}{kept}
      return %sum : i32
    }}
    gpu.module @m {{
      gpu.func @k(%x: memref<?xi32>, %n: index, %step: index) kernel {{
        %zero = arith.constant 0 : i32
        %t = gpu.thread_id x
        %sum = scf.for %i = %t to %n step %step iter_args(%s = %zero) -> i32 {{
          %v = memref.load %x[%i] : memref<?xi32>
          %r = arith.addi %s, %v : i32
          scf.yield %r : i32
        }}{kept}
        memref.store %sum, %x[%t] : memref<?xi32>
        gpu.return
      }}
    }}"""
    for stage, targets in (("host-llvm", ["host"]), ("llvm", ["nvvm:sm_90"]), ("llvm", ["rocdl:gfx1100"])):
        text = emit_text(source, stage, targets)
        assert "llvm.loop.unroll.disable" in text
        assert len(re.findall(r"load i32, ptr(?: addrspace\(1\))? %", text)) == 1, text


ROWS = """
func.func @sums(%x: tensor<?x?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %empty = tensor.empty(%m) : tensor<?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%zeros : tensor<?xf32>) dimensions = [1]
  return %r : tensor<?xf32>
}
"""


def test_loads_of_rows_are_on_their_way_together() -> None:
    """On AMD GPUs, whose compiler takes a step after the other: four loads before the first is waited for."""
    letters = {"global_load_dword": "L", "v_add_f32": "A", ".LBB": "|"}
    found = re.findall("global_load_dword|v_add_f32|[.]LBB", emit_text(ROWS, "isa", ["rocdl:gfx942"]))
    assert "LLLLAAAA" in "".join(letters[each] for each in found)
