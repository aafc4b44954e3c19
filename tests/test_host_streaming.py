"""Launches that write more than caches hold: stores around the caches where they may be, results as ever."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import pytest
from compiling import emit_text, on_host

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


def test_in_place() -> None:
    x = placed(LARGE, np.float32, 0)
    on_host(IN_PLACE, target="host:native").run(x, x)
    assert (x == 2).all()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads assembly of x86-64")
@pytest.mark.parametrize(
    ("program", "streams"),
    [(DOUBLED["f32"], True), (DOUBLED["i8"], True), (IN_PLACE, False), (COUNTED, False)],
    ids=["written", "bytes", "read, too", "atomics"],
)
@pytest.mark.parametrize("level", ("x86-64", "x86-64-v3", "x86-64-v4"))
def test_the_instructions(program: str, streams: bool, level: str) -> None:
    text = emit_text(program, "isa", [f"host:{level}"])
    assert ("movnt" in text) == streams
    assert ("sfence" in text) == streams
