"""The tensor dialect between operations that compute: what takes tensors apart and puts them together."""

# ruff: noqa: E501 - the MLIR of a case is easier to read unbroken
from __future__ import annotations

import numpy as np
from tensor_cases import Array, computed, floats, whole

from operations import Case


def then(op: str, form: str, inputs: list[Array], body: str, wanted: Array, static: bool = True) -> Case:
    """``body`` makes %t of the result's type, from arguments of which the last one is like the result; what comes out is
    twice that, which a kernel computes."""
    last = len(inputs)
    lines = f"{body}\n%r = linalg.add ins(%t, %t : $R, $R) outs(%a{last} : $A{last}) -> $R"
    return computed(f"tensor.{op}", form, [*inputs, np.zeros_like(wanted)], lines, wanted + wanted, static=static)


X = whole((6, 8))
ROWS = whole((2, 8), seed=1)
INDEX = "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%c2 = arith.constant 2 : index\n"


def parts() -> list[Case]:
    found = [
        then(
            "extract_slice",
            "strides",
            [X],
            "%t = tensor.extract_slice %a0[1, 0] [2, 4] [2, 2] : $A0 to $R",
            X[1:5:2, ::2].copy(),
        ),
        then(
            "extract_slice",
            "rank reduced",
            [X],
            "%t = tensor.extract_slice %a0[3, 1] [1, 5] [1, 1] : $A0 to $R",
            X[3, 1:6].copy(),
        ),
        then(
            "extract_slice",
            "unknown offset and sizes",
            [X],
            INDEX
            + "%n = tensor.dim %a0, %c0 : $A0\n%m = arith.subi %n, %c2 : index\n%d = tensor.dim %a0, %c1 : $A0\n%t = tensor.extract_slice %a0[%c2, 0] [%m, %d] [1, 1] : $A0 to $R",
            X[2:].copy(),
            static=False,
        ),
    ]
    inserted = X.copy()
    inserted[2:6:3] = ROWS
    found.append(
        then(
            "insert_slice",
            "strides",
            [ROWS, X],
            "%t = tensor.insert_slice %a0 into %a1[2, 0] [2, 8] [3, 1] : $A0 into $A1",
            inserted,
        )
    )
    inserted = X.copy()
    inserted[4] = ROWS[0]
    found.append(
        then(
            "insert_slice",
            "rank extended",
            [ROWS[0].copy(), X],
            "%t = tensor.insert_slice %a0 into %a1[4, 0] [1, 8] [1, 1] : $A0 into $A1",
            inserted,
        )
    )
    joined = np.concatenate([X, ROWS], 0)
    found.append(
        then("concat", "first dimension", [X, ROWS], "%t = tensor.concat dim(0) %a0, %a1 : ($A0, $A1) -> $R", joined)
    )
    pad = "%v = arith.constant 7.0 : f32\n%t = tensor.pad %a0 low[1, 0] high[0, 2] {\n^bb0(%i: index, %j: index):\n  tensor.yield %v : f32\n} : $A0 to $R"
    found.append(then("pad", "a constant", [X], pad, np.pad(X, ((1, 0), (0, 2)), constant_values=7)))
    found.append(
        then("pad", "a constant, unknown sizes", [X], pad, np.pad(X, ((1, 0), (0, 2)), constant_values=7), static=False)
    )
    pad = "%t = tensor.pad %a0 low[2] high[1] {\n^bb0(%i: index):\n  %n = arith.index_cast %i : index to i32\n  %v = arith.sitofp %n : i32 to f32\n  tensor.yield %v : f32\n} : $A0 to $R"
    found.append(
        then(
            "pad",
            "computed from the place",
            [ROWS[0].copy()],
            pad,
            np.concatenate([[0, 1], ROWS[0], [10]]).astype(np.float32),
        )
    )
    return found


def shapes() -> list[Case]:
    found = [
        then(
            "collapse_shape", "2-D to 1-D", [X], "%t = tensor.collapse_shape %a0 [[0, 1]] : $A0 into $R", X.reshape(48)
        ),
        then(
            "collapse_shape",
            "2-D to 1-D, unknown sizes",
            [X],
            "%t = tensor.collapse_shape %a0 [[0, 1]] : $A0 into $R",
            X.reshape(48),
            static=False,
        ),
        then(
            "expand_shape",
            "2-D to 3-D",
            [X],
            "%t = tensor.expand_shape %a0 [[0, 1], [2]] output_shape [2, 3, 8] : $A0 into $R",
            X.reshape(2, 3, 8),
        ),
        then(
            "reshape",
            "to a shape in a tensor",
            [X, np.array([4, 12], np.int32)],
            "%t = tensor.reshape %a0(%a1) : ($A0, $A1) -> $R",
            X.reshape(4, 12),
        ),
        then(
            "cast",
            "to unknown sizes and back",
            [X],
            "%u = tensor.cast %a0 : $A0 to tensor<?x?xf32>\n%t = tensor.cast %u : tensor<?x?xf32> to $R",
            X,
        ),
        then(
            "bitcast",
            "f32 to i32",
            [np.abs(X) + 1],
            "%t = tensor.bitcast %a0 : $A0 to $R",
            (np.abs(X) + 1).view(np.int32),
        ),
    ]
    return found


def made() -> list[Case]:
    place = np.add.outer(10 * np.arange(3), np.arange(4)).astype(np.float32)
    generate = "%t = tensor.generate {\n^bb0(%i: index, %j: index):\n  %ten = arith.constant 10 : index\n  %m = arith.muli %i, %ten : index\n  %s = arith.addi %m, %j : index\n  %n = arith.index_cast %s : index to i32\n  %v = arith.sitofp %n : i32 to f32\n  tensor.yield %v : f32\n} : $R"
    some = "%x = tensor.extract %a0[%c1, %c2] : $A0\n"
    inserted = X.copy()
    inserted[2, 1] = X[1, 2]
    return [
        then("generate", "from the place", [], generate, place),
        then("splat", "a scalar", [X], INDEX + some + "%t = tensor.splat %x : $R", np.full((2, 3), X[1, 2])),
        then(
            "from_elements",
            "three",
            [X],
            INDEX + some + "%y = tensor.extract %a0[%c0, %c0] : $A0\n%t = tensor.from_elements %x, %y, %x : $R",
            np.array([X[1, 2], X[0, 0], X[1, 2]]),
        ),
        then("insert", "one element", [X], INDEX + some + "%t = tensor.insert %x into %a0[%c2, %c1] : $A0", inserted),
        then(
            "empty",
            "filled",
            [],
            "%e = tensor.empty() : $R\n%v = arith.constant 3.0 : f32\n%t = linalg.fill ins(%v : f32) outs(%e : $R) -> $R",
            np.full((3, 4), 3, np.float32),
        ),
    ]


def loops() -> list[Case]:
    """What loops and branches carry from round to round."""
    x = floats((5, 7))
    rounds = """
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%t = %a0) -> ($A0) {
      %u = linalg.tanh ins(%t : $A0) outs(%a1 : $A1) -> $A1
      scf.yield %u : $A0
    }"""
    wanted = np.tanh(np.tanh(np.tanh(x)))
    found = [computed("scf.for", "a tensor, three rounds", [x, np.zeros_like(x)], rounds, wanted, off=1e-5)]
    branches = """
    %r = scf.if %a2 -> ($R) {
      %u = linalg.exp ins(%a0 : $A0) outs(%a1 : $A1) -> $A1
      scf.yield %u : $A0
    } else {
      %u = linalg.negf ins(%a0 : $A0) outs(%a1 : $A1) -> $A1
      scf.yield %u : $A0
    }"""
    for truth, result in ((True, np.exp(x)), (False, -x)):
        lines = "%b = tensor.extract %a2[] : $A2\n" + branches.replace("%a2 ", "%b ")
        found.append(
            computed(
                "scf.if",
                f"tensors, {str(truth).lower()}",
                [x, np.zeros_like(x), np.array(truth)],
                lines,
                result,
                off=1e-5,
            )
        )
    until = """
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %n = tensor.extract %a2[] : $A2
    %i, %r = scf.while (%k = %zero, %t = %a0) : (i32, $A0) -> (i32, $A0) {
      %more = arith.cmpi slt, %k, %n : i32
      scf.condition(%more) %k, %t : i32, $A0
    } do {
    ^bb0(%k: i32, %t: $A0):
      %u = linalg.add ins(%t, %t : $A0, $A0) outs(%a1 : $A1) -> $A1
      %next = arith.addi %k, %one : i32
      scf.yield %next, %u : i32, $A0
    }"""
    found.append(computed("scf.while", "a tensor", [x, np.zeros_like(x), np.array(4, np.int32)], until, 16 * x))
    forall = """
    %r = scf.forall (%i) in (5) shared_outs(%o = %a1) -> ($A1) {
      %row = tensor.extract_slice %a0[%i, 0] [1, 7] [1, 1] : $A0 to tensor<1x7xf32>
      %place = tensor.extract_slice %o[%i, 0] [1, 7] [1, 1] : $A1 to tensor<1x7xf32>
      %u = linalg.square ins(%row : tensor<1x7xf32>) outs(%place : tensor<1x7xf32>) -> tensor<1x7xf32>
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %u into %o[%i, 0] [1, 7] [1, 1] : tensor<1x7xf32> into $A1
      }
    }"""
    return [*found, computed("scf.forall", "rows of a tensor", [x, np.zeros_like(x)], forall, x * x)]


def placed() -> list[Case]:
    """Slices of an array at places that a tensor has, taken out and put in."""
    rows, pairs = np.array([[5], [0], [3]], np.int32), np.array([[[0, 6], [4, 2]], [[2, 2], [1, 0]]], np.int16)
    flat, deep, one = floats((6, 8)), floats((5, 3, 7)), np.array([2], np.int64)
    forms = (
        ("rows", flat, rows, "0", rows[:, 0], (3, 8)),
        ("kept dimensions", flat, rows, "0", rows[:, 0], (3, 1, 8)),
        ("two of three", deep, pairs, "0, 2", (pairs[..., 0], slice(None), pairs[..., 1]), (2, 2, 3)),
        ("one element", flat[0], one, "0", 2, ()),
    )
    found = []
    for form, whole_of, places, dims, at, shape in forms:
        slices, into = np.asarray(whole_of[at]).reshape(shape), np.zeros_like(whole_of)
        into[at] = whole_of[at]
        line = f"%r = tensor.gather %a0[%a1] gather_dims([{dims}]) : ($A0, $A1) -> $R"
        found.append(computed("tensor.gather", form, [whole_of, places], line, slices))
        if not shape:  # one element is put in its place by the host
            continue
        line = f"%r = tensor.scatter %a0 into %a1[%a2] scatter_dims([{dims}]) unique : ($A0, $A1, $A2) -> $R"
        found.append(computed("tensor.scatter", form, [slices, np.zeros_like(into), places], line, into))
    return found


CASES = [*placed(), *parts(), *shapes(), *made(), *loops()]
