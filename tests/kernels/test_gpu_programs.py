"""Kernels near the edges of what LLVM promises, on emulated devices of both vendors and on the CPU, against NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from compiling import emit_text, on_host
from emulator.driver import shared
from emulator.on_device import OnDevice, compiled, emulated

CHIPS = ("host", "gfx942", "gfx1100", "gfx1201", "sm_80", "sm_90")


@contextmanager
def running(source: str, chip: str) -> Iterator[Any]:
    """The program for a chip; inside, its kernels run there on NumPy's arrays."""
    if chip == "host":
        yield on_host(source)
        return
    driver = shared(emulated(chip)[1])
    with driver.chip(chip.split(",")[0]):
        yield OnDevice(compiled(source, chip))
        driver.check()


SMALL_ELEMENTS = """
gpu.module @m { gpu.func @k(%x: memref<?xi16>) workgroup(
    %odd: memref<5xi16, #gpu.address_space<workgroup>>, %w: memref<12xi16, #gpu.address_space<workgroup>>) kernel {
  %zero = arith.constant 0 : index
  %five = arith.constant 5 : index
  %t = gpu.thread_id x
  %first = arith.cmpi eq, %t, %zero : index
  %some = arith.cmpi ult, %t, %five : index
  %mine = memref.load %x[%t] : memref<?xi16>
  scf.if %some {
    memref.store %mine, %odd[%t] : memref<5xi16, #gpu.address_space<workgroup>>
  }
  scf.if %first {
    %v = vector.load %x[%zero] : memref<?xi16>, vector<8xi16>
    %twice = arith.addi %v, %v : vector<8xi16>
    vector.store %twice, %w[%zero] : memref<12xi16, #gpu.address_space<workgroup>>, vector<8xi16>
  }
  gpu.barrier
  %r = memref.load %w[%t] : memref<12xi16, #gpu.address_space<workgroup>>
  %rest = arith.remui %t, %five : index
  %o = memref.load %odd[%rest] : memref<5xi16, #gpu.address_space<workgroup>>
  %sum = arith.addi %r, %o : i16
  memref.store %sum, %x[%t] : memref<?xi16>
  gpu.return
} }
"""


@pytest.mark.parametrize("chip", CHIPS)
def test_workgroup_memory_of_small_elements(chip: str) -> None:
    """LLVM takes 16 bytes at once of an array whose elements are smaller, and aligns it for that."""
    x = np.arange(3, 11, dtype=np.int16)
    want = 2 * x + x[np.arange(8) % 5]
    with running(SMALL_ELEMENTS, chip) as library:
        library.kernels.k[1, 8](x)
    np.testing.assert_array_equal(x, want)


TABLE = """
gpu.module @m {
  memref.global "private" constant @before : memref<3xf32> = dense<[7.0, 8.0, 9.0]>
  memref.global "private" constant @table : memref<2x4xf32> = dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]>
  gpu.func @k(%row: index, %x: memref<4xf32>) kernel {
    %zero = arith.constant 0 : index
    %table = memref.get_global @table : memref<2x4xf32>
    %before = memref.get_global @before : memref<3xf32>
    %v = vector.load %table[%row, %zero] : memref<2x4xf32>, vector<4xf32>
    %b = memref.load %before[%row] : memref<3xf32>
    %s = vector.broadcast %b : f32 to vector<4xf32>
    %r = arith.addf %v, %s : vector<4xf32>
    vector.store %r, %x[%zero] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("chip", CHIPS)
def test_rows_of_constants(chip: str) -> None:
    x = np.zeros(4, np.float32)
    with running(TABLE, chip) as library:
        library.kernels.k[1, 1](1, x)
    np.testing.assert_array_equal(x, [13, 14, 15, 16])


@pytest.mark.parametrize(("source", "name"), [(SMALL_ELEMENTS, "__wg_k_1"), (TABLE, "table")])
def test_the_alignment_of_variables_is_written(source: str, name: str) -> None:
    """NVIDIA's backend would declare that of an element."""
    (line,) = [
        line for line in emit_text(source, "isa", ["nvvm:sm_80,format=isa"]).splitlines()
        if ".b8" in line and f" {name}[" in line
    ]  # fmt: skip
    assert ".align 16 " in line


CHOSEN = """
gpu.module @m {
  llvm.func internal @twice(%a: i32) -> i32 {
    %two = llvm.mlir.constant(2 : i32) : i32
    %r = llvm.mul %a, %two : i32
    llvm.return %r : i32
  }
  llvm.func internal @seven_more(%a: i32) -> i32 {
    %seven = llvm.mlir.constant(7 : i32) : i32
    %r = llvm.add %a, %seven : i32
    llvm.return %r : i32
  }
  gpu.func @k(%x: memref<?xi32>) kernel {
    %one = arith.constant 1 : index
    %t = gpu.thread_id x
    %twice = llvm.mlir.addressof @twice : !llvm.ptr
    %more = llvm.mlir.addressof @seven_more : !llvm.ptr
    %rest = arith.andi %t, %one : index
    %odd = arith.cmpi eq, %rest, %one : index
    %f = llvm.select %odd, %twice, %more : i1, !llvm.ptr
    %v = memref.load %x[%t] : memref<?xi32>
    %r = llvm.call %f(%v) : !llvm.ptr, (i32) -> i32
    memref.store %r, %x[%t] : memref<?xi32>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("chip", CHIPS)
def test_functions_that_each_thread_chooses(chip: str) -> None:
    x = np.arange(40, dtype=np.int32)
    want = np.where(x % 2 == 1, 2 * x, x + 7)
    with running(CHOSEN, chip) as library:
        library.kernels.k[1, 40](x)
    np.testing.assert_array_equal(x, want)


LEFT = """
gpu.module @m { gpu.func @k(%x: memref<2xi32>, %one: i32) kernel {
  %at = memref.extract_aligned_pointer_as_index %x : memref<2xi32> -> index
  %number = arith.index_cast %at : index to i64
  %there = llvm.inttoptr %number : i64 to !llvm.ptr
  %p = llvm.addrspacecast %there : !llvm.ptr to !llvm.ptr<1>
  %q = llvm.getelementptr %p[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  %a = llvm.atomicrmw usub_sat %p, %one monotonic : !llvm.ptr<1>, i32
  %b = llvm.atomicrmw udec_wrap %q, %one monotonic : !llvm.ptr<1>, i32
  gpu.return
} }
"""


@pytest.mark.parametrize("chip", CHIPS)
def test_atomic_differences_that_stop_at_zero(chip: str) -> None:
    """gfx12 has an instruction for them, others a loop."""
    x = np.array([30, 0], np.int32)
    with running(LEFT, chip) as library:
        library.kernels.k[2, 20](x, 1)
    np.testing.assert_array_equal(x, [0, 0])


SIDES = """
gpu.module @m { gpu.func @k(%out: memref<?xi32>) kernel {
  %zero = arith.constant 0 : index
  %three = arith.constant 3 : index
  %t = gpu.thread_id x
  %v = arith.index_cast %t : index to i32
  %rest = arith.remui %t, %three : index
  %here = arith.cmpi eq, %rest, %zero : index
  scf.if %here {
    %first = gpu.subgroup_broadcast %v, first_active_lane : i32
    memref.store %first, %out[%t] : memref<?xi32>
  } else {
    %first = gpu.subgroup_broadcast %v, first_active_lane : i32
    memref.store %first, %out[%t] : memref<?xi32>
  }
  gpu.return
} }
"""


@pytest.mark.parametrize("chip", [*CHIPS, "gfx942,O=0", "sm_80,O=0"])
def test_sides_of_a_branch_that_look_the_same(chip: str) -> None:
    """MLIR would make one of them, and all lanes get there together."""
    out, lane = np.full(32, -1, np.int32), np.arange(32)
    with running(SIDES, chip) as library:
        library.kernels.k[1, 32](out)
    np.testing.assert_array_equal(out, np.where(lane % 3 == 0, 0, 1))


VENDORS_SIDES = """
gpu.module @m { gpu.func @k(%o: memref<?x3xi32>) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %one = arith.constant 1 : i32
  %zero = arith.constant 0 : i32
  %t = gpu.thread_id x
  %n = arith.index_cast %t : index to i32
  %low = arith.andi %n, %one : i32
  %odd = arith.cmpi ne, %low, %zero : i32
  cf.cond_br %odd, ^first, ^second
^first:
  %a = rocdl.readfirstlane %n : i32
  memref.store %a, %o[%t, %c0] : memref<?x3xi32>
  cf.br ^after
^second:
  %b = rocdl.readfirstlane %n : i32
  memref.store %b, %o[%t, %c0] : memref<?x3xi32>
  cf.br ^after
^after:
  %v = amdgpu.dpp %n %n row_shr(0x1 : i32) : i32
  memref.store %v, %o[%t, %c1] : memref<?x3xi32>
  cf.cond_br %odd, ^again, ^end
^again:
  %w = amdgpu.dpp %n %n row_shr(0x1 : i32) : i32
  memref.store %w, %o[%t, %c2] : memref<?x3xi32>
  cf.br ^end
^end:
  gpu.return
} }
"""


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
def test_operations_of_a_vendor_see_the_lanes_of_their_branch(chip: str) -> None:
    """Two sides that look the same stay two, and what has a value before a branch is asked again inside."""
    found = np.full((32, 3), -1, np.int32)
    with running(VENDORS_SIDES, chip) as library:
        library.kernels.k[1, 32](found)
    t = np.arange(32)
    np.testing.assert_array_equal(found[:, 0], t % 2)
    before = np.where(t % 16, t - 1, t)  # a row's first lane keeps its own
    np.testing.assert_array_equal(found[:, 1], before)
    # Inside of the branch, the lane to the left is never active: its value is the old one, the lane's own.
    np.testing.assert_array_equal(found[1::2, 2], t[1::2])
