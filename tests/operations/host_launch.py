"""Host code: gpu.launch and gpu.launch_func in every form, gpu.wait, and the async dialect around them."""

from __future__ import annotations

import numpy as np

from offload.runtime import Library
from operations import Case

TOKENS = {
    "sync": ("", "", ""),
    "sync, two dependencies": ("", "[%a, %b] ", ""),
    "async, no dependency": ("%t = ", "async ", "gpu.wait [%t]"),
    "async, one dependency": ("%t = ", "async [%a] ", "gpu.wait [%t]"),
    "async, four dependencies": ("%t = ", "async [%a, %b, %c, %a] ", "gpu.wait [%t]"),
}

MODULE = """
gpu.module @m {
  gpu.func @add(%x: memref<?xi32>, %v: i32) kernel {
    %b = gpu.block_id x
    %n = gpu.block_dim x
    %t = gpu.thread_id x
    %s = arith.muli %b, %n : index
    %i = arith.addi %s, %t : index
    %o = memref.load %x[%i] : memref<?xi32>
    %r = arith.addi %o, %v : i32
    memref.store %r, %x[%i] : memref<?xi32>
    gpu.return
  }
  gpu.func @last(%x: memref<?xi32>, %n: index) kernel {
    // The last element of dynamic workgroup memory, written by the last thread, read by all.
    %shared = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %view = memref.view %shared[%c0][%n] : memref<?xi8, #gpu.address_space<workgroup>>
        to memref<?xi32, #gpu.address_space<workgroup>>
    %t = gpu.thread_id x
    %k = arith.index_cast %t : index to i32
    memref.store %k, %view[%t] : memref<?xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %m = arith.subi %n, %c1 : index
    %r = memref.load %view[%m] : memref<?xi32, #gpu.address_space<workgroup>>
    memref.store %r, %x[%t] : memref<?xi32>
    gpu.return
  }
}
"""

STREAM_MODULE = "llvm.func @mgpuStreamCreate() -> !llvm.ptr\nllvm.func @mgpuStreamSynchronize(!llvm.ptr)\n"
STREAM_MODULE += "llvm.func @mgpuStreamDestroy(!llvm.ptr)\n"


def _prologue(copy: bool = True) -> str:
    return f"""
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %one = arith.constant 1 : i32
  %n = memref.dim %x, %c0 : memref<?xi32>
  %half = arith.divui %n, %c2 : index
  %a = gpu.wait async
  %b = gpu.wait async
  %c = gpu.wait async
  %d = gpu.alloc (%n) : memref<?xi32>
  {"gpu.memcpy %d, %x : memref<?xi32>, memref<?xi32>" if copy else ""}
"""


EPILOGUE = """
  gpu.memcpy %x, %d : memref<?xi32>, memref<?xi32>
  gpu.dealloc %d : memref<?xi32>
  return
}
"""


def _plus_one(library: Library) -> None:
    for n in (2, 64, 1000):
        x = np.arange(n, dtype=np.int32)
        library.f(x)
        np.testing.assert_array_equal(x, np.arange(n) + 1)


def _function(body: str, outside: str = MODULE) -> str:
    return f"{outside}\nfunc.func @f(%x: memref<?xi32>) {{{_prologue()}{body}{EPILOGUE}"


def _launch_func(form: str) -> Case:
    result, middle, after = TOKENS[form]
    body = f"""  {result}gpu.launch_func {middle}@m::@add blocks in (%c2, %c1, %c1) threads in (%half, %c1, %c1)
      args(%d : memref<?xi32>, %one : i32)
  {after}
"""
    return Case("gpu.launch_func", form, _function(body), _plus_one)


def _launch(form: str) -> Case:
    result, middle, after = TOKENS[form]
    body = f"""  {result}gpu.launch {middle}blocks(%i, %j, %k) in (%gx = %n, %gy = %c1, %gz = %c1)
      threads(%p, %q, %r) in (%bx = %c1, %by = %c1, %bz = %c1) {{
    %o = memref.load %d[%i] : memref<?xi32>
    %s = arith.addi %o, %one : i32
    memref.store %s, %d[%i] : memref<?xi32>
    gpu.terminator
  }}
  {after}
"""
    return Case("gpu.launch", form, _function(body, outside=""), _plus_one)


def _sizes(type_: str) -> Case:
    cast = f"  %h = arith.index_cast %half : index to {type_}\n  %u = arith.constant 1 : {type_}\n"
    cast += f"  %v = arith.constant 2 : {type_}\n"
    body = f"""{cast}  gpu.launch_func @m::@add blocks in (%v, %u, %u) threads in (%h, %u, %u) : {type_}
      args(%d : memref<?xi32>, %one : i32)
"""
    return Case("gpu.launch_func", f"sizes of type {type_}", _function(body), _plus_one)


def _shared() -> Case:
    body = """  %bytes = arith.index_cast %n : index to i32
  %four = arith.constant 4 : i32
  %size = arith.muli %bytes, %four : i32
  gpu.launch_func @m::@last blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1) dynamic_shared_memory_size %size
      args(%d : memref<?xi32>, %n : index)
"""

    def run(library: Library) -> None:
        for n in (1, 33, 1024):
            x = np.zeros(n, np.int32)
            library.f(x)
            np.testing.assert_array_equal(x, np.full(n, n - 1))

    return Case("gpu.launch_func", "dynamic workgroup memory", _function(body), run)


def _stream(form: str) -> Case:
    result, middle, after = TOKENS[form]
    body = f"""  %s = llvm.call @mgpuStreamCreate() : () -> !llvm.ptr
  {result}gpu.launch_func {middle}<%s : !llvm.ptr> @m::@add blocks in (%c2, %c1, %c1) threads in (%half, %c1, %c1)
      args(%d : memref<?xi32>, %one : i32)
  {after}
  llvm.call @mgpuStreamSynchronize(%s) : (!llvm.ptr) -> ()
  llvm.call @mgpuStreamDestroy(%s) : (!llvm.ptr) -> ()
"""
    return Case("gpu.launch_func", f"explicit stream, {form}", _function(body, MODULE + STREAM_MODULE), _plus_one)


def _loop() -> Case:
    """A million launches: neither the stack nor the number of streams grows."""
    body = """  %times = arith.constant 100000 : index
  %zero = arith.constant 0 : i32
  %end = scf.for %i = %c0 to %times step %c1 iter_args(%t = %a) -> !gpu.async.token {
    %u = gpu.launch_func async [%t] @m::@add blocks in (%c2, %c1, %c1) threads in (%half, %c1, %c1)
        args(%d : memref<?xi32>, %zero : i32)
    gpu.launch_func @m::@add blocks in (%c2, %c1, %c1) threads in (%half, %c1, %c1)
        args(%d : memref<?xi32>, %zero : i32)
    %v = gpu.wait async [%u]
    scf.yield %v : !gpu.async.token
  }
  %u = gpu.launch_func async [%end] @m::@add blocks in (%c2, %c1, %c1) threads in (%half, %c1, %c1)
      args(%d : memref<?xi32>, %one : i32)
  gpu.wait [%u]
"""

    def run(library: Library) -> None:
        x = np.arange(2, dtype=np.int32)
        library.f(x)
        np.testing.assert_array_equal(x, [1, 2])

    return Case("gpu.launch_func", "in a loop of 100,000", _function(body), run)


def _wait(form: str, body: str) -> Case:
    return Case("gpu.wait", form, _function(body + _ADD), _plus_one)


_ADD = """  gpu.launch_func @m::@add blocks in (%c2, %c1, %c1) threads in (%half, %c1, %c1)
      args(%d : memref<?xi32>, %one : i32)
"""

_EXECUTE = """  %token, %value = async.execute -> !async.value<!gpu.async.token> {
    %t = gpu.launch_func async [%a] @m::@add blocks in (%c2, %c1, %c1) threads in (%half, %c1, %c1)
        args(%d : memref<?xi32>, %one : i32)
    async.yield %t : !gpu.async.token
  }
"""

CASES = [
    *[_launch_func(form) for form in TOKENS],
    # (The dialect has no text for a gpu.launch with dependencies and no token.)
    *[_launch(form) for form in TOKENS if form != "sync, two dependencies"],
    _sizes("i32"),
    _sizes("i64"),
    _shared(),
    *[_stream(form) for form in TOKENS],
    _loop(),
    _wait("sync, no dependency", "  gpu.wait\n"),
    _wait("sync, one dependency", "  gpu.wait [%a]\n"),
    _wait("sync, many dependencies", "  gpu.wait [%a, %b, %c, %a]\n"),
    _wait("sync, the same token twice", "  gpu.wait [%a]\n  gpu.wait [%a]\n"),
    _wait("async, no dependency", "  %t = gpu.wait async\n"),
    _wait("async, many dependencies", "  %t = gpu.wait async [%a, %b, %c]\n  gpu.wait [%t]\n"),
    Case(
        "async.execute", "a token of the gpu dialect as value, async.await",
        _function(_EXECUTE + "  %t = async.await %value : !async.value<!gpu.async.token>\n  gpu.wait [%t]\n"),
        _plus_one,
    ),
    Case(
        "async.execute", "with dependencies and values of others",
        _function(
            _EXECUTE + "  %last = async.execute [%token] (%value as %t: !async.value<!gpu.async.token>) {\n"
            "    gpu.wait [%t]\n    async.yield\n  }\n  async.await %last : !async.token\n"
        ),
        _plus_one,
    ),
    Case(
        "async.create_group", "add_to_group, await_all",
        _function(
            _EXECUTE + "  %g = async.create_group %c1 : !async.group\n"
            "  %rank = async.add_to_group %token, %g : !async.token\n  async.await_all %g\n"
            "  %t = async.await %value : !async.value<!gpu.async.token>\n  gpu.wait [%t]\n"
        ),
        _plus_one,
    ),
]  # fmt: skip
