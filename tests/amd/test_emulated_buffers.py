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


PACKED = """
gpu.module @m {{ gpu.func @k(%x: {given}, %out: memref<?x{kind}>, %n: index){workgroup} kernel {{
  %t = gpu.thread_id x
  %four = arith.constant 4 : index
  %at = arith.muli %t, %four : index
  %mask = arith.constant dense<[true, false, true, true]> : vector<4xi1>
  {get}
  %none = vector.load %out[%at] : memref<?x{kind}>, vector<4x{kind}>
  %v = vector.expandload %m[%at], %mask, %none : {memory}, vector<4xi1>, vector<4x{kind}> into vector<4x{kind}>
  vector.store %v, %out[%at] : memref<?x{kind}>, vector<4x{kind}>
  %some = vector.create_mask %n : vector<4xi1>
  %front = arith.xori %some, %mask : vector<4xi1>
  vector.compressstore %m[%at], %front, %v : {memory}, vector<4xi1>, vector<4x{kind}>
  %w = vector.load %m[%at] : {memory}, vector<4x{kind}>
  {put}
  gpu.return
}} }}
"""


def _packed(kind: str, space: str) -> str:
    sizes = "32" if "workgroup" in space else "?"
    memory = f"memref<{sizes}x{kind}, {space}>"
    given, get, put, workgroup = f"memref<?x{kind}>", "", "", ""
    if "global" in space:
        given, get = memory, f"%m = memref.cast %x : {memory} to {memory}"
    elif "fat" in space:
        get = f"%m = amdgpu.fat_raw_buffer_cast %x : {given} to {memory}"
    else:
        workgroup = f" workgroup(%m: {memory})"
        get = f"%l = vector.load %x[%at] : {given}, vector<4x{kind}>\n"
        get += f"vector.store %l, %m[%at] : {memory}, vector<4x{kind}>"
        put = f"vector.store %w, %x[%at] : {given}, vector<4x{kind}>"
    return PACKED.format(given=given, memory=memory, kind=kind, workgroup=workgroup, get=get, put=put)


WORKGROUP, GLOBAL = "#gpu.address_space<workgroup>", "#gpu.address_space<global>"


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100", "gfx1201,O=0"])
@pytest.mark.parametrize("space", [WORKGROUP, GLOBAL, "3", FAT_SPACE], ids=["workgroup", "global", "3", "fat"])
@pytest.mark.parametrize("kind", ["f32", "f16", "i8", "i1", "f64"])
def test_packed_elements_in_memory_of_a_space(driver: Driver, kind: str, space: str, chip: str) -> None:
    """LLVM's expandload and compressstore take memory of no space."""
    source = _packed(kind, WORKGROUP).replace(WORKGROUP, "3") if space == "3" else _packed(kind, space)
    x = np.arange(32) % 3 == 0 if kind == "i1" else np.arange(1, 33).astype(DTYPES[kind])
    out = np.zeros(32, x.dtype)
    rows, before = x.copy().reshape(8, 4), out.copy().reshape(8, 4)
    wide = np.stack([rows[:, 0], before[:, 1], rows[:, 1], rows[:, 2]], 1)
    with driver.chip(chip.split(",")[0]):
        OnDevice(compiled(source, chip)).kernels.k[1, 8](x, out, 1)
    np.testing.assert_array_equal(out.reshape(8, 4), wide)
    chosen = wide[:, [2, 3]]  # the mask without the first bit
    np.testing.assert_array_equal(x.reshape(8, 4), np.concatenate([chosen, rows[:, 2:]], 1))


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100,O=0"])
def test_packed_elements_in_memory_of_no_dimensions(driver: Driver, chip: str) -> None:
    """They have one element, and no index: the compiler crashed where such memory has a space."""
    memory, kind = f"memref<f32, {WORKGROUP}>", "vector<2xi1>, vector<2xf32>"
    source = f"""
gpu.module @m {{ gpu.func @k(%x: memref<?xf32>, %n: index) workgroup(%m: {memory}) kernel {{
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %old = vector.load %x[%c0] : memref<?xf32>, vector<2xf32>
  %mask = vector.create_mask %n : vector<2xi1>
  vector.compressstore %m[], %mask, %old : {memory}, {kind}
  %new = vector.load %x[%c2] : memref<?xf32>, vector<2xf32>
  %v = vector.expandload %m[], %mask, %new : {memory}, {kind} into vector<2xf32>
  vector.store %v, %x[%c2] : memref<?xf32>, vector<2xf32>
  gpu.return
}} }}
"""
    for number, wanted in ((0, [1, 2, 3, 4]), (1, [1, 2, 1, 4])):
        x = np.arange(1, 5).astype(np.float32)
        with driver.chip(chip.split(",")[0]):
            OnDevice(compiled(source, chip)).kernels.k[1, 1](x, number)
        np.testing.assert_array_equal(x, np.array(wanted, np.float32))


@pytest.mark.parametrize("space", [WORKGROUP, GLOBAL])
def test_packed_elements_on_the_other_gpus(space: str) -> None:
    assert ".visible .entry k(" in emit_text(_packed("f32", space), "isa", ["nvvm:sm_90"])


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
def test_numbers_are_exchanged_through_a_descriptor(driver: Driver, chip: str) -> None:
    """LLVM has an instruction for integers of this size alone."""
    body = FAT.format(kind="f64").replace(
        "memref.store %v, %to[%t] : memref<?xf64",
        f"%w = memref.atomic_rmw assign %v, %to[%t] : (f64, memref<?xf64, {FAT_SPACE}>) -> f64\n"
        "memref.store %w, %from[%t] : memref<?xf64",
    )
    x, out = np.linspace(-3, 5, 32), np.linspace(7, 9, 32)
    wanted = out.copy(), x.copy()
    with driver.chip(chip):
        OnDevice(compiled(KERNEL.format(kind="f64", body=body), chip)).kernels.k[1, 32](x, out)
    np.testing.assert_array_equal((x, out), wanted)


def test_what_is_compared_and_exchanged() -> None:
    body = "%i = arith.index_cast %t : index to i32\n%v = memref.load %x[%t] : memref<?xf16>\n"
    body += "%r = amdgpu.raw_buffer_atomic_cmpswap %v, %v -> %out[%i] : f16 -> memref<?xf16>, i32"
    with pytest.raises(CompileError, match=r"<string>:6:6: error: 'amdgpu.raw_buffer_atomic_cmpswap' compares and "):
        emit_text(KERNEL.format(kind="f16", body=body), "isa", ["rocdl:gfx942"])


@pytest.mark.parametrize("kind", ["i24", "i48"])
@pytest.mark.parametrize("target", ["rocdl:gfx942", "nvvm:sm_90", "host"])
def test_vectors_of_elements_with_gaps(kind: str, target: str) -> None:
    """In memory each takes a power of two bytes, in LLVM's vectors they have none between them: others were read."""
    body = f"%v = vector.load %x[%t] : memref<?x{kind}>, vector<2x{kind}>\n"
    body += f"vector.store %v, %out[%t] : memref<?x{kind}>, vector<2x{kind}>"
    with pytest.raises(CompileError, match=rf"<string>:4:8: error: memory of '{kind}' has gaps that no vector has: "):
        emit_text(KERNEL.format(kind=kind, body=body), "isa" if target != "host" else "llvm", [target])
