"""memref, index, affine and ub operations in kernels, and numbers in functions of the host."""

# ruff: noqa: E501 - the MLIR of a case is easier to read unbroken
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from numeric import Form, module, same

from offload.runtime import Library
from operations import Case, kernel
from operations.vector_memory import EVERYWHERE, PREFIX, M, V, floats, moved


def _copied(a: Any, b: Any) -> list[Any]:
    return [a, a]


def _scoped(kind: str, convert: str, back: str) -> Case:
    """The third float of %a, through an alloca of a scope that gives it as a ``kind``."""
    body = f"""%w = memref.load %a[%two] : memref<?xf32>
      %r = memref.alloca_scope -> ({kind}) {{
        %s = memref.alloca() : memref<2x{kind}>
        {convert}
        memref.store %v, %s[%one] : memref<2x{kind}>
        %l = memref.load %s[%one] : memref<2x{kind}>
        memref.alloca_scope.return %l : {kind}
      }}
      {back}
      memref.store %f, %b[%z] : memref<?xf32>"""
    return moved("memref.alloca_scope", kind, [(V, floats(4)), (V, np.zeros(1, "f4"))], body, lambda a, b: [a, [3]])


STRIDED = "memref<?x?xf32, strided<[?, ?], offset: ?>>"
MEMORY = [
    moved("memref.copy", "2-D", [(M, floats(3, 4)), (M, np.zeros((3, 4), "f4"))],
           "memref.copy %a, %b : memref<?x?xf32> to memref<?x?xf32>", _copied),
    moved("memref.copy", "rank 0", [("memref<f32>", np.array(3, "f4")), ("memref<f32>", np.array(0, "f4"))],
           "memref.copy %a, %b : memref<f32> to memref<f32>", _copied),
    moved("memref.copy", "from a view with strides", [(M, floats(4, 6)), ("memref<2x3xf32>", np.zeros((2, 3), "f4"))],
           "%s = memref.subview %a[1, 0] [2, 3] [1, 2] : memref<?x?xf32> to memref<2x3xf32, strided<[?, 2], offset: ?>>\n"
           "memref.copy %s, %b : memref<2x3xf32, strided<[?, 2], offset: ?>> to memref<2x3xf32>", lambda a, b: [a, a[1:3, ::2]]),
    moved("memref.subview", "dynamic", [(M, floats(4, 6)), (V, np.zeros(2, "f4"))],
           "%s = memref.subview %a[%one, %two] [%two, %two] [%one, %two] : memref<?x?xf32> to " + STRIDED + "\n"
           "%v = memref.load %s[%one, %one] : " + STRIDED + "\nmemref.store %v, %b[%one] : memref<?xf32>",
           lambda a, b: [a, [0, a[2, 4]]]),
    moved("memref.reinterpret_cast", "static", [("memref<12xf32>", floats(12)), (V, np.zeros(1, "f4"))],
           "%s = memref.reinterpret_cast %a to offset: [2], sizes: [2, 3], strides: [4, 1] : memref<12xf32> to "
           "memref<2x3xf32, strided<[4, 1], offset: 2>>\n%v = memref.load %s[%one, %two] : "
           "memref<2x3xf32, strided<[4, 1], offset: 2>>\nmemref.store %v, %b[%z] : memref<?xf32>", lambda a, b: [a, [a[8]]]),
    moved("memref.collapse_shape", "2-D to 1-D", [("memref<3x4xf32>", floats(3, 4)), (V, np.zeros(1, "f4"))],
           "%s = memref.collapse_shape %a [[0, 1]] : memref<3x4xf32> into memref<12xf32>\n%i = arith.constant 7 : index\n"
           "%v = memref.load %s[%i] : memref<12xf32>\nmemref.store %v, %b[%z] : memref<?xf32>", lambda a, b: [a, [8]]),
    moved("memref.expand_shape", "1-D to 2-D", [("memref<12xf32>", floats(12)), (V, np.zeros(1, "f4"))],
           "%s = memref.expand_shape %a [[0, 1]] output_shape [3, 4] : memref<12xf32> into memref<3x4xf32>\n"
           "%v = memref.load %s[%one, %two] : memref<3x4xf32>\nmemref.store %v, %b[%z] : memref<?xf32>", lambda a, b: [a, [7]]),
    moved("memref.cast", "static to dynamic", [("memref<4xf32>", floats(4)), ("memref<?xindex>", np.zeros(1, np.int64))],
           "%s = memref.cast %a : memref<4xf32> to memref<?xf32>\n%n = memref.dim %s, %z : memref<?xf32>\n"
           "memref.store %n, %b[%z] : memref<?xindex>", lambda a, b: [a, [4]]),
    moved("memref.transpose", "2-D", [("memref<3x4xf32>", floats(3, 4)), (V, np.zeros(1, "f4"))],
           "%s = memref.transpose %a (i, j) -> (j, i) : memref<3x4xf32> to memref<4x3xf32, strided<[1, 4]>>\n"
           "%v = memref.load %s[%two, %one] : memref<4x3xf32, strided<[1, 4]>>\nmemref.store %v, %b[%z] : memref<?xf32>",
           lambda a, b: [a, [a[1, 2]]]),
    moved("memref.view", "bytes as floats", [("memref<16xi8>", floats(4).view(np.int8)), (V, np.zeros(1, "f4"))],
           "%s = memref.view %a[%four][] : memref<16xi8> to memref<3xf32>\n%v = memref.load %s[%one] : memref<3xf32>\n"
           "memref.store %v, %b[%z] : memref<?xf32>", lambda a, b: [a, [3]]),
    moved("memref.rank", "static", [(M, floats(3, 4)), ("memref<?xindex>", np.zeros(1, np.int64))],
           "%n = memref.rank %a : memref<?x?xf32>\nmemref.store %n, %b[%z] : memref<?xindex>", lambda a, b: [a, [2]]),
    moved("memref.dim", "2-D", [(M, floats(3, 4)), ("memref<?xindex>", np.zeros(1, np.int64))],
           "%n = memref.dim %a, %one : memref<?x?xf32>\nmemref.store %n, %b[%z] : memref<?xindex>", lambda a, b: [a, [4]]),
    moved("memref.extract_strided_metadata", "2-D", [(M, floats(3, 4)), ("memref<?xindex>", np.zeros(3, np.int64))],
           "%m, %o, %s:2, %t:2 = memref.extract_strided_metadata %a : memref<?x?xf32> -> memref<f32>, index, index, index, index, index\n"
           "memref.store %s#1, %b[%z] : memref<?xindex>\nmemref.store %t#0, %b[%one] : memref<?xindex>\n"
           "memref.store %o, %b[%two] : memref<?xindex>", lambda a, b: [a, [4, 4, 0]]),
    moved("memref.extract_aligned_pointer_as_index", "difference", [(V, floats(4)), ("memref<?xindex>", np.zeros(1, np.int64))],
           "%p = memref.extract_aligned_pointer_as_index %a : memref<?xf32> -> index\n%q = arith.andi %p, %one : index\n"
           "memref.store %q, %b[%z] : memref<?xindex>", lambda a, b: [a, [0]]),
    moved("memref.prefetch", "read", [(V, floats(4))],
           "memref.prefetch %a[%one], read, locality<3>, data : memref<?xf32>", lambda a: [a]),
    moved("memref.assume_alignment", "4 bytes", [(V, floats(4)), (V, np.zeros(1, "f4"))],
           "%s = memref.assume_alignment %a, 4 : memref<?xf32>\n%v = memref.load %s[%one] : memref<?xf32>\n"
           "memref.store %v, %b[%z] : memref<?xf32>", lambda a, b: [a, [2]]),
    _scoped("f64", "%v = arith.extf %w : f32 to f64", "%f = arith.truncf %r : f64 to f32"),
    _scoped("f8E4M3FN", "%v = arith.truncf %w : f32 to f8E4M3FN", "%f = arith.extf %r : f8E4M3FN to f32"),
    _scoped("index", "%i = arith.fptosi %w : f32 to i64\n%v = arith.index_cast %i : i64 to index",
            "%j = arith.index_cast %r : index to i64\n%f = arith.sitofp %j : i64 to f32"),
    moved("memref.alloca", "4 floats", [(V, floats(4)), (V, np.zeros(1, "f4"))],
           "%s = memref.alloca() : memref<4xf32>\n%v = memref.load %a[%two] : memref<?xf32>\nmemref.store %v, %s[%one] : memref<4xf32>\n"
           "%w = memref.load %s[%one] : memref<4xf32>\nmemref.store %w, %b[%z] : memref<?xf32>", lambda a, b: [a, [3]]),
    moved("memref.alloc", "4 floats, and memref.dealloc", [(V, floats(4)), (V, np.zeros(1, "f4"))],
           "%s = memref.alloc() : memref<4xf32>\n%v = memref.load %a[%two] : memref<?xf32>\nmemref.store %v, %s[%one] : memref<4xf32>\n"
           "%w = memref.load %s[%one] : memref<4xf32>\nmemref.store %w, %b[%z] : memref<?xf32>\nmemref.dealloc %s : memref<4xf32>",
           lambda a, b: [a, [3]]),
    moved("affine.apply", "map", [(V, floats(12)), (V, np.zeros(1, "f4"))],
           "%i = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1 mod 3)>(%two, %four)\n%v = memref.load %a[%i] : memref<?xf32>\n"
           "memref.store %v, %b[%z] : memref<?xf32>", lambda a, b: [a, [a[9]]]),
    moved("affine.for", "sum", [(V, floats(12)), (V, np.zeros(1, "f4"))],
           "%zero = arith.constant 0.0 : f32\n%s = affine.for %i = 0 to 12 step 3 iter_args(%t = %zero) -> f32 {\n"
           "%v = affine.load %a[%i + 1] : memref<?xf32>\n%u = arith.addf %t, %v : f32\naffine.yield %u : f32\n}\n"
           "affine.store %s, %b[0] : memref<?xf32>", lambda a, b: [a, [a[1::3].sum()]]),
    moved("affine.if", "set", [(V, floats(3)), (V, np.zeros(4, "f4"))],
           "%c = arith.constant 9.0 : f32\naffine.for %i = 0 to 4 {\naffine.if affine_set<(d0) : (d0 - 2 >= 0)>(%i) {\n"
           "affine.store %c, %b[%i] : memref<?xf32>\n}\n}", lambda a, b: [a, [0, 0, 9, 9]]),
    moved("affine.min", "and max", [("memref<?xindex>", np.zeros(2, np.int64))],
           "%i = affine.min affine_map<(d0) -> (d0 * 2, 5)>(%four)\n%j = affine.max affine_map<(d0) -> (d0 * 2, 5)>(%four)\n"
           "memref.store %i, %a[%z] : memref<?xindex>\nmemref.store %j, %a[%one] : memref<?xindex>", lambda a: [[5, 8]]),
    moved("affine.vector_load", "1-D", [(V, floats(8)), (V, np.zeros(4, "f4"))],
           "%v = affine.vector_load %a[2] : memref<?xf32>, vector<4xf32>\naffine.vector_store %v, %b[0] : memref<?xf32>, vector<4xf32>",
           lambda a, b: [a, a[2:6]]),
    moved("ub.poison", "unused", [(V, floats(4))],
           "%p = ub.poison : f32\n%t = arith.constant true\n%v = memref.load %a[%one] : memref<?xf32>\n"
           "%w = arith.select %t, %v, %p : f32\nmemref.store %w, %a[%z] : memref<?xf32>", lambda a: [[2, 2, 3, 4]]),
]  # fmt: skip

INDEX: dict[str, Callable[[int, int], int]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
    "divs": lambda x, y: int(x / y), "divu": lambda x, y: x // y, "ceildivs": lambda x, y: -(-x // y),
    "ceildivu": lambda x, y: -(-x // y), "floordivs": lambda x, y: x // y, "rems": lambda x, y: x - int(x / y) * y,
    "remu": lambda x, y: x % y, "maxs": max, "maxu": max, "mins": min, "minu": min, "shl": lambda x, y: x << y,
    "shrs": lambda x, y: x >> y, "shru": lambda x, y: x >> y, "and": lambda x, y: x & y, "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
}  # fmt: skip


def _index(op: str) -> Case:
    form = Form("scalar", ["index", "index"], ["index"], f"%r0 = index.{op} %x0, %x1")

    def run(library: Library) -> None:
        unsigned = op.endswith("u") or op in ("shl",)
        x = np.array([7, 100, 12, 9, 1 << 40, 0] + ([] if unsigned else [-7, -100]), np.int64)
        y = np.array([2, 7, 12, 4, 3, 5] + ([] if unsigned else [2, 7]), np.int64)
        same(form.run(library, x, y)[0], np.array([INDEX[op](int(a), int(b)) for a, b in zip(x, y, strict=False)]))

    return Case(f"index.{op}", "index", module([form]), run)


def _index_others() -> Case:
    body = """%wide = index.castu %x1 : i32 to index
      %s = index.casts %x1 : i32 to index
      %c = index.constant 5
      %t = index.bool.constant true
      %l = index.cmp slt(%x0, %c)
      %b = arith.andi %l, %t : i1
      %n = index.sizeof
      %a = arith.select %b, %wide, %s : index
      %r0 = index.add %a, %n"""
    form = Form("scalar", ["index", "i32"], ["index"], body)

    def run(library: Library) -> None:
        x, y = np.array([4, 5, -1, 9]), np.array([-1, -1, 3, 3], np.int32)
        same(form.run(library, x, y)[0], np.array([(1 << 32) - 1 + 64, 63, 67, 67]))

    return Case("index.casts", "with castu, cmp, constant, bool.constant, sizeof", module([form]), run)


def _refused(op: str, form: str, body: str, reason: str) -> Case:
    return Case(op, form, kernel(PREFIX + body, "%a: memref<?xf32>"), None, dict.fromkeys(EVERYWHERE, reason))


REFUSED = [
    _refused("memref.alloc", "of a size that the thread knows", "%v = memref.load %a[%z] : memref<?xf32>\n"
             "%n = gpu.thread_id x\n%s = memref.alloc(%n) : memref<?xf32> // here\n"
             "memref.store %v, %s[%one] : memref<?xf32>\n%w = memref.load %s[%one] : memref<?xf32>\n"
             "memref.store %w, %a[%z] : memref<?xf32>", "in a kernel: threads have no allocator"),
    _refused("memref.alloc", "workgroup memory, in a loop", "scf.for %i = %z to %two step %one {\n"
             "%s = memref.alloc() : memref<4xf32, #gpu.address_space<workgroup>> // here\n"
             "memref.dealloc %s : memref<4xf32, #gpu.address_space<workgroup>>\n}",
             "of the block's memory stands at the beginning of a kernel"),
    _refused("memref.alloca", "workgroup memory, dynamic", "%s = memref.alloca(%two) : memref<?xf32, 3> // here",
             "of the block's memory stands at the beginning of a kernel"),
    _refused("memref.dealloc", "kernel", "memref.dealloc %a : memref<?xf32> // here", "in a kernel: threads have no allocator"),
]  # fmt: skip


def _on_host(op: str, form: str, signature: str, body: str, result: str, check: Callable[[Library], None]) -> Case:
    return Case(op, form, f"func.func @f({signature}) -> {result} {{\n{body}\nreturn %r : {result}\n}}\n", check)


def _near(*arguments: Any, right: Any, tolerance: float = 1e-6) -> Callable[[Library], None]:
    def check(library: Library) -> None:
        np.testing.assert_allclose(complex(library.f(*arguments)), complex(right), rtol=tolerance)

    return check


HOST = [
    _on_host("math.ipowi", "in a host function", "%x: i32, %y: i32", "%r = math.ipowi %x, %y : i32", "i32", _near(3, 5, right=243)),
    _on_host("math.isinf", "in a host function", "%x: f32", "%r = math.isinf %x : f32", "i1", _near(float("inf"), right=True)),
    _on_host("math.fpowi", "in a host function", "%x: f64, %y: i32", "%r = math.fpowi %x, %y : f64, i32", "f64",
             _near(1.5, -7, right=1.5**-7, tolerance=1e-15)),
    _on_host("math.exp", "bf16, in a host function", "%x: bf16", "%r = math.exp %x : bf16", "bf16",
             _near(1.0, right=float(ml_dtypes.bfloat16(np.e)))),
    _on_host("complex.tanh", "in a host function", "%x: complex<f64>", "%r = complex.tanh %x : complex<f64>", "complex<f64>",
             _near(0.5 + 0.25j, right=np.tanh(0.5 + 0.25j), tolerance=1e-14)),
    _on_host("arith.truncf", "f8E4M3FN, in a host function", "%x: f32", "%s = arith.truncf %x : f32 to f8E4M3FN\n"
             "%r = arith.extf %s : f8E4M3FN to f32", "f32", _near(1.3, right=1.25)),
    _on_host("vector.contract", "in a host function", "%x: f32", "%v = vector.broadcast %x : f32 to vector<4xf32>\n"
             "%z = arith.constant 0.0 : f32\n%r = vector.contract {indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> (k)>, "
             'affine_map<(k) -> ()>], iterator_types = ["reduction"]} %v, %v, %z : vector<4xf32>, vector<4xf32> into f32', "f32",
             _near(3.0, right=36)),
]  # fmt: skip

CASES = [*MEMORY, *(_index(op) for op in INDEX), _index_others(), *REFUSED, *HOST]
