"""AMD's descriptors of buffers, on emulated devices: what is inside of them, for each type of elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import emit_text
from emulator.driver import Driver
from emulator.on_device import OnDevice, compiled
from numeric import DTYPES
from operations import kernel

from offload.errors import CompileError

FAT_SPACE = "#amdgpu.address_space<fat_raw_buffer>"
RAW = """
  %i = arith.index_cast %t : index to i32
  %v = amdgpu.raw_buffer_load %x[%i] : memref<?x{kind}>, i32 -> {kind}
  amdgpu.raw_buffer_store %v -> %out[%i] : {kind} -> memref<?x{kind}>, i32
"""
FAT = """
  %from = amdgpu.fat_raw_buffer_cast %x : memref<?x{kind}> to memref<?x{kind}, #amdgpu.address_space<fat_raw_buffer>>
  %to = amdgpu.fat_raw_buffer_cast %out : memref<?x{kind}> to memref<?x{kind}, #amdgpu.address_space<fat_raw_buffer>>
  %v = memref.load %from[%t] : memref<?x{kind}, #amdgpu.address_space<fat_raw_buffer>>
  memref.store %v, %to[%t] : memref<?x{kind}, #amdgpu.address_space<fat_raw_buffer>>
"""
KERNEL = """
gpu.module @m {{ gpu.func @k(%x: memref<?x{kind}>, %out: memref<?x{kind}>) kernel {{
  %t = gpu.thread_id x
  {body}
  gpu.return
}} }}
"""


def _given(kind: str) -> Any:
    return np.arange(40) % 3 == 0 if kind == "i1" else (np.arange(40) + 1).astype(DTYPES[kind])


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("body", [RAW, FAT], ids=["raw", "fat"])
@pytest.mark.parametrize("kind", ["i1", "i8", "i16", "f16", "f32", "i64"])
def test_elements(driver: Driver, kind: str, body: str, chip: str) -> None:
    """All elements are inside, what lies behind them is outside: it is read as 0, and not written."""
    x = _given(kind)
    out = np.ones_like(x)
    with driver.chip(chip):
        library = OnDevice(compiled(KERNEL.format(kind=kind, body=body.format(kind=kind)), chip))
        library.kernels.k[1, 64](x[:30], out)
    np.testing.assert_array_equal(out, np.where(np.arange(40) < 30, x, np.zeros_like(x)))


@pytest.mark.parametrize(
    ("vector", "reason"),
    [
        ("vector<3xi16>", "moves 8, 16, 32, 64, 96 or 128 bits"),
        ("vector<8xf32>", "and no vector<8xf32>: move it in parts"),
        ("vector<2x2xf32>", "and no vector<2x2xf32>: vector.shape_cast makes one dimension of several"),
    ],
)
def test_what_no_instruction_moves(vector: str, reason: str) -> None:
    element = vector[:-1].rpartition("x")[2]
    body = "%i = arith.index_cast %t : index to i32\n"
    body += f"%v = amdgpu.raw_buffer_load %x[%i] : memref<?x{element}>, i32 -> {vector}\n"
    body += f"amdgpu.raw_buffer_store %v -> %out[%i] : {vector} -> memref<?x{element}>, i32"
    with pytest.raises(CompileError, match=r"<string>:5:6: error: 'amdgpu.raw_buffer_load' moves") as caught:
        emit_text(KERNEL.format(kind=element, body=body), "isa", ["rocdl:gfx942"])
    assert reason in str(caught.value)


S = "#gpu.address_space<workgroup>"
LOCAL = "memref.alloca() : memref<4xf32>"
LOAD = "%v = memref.load %b[%j] : memref<4xf32, FAT>"


@pytest.mark.parametrize(
    "body",
    [
        f"%b = amdgpu.fat_raw_buffer_cast %l : memref<4xf32, {S}> to memref<4xf32, FAT>\n{LOAD}",
        f"%a = {LOCAL}\n%b = amdgpu.fat_raw_buffer_cast %a : memref<4xf32> to memref<4xf32, FAT>\n{LOAD}",
        f"%a = {LOCAL}\n%s = memref.cast %a : memref<4xf32> to memref<?xf32>\n"
        "%v = amdgpu.raw_buffer_load %s[%i] : memref<?xf32>, i32 -> f32",
    ],
    ids=["workgroup", "alloca", "view"],
)
def test_memory_that_is_not_global(body: str) -> None:
    """A descriptor of it was one of other memory: stores were lost, loads gave 0 or a fault."""
    body = body.replace("FAT", FAT_SPACE) + "\nmemref.store %v, %o[%j] : memref<?xf32>"
    arguments = "%i: i32, %j: index, %o: memref<?xf32>"
    source = kernel(body, arguments, attributions=f"workgroup(%l: memref<4xf32, {S}>)")
    name = "amdgpu.raw_buffer_load" if "raw_buffer_load" in body else "amdgpu.fat_raw_buffer_cast"
    with pytest.raises(CompileError, match=rf"<string>:\d:6: error: '{name}' describes global memory"):
        emit_text(source, "isa", ["rocdl:gfx942"])
