"""Vectors to and from memory in kernels: loads, transfers, masks, gathers, compression; what is refused."""

# ruff: noqa: E501 - the MLIR of a case is easier to read unbroken
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numeric import DTYPES

from offload.runtime import Library
from operations import Case, kernel

PREFIX = """%z = arith.constant 0 : index
%one = arith.constant 1 : index
%two = arith.constant 2 : index
%four = arith.constant 4 : index
%pad = arith.constant -7.0 : f32
"""


def moved(
    op: str,
    form: str,
    arguments: Sequence[tuple[str, Any]],
    body: str,
    expected: Callable[..., Sequence[Any]],
) -> Case:
    """``body`` works on memrefs %a, %b … of these types, given these arrays; NumPy says what they hold after."""
    text = ", ".join(f"%{name}: {kind}" for name, (kind, _) in zip("abcdef", arguments, strict=False))
    name = op if "." in op else f"vector.{op}"

    def run(library: Library) -> None:
        arrays = [np.array(array) for _, array in arguments]
        want = expected(*(array.copy() for array in arrays))
        library.kernels.k[1, 1](*arrays)
        for got, right in zip(arrays, want, strict=False):
            np.testing.assert_array_equal(got, right)

    return Case(name, form, kernel(PREFIX + body, text), run)


def floats(*shape: int) -> Any:
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


V, M = "memref<?xf32>", "memref<?x?xf32>"
MASK = "%m = vector.create_mask %two : vector<4xi1>\n"


def _put(out: Any, value: Any, *at: Any) -> Any:
    out[at if len(at) > 1 else at[0]] = value
    return out


LOADS = [
    moved("load", "1-D from 2-D", [(M, floats(3, 8)), (V, np.zeros(4, "f4"))],
          "%v = vector.load %a[%one, %two] : memref<?x?xf32>, vector<4xf32>\nvector.store %v, %b[%z] : memref<?xf32>, vector<4xf32>",
          lambda a, b: [a, a[1, 2:6]]),
    moved("load", "2-D", [(M, floats(4, 8)), (M, np.zeros((2, 3), "f4"))],
          "%v = vector.load %a[%one, %two] : memref<?x?xf32>, vector<2x3xf32>\n"
          "vector.store %v, %b[%z, %z] : memref<?x?xf32>, vector<2x3xf32>", lambda a, b: [a, a[1:3, 2:5]]),
    moved("load", "3-D", [("memref<2x3x4xf32>", floats(2, 3, 4)), ("memref<2x3x4xf32>", np.zeros((2, 3, 4), "f4"))],
          "%v = vector.load %a[%z, %z, %z] : memref<2x3x4xf32>, vector<2x3x4xf32>\n"
          "%w = arith.addf %v, %v : vector<2x3x4xf32>\nvector.store %w, %b[%z, %z, %z] : memref<2x3x4xf32>, vector<2x3x4xf32>",
          lambda a, b: [a, a + a]),
    moved("load", "rank 0", [(V, floats(4)), (V, np.zeros(4, "f4"))],
          "%v = vector.load %a[%two] : memref<?xf32>, vector<f32>\nvector.store %v, %b[%one] : memref<?xf32>, vector<f32>",
          lambda a, b: [a, _put(b, a[2], 1)]),
    moved("load", "of vectors", [("memref<?x4xf32>", floats(3, 4)), ("memref<?x4xf32>", np.zeros((3, 4), "f4"))],
          "%v = vector.load %a[%one, %z] : memref<?x4xf32>, vector<4xf32>\nvector.store %v, %b[%two, %z] : memref<?x4xf32>, vector<4xf32>",
          lambda a, b: [a, _put(b, a[1], 2)]),
    moved("load", "2-D, from memory of such vectors", [(M, floats(4, 8)), (M, np.zeros((2, 3), "f4"))],
          "%s = memref.alloca() : memref<3x2xvector<2x3xf32>>\n%v = vector.load %a[%one, %two] : memref<?x?xf32>, vector<2x3xf32>\n"
          "vector.store %v, %s[%z, %z] : memref<3x2xvector<2x3xf32>>, vector<2x3xf32>\n%n = arith.negf %v : vector<2x3xf32>\n"
          "vector.store %n, %s[%one, %z] : memref<3x2xvector<2x3xf32>>, vector<2x3xf32>\n"
          "%w = vector.load %s[%z, %z] : memref<3x2xvector<2x3xf32>>, vector<2x3xf32>\n"
          "vector.store %w, %b[%z, %z] : memref<?x?xf32>, vector<2x3xf32>", lambda a, b: [a, a[1:3, 2:5]]),
    moved("load", "i1", [("memref<?xi1>", np.arange(8) % 3 == 0), ("memref<?xi1>", np.zeros(8, bool))],
          "%v = vector.load %a[%two] : memref<?xi1>, vector<4xi1>\nvector.store %v, %b[%one] : memref<?xi1>, vector<4xi1>",
          lambda a, b: [a, _put(b, a[2:6], slice(1, 5))]),
    moved("maskedload", "f32", [(V, floats(6)), (V, np.zeros(4, "f4"))],
          MASK + "%p = arith.constant dense<-1.0> : vector<4xf32>\n"
          "%v = vector.maskedload %a[%one], %m, %p : memref<?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>\n"
          "vector.store %v, %b[%z] : memref<?xf32>, vector<4xf32>", lambda a, b: [a, [2, 3, -1, -1]]),
    moved("maskedload", "past the end", [(V, floats(2)), (V, np.zeros(4, "f4"))],
          MASK + "%p = arith.constant dense<-1.0> : vector<4xf32>\n"
          "%v = vector.maskedload %a[%z], %m, %p : memref<?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>\n"
          "vector.store %v, %b[%z] : memref<?xf32>, vector<4xf32>", lambda a, b: [a, [1, 2, -1, -1]]),
    moved("maskedload", "i1", [("memref<?xi1>", np.ones(6, bool)), ("memref<?xi1>", np.zeros(4, bool))],
          MASK + "%p = arith.constant dense<false> : vector<4xi1>\n"
          "%v = vector.maskedload %a[%one], %m, %p : memref<?xi1>, vector<4xi1>, vector<4xi1> into vector<4xi1>\n"
          "vector.store %v, %b[%z] : memref<?xi1>, vector<4xi1>", lambda a, b: [a, [True, True, False, False]]),
    moved("maskedstore", "f32", [(V, floats(4)), (V, np.zeros(6, "f4"))],
          MASK + "%v = vector.load %a[%z] : memref<?xf32>, vector<4xf32>\n"
          "vector.maskedstore %b[%one], %m, %v : memref<?xf32>, vector<4xi1>, vector<4xf32>",
          lambda a, b: [a, [0, 1, 2, 0, 0, 0]]),
    moved("gather", "1-D", [(V, floats(8)), ("memref<4xi32>", np.array([3, 0, 5, 100], "i4")), (V, np.zeros(4, "f4"))],
          "%i = vector.load %b[%z] : memref<4xi32>, vector<4xi32>\n%m = arith.constant dense<[true, true, true, false]> : vector<4xi1>\n"
          "%p = arith.constant dense<-1.0> : vector<4xf32>\n%v = vector.gather %a[%one][%i], %m, %p : memref<?xf32>, "
          "vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32>\nvector.store %v, %c[%z] : memref<?xf32>, vector<4xf32>",
          lambda a, b, c: [a, b, [5, 2, 7, -1]]),
    moved("gather", "2-D", [(V, floats(8)), ("memref<2x2xi32>", np.array([[3, 0], [5, 1]], "i4")), (M, np.zeros((2, 2), "f4"))],
          "%i = vector.load %b[%z, %z] : memref<2x2xi32>, vector<2x2xi32>\n%m = arith.constant dense<true> : vector<2x2xi1>\n"
          "%p = arith.constant dense<-1.0> : vector<2x2xf32>\n%v = vector.gather %a[%z][%i], %m, %p : memref<?xf32>, "
          "vector<2x2xi32>, vector<2x2xi1>, vector<2x2xf32> into vector<2x2xf32>\n"
          "vector.store %v, %c[%z, %z] : memref<?x?xf32>, vector<2x2xf32>", lambda a, b, c: [a, b, a[b]]),
    moved("scatter", "1-D", [(V, floats(4)), ("memref<4xi32>", np.array([3, 0, 5, 100], "i4")), (V, np.zeros(8, "f4"))],
          "%i = vector.load %b[%z] : memref<4xi32>, vector<4xi32>\n%m = arith.constant dense<[true, true, true, false]> : vector<4xi1>\n"
          "%v = vector.load %a[%z] : memref<?xf32>, vector<4xf32>\nvector.scatter %c[%one][%i], %m, %v : memref<?xf32>, "
          "vector<4xi32>, vector<4xi1>, vector<4xf32>", lambda a, b, c: [a, b, [0, 2, 0, 0, 1, 0, 3, 0]]),
    moved("expandload", "1-D", [(V, floats(4)), (V, np.zeros(4, "f4"))],
          "%m = arith.constant dense<[true, false, true, true]> : vector<4xi1>\n%p = arith.constant dense<-1.0> : vector<4xf32>\n"
          "%v = vector.expandload %a[%one], %m, %p : memref<?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>\n"
          "vector.store %v, %b[%z] : memref<?xf32>, vector<4xf32>", lambda a, b: [a, [2, -1, 3, 4]]),
    moved("compressstore", "1-D", [(V, floats(4)), (V, np.zeros(4, "f4"))],
          "%m = arith.constant dense<[true, false, true, true]> : vector<4xi1>\n%v = vector.load %a[%z] : memref<?xf32>, vector<4xf32>\n"
          "vector.compressstore %b[%one], %m, %v : memref<?xf32>, vector<4xi1>, vector<4xf32>",
          lambda a, b: [a, [0, 1, 3, 4]]),
    moved("maskedload", "2-D", [(M, floats(4, 8)), (M, np.zeros((2, 4), "f4"))],
          "%m = vector.constant_mask [1, 3] : vector<2x4xi1>\n%p = arith.constant dense<-1.0> : vector<2x4xf32>\n"
          "%v = vector.maskedload %a[%one, %two], %m, %p : memref<?x?xf32>, vector<2x4xi1>, vector<2x4xf32> into vector<2x4xf32>\n"
          "vector.store %v, %b[%z, %z] : memref<?x?xf32>, vector<2x4xf32>",
          lambda a, b: [a, [[*a[1, 2:5], -1], [-1] * 4]]),
    moved("maskedload", "2-D, with a stride of 2", [("memref<64xf32>", floats(64)), (M, np.zeros((2, 4), "f4"))],
          "%x = memref.reinterpret_cast %a to offset: [0], sizes: [4, 8], strides: [16, 2] : memref<64xf32> to "
          "memref<4x8xf32, strided<[16, 2]>>\n%m = vector.constant_mask [1, 3] : vector<2x4xi1>\n"
          "%p = arith.constant dense<-1.0> : vector<2x4xf32>\n%v = vector.maskedload %x[%one, %two], %m, %p : "
          "memref<4x8xf32, strided<[16, 2]>>, vector<2x4xi1>, vector<2x4xf32> into vector<2x4xf32>\n"
          "vector.store %v, %b[%z, %z] : memref<?x?xf32>, vector<2x4xf32>",
          lambda a, b: [a, [[21, 23, 25, -1], [-1] * 4]]),
    moved("maskedstore", "2-D", [(M, floats(2, 4)), (M, np.zeros((4, 8), "f4"))],
          "%m = vector.constant_mask [2, 3] : vector<2x4xi1>\n%v = vector.load %a[%z, %z] : memref<?x?xf32>, vector<2x4xf32>\n"
          "vector.maskedstore %b[%one, %two], %m, %v : memref<?x?xf32>, vector<2x4xi1>, vector<2x4xf32>",
          lambda a, b: [a, _put(b, a[:, :3], slice(1, 3), slice(2, 5))]),
    moved("scatter", "2-D", [(M, floats(2, 2)), ("memref<2x2xi32>", np.array([[3, 0], [5, 1]], "i4")), (V, np.zeros(8, "f4"))],
          "%i = vector.load %b[%z, %z] : memref<2x2xi32>, vector<2x2xi32>\n%m = arith.constant dense<[[true, true], [false, true]]> : vector<2x2xi1>\n"
          "%v = vector.load %a[%z, %z] : memref<?x?xf32>, vector<2x2xf32>\nvector.scatter %c[%one][%i], %m, %v : memref<?xf32>, "
          "vector<2x2xi32>, vector<2x2xi1>, vector<2x2xf32>", lambda a, b, c: [a, b, [0, 2, 4, 0, 1, 0, 0, 0]]),
    moved("expandload", "2-D", [(V, floats(5)), (M, np.zeros((2, 2), "f4"))],
          "%m = arith.constant dense<[[true, false], [true, true]]> : vector<2x2xi1>\n%p = arith.constant dense<-1.0> : vector<2x2xf32>\n"
          "%v = vector.expandload %a[%one], %m, %p : memref<?xf32>, vector<2x2xi1>, vector<2x2xf32> into vector<2x2xf32>\n"
          "vector.store %v, %b[%z, %z] : memref<?x?xf32>, vector<2x2xf32>", lambda a, b: [a, [[2, -1], [3, 4]]]),
    moved("compressstore", "2-D", [(M, floats(2, 2)), (V, np.zeros(4, "f4"))],
          "%m = arith.constant dense<[[true, false], [true, true]]> : vector<2x2xi1>\n%v = vector.load %a[%z, %z] : memref<?x?xf32>, vector<2x2xf32>\n"
          "vector.compressstore %b[%one], %m, %v : memref<?xf32>, vector<2x2xi1>, vector<2x2xf32>",
          lambda a, b: [a, [0, 1, 3, 4]]),
    moved("type_cast", "to a vector", [("memref<2x4xf32>", floats(2, 4)), (M, np.zeros((2, 4), "f4"))],
          "%t = vector.type_cast %a : memref<2x4xf32> to memref<vector<2x4xf32>>\n%v = memref.load %t[] : memref<vector<2x4xf32>>\n"
          "vector.store %v, %b[%z, %z] : memref<?x?xf32>, vector<2x4xf32>", lambda a, b: [a, a]),
]  # fmt: skip


def _columns(op: str, layout: str, body: str, expected: Callable[..., Any]) -> Case:
    """A masked access of four elements to a column of %a, 6 by 3, from the second row on, or to one of %b."""
    column = f"memref<6xf32, strided<[{layout}>>"
    views = "".join(
        f"%three{i} = arith.constant 3 : index\n%{to} = memref.reinterpret_cast %{of} to offset: "
        f"[{'%z' if '?' in layout else 2}], sizes: [6], strides: [{f'%three{i}' if layout[0] == '?' else 3}] : "
        f"{kind} to {column}\n"
        for i, (to, of, kind) in enumerate((("x", "a", "memref<18xf32>"), ("y", "b", "memref<18xf32>")))
    )
    prefix = "%m = arith.constant dense<[true, false, true, true]> : vector<4xi1>\n%p = arith.constant dense<-1.0> : vector<4xf32>\n"
    return moved(op, f"with a stride of {layout.partition(']')[0]}", [("memref<18xf32>", floats(18)), ("memref<18xf32>", np.zeros(18, "f4"))],
                 views + prefix + body.replace("COLUMN", column), expected)  # fmt: skip


def _column(layout: str, array: Any) -> Any:
    return array[0 if "?" in layout else 2 :: 3]


def _in_column(layout: str, array: Any, rows: Sequence[int], values: Any) -> Any:
    _column(layout, array)[list(rows)] = values
    return array


_PLACES = "%i = arith.constant dense<[3, 9, 0, 2]> : vector<4xi32>\n"
_STORED = "vector.store %v, %b[%z] : memref<18xf32>, vector<4xf32>"
_FOUR = "%v = vector.load %a[%z] : memref<18xf32>, vector<4xf32>\n"
STRIDED = [
    case
    for layout in ("3], offset: 2", "?], offset: ?")
    for case in (
        _columns("maskedload", layout, f"%v = vector.maskedload %x[%one], %m, %p : COLUMN, vector<4xi1>, vector<4xf32> into vector<4xf32>\n{_STORED}",
                 lambda a, b, at=layout: [a, _put(b, np.where([1, 0, 1, 1], _column(at, a)[1:5], -1), slice(4))]),
        _columns("maskedstore", layout, _FOUR + "vector.maskedstore %y[%one], %m, %v : COLUMN, vector<4xi1>, vector<4xf32>",
                 lambda a, b, at=layout: [a, _in_column(at, b, (1, 3, 4), a[[0, 2, 3]])]),
        _columns("gather", layout, f"{_PLACES}%v = vector.gather %x[%one][%i], %m, %p : COLUMN, vector<4xi32>, vector<4xi1>, "
                 f"vector<4xf32> into vector<4xf32>\n{_STORED}",
                 lambda a, b, at=layout: [a, _put(b, [_column(at, a)[4], -1, *_column(at, a)[[1, 3]]], slice(4))]),
        _columns("scatter", layout, f"{_PLACES}{_FOUR}vector.scatter %y[%one][%i], %m, %v : COLUMN, vector<4xi32>, vector<4xi1>, vector<4xf32>",
                 lambda a, b, at=layout: [a, _in_column(at, b, (4, 1, 3), a[[0, 2, 3]])]),
        _columns("expandload", layout, f"%v = vector.expandload %x[%one], %m, %p : COLUMN, vector<4xi1>, vector<4xf32> into vector<4xf32>\n{_STORED}",
                 lambda a, b, at=layout: [a, _put(b, [_column(at, a)[1], -1, *_column(at, a)[2:4]], slice(4))]),
        _columns("compressstore", layout, _FOUR + "vector.compressstore %y[%one], %m, %v : COLUMN, vector<4xi1>, vector<4xf32>",
                 lambda a, b, at=layout: [a, _in_column(at, b, (1, 2, 3), a[[0, 2, 3]])]),
    )
]  # fmt: skip


def _read(form: str, shape: tuple[int, ...], text: str, expected: Callable[[Any], Any], before: str = "") -> Case:
    """A transfer_read of %a, 5 by 6, into a vector of that shape, stored whole."""
    kind = f"vector<{'x'.join(map(str, shape))}xf32>"
    zeros = ", ".join(["%z"] * len(shape))
    memory = f"memref<{'x'.join(map(str, shape))}xf32>"
    body = f"{before}%v = vector.transfer_read {text}, {kind}\nvector.store %v, %b[{zeros}] : {memory}, {kind}"
    return moved("transfer_read", form, [(M, floats(5, 6)), (memory, np.zeros(shape, "f4"))], body,
                 lambda a, b: [a, expected(a)])  # fmt: skip


def _padded(part: Any, shape: tuple[int, ...]) -> Any:
    result = np.full(shape, -7, np.float32)
    result[tuple(slice(0, n) for n in part.shape)] = part
    return result


READS = [
    _read("1-D, in bounds", (4,), "%a[%one, %two], %pad {in_bounds = [true]} : memref<?x?xf32>", lambda a: a[1, 2:]),
    _read("1-D, past the end", (4,), "%a[%one, %four], %pad : memref<?x?xf32>", lambda a: _padded(a[1, 4:], (4,))),
    _read("2-D, in bounds", (2, 4), "%a[%one, %two], %pad {in_bounds = [true, true]} : memref<?x?xf32>", lambda a: a[1:3, 2:]),
    _read("2-D, past both ends", (2, 4), "%a[%four, %four], %pad : memref<?x?xf32>", lambda a: _padded(a[4:, 4:], (2, 4))),
    _read("transposed", (4, 2), "%a[%one, %two], %pad {in_bounds = [true, true], permutation_map = "
          "affine_map<(i, j) -> (j, i)>} : memref<?x?xf32>", lambda a: a[1:3, 2:6].T),
    _read("transposed, past the end", (4, 2), "%a[%four, %four], %pad {permutation_map = affine_map<(i, j) -> (j, i)>} : "
          "memref<?x?xf32>", lambda a: _padded(a[4:, 4:].T, (4, 2))),
    _read("a column", (3,), "%a[%one, %two], %pad {in_bounds = [true], permutation_map = affine_map<(i, j) -> (i)>} : "
          "memref<?x?xf32>", lambda a: a[1:4, 2]),
    _read("broadcast", (3, 4), "%a[%one, %two], %pad {in_bounds = [true, true], permutation_map = affine_map<(i, j) -> (0, j)>} : "
          "memref<?x?xf32>", lambda a: np.broadcast_to(a[1, 2:6], (3, 4))),
    _read("3-D with a broadcast", (2, 2, 4), "%a[%one, %two], %pad {in_bounds = [true, true, true], permutation_map = "
          "affine_map<(i, j) -> (i, 0, j)>} : memref<?x?xf32>", lambda a: np.broadcast_to(a[1:3, None, 2:6], (2, 2, 4))),
    _read("mask", (4,), "%a[%one, %two], %pad, %m {in_bounds = [true]} : memref<?x?xf32>", lambda a: _padded(a[1, 2:4], (4,)), MASK),
    _read("2-D mask", (2, 4), "%a[%one, %two], %pad, %m {in_bounds = [true, true]} : memref<?x?xf32>",
          lambda a: _padded(a[1:2, 2:4], (2, 4)), "%m = vector.create_mask %one, %two : vector<2x4xi1>\n"),
    moved("mask", "transfer_read", [(M, floats(5, 6)), ("memref<4xf32>", np.zeros(4, "f4"))],
          MASK + "%v = vector.mask %m { vector.transfer_read %a[%one, %two], %pad {in_bounds = [true]} : memref<?x?xf32>, vector<4xf32> }"
          " : vector<4xi1> -> vector<4xf32>\nvector.store %v, %b[%z] : memref<4xf32>, vector<4xf32>",
          lambda a, b: [a, _padded(a[1, 2:4], (4,))]),
    # A mask's dimensions are in the memory's order, not in the vector's.
    moved("transfer_read", "mask, transposed and without the last dimension",
          [("memref<4x5x3xf32>", floats(4, 5, 3)), ("memref<4x2xf32>", np.zeros((4, 2), "f4"))],
          "%m = vector.create_mask %one, %two : vector<2x4xi1>\n"
          "%v = vector.transfer_read %a[%two, %z, %one], %pad, %m {in_bounds = [true, true], permutation_map = "
          "affine_map<(i, j, k) -> (j, i)>} : memref<4x5x3xf32>, vector<4x2xf32>\n"
          "vector.transfer_write %v, %b[%z, %z] : vector<4x2xf32>, memref<4x2xf32>",
          lambda a, b: [a, _padded(a[2:3, :2, 1].T, (4, 2))]),
    moved("transfer_read", "mask, transposed, a broadcast, past the end",
          [("memref<4x5x3xf32>", floats(4, 5, 3)), ("memref<3x2x4xf32>", np.zeros((3, 2, 4), "f4"))],
          "%m = vector.create_mask %four, %two : vector<4x3xi1>\n"
          "%v = vector.transfer_read %a[%two, %z, %one], %pad, %m {in_bounds = [false, true, false], permutation_map = "
          "affine_map<(i, j, k) -> (k, 0, i)>} : memref<4x5x3xf32>, vector<3x2x4xf32>\n"
          "vector.transfer_write %v, %b[%z, %z, %z] : vector<3x2x4xf32>, memref<3x2x4xf32>",
          lambda a, b: [a, np.stack([_padded(a[2:, 0, 1:].T, (3, 4))] * 2, 1)]),
]  # fmt: skip


def _write(form: str, shape: tuple[int, ...], text: str, expected: Callable[[Any, Any], Any], before: str = "") -> Case:
    """A transfer_write of the whole of %a, of that shape, to %b, 5 by 6."""
    kind, zeros = f"vector<{'x'.join(map(str, shape))}xf32>", ", ".join(["%z"] * len(shape))
    memory = f"memref<{'x'.join(map(str, shape))}xf32>"
    body = f"{before}%v = vector.load %a[{zeros}] : {memory}, {kind}\nvector.transfer_write %v, {text.replace(':', ': ' + kind + ',', 1)}"
    return moved("transfer_write", form, [(memory, floats(*shape)), (M, np.zeros((5, 6), "f4"))], body,
                 lambda a, b: [a, expected(a, b)])  # fmt: skip


WRITES = [
    _write("1-D, in bounds", (4,), "%b[%one, %two] {in_bounds = [true]} : memref<?x?xf32>", lambda a, b: _put(b, a, 1, slice(2, 6))),
    _write("1-D, past the end", (4,), "%b[%one, %four] : memref<?x?xf32>", lambda a, b: _put(b, a[:2], 1, slice(4, 6))),
    _write("2-D, past both ends", (2, 4), "%b[%four, %four] : memref<?x?xf32>", lambda a, b: _put(b, a[:1, :2], slice(4, 5), slice(4, 6))),
    _write("2-D, in bounds", (2, 4), "%b[%one, %two] {in_bounds = [true, true]} : memref<?x?xf32>",
           lambda a, b: _put(b, a, slice(1, 3), slice(2, 6))),
    _write("transposed", (4, 2), "%b[%one, %two] {in_bounds = [true, true], permutation_map = affine_map<(i, j) -> (j, i)>} : "
           "memref<?x?xf32>".replace("permutation_map = affine_map<(i, j) -> (j, i)>", "permutation_map = #swap"),
           lambda a, b: _put(b, a.T, slice(1, 3), slice(2, 6))),
    _write("mask", (4,), "%b[%one, %two], %m {in_bounds = [true]} : memref<?x?xf32>", lambda a, b: _put(b, a[:2], 1, slice(2, 4)), MASK),
    _write("2-D mask", (2, 4), "%b[%one, %two], %m {in_bounds = [true, true]} : memref<?x?xf32>",
           lambda a, b: _put(b, a[:1, :2], slice(1, 2), slice(2, 4)), "%m = vector.create_mask %one, %two : vector<2x4xi1>\n"),
    _write("mask, a column", (4,), "%b[%one, %two], %m {in_bounds = [true], permutation_map = affine_map<(i, j) -> (i)>} : memref<?x?xf32>",
           lambda a, b: _put(b, a[:2], slice(1, 3), 2), MASK),
    moved("transfer_write", "mask, transposed and without a dimension",
          [("memref<2x4xf32>", floats(2, 4)), ("memref<5x3x3xf32>", np.zeros((5, 3, 3), "f4"))],
          "%m = vector.create_mask %four, %one : vector<4x2xi1>\n"
          "%v = vector.load %a[%z, %z] : memref<2x4xf32>, vector<2x4xf32>\n"
          "vector.transfer_write %v, %b[%two, %one, %one], %m {in_bounds = [true, false], permutation_map = "
          "affine_map<(i, j, k) -> (k, i)>} : vector<2x4xf32>, memref<5x3x3xf32>",
          lambda a, b: [a, _put(b, a[0, :3], slice(2, 5), 1, 1)]),
]  # fmt: skip


def _with_map(case: Case) -> Case:
    return Case(case.op, case.form, "#swap = affine_map<(i, j) -> (j, i)>\n" + case.source, case.run)


def _small(element: str) -> Case:
    """Transfers of narrow elements past the end."""
    dtype = DTYPES[element]
    zero = "0.0" if element.startswith(("f", "b")) else "false" if element == "i1" else "0"
    pad = f"%none = arith.constant {zero}" + (f" : {element}\n" if element != "i1" else "\n")
    body = f"""{pad}%v = vector.transfer_read %a[%two], %none : memref<?x{element}>, vector<4x{element}>
      vector.transfer_write %v, %b[%one] : vector<4x{element}>, memref<?x{element}>"""
    given = (np.arange(5) % 2 + 1).astype(dtype) if element != "i1" else np.array([0, 1, 1, 0, 1], bool)

    def expected(a: Any, b: Any) -> list[Any]:
        b[1:4] = a[2:5]
        return [a, b]

    return moved("transfer_read", f"{element}, past the end", [(f"memref<?x{element}>", given),
                 (f"memref<?x{element}>", np.zeros(4, dtype))], body, expected)  # fmt: skip


EVERYWHERE = ("nvvm", "rocdl", "host")


def refused(op: str, form: str, body: str, reason: str, arguments: str = "%a: memref<?xf32>") -> Case:
    """``body`` has the operation at the line that ends in ``// here``."""
    return Case(op, form, kernel(PREFIX + body, arguments), None, dict.fromkeys(EVERYWHERE, reason))


REFUSED = [
    refused("vector.load", "scalable", "%v = vector.load %a[%z] : memref<?xf32>, vector<[4]xf32> // here\n"
            "vector.store %v, %a[%z] : memref<?xf32>, vector<[4]xf32>", "scalable vectors exist on no GPU"),
    refused("vector.vscale", "kernel", "%v = vector.vscale // here\n%f = memref.load %a[%v] : memref<?xf32>\nmemref.store %f, %a[%z] : memref<?xf32>", "scalable vectors exist on no GPU"),
    refused("vector.print", "kernel", "%v = vector.load %a[%z] : memref<?xf32>, vector<4xf32>\nvector.print %v : vector<4xf32> // here",
            "'vector.print' in a kernel has nowhere to print to"),
]  # fmt: skip
_PRIVATE = "memref<8xi4, #gpu.address_space<private>>"
REFUSED.append(Case(
    "vector.load", "i4",
    kernel(PREFIX + f"%v = vector.load %p[%z] : {_PRIVATE}, vector<8xi4> // here\n"
           f"vector.store %v, %p[%z] : {_PRIVATE}, vector<8xi4>", "%a: memref<?xf32>", attributions=f"private(%p: {_PRIVATE})"),
    None, dict.fromkeys(EVERYWHERE, "memory of 'i4' has no layout"),
))  # fmt: skip

CASES = [
    *LOADS,
    *STRIDED,
    *READS,
    *(_with_map(case) for case in WRITES),
    *(_small(element) for element in ("i1", "i8", "f16", "bf16", "i64")),
    *REFUSED,
]
