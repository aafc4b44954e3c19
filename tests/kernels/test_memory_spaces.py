"""Memory spaces by number and by name are the same: 3 is a block's, 5 a thread's, 1 everybody's."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from compiling import ALL_TARGETS, emit, emit_text, on_host

import offload

NAMES = {
    3: "#gpu.address_space<workgroup>",
    5: "#gpu.address_space<private>",
    1: "#gpu.address_space<global>",
}
BLOCKS, THREADS = 50, 64


def spelled(number: int, named: bool) -> str:
    return NAMES[number] if named else str(number)


def reversing(tile: str, get: str = "", attributions: str = "", module: str = "") -> str:
    """Each block turns its part of x around, through workgroup memory %w of 64 elements."""
    return f"""
gpu.module @m {{
  {module}
  func.func private @put(%w: {tile}, %i: index, %v: f32) {{
    memref.store %v, %w[%i] : {tile}
    return
  }}
  gpu.func @k(%x: memref<?xf32>) {attributions} kernel {{
    {get}
    %t = gpu.thread_id x
    %g = gpu.global_id x
    %b = gpu.block_id x
    %n = gpu.block_dim x
    %one = arith.constant 1 : index
    %last = arith.subi %n, %one : index
    %i = arith.subi %last, %t : index
    %v = memref.load %x[%g] : memref<?xf32>
    func.call @put(%w, %i, %v) : ({tile}, index, f32) -> ()
    gpu.barrier
    %r = memref.load %w[%t] : {tile}
    memref.store %r, %x[%g] : memref<?xf32>
    gpu.return
  }}
}}
"""


def programs(named: bool) -> dict[str, str]:
    tile = f"memref<64xf32, {spelled(3, named)}>"
    unnamed = "memref<64xf32>"
    return {
        "attribution": reversing(tile, attributions=f"workgroup(%w: {tile})"),
        "global": reversing(
            tile,
            get=f"%w = memref.get_global @tile : {tile}",
            module=f'memref.global "private" @tile : {tile}',
        ),
        "allocation": reversing(tile, get=f"%w = memref.alloc() : {tile}").replace(
            "gpu.return", f"memref.dealloc %w : {tile}\n    gpu.return"
        ),
        "allocation on the stack": reversing(
            tile, "%w = memref.alloca() {alignment = 64 : i64} : " + tile, "private(%p: memref<2xf32>)"
        ),
        "cast": reversing(
            unnamed,
            get=f"%w = memref.memory_space_cast %s : {tile} to {unnamed}",
            attributions=f"workgroup(%s: {tile})",
        ),
        "without a rank": reversing(
            tile,
            get=f"%u = memref.cast %s : {tile} to memref<*xf32, {spelled(3, named)}>\n"
            f"%w = memref.cast %u : memref<*xf32, {spelled(3, named)}> to {tile}",
            attributions=f"workgroup(%s: {tile})",
        ),
    }


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("name", programs(named=True))
def test_memory_of_a_block(name: str, named: bool) -> None:
    text = programs(named)[name]
    x = np.arange(BLOCKS * THREADS, dtype=np.float32)
    expected = x.reshape(BLOCKS, THREADS)[:, ::-1].ravel()
    for _ in range(20):  # blocks run at the same time
        y = x.copy()
        on_host(text).kernels.k[BLOCKS, THREADS](y)
        np.testing.assert_array_equal(y, expected)
    assert len(emit(text, "object", ALL_TARGETS)) == len(ALL_TARGETS)


@pytest.mark.parametrize("named", [False, True])
def test_vectors_and_memory_of_a_thread(named: bool) -> None:
    at = functools.partial(spelled, named=named)
    text = f"""
gpu.module @m {{
  gpu.func @k(%x: memref<?xf32, {at(1)}>) workgroup(%w: memref<64x4xf32, {at(3)}>)
      private(%p: memref<2x4xf32, {at(5)}>) kernel {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %t = gpu.thread_id x
    %i = arith.muli %t, %c4 : index
    %v = vector.load %x[%i] : memref<?xf32, {at(1)}>, vector<4xf32>
    vector.store %v, %p[%c1, %c0] : memref<2x4xf32, {at(5)}>, vector<4xf32>
    %q = memref.alloca() : memref<4xf32, {at(5)}>
    %u = vector.load %p[%c1, %c0] : memref<2x4xf32, {at(5)}>, vector<4xf32>
    vector.store %u, %q[%c0] : memref<4xf32, {at(5)}>, vector<4xf32>
    %a = vector.load %q[%c0] : memref<4xf32, {at(5)}>, vector<4xf32>
    vector.store %a, %w[%t, %c0] : memref<64x4xf32, {at(3)}>, vector<4xf32>
    gpu.barrier
    %c63 = arith.constant 63 : index
    %j = arith.subi %c63, %t : index
    %r = vector.load %w[%j, %c0] : memref<64x4xf32, {at(3)}>, vector<4xf32>
    vector.store %r, %x[%i] : memref<?xf32, {at(1)}>, vector<4xf32>
    gpu.return
  }}
}}
"""
    x = np.arange(256, dtype=np.float32)
    on_host(text).kernels.k[1, 64](x)
    np.testing.assert_array_equal(x.reshape(64, 4), np.arange(256).reshape(64, 4)[::-1])
    assert len(emit(text, "object", ALL_TARGETS)) == len(ALL_TARGETS)


def test_vectors_of_dynamic_workgroup_memory() -> None:
    scratch, tile = f"memref<?xi8, {NAMES[3]}>", f"memref<64x4xf32, {NAMES[3]}>"
    text = f"""
gpu.module @m {{
  gpu.func @k(%x: memref<?xf32>) kernel {{
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c63 = arith.constant 63 : index
    %m = gpu.dynamic_shared_memory : {scratch}
    %w = memref.view %m[%c0][] : {scratch} to {tile}
    %t = gpu.thread_id x
    %i = arith.muli %t, %c4 : index
    %v = vector.load %x[%i] : memref<?xf32>, vector<4xf32>
    vector.store %v, %w[%t, %c0] : {tile}, vector<4xf32>
    gpu.barrier
    %j = arith.subi %c63, %t : index
    %r = vector.load %w[%j, %c0] : {tile}, vector<4xf32>
    vector.store %r, %x[%i] : memref<?xf32>, vector<4xf32>
    gpu.return
  }}
}}
"""
    x = np.arange(256, dtype=np.float32)
    on_host(text).kernels.k[1, 64, None, 1024](x)
    np.testing.assert_array_equal(x.reshape(64, 4), np.arange(256).reshape(64, 4)[::-1])
    for index in (32, 64):
        assert len(emit(text, "object", [f"{target},index={index}" for target in ALL_TARGETS])) == len(ALL_TARGETS)


@pytest.mark.parametrize(("linkage", "size", "dynamic"), [("internal", 64, 0), ("external", 0, 256)])
def test_workgroup_memory_of_the_llvm_dialect(linkage: str, size: int, dynamic: int) -> None:
    """On the CPU it was memory that all blocks shared, and without a size a symbol that nothing defined."""
    text = f"""
gpu.module @m {{
  llvm.mlir.global {linkage} @tile() {{addr_space = 3 : i32, alignment = 16 : i64}} : !llvm.array<{size} x f32>
  gpu.func @k(%x: memref<?xf32>) kernel {{
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %c63 = arith.constant 63 : index
    %t = gpu.thread_id x
    %g = gpu.global_id x
    %j = arith.subi %c63, %t : index
    %from = arith.index_cast %t : index to i64
    %to = arith.index_cast %j : index to i64
    %v = memref.load %x[%g] : memref<?xf32>
    %p = llvm.getelementptr %tile[%to] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
    llvm.store %v, %p : f32, !llvm.ptr<3>
    gpu.barrier
    %q = llvm.getelementptr %tile[%from] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
    %r = llvm.load %q : !llvm.ptr<3> -> f32
    memref.store %r, %x[%g] : memref<?xf32>
    gpu.return
  }}
}}
"""
    x = np.arange(BLOCKS * THREADS, dtype=np.float32)
    expected = x.reshape(BLOCKS, THREADS)[:, ::-1].ravel()
    for target in ("host", "host,coroutines"):
        for _ in range(20):  # blocks run at the same time
            y = x.copy()
            on_host(text, target=target).kernels.k[BLOCKS, THREADS, None, dynamic](y)
            np.testing.assert_array_equal(y, expected)
    assert len(emit(text, "object", ALL_TARGETS)) == len(ALL_TARGETS)


def test_globals_without_a_size_are_dynamic_workgroup_memory() -> None:
    """They lie behind the static memory, all in one place, as gpu.dynamic_shared_memory does."""
    views = "".join(f"""
    %d{kind} = memref.get_global @of_{kind} : memref<0x{kind}, 3>
    %{kind} = memref.reinterpret_cast %d{kind} to offset: [0], sizes: [64], strides: [1]
        : memref<0x{kind}, 3> to memref<64x{kind}, 3>""" for kind in ("f32", "i32"))  # fmt: skip
    text = f"""
memref.global "private" @of_f32 : memref<0xf32, 3> {{alignment = 16 : i64}}
memref.global "private" @of_i32 : memref<0xi32, 3> {{alignment = 16 : i64}}
func.func @f(%x: memref<64xf32>, %y: memref<64xi32>) {{
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %bytes = arith.constant 256 : i32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1)
             dynamic_shared_memory_size %bytes workgroup(%w: memref<64xi32, 3>) {{
    {views}
    %a = memref.load %x[%t] : memref<64xf32>
    %b = memref.load %y[%t] : memref<64xi32>
    memref.store %a, %f32[%t] : memref<64xf32, 3>
    memref.store %b, %w[%t] : memref<64xi32, 3>
    gpu.barrier
    %c63 = arith.constant 63 : index
    %j = arith.subi %c63, %t : index
    %p = memref.load %w[%j] : memref<64xi32, 3>
    %q = memref.load %i32[%j] : memref<64xi32, 3>
    %r = arith.bitcast %q : i32 to f32
    memref.store %r, %x[%t] : memref<64xf32>
    memref.store %p, %y[%t] : memref<64xi32>
    gpu.terminator
  }}
  return
}}
"""
    x, y = np.arange(64, dtype=np.float32), np.arange(64, 128, dtype=np.int32)
    on_host(text).f(x, y)
    np.testing.assert_array_equal((x, y), (np.arange(64)[::-1], np.arange(64, 128)[::-1]))
    assert len(emit(text, "object", ALL_TARGETS)) == len(ALL_TARGETS)


@pytest.mark.parametrize("target", ALL_TARGETS)
@pytest.mark.parametrize(("number", "whose"), [(3, "block"), (5, "thread")])
@pytest.mark.parametrize("named", [False, True])
def test_an_argument_in_memory_of_a_kernels_own(named: bool, number: int, whose: str, target: str) -> None:
    """From outside there is none to pass; functions that kernels call take such."""
    tile = f"memref<4xf32, {spelled(number, named)}>"
    text = f"""
gpu.module @m {{
  gpu.func @f(%x: {tile}) {{ gpu.return }}
  gpu.func @k(%x: {tile}) kernel {{ gpu.return }}
}}
"""
    with pytest.raises(offload.CompileError) as caught:
        offload.compile(text, targets=[target])
    found = caught.value.diagnostics[0]
    assert (found.line, found.column) == (4, 3)
    assert found.message.startswith(f"a kernel's argument of type {tile} is memory of a {whose}, which there is inside")


def test_vectors_of_amds_buffers() -> None:
    fat = "memref<64xf32, #amdgpu.address_space<fat_raw_buffer>>"
    text = f"""
gpu.module @m {{
  gpu.func @k(%x: memref<64xf32>) kernel {{
    %c0 = arith.constant 0 : index
    %b = amdgpu.fat_raw_buffer_cast %x : memref<64xf32> to {fat}
    %t = gpu.thread_id x
    %r = vector.load %b[%t] : {fat}, vector<4xf32>
    %v = memref.load %b[%t] : {fat}
    %s = vector.broadcast %v : f32 to vector<4xf32>
    %w = arith.addf %r, %s : vector<4xf32>
    vector.store %w, %b[%c0] : {fat}, vector<4xf32>
    gpu.return
  }}
}}
"""
    code = emit_text(text, "isa", ["rocdl:gfx942"])
    assert "buffer_load_dwordx4" in code
    assert "buffer_store_dwordx4" in code


TABLES = """
gpu.module @m {
  memref.global "private" constant @table : memref<64xi8> = dense<7>
  memref.global "private" @count : memref<64xi32> = dense<0>
  gpu.func @k(%x: memref<?xi32>, %out: memref<?xi8>) kernel {
    %g = gpu.global_id x
    %table = memref.get_global @table : memref<64xi8>
    %count = memref.get_global @count : memref<64xi32>
    %v = memref.load %x[%g] : memref<?xi32>
    %i = arith.index_cast %v : i32 to index
    %e = memref.load %table[%i] : memref<64xi8>
    memref.store %e, %out[%g] : memref<?xi8>
    memref.store %v, %count[%i] : memref<64xi32>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
def test_tables_of_kernels_are_global_memory_on_amd(chip: str) -> None:
    """Loads that may be of any memory wait for that of the block, too, and take whole addresses."""
    text = emit_text(TABLES.replace("dense<7>", f"dense<{list(range(64))}>"), "isa", [f"rocdl:{chip}"])
    assert "flat_load" not in text
    assert "flat_store" not in text
