"""What kernels on the CPU may take: memory of their own, stack, grids and blocks of any size; errors, never crashes."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from compiling import emit, on_host, python

from offload import CompileError, DeviceError

WAYS = ("host", "host,coroutines", "host,O=0")
DIVERGENT = """
    %waits = arith.cmpi ugt, %t, %c1 : index
    scf.if %waits {
      gpu.barrier
    }"""
BARRIERS = {"no barrier": "", "a barrier for all": "gpu.barrier", "a barrier for some": DIVERGENT}


def private(elements: str, barrier: str, *, size: str = "") -> str:
    """A kernel that fills the ends of its private memory, comes to a barrier, and adds them up."""
    kind = f"memref<{elements}xi32>"
    return f"""gpu.module @m {{
  gpu.func @k(%x: memref<?xi32>, %n: index) kernel {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = gpu.thread_id x
    %own = memref.alloca({size}) : {kind}
    %last = arith.subi %n, %c1 : index
    %v = arith.index_cast %t : index to i32
    memref.store %v, %own[%c0] : {kind}
    memref.store %v, %own[%last] : {kind}
    {barrier}
    %a = memref.load %own[%c0] : {kind}
    %b = memref.load %own[%last] : {kind}
    %s = arith.addi %a, %b : i32
    memref.store %s, %x[%t] : memref<?xi32>
    gpu.return
  }}
}}"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("barrier", BARRIERS)
@pytest.mark.parametrize(("elements", "threads"), [(16384, 1024), (1 << 22, 16)])
def test_large_private_memory(elements: int, threads: int, barrier: str, way: str) -> None:
    """64 KiB in each of 1024 threads, 16 MiB in each of 16: no stack has room for one of the latter."""
    library = on_host(private(str(elements), BARRIERS[barrier]), target=way)
    x = np.zeros(threads, np.int32)
    library.kernels.k[1, threads](x, elements)
    np.testing.assert_array_equal(x, 2 * np.arange(threads))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("barrier", BARRIERS)
def test_private_memory_that_is_not_there(barrier: str, way: str) -> None:
    """As much as the address space has: an error of the launch, and the next one is as if nothing had been."""
    asked = on_host(private("?", BARRIERS[barrier], size="%n"), target=way)
    with pytest.raises(DeviceError, match='Out of memory while the kernel "k" ran'):
        asked.kernels.k[2, 64](np.zeros(64, np.int32), 1 << 46)
    x = np.zeros(64, np.int32)
    asked.kernels.k[1, 64](x, 100)
    np.testing.assert_array_equal(x, 2 * np.arange(64))


ALIGNED = """gpu.module @m { gpu.func @k(%x: memref<?xi64>) kernel {
  %c0 = arith.constant 0 : index
  %t = gpu.thread_id x
  %own = memref.alloca() {alignment = ALIGNMENT} : memref<9xi32>
  %v = arith.index_cast %t : index to i32
  memref.store %v, %own[%c0] : memref<9xi32>
  gpu.barrier
  %w = memref.load %own[%c0] : memref<9xi32>
  %same = arith.cmpi eq, %v, %w : i32
  %place = memref.extract_aligned_pointer_as_index %own : memref<9xi32> -> index
  %bad = arith.constant -1 : index
  %seen = arith.select %same, %place, %bad : index
  %r = arith.index_cast %seen : index to i64
  memref.store %r, %x[%t] : memref<?xi64>
  gpu.return
} }"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("alignment", [32, 4096])
def test_alignment_of_private_memory(alignment: int, way: str) -> None:
    """Each thread's is aligned, also where those of a block lie in a row; vectors are loaded as if it were."""
    x = np.full(64, -1, np.int64)
    on_host(ALIGNED.replace("ALIGNMENT", str(alignment)), target=way).kernels.k[1, 64](x)
    np.testing.assert_array_equal(x % alignment, 0)


SMALL_STACK = """
import sys, threading
import numpy as np, offload
library = offload.compile(sys.stdin.read() if len(sys.argv) < 2 else open(sys.argv[1]).read(), targets=[sys.argv[2]])
library.use("host")
x = np.zeros(256, np.int32)
threading.stack_size(192 << 10)
thread = threading.Thread(target=lambda: library.kernels.k[1, 256](x, 1 << 14))
thread.start()
thread.join()
assert (x == 2 * np.arange(256)).all()
print("done")
"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("barrier", BARRIERS)
def test_a_small_stack(barrier: str, way: str, tmp_path: Path) -> None:
    """A launch runs blocks on its caller's stack, which a thread of 192 KiB has enough of."""
    source = tmp_path / "deep.mlir"
    source.write_text(private("16384", BARRIERS[barrier]))
    assert python(SMALL_STACK, source, way, cwd=tmp_path) == "done\n"


PLACES = """gpu.module @m {
  gpu.func @k(%out: memref<?x3xi64>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %x = gpu.global_id x
    %y = gpu.block_id y
    %z = gpu.block_id z
    %t = gpu.thread_id x
    %x64 = arith.index_cast %x : index to i64
    %y64 = arith.index_cast %y : index to i64
    %z64 = arith.index_cast %z : index to i64
    memref.store %x64, %out[%t, %c0] : memref<?x3xi64>
    memref.store %y64, %out[%t, %c1] : memref<?x3xi64>
    memref.store %z64, %out[%t, %c2] : memref<?x3xi64>
    gpu.return
  }
}"""
MOST = (2**31 - 1, 65535, 65535)


class Launch(ctypes.Structure):
    """mgpuHostLaunch of runtime_c/host/host_abi.h."""

    _fields_ = (
        ("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3), ("cluster", ctypes.c_uint32 * 3),
        ("dynamic_shared", ctypes.c_uint32), ("params", ctypes.c_void_p), ("fail", ctypes.c_void_p),
        ("memory", ctypes.c_void_p), ("large", ctypes.c_uint64),
    )  # fmt: skip


class Kernel(ctypes.Structure):
    """The begin of mgpuHostKernel."""

    _fields_ = (
        ("abi_version", ctypes.c_uint32), ("params", ctypes.c_uint32), ("shared_bytes", ctypes.c_uint64),
        ("blocks", ctypes.CFUNCTYPE(None, ctypes.POINTER(Launch), ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)),
    )  # fmt: skip


@pytest.mark.parametrize("number", [0, 2**31 - 2, 2**32, 2**40 + 12345, 2**62 + 1, MOST[0] * MOST[1] * MOST[2] - 1])
def test_blocks_beyond_32_bits(number: int, tmp_path: Path) -> None:
    """One block of the largest grid there is, as the runtime calls it (test_host.c has the same for coroutines)."""
    (item,) = emit(PLACES, "object", ["host"])
    path = tmp_path / "kernels.so"
    path.write_bytes(item.data)
    kernel = Kernel.in_dll(ctypes.CDLL(str(path)), "k.info")
    out = np.zeros((4, 3), np.int64)
    address = out.ctypes.data
    words = np.array([address, address, 0, 4, 3, 3, 1], np.int64)
    params = (ctypes.c_void_p * len(words))(*[words.ctypes.data + 8 * i for i in range(len(words))])
    launch = Launch(MOST, (4, 1, 1), (1, 1, 1), 0, ctypes.addressof(params), None, None, 0)
    kernel.blocks(launch, None, number, number + 1)
    x, y, z = number % MOST[0], number // MOST[0] % MOST[1], number // MOST[0] // MOST[1]
    np.testing.assert_array_equal(out, [[4 * x + i, y, z] for i in range(4)])


FAILING = """gpu.module @m {
  gpu.func @k(%n: index) kernel {
    %c0 = arith.constant 0 : index
    %y = gpu.block_id y
    %no = arith.cmpi ne, %y, %y : index
    BARRIER
    cf.assert %no, "stop"
    gpu.return
  }
}"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("barrier", ["", "gpu.barrier"])
def test_the_largest_grid_ends_with_its_first_failure(barrier: str, way: str) -> None:
    """9.2e18 blocks: accepted, and an assertion ends them all."""
    library = on_host(FAILING.replace("BARRIER", barrier), target=way)
    with pytest.raises(DeviceError, match=r"failed an assertion in block \(\d+, \d+, \d+\).*stop"):
        library.kernels.k[MOST, 1](1)
    with pytest.raises(DeviceError, match="the most are"):
        library.kernels.k[(2**31 - 1, 65536, 1), 1](1)


ONE_FAILS = """gpu.module @m {
  gpu.func @k(%first: index) kernel {
    %x = gpu.block_id x
    %ok = arith.cmpi ne, %x, %first : index
    cf.assert %ok, "stop"
    gpu.return
  }
}"""


def test_blocks_that_go_well_do_not_keep_a_failure_waiting() -> None:
    """Block 100 fails; the others of the thread that runs it, and those of other threads, are 4.6e18."""
    library = on_host(ONE_FAILS)
    with pytest.raises(DeviceError, match=r"block \(100, \d+, \d+\)"):
        library.kernels.k[MOST, 1](100)


INDIRECT = """module {
  gpu.module @m {
    llvm.func internal @down(%n: i32) -> i32 {
      %zero = llvm.mlir.constant(0 : i32) : i32
      %one = llvm.mlir.constant(1 : i32) : i32
      %done = llvm.icmp "eq" %n, %zero : i32
      llvm.cond_br %done, ^end(%zero : i32), ^more
    ^more:
      %less = llvm.sub %n, %one : i32
      %r = llvm.call @down(%less) : (i32) -> i32
      llvm.br ^end(%r : i32)
    ^end(%s: i32):
      llvm.return %s : i32
    }
    gpu.func @k(%x: memref<?xi32>, %n: i32) kernel {
      %c0 = arith.constant 0 : index
      %r = llvm.call @down(%n) : (i32) -> i32
      memref.store %r, %x[%c0] : memref<?xi32>
      gpu.return
    }
  }
}"""


BY_POINTER = """gpu.module @m {
  func.func private @a(%v: i32) -> i32 {
    BARRIER
    return %v : i32
  }
  func.func private @b(%v: i32) -> i32 {
    %r = arith.addi %v, %v : i32
    return %r : i32
  }
  gpu.func @k(%x: memref<?xi32>, %first: i1) kernel {
    %t = gpu.thread_id x
    %a = func.constant @a : (i32) -> i32
    %b = func.constant @b : (i32) -> i32
    %f = arith.select %first, %a, %b : (i32) -> i32
    %v = memref.load %x[%t] : memref<?xi32>
    %r = func.call_indirect %f(%v) : (i32) -> i32
    memref.store %r, %x[%t] : memref<?xi32>
    gpu.return
  }
}"""


def test_calls_through_pointers() -> None:
    """Functions are inlined but for these, which can therefore have nothing that needs the thread."""
    library = on_host(BY_POINTER.replace("BARRIER", ""))
    x = np.arange(40, dtype=np.int32)
    library.kernels.k[1, 40](x, False)
    library.kernels.k[1, 40](x, True)
    np.testing.assert_array_equal(x, 2 * np.arange(40))
    with pytest.raises(CompileError, match="'a' has operations of the GPU or workgroup memory and is called through"):
        emit(BY_POINTER.replace("BARRIER", "gpu.barrier"), "object", ["host"])


TILE = "memref<64xi32, #gpu.address_space<workgroup>>"


def test_workgroup_memory_behind_a_pointer() -> None:
    """It would be one piece for all blocks: of a function that is called so, and where a global has its address."""
    used = f"%c = arith.constant 0 : index\n%w = memref.get_global @tile : {TILE}\nmemref.store %v, %w[%c] : {TILE}"
    by_pointer = BY_POINTER.replace("BARRIER", used)
    by_pointer = by_pointer.replace("@m {", f'@m {{ memref.global "private" @tile : {TILE}', 1)
    with pytest.raises(CompileError, match="'a' has operations of the GPU or workgroup memory") as caught:
        emit(by_pointer, "object", ["host"])
    assert caught.value.diagnostics[0].line == 2
    with pytest.raises(CompileError, match="the value of 'held' has the address of workgroup memory") as caught:
        emit(HELD, "object", ["host"])
    assert caught.value.diagnostics[0].line == 8


HELD = """gpu.module @m {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32} : !llvm.array<64 x i32>
  llvm.mlir.global internal @held() : !llvm.ptr<3> {
    %a = llvm.mlir.addressof @tile : !llvm.ptr<3>
    llvm.return %a : !llvm.ptr<3>
  }
  gpu.func @k(%x: memref<?xi32>) kernel {
    %h = llvm.mlir.addressof @held : !llvm.ptr
    %t = llvm.load %h : !llvm.ptr -> !llvm.ptr<3>
    %v = llvm.load %t : !llvm.ptr<3> -> i32
    %i = gpu.thread_id x
    memref.store %v, %x[%i] : memref<?xi32>
    gpu.return
  }
}"""


def test_recursion_of_llvm_functions() -> None:
    with pytest.raises(CompileError, match="calls 'down' recursively") as caught:
        emit(INDIRECT, "object", ["host"])
    assert caught.value.diagnostics[0].line == 10


LARGE_IN_LOOPS = """gpu.module @m { gpu.func @k(%x: memref<?xi32>, %n: index) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %t = gpu.thread_id x
  %v = arith.index_cast %t : index to i32
  %own = memref.alloca() : memref<32768xi32>
  scf.for %i = %c0 to %n step %c1 {
    memref.store %v, %own[%i] : memref<32768xi32>
  }
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> i32 {
    %e = memref.load %own[%i] : memref<32768xi32>
    %b = arith.addi %a, %e : i32
    scf.yield %b : i32
  }
  memref.store %s, %x[%t] : memref<?xi32>
  gpu.return
} }"""


@pytest.mark.parametrize("way", WAYS)
def test_loops_over_large_private_memory(way: str) -> None:
    """Threads that go through their loops together would need more than one thread's."""
    x = np.zeros(64, np.int32)
    on_host(LARGE_IN_LOOPS, target=way).kernels.k[1, 64](x, 100)
    np.testing.assert_array_equal(x, 100 * np.arange(64))
