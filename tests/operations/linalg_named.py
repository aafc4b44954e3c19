"""linalg: products of matrices, what is computed element by element, reductions, and what moves elements."""

# ruff: noqa: E501 - the MLIR of a case is easier to read unbroken
from __future__ import annotations

import math

import numpy as np
from tensor_cases import Array, computed, floats, named, whole

from operations import Case

AB, BC = (5, 7), (7, 6)


def product(
    op: str, left: Array, right: Array, start: Array, sum_: str, attributes: str = "", form: str = "f32"
) -> list[Case]:
    """``sum_`` says in NumPy's notation what is added to what there is."""
    wide = np.float64 if left.dtype.kind == "f" else np.int64
    made = np.einsum(sum_, left.astype(wide), right.astype(wide))
    return named(op, form, [left, right, start], (start + made).astype(start.dtype), attributes)


def maps(*texts: str) -> str:
    return f"indexing_maps = [{', '.join(f'affine_map<{text}>' for text in texts)}] "


def products() -> list[Case]:
    a, b, c = whole(AB), whole(BC, seed=1), whole((5, 6), seed=2)
    found = product("matmul", a, b, c, "ik,kj->ij")
    for element, into in (
        ("f16", "f32"),
        ("bf16", "f32"),
        ("i8", "i32"),
        ("f16", "f16"),
        ("f64", "f64"),
        ("i32", "i32"),
    ):
        form = element if element == into else f"{element} to {into}"
        found += product(
            "matmul", whole(AB, element), whole(BC, element, 1), whole((5, 6), into, 2), "ik,kj->ij", form=form
        )
    left = maps("(i, j, k) -> (k, i)", "(i, j, k) -> (k, j)", "(i, j, k) -> (i, j)")
    right = maps("(i, j, k) -> (i, k)", "(i, j, k) -> (j, k)", "(i, j, k) -> (i, j)")
    found += product("matmul", a.T.copy(), b, c, "ki,kj->ij", left, "f32, left transposed")
    found += product("matmul", a, b.T.copy(), c, "ik,jk->ij", right, "f32, right transposed")
    many, more = whole((3, *AB)), whole((3, *BC), seed=1)
    found += product("batch_matmul", many, more, whole((3, 5, 6), seed=2), "nik,nkj->nij")
    found += product("batch_reduce_matmul", many, more, c, "nik,nkj->ij")
    found += product("matvec", a, b[:, 0].copy(), c[:, 0].copy(), "ik,k->i")
    found += product("vecmat", a[0].copy(), b, c[0].copy(), "k,kj->j")
    found += product("batch_matvec", many, more[:, :, 0].copy(), whole((3, 5), seed=2), "nik,nk->ni")
    found += product("batch_vecmat", many[:, 0].copy(), more, whole((3, 6), seed=2), "nk,nkj->nj")
    found += product("dot", whole((77,)), whole((77,), seed=1), whole((), seed=2), "i,i->")
    found += product(
        "mmt4d", whole((2, 3, 4, 5)), whole((6, 3, 7, 5), seed=1), whole((2, 6, 4, 7), seed=2), "abij,cbkj->acik"
    )
    found += product(
        "batch_mmt4d",
        whole((2, 2, 3, 4, 5)),
        whole((2, 6, 3, 7, 5), seed=1),
        whole((2, 2, 6, 4, 7), seed=2),
        "nabij,ncbkj->nacik",
    )
    contracted = maps("(b, i, j, k) -> (i, b, k)", "(b, i, j, k) -> (k, j, b)", "(b, i, j, k) -> (b, j, i)")
    found += product(
        "contract", whole((5, 3, 7)), whole((7, 6, 3), seed=1), whole((3, 6, 5), seed=2), "ibk,kjb->bji", contracted
    )
    for op, left, right, shape in (
        ("quantized_matmul", AB, BC, (5, 6)),
        ("quantized_batch_matmul", (3, *AB), (3, *BC), (3, 5, 6)),
    ):
        x, y, start = whole(left, "i8", 0, -128, 128), whole(right, "i8", 1, -128, 128), whole(shape, "i32", 2)
        points = ["%q0 = arith.constant 3 : i32", "%q1 = arith.constant -2 : i32"]
        wanted = start + (x.astype(np.int32) - 3) @ (y.astype(np.int32) + 2)
        found += named(op, "i8 to i32", [x, y, start], wanted, before=points)
    return found


FUNCTIONS = {
    "abs": np.abs, "ceil": np.ceil, "erf": np.vectorize(math.erf), "exp": np.exp, "floor": np.floor, "negf": np.negative,
    "reciprocal": np.reciprocal, "round": lambda x: np.trunc(x + np.copysign(0.5, x)), "square": np.square, "tanh": np.tanh,
    "log": np.log, "rsqrt": lambda x: 1 / np.sqrt(x), "sqrt": np.sqrt,
}  # fmt: skip
OF_POSITIVE = ("log", "rsqrt", "sqrt")
OF_TWO = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum,
}  # fmt: skip


def elementwise() -> list[Case]:
    found: list[Case] = []
    x, y, out = floats((4, 9)), floats((4, 9), seed=1), np.zeros((4, 9), np.float32)
    for op, function in FUNCTIONS.items():
        given = np.abs(x) if op in OF_POSITIVE else x
        found += named(op, "f32", [given, out], function(given).astype(np.float32), off=1e-5)
    for op, function in OF_TWO.items():
        found += named(op, "f32", [x, y, out], function(x, y), off=1e-6)
    found += named("powf", "f32", [np.abs(x), y, out], np.abs(x) ** y, off=1e-5)
    i, j, none = whole((4, 9), "i32", 0, -50, 50), whole((4, 9), "i32", 1, 1, 9), np.zeros((4, 9), np.int32)
    for op in ("add", "sub", "mul", "max", "min"):
        found += named(op, "i32", [i, j, none], OF_TWO[op](i, j))
    found += named("div", "i32", [i, j, none], np.trunc(i / j).astype(np.int32))
    found += named("div_unsigned", "i32", [i, j, none], (i.view(np.uint32) // j.view(np.uint32)).view(np.int32))
    chosen = whole((4, 9), "i1", 2, 0, 2)
    found += named("select", "f32", [chosen, x, y, out], np.where(chosen, x, y))
    found += named("copy", "f32 to f64", [x, out.astype(np.float64)], x.astype(np.float64))
    spread = maps("(i, j) -> (j)", "(i, j) -> (i, j)")
    found += named(
        "elementwise",
        "exp, broadcast",
        [x[0].copy(), out],
        np.broadcast_to(np.exp(x[0]), (4, 9)).copy(),
        "kind=#linalg.elementwise_kind<exp> " + spread,
        off=1e-5,
    )
    lines = "%m = linalg.map { math.absf } ins(%a0 : $A0) outs(%a1 : $A1)\n%r = linalg.map { arith.addf } ins(%m, %a0 : $A0, $A0) outs(%a1 : $A1)"
    found.append(computed("linalg.map", "f32", [x, out], lines, np.abs(x) + x))
    lines = "%v = arith.constant 2.5 : f32\n%t = linalg.fill ins(%v : f32) outs(%a0 : $A0) -> $A0\n%r = linalg.exp ins(%t : $A0) outs(%a0 : $A0) -> $A0"
    found.append(computed("linalg.fill", "f32", [out], lines, np.full((4, 9), np.exp(2.5), np.float32), off=1e-5))
    return found


def moved() -> list[Case]:
    x = whole((3, 4, 5))
    found = []
    for order in ((2, 0, 1), (1, 0, 2)):
        wanted = x.transpose(order).copy()
        found.append(
            computed(
                "linalg.transpose",
                str(order),
                [x, np.zeros_like(wanted)],
                f"%r = linalg.transpose ins(%a0 : $A0) outs(%a1 : $A1) permutation = {list(order)}",
                wanted,
            )
        )
    wanted = np.broadcast_to(x[:, None], (3, 2, 4, 5)).copy()
    found.append(
        computed(
            "linalg.broadcast",
            "f32",
            [x, np.zeros_like(wanted)],
            "%r = linalg.broadcast ins(%a0 : $A0) outs(%a1 : $A1) dimensions = [1]",
            wanted,
        )
    )
    x = whole((7, 10))
    tiles = np.full((4, 2, 2, 5), -1, np.float32)
    for i in range(7):
        for j in range(10):
            tiles[i // 2, j // 5, i % 2, j % 5] = x[i, j]
    tiles[3, :, 1] = -1
    line = "%p = arith.constant -1.0 : f32\n%r = linalg.pack %a0 padding_value(%p : f32) inner_dims_pos = [0, 1] inner_tiles = [2, 5] into %a1 : $A0 -> $A1"
    found.append(computed("linalg.pack", "f32, padded", [x, np.zeros_like(tiles)], line, tiles))
    line = "%r = linalg.unpack %a0 inner_dims_pos = [0, 1] inner_tiles = [2, 5] into %a1 : $A0 -> $A1"
    found.append(computed("linalg.unpack", "f32, padded", [tiles, np.zeros_like(x)], line, x))
    return found


def reduced() -> list[Case]:
    x = whole((4, 5, 6))
    found = []
    for along in ((0,), (1,), (2,), (0, 2), (0, 1, 2)):
        start = np.ones(np.sum(x, along).shape, np.float32)
        line = f"%r = linalg.reduce {{ arith.addf }} ins(%a0 : $A0) outs(%a1 : $A1) dimensions = {list(along)}"
        for sizes in ("", ", unknown sizes"):
            found.append(
                computed(
                    "linalg.reduce",
                    f"sum along {along}{sizes}",
                    [x, start],
                    line,
                    np.sum(x, along) + start,
                    static=not sizes,
                )
            )
    x, out = floats((5, 9)), np.zeros((5, 9), np.float32)
    exps = np.exp(x - x.max(1, keepdims=True))
    found += [
        computed(
            "linalg.softmax",
            f"f32, dimension 1{sizes}",
            [x, out],
            "%r = linalg.softmax dimension(1) ins(%a0 : $A0) outs(%a1 : $A1) -> $R",
            exps / exps.sum(1, keepdims=True),
            static=not sizes,
            off=1e-5,
        )
        for sizes in ("", ", unknown sizes")
    ]
    return [*found, *generic()]


def generic() -> list[Case]:
    x = floats((6, 7))
    best = """
    %r, %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
        ins(%a0 : $A0) outs(%a1, %a2 : $A1, $A2) {
    ^bb0(%v: f32, %most: f32, %at: i32):
      %j = linalg.index 1 : index
      %n = arith.index_cast %j : index to i32
      %more = arith.cmpf ogt, %v, %most : f32
      %m = arith.select %more, %v, %most : f32
      %k = arith.select %more, %n, %at : i32
      linalg.yield %m, %k : f32, i32
    } -> ($R0, $R1)"""
    start, place = np.full(6, -np.inf, np.float32), np.full(6, -1, np.int32)
    found = [
        computed(
            "linalg.generic",
            "largest and its place",
            [x, start, place],
            best,
            [x.max(1), x.argmax(1).astype(np.int32)],
            results="%r, %s",
        )
    ]
    gather = """
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
        ins(%a1 : $A1) outs(%a2 : $A2) {
    ^bb0(%row: i32, %o: f32):
      %i = arith.index_cast %row : i32 to index
      %j = linalg.index 1 : index
      %v = tensor.extract %a0[%i, %j] : $A0
      linalg.yield %v : f32
    } -> $R"""
    rows = np.array([3, 0, 5, 5], np.int32)
    found.append(
        computed("linalg.generic", "rows of a table", [x, rows, np.zeros((4, 7), np.float32)], gather, x[rows])
    )
    windows = """
    %r = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i * 2 + k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]}
        ins(%a0, %a1 : $A0, $A1) outs(%a2 : $A2) {
    ^bb0(%v: f32, %w: f32, %o: f32):
      %p = arith.mulf %v, %w : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
    } -> $R"""
    signal, taps, zero = whole((11,)), whole((3,), seed=1), np.zeros(5, np.float32)
    wanted = np.array([signal[2 * i : 2 * i + 3] @ taps for i in range(5)], np.float32)
    found.append(computed("linalg.generic", "strided windows", [signal, taps, zero], windows, wanted))
    scan = """
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, 6 - j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
        ins(%a0 : $A0) outs(%a1 : $A1) {
    ^bb0(%v: f32, %o: f32):
      linalg.yield %v : f32
    } -> $R"""
    found.append(computed("linalg.generic", "backwards", [x, np.zeros_like(x)], scan, x[:, ::-1].copy()))
    return found


CASES = [*products(), *elementwise(), *moved(), *reduced()]
