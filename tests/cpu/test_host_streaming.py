"""Launches that write more than caches hold: stores around the caches where they may be, results as ever."""

from __future__ import annotations

import platform
import re
from typing import Any

import numpy as np
import pytest
from compiling import ROOT, emit_text, on_host

LARGE = 9 << 20  # elements of four bytes: more than is taken to stay in a cache

PROGRAM = """
func.func @run(%x: memref<?xTYPE, strided<[1], offset: ?>>, %out: memref<?xTYPE, strided<[1], offset: ?>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xTYPE, strided<[1], offset: ?>>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<?xTYPE, strided<[1], offset: ?>>
    BODY
  }
  return
}
"""
STORE = "memref.store %w, %out[%i] : memref<?xTYPE, strided<[1], offset: ?>>"
DOUBLED = {
    kind: PROGRAM.replace("BODY", f"%w = arith.{op} %v, %v : TYPE\n    {STORE}").replace("TYPE", kind)
    for kind, op in (("f32", "addf"), ("f64", "addf"), ("i8", "addi"), ("i16", "addi"))
}
IN_PLACE = PROGRAM.replace("BODY", f"%w = arith.addf %v, %v : TYPE\n    {STORE.replace('%out', '%x')}").replace(
    "TYPE", "f32"
)
COUNTED = PROGRAM.replace(
    "BODY", f"%w = arith.addf %v, %v : TYPE\n    {STORE}\n"
    "    %old = memref.atomic_rmw addf %v, %out[%c0] : (TYPE, memref<?xTYPE, strided<[1], offset: ?>>) -> TYPE"
).replace("TYPE", "f32")  # fmt: skip


def spread(stores: int) -> str:
    """A program whose threads each write that many elements, far from each other."""
    lines = ["%w = arith.addf %v, %v : f32"]
    for k in range(stores):
        lines.append(f"%far{k} = arith.constant {k << 20} : index")
        lines.append(f"%at{k} = arith.addi %i, %far{k} : index")
        lines.append(STORE.replace("%i", f"%at{k}"))
    return PROGRAM.replace("BODY", "\n    ".join(lines)).replace("TYPE", "f32")


def lines(stores: int) -> str:
    """A program whose threads each write so many whole cache lines side by side."""
    parts = [f"%n = arith.constant {16 * stores} : index", "%o = arith.muli %i, %n : index"]
    for k in range(stores):
        parts.append(f"%k{k} = arith.constant {16 * k} : index")
        parts.append(f"%at{k} = arith.addi %o, %k{k} : index")
        parts.append(f"vector.store %v, %y[%at{k}] : memref<?xf32>, vector<16xf32>")
    body = "\n    ".join(parts)
    return f"""
gpu.module @m {{
  gpu.func @k(%a: f32, %y: memref<?xf32>) kernel {{
    %v = vector.broadcast %a : f32 to vector<16xf32>
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %d = gpu.block_dim x
    %first = arith.muli %b, %d : index
    %i = arith.addi %first, %t : index
    {body}
    gpu.return
  }}
}}
"""


def placed(count: int, dtype: Any, beside: int) -> Any:
    """Ones, ``beside`` bytes behind the begin of a cache line, with more memory on both sides."""
    raw = np.zeros(count * np.dtype(dtype).itemsize + 192, np.uint8)
    begin = -raw.ctypes.data % 64 + 64 + beside
    array = raw[begin : begin + count * np.dtype(dtype).itemsize].view(dtype)
    array[:] = 1
    return array


@pytest.mark.parametrize("kind", DOUBLED)
@pytest.mark.parametrize("beside", (0, 16, 8))
def test_every_element_and_no_other(kind: str, beside: int) -> None:
    dtype = np.dtype({"f32": "f4", "f64": "f8", "i8": "i1", "i16": "i2"}[kind])
    library = on_host(DOUBLED[kind], target="host:native")
    for count in (4 * LARGE // dtype.itemsize + 1000, 4 * LARGE // dtype.itemsize + 77, 1000):
        x, out = placed(count, dtype, beside), placed(count, dtype, beside)
        library.run(x, out)
        assert (out == 2).all() and (x == 1).all()
        assert out.base is not None
        around = np.asarray(out.base).view(np.uint8)
        begin = out.ctypes.data - around.ctypes.data
        assert not around[:begin].any() and not around[begin + out.nbytes :].any()


BORDERED = """
gpu.module @kernels {
  gpu.func @double_inside(%x: memref<?x?xf32>, %out: memref<?x?xf32>, %from: index) kernel
      attributes {known_block_size = array<i32: 32, 8, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %rows = memref.dim %x, %c0 : memref<?x?xf32>
    %columns = memref.dim %x, %c1 : memref<?x?xf32>
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %x0 = arith.muli %bx, %c32 : index
    %y0 = arith.muli %by, %c8 : index
    %k = arith.addi %x0, %tx : index
    %i = arith.addi %y0, %ty : index
    %many = arith.subi %columns, %from : index
    %row_in = arith.cmpi ult, %i, %rows : index
    %column_in = arith.cmpi ult, %k, %many : index
    %inside = arith.andi %row_in, %column_in : i1
    scf.if %inside {
      %j = arith.addi %k, %from : index
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %out[%i, %j] : memref<?x?xf32>
    }
    gpu.return
  }
}
"""


@pytest.mark.parametrize("columns", (1 << 23, (1 << 12) + 2, 200))
@pytest.mark.parametrize("beside", (0, 4, 60))
def test_rows_that_begin_anywhere(columns: int, beside: int) -> None:
    """Behind a border, and in arrays that themselves begin beside a cache line."""
    rows = -(-LARGE // columns)
    library = on_host(BORDERED, target="host:native")
    x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    out = placed(rows * columns, np.float32, beside).reshape(rows, columns)
    grid = (-(-columns // 32), -(-rows // 8))
    for first in (0, 1, 7, 15):
        out[:] = 1
        library.kernels.double_inside[grid, (32, 8)](x, out, first)
        assert (out[:, first:] == 2 * x[:, first:]).all()
        assert (out[:, :first] == 1).all()


SOFTMAX = (ROOT / "bench/host/programs/softmax.mlir").read_text()  # writes a row, then reads it to scale it


def test_in_place() -> None:
    x = placed(LARGE, np.float32, 0)
    on_host(IN_PLACE, target="host:native").run(x, x)
    assert (x == 2).all()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads assembly of x86-64")
def test_whole_vectors_behind_a_border() -> None:
    text = emit_text(BORDERED, "isa", ["host:x86-64-v3"])
    assert re.search(r"vmovntps\s+%ymm", text)
    in_place = emit_text(BORDERED.replace("memref.load %x", "memref.load %out"), "isa", ["host:x86-64-v3"])
    assert "vmovnt" not in in_place


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads assembly of x86-64")
@pytest.mark.parametrize(
    ("program", "streams"),
    [
        *((each, True) for each in DOUBLED.values()),
        (spread(2), True),
        (spread(65), False),
        (lines(80), True),
        (IN_PLACE, False),
        (COUNTED, False),
        (SOFTMAX, False),
    ],
    ids=[
        *DOUBLED,
        "two places",
        "more places than lines under way",
        "many lines",
        "read, too",
        "atomics",
        "read in another loop",
    ],
)
@pytest.mark.parametrize("level", ("x86-64", "x86-64-v3", "x86-64-v4"))
def test_the_instructions(program: str, streams: bool, level: str) -> None:
    text = emit_text(program, "isa", [f"host:{level}"])
    assert ("movnt" in text) == streams
    assert ("sfence" in text) == streams
