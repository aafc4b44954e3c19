"""Memory and functions in kernels: attributions, allocas, globals, dynamic workgroup memory, atomics, calls, exits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from device_values import BLOCKS, FLOATS, THREAD, launched, load, mapped, module, store, stored, values

from offload.runtime import Library
from operations import Case

WORKGROUP = "#gpu.address_space<workgroup>"


def _turned(kind: str, parts: int = 1) -> Callable[[Library], None]:
    """Every thread has the value of its opposite in the block."""

    def run(library: Library) -> None:
        for block in BLOCKS:
            x = values(kind, "minnumf", (3, int(np.prod(block))))
            np.testing.assert_array_equal(launched(library.kernels.k, block, x), parts * x[:, ::-1], str(block))

    return run


OPPOSITE = """
  %one = arith.constant 1 : index
  %n = arith.subi %threads, %one : index
  %opposite = arith.subi %n, %thread : index
"""


def _workgroup(kind: str, alignment: str = "") -> str:
    memory = f"memref<1024x{kind}, {WORKGROUP}>"
    return module(f"""
      gpu.func @k(%x: memref<?x{stored(kind)}>, %out: memref<?x{stored(kind)}>)
          workgroup(%w: {memory} {alignment}, %unused: memref<3xi8, {WORKGROUP}>) kernel {{
        {THREAD}{load(kind)}{OPPOSITE}
        memref.store %v, %w[%thread] : {memory}
        gpu.barrier
        %r = memref.load %w[%opposite] : {memory}
        {store(kind)}
        gpu.return
      }}""")


# Without barriers private memory is a thread's own, whatever the order of threads.
PRIVATE = module(f"""
  gpu.func @k(%x: memref<?xi32>, %out: memref<?xi32>)
      private(%p: memref<4xi32, #gpu.address_space<private>>, %q: memref<2xf32, #gpu.address_space<private>>) kernel {{
    {THREAD}{load("i32")}
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %i = arith.remui %thread, %two : index
    %j = arith.addi %i, %two : index
    memref.store %v, %p[%i] : memref<4xi32, #gpu.address_space<private>>
    memref.store %v, %p[%j] : memref<4xi32, #gpu.address_space<private>>
    %f = arith.constant 2.0 : f32
    memref.store %f, %q[%one] : memref<2xf32, #gpu.address_space<private>>
    BARRIER
    %a = memref.load %p[%i] : memref<4xi32, #gpu.address_space<private>>
    %b = memref.load %p[%j] : memref<4xi32, #gpu.address_space<private>>
    %g = memref.load %q[%one] : memref<2xf32, #gpu.address_space<private>>
    %h = arith.fptosi %g : f32 to i32
    %c = arith.addi %a, %b : i32
    %r = arith.muli %c, %h : i32
    {store("i32")}
    gpu.return
  }}""")
ALLOCA = module(mapped("k", "i32", """
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %p = memref.alloca() : memref<8xi32>
  scf.for %i = %zero to %four step %one {
    %q = memref.alloca() : memref<1xi32>
    memref.store %v, %q[%zero] : memref<1xi32>
    %a = memref.load %q[%zero] : memref<1xi32>
    memref.store %a, %p[%i] : memref<8xi32>
  }
  BARRIER
  %first = arith.constant 0 : i32
  %r = scf.for %i = %zero to %four step %one iter_args(%s = %first) -> i32 {
    %a = memref.load %p[%i] : memref<8xi32>
    %t = arith.addi %s, %a : i32
    scf.yield %t : i32
  }"""))  # fmt: skip


def _times(factor: int) -> Callable[[Library], None]:
    def run(library: Library) -> None:
        for block in BLOCKS:
            x = values("i16", "add", (3, int(np.prod(block)))).astype(np.int32)
            np.testing.assert_array_equal(launched(library.kernels.k, block, x), factor * x, str(block))

    return run


CONSTANT = module("memref.global \"private\" constant @table : memref<4xi32> = dense<[10, 20, 30, 40]>\n"
    + mapped("k", "i32", """
  %four = arith.constant 4 : index
  %i = arith.remui %at, %four : index
  %t = memref.get_global @table : memref<4xi32>
  %a = memref.load %t[%i] : memref<4xi32>
  %r = arith.addi %v, %a : i32"""))  # fmt: skip


def _from_table(library: Library) -> None:
    for block in BLOCKS:
        x = values("i16", "add", (3, int(np.prod(block)))).astype(np.int32)
        want = x + (np.arange(x.size) % 4 * 10 + 10).reshape(x.shape).astype(np.int32)
        np.testing.assert_array_equal(launched(library.kernels.k, block, x), want)


MUTABLE = module("memref.global \"private\" @count : memref<1xi32> = dense<5>\n"
    + mapped("k", "i32", """
  %zero = arith.constant 0 : index
  %t = memref.get_global @count : memref<1xi32>
  %r = memref.atomic_rmw addi %v, %t[%zero] : (i32, memref<1xi32>) -> i32"""))  # fmt: skip


def _counted(library: Library) -> None:
    """The sum goes on from launch to launch."""
    start = 5
    for block in BLOCKS:
        x = np.ones((3, int(np.prod(block))), np.int32)
        out = launched(library.kernels.k, block, x)
        np.testing.assert_array_equal(np.sort(out.reshape(-1)), start + np.arange(x.size))
        start += x.size


def _global_workgroup(kind: str) -> str:
    memory = f"memref<1024x{kind}, {WORKGROUP}>"
    return module(f"memref.global \"private\" @shared : {memory}\n" + mapped("k", kind, f"""{OPPOSITE}
      %w = memref.get_global @shared : {memory}
      memref.store %v, %w[%thread] : {memory}
      gpu.barrier
      %r = memref.load %w[%opposite] : {memory}"""))  # fmt: skip


# Two views of dynamic workgroup memory beside a static one.
DYNAMIC = module(f"""
  gpu.func @k(%x: memref<?xf32>, %out: memref<?xf32>) workgroup(%s: memref<1024xf32, {WORKGROUP}>) kernel {{
    {THREAD}{load("f32")}{OPPOSITE}
    %zero = arith.constant 0 : index
    %four = arith.constant 4 : index
    %half = arith.muli %threads, %four : index
    %all = gpu.dynamic_shared_memory : memref<?xi8, {WORKGROUP}>
    %a = memref.view %all[%zero][%threads] : memref<?xi8, {WORKGROUP}> to memref<?xf32, {WORKGROUP}>
    %b = memref.view %all[%half][%threads] : memref<?xi8, {WORKGROUP}> to memref<?xi32, {WORKGROUP}>
    %bits = arith.bitcast %v : f32 to i32
    memref.store %v, %a[%thread] : memref<?xf32, {WORKGROUP}>
    memref.store %bits, %b[%thread] : memref<?xi32, {WORKGROUP}>
    memref.store %v, %s[%thread] : memref<1024xf32, {WORKGROUP}>
    gpu.barrier
    %c = memref.load %a[%opposite] : memref<?xf32, {WORKGROUP}>
    %d = memref.load %b[%opposite] : memref<?xi32, {WORKGROUP}>
    %e = memref.load %s[%opposite] : memref<1024xf32, {WORKGROUP}>
    %f = arith.bitcast %d : i32 to f32
    %g = arith.addf %c, %f : f32
    %r = arith.addf %g, %e : f32
    {store("f32")}
    gpu.return
  }}""")


def _views(library: Library) -> None:
    for block in BLOCKS:
        x = values("f32", "minnumf", (3, int(np.prod(block))))
        out = np.zeros_like(x)
        library.kernels.k[3, block, None, 8 * x.shape[1]](x.reshape(-1), out.reshape(-1))
        np.testing.assert_array_equal(out, 3 * x[:, ::-1], str(block))


FUNCTIONS = module("""
  func.func private @swap(%a: i32, %b: i32) -> (i32, i32) {
    return %b, %a : i32, i32
  }
  func.func private @at_most(%x: memref<?xi32>, %i: index, %n: i32) -> i32 {
    %v = memref.load %x[%i] : memref<?xi32>
    %c = arith.cmpi sgt, %v, %n : i32
    cf.cond_br %c, ^more, ^less
  ^more:
    return %n : i32
  ^less:
    %a, %b = call @swap(%n, %v) : (i32, i32) -> (i32, i32)
    return %a : i32
  }
""" + mapped("k", "i32", """
  %n = arith.constant 7 : i32
  %r = func.call @at_most(%x, %at, %n) : (memref<?xi32>, index, i32) -> i32"""))  # fmt: skip


def _at_most(library: Library) -> None:
    for block in BLOCKS:
        x = values("i32", "add", (3, int(np.prod(block))))
        np.testing.assert_array_equal(launched(library.kernels.k, block, x), np.minimum(x, 7))


RECURSIVE = module("""
  func.func private @f(%x: i32) -> i32 {
    %r = call @f(%x) : (i32) -> i32 // here
    return %r : i32
  }
""" + mapped("k", "i32", "%r = func.call @f(%v) : (i32) -> i32"))  # fmt: skip
EXITS = module(f"""
  gpu.func @k(%x: memref<?xi32>, %out: memref<?xi32>) kernel {{
    {THREAD}{load("i32")}
    %zero = arith.constant 0 : i32
    %c = arith.cmpi slt, %v, %zero : i32
    cf.cond_br %c, ^leave, ^stay
  ^leave:
    gpu.return
  ^stay:
    BARRIER
    %r = arith.addi %v, %v : i32
    {store("i32")}
    gpu.return
  }}""")


def _exited(library: Library) -> None:
    for block in BLOCKS:
        x = values("i16", "add", (3, int(np.prod(block)))).astype(np.int32)
        np.testing.assert_array_equal(launched(library.kernels.k, block, x), np.where(x < 0, 0, 2 * x))


# Atomics: each thread adds to its block's element of workgroup memory and to one of global memory.

KINDS: dict[str, Any] = {
    "addi": np.add, "muli": np.multiply, "andi": np.bitwise_and, "ori": np.bitwise_or, "xori": np.bitwise_xor,
    "maxs": np.maximum, "mins": np.minimum, "maxu": np.maximum, "minu": np.minimum, "addf": np.add,
    "mulf": np.multiply, "maximumf": np.maximum, "minimumf": np.minimum, "maxnumf": np.fmax, "minnumf": np.fmin,
}  # fmt: skip


def _kinds(kind: str) -> list[str]:
    return [name for name in KINDS if name.endswith("f") == (kind in FLOATS)]


def _atomic(kind: str, make: Callable[[str, str, str], str]) -> str:
    """A kernel per kind: total[0] and, through workgroup memory, total[1 + block] of all values."""
    text, array, shared = "", f"memref<?x{kind}>", f"memref<1x{kind}, {WORKGROUP}>"
    for name in _kinds(kind):
        text += f"""
          gpu.func @{name}(%x: {array}, %total: {array}) workgroup(%w: {shared}) kernel {{
            {THREAD}
            %v = memref.load %x[%at] : {array}
            %zero = arith.constant 0 : index
            %one = arith.constant 1 : index
            %own = arith.addi %bx, %one : index
            %first = arith.cmpi eq, %thread, %zero : index
            scf.if %first {{
              %s = memref.load %total[%own] : {array}
              memref.store %s, %w[%zero] : {shared}
            }}
            gpu.barrier
            {make(name, "%total", array)}
            {make(name, "%w", shared)}
            gpu.barrier
            scf.if %first {{
              %s = memref.load %w[%zero] : {shared}
              memref.store %s, %total[%own] : {array}
            }}
            gpu.return
          }}"""
    return module(text)


def _rmw(kind: str) -> Callable[[str, str, str], str]:
    return lambda name, to, array: f"memref.atomic_rmw {name} %v, {to}[%zero] : ({kind}, {array}) -> {kind}"


def _generic(kind: str) -> Callable[[str, str, str], str]:
    ops = {"maxs": "maxsi", "mins": "minsi", "maxu": "maxui", "minu": "minui"}

    def make(name: str, to: str, array: str) -> str:
        result = f"%result_{to[1:]}"
        return f"""{result} = memref.generic_atomic_rmw {to}[%zero] : {array} {{
          ^bb0(%old: {kind}):
            %new = arith.{ops.get(name, name)} %old, %v : {kind}
            memref.atomic_yield %new : {kind}
          }}"""

    return make


def _gathered(kind: str) -> Callable[[Library], None]:
    def run(library: Library) -> None:
        for name in _kinds(kind):
            op = "mul" if name == "mulf" else "add" if name == "addf" else "minnumf"
            for block in BLOCKS:
                x = values("i32" if kind == "index" else kind, op, (3, int(np.prod(block))))
                if kind == "bf16":
                    x = (x.view(np.int32) >> 16).astype(np.int16)  # the number's upper half is the bf16
                total = np.concatenate([x.reshape(-1)[:1]] + [row[:1] for row in x])
                want = [_all(name, kind, np.append(total[:1], x))] + [
                    _all(name, kind, np.append(row[:1], row)) for row in x
                ]
                library.kernels[name][3, block](x.reshape(-1), total)
                np.testing.assert_array_equal(total, np.array(want).astype(x.dtype), f"{name} {block}")

    return run


def _all(name: str, kind: str, x: Any) -> Any:
    with np.errstate(over="ignore"):
        if name.endswith("u"):
            return KINDS[name].reduce(x.view(f"u{x.dtype.itemsize}")).view(x.dtype)
        return KINDS[name].reduce(x, dtype=x.dtype)


def _exchange_kinds(kind: str) -> str:
    return module(mapped("k", kind, f"""
      %zero = arith.constant 0 : index
      %r = memref.atomic_rmw assign %v, %x[%zero] : ({kind}, memref<?x{kind}>) -> {kind}"""))  # fmt: skip


def _assigned(kind: str) -> Callable[[Library], None]:
    def run(library: Library) -> None:
        """The first element goes through all hands: what is left there and what was taken is what was there."""
        x = np.arange(1, 301).astype(np.float64 if kind == "f64" else np.int32 if kind == "i32" else np.float32)
        before = x.copy()
        out = launched(library.kernels.k, (100, 1, 1), x.reshape(3, 100)).reshape(-1)
        left = np.append(out[out != 0], x[0])
        assert set(left) <= set(before)
        assert len(left) == 301

    return run


CASES = [
    *(
        Case("gpu.func workgroup", kind, _workgroup(kind), _turned(kind))
        for kind in ("i8", "i16", "i32", "i64", "index", "f16", "bf16", "f32", "f64")
    ),
    Case("gpu.func workgroup", "alignment", _workgroup("f32", "{llvm.align = 256 : i64}"), _turned("f32")),
    Case("gpu.func private", "", PRIVATE.replace("BARRIER", ""), _times(4)),
    Case("gpu.func private", "across a barrier", PRIVATE.replace("BARRIER", "gpu.barrier"), _times(4)),
    Case("memref.alloca", "in a kernel, in a loop", ALLOCA.replace("BARRIER", ""), _times(4)),
    Case("memref.alloca", "across a barrier", ALLOCA.replace("BARRIER", "gpu.barrier"), _times(4)),
    Case("memref.global", "constant", CONSTANT, _from_table),
    Case("memref.global", "mutable", MUTABLE, _counted),
    *(Case("memref.global", f"workgroup, {kind}", _global_workgroup(kind), _turned(kind)) for kind in ("f32", "i8")),
    Case("gpu.dynamic_shared_memory", "two views beside static memory", DYNAMIC, _views),
    Case("func.call", "memref arguments, several results, branches", FUNCTIONS, _at_most),
    Case(
        "func.call", "recursive", RECURSIVE, refused=dict.fromkeys(("nvvm", "rocdl", "host"), "calls 'f' recursively")
    ),
    Case("gpu.return", "early", EXITS.replace("BARRIER", ""), _exited),
    Case("gpu.return", "early, before a barrier of the others", EXITS.replace("BARRIER", "gpu.barrier"), _exited),
    *(
        Case("memref.atomic_rmw", f"every kind, {kind}", _atomic(kind, _rmw(kind)), _gathered(kind))
        for kind in ("i32", "i64", "f32", "f64", "f16")
    ),
    Case(
        "memref.atomic_rmw",
        "every kind, sm_75 and gfx1100",
        _atomic("f16", _rmw("f16")),
        _gathered("f16"),
        chips={"nvvm": "sm_75", "rocdl": "gfx1100"},
    ),
    *(
        Case("memref.atomic_rmw", f"assign, {kind}", _exchange_kinds(kind), _assigned(kind))
        for kind in ("i32", "f32", "f64")
    ),
    *(
        Case("memref.generic_atomic_rmw", kind, _atomic(kind, _generic(kind)), _gathered(kind))
        for kind in ("i32", "i64", "f32", "f64", "f16")
    ),
]
