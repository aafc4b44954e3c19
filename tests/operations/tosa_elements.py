"""TOSA: what is computed element by element, and products of matrices."""

from __future__ import annotations

import math

import numpy as np
from tensor_cases import computed, floats, whole
from tosa_lines import NO_SHIFT, ZERO, binary, constant, unary

from operations import Case

X, Y = floats((3, 5)), floats((3, 1), seed=1)
N, M = whole((3, 5), "i32", 0, -100, 100), whole((1, 5), "i32", 1, -3, 3)
P, Q = whole((3, 5), "i1", 0, 0, 2), whole((3, 1), "i1", 1, 0, 2)
ARITHMETIC = {"add": np.add, "sub": np.subtract, "maximum": np.maximum, "minimum": np.minimum}
COMPARED = {"greater": np.greater, "greater_equal": np.greater_equal, "equal": np.equal}
LOGICAL = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}
BITS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
FUNCTIONS = {
    "abs": np.abs, "ceil": np.ceil, "cos": np.cos, "erf": np.vectorize(math.erf), "exp": np.exp, "floor": np.floor,
    "log": lambda x: np.log(np.abs(x)), "reciprocal": np.reciprocal, "rsqrt": lambda x: 1 / np.sqrt(np.abs(x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "sin": np.sin, "tanh": np.tanh,
}  # fmt: skip


def elementwise() -> list[Case]:
    found = []
    for op, function in ARITHMETIC.items():
        found += [
            binary(op, "f32, broadcast", X, Y, function(X, Y)),
            binary(op, "i32, broadcast", N, M, function(N, M)),
        ]
    found += [binary(op, "i32, broadcast", N, M, function(N, M)) for op, function in COMPARED.items()]
    found += [binary(op, "f32", X, X[::-1].copy(), function(X, X[::-1])) for op, function in COMPARED.items()]
    found += [binary(op, "i1, broadcast", P, Q, function(P, Q)) for op, function in LOGICAL.items()]
    found += [
        unary("logical_not", "i1", P, ~P),
        binary("pow", "f32", np.abs(X), X[::-1].copy(), np.abs(X) ** X[::-1], off=1e-5),
    ]
    for element in ("i8", "i16", "i32"):
        found += bitwise(element)
    nonzero = np.where(N == 0, 7, N)
    found.append(binary("intdiv", "i32", N[::-1].copy(), nonzero, np.trunc(N[::-1] / nonzero).astype(np.int32)))
    for op, function in FUNCTIONS.items():
        x = np.abs(X) if op in ("log", "rsqrt") else X
        found.append(unary(op, "f32", x, function(x).astype(np.float32), off=1e-5))
    half = X.astype(np.float16)
    found += [unary(op, "f16", half, FUNCTIONS[op](half).astype(np.float16), off=2e-3) for op in ("exp", "tanh", "abs")]
    zeros = [32 - int(value).bit_length() if value >= 0 else 0 for value in N.ravel()]
    found += [unary("abs", "i32", N, np.abs(N)), unary("clz", "i32", N, np.array(zeros, np.int32).reshape(N.shape))]
    points = constant("p", [3], "i8") + constant("q", [-2], "i8")
    small = whole((3, 5), "i8", 0, -128, 128)
    negated = np.clip(-(small.astype(int) - 3) - 2, -128, 127).astype(np.int8)
    found.append(
        computed(
            "tosa.negate",
            "i8, zero points",
            [small],
            points + "%r = tosa.negate %a0, %p, %q : ($A0, tensor<1xi8>, tensor<1xi8>) -> $R",
            negated,
        )
    )
    found.append(
        computed(
            "tosa.negate",
            "f32",
            [X],
            ZERO + "%r = tosa.negate %a0, %z, %z : ($A0, tensor<1xf32>, tensor<1xf32>) -> $R",
            -X,
        )
    )
    found.append(
        computed(
            "tosa.select",
            "f32, broadcast",
            [P, X, Y],
            "%r = tosa.select %a0, %a1, %a2 : ($A0, $A1, $A2) -> $R",
            np.where(P, X, Y),
        )
    )
    return found


def bitwise(element: str) -> list[Case]:
    bits = int(element[1:])
    x, y = (whole((3, 5), element, seed, -(1 << bits - 1), 1 << bits - 1) for seed in (0, 1))
    by = whole((3, 5), element, 2, 0, bits)
    unsigned = np.right_shift(x.view(f"u{bits // 8}"), by.view(f"u{bits // 8}")).view(x.dtype)
    last = np.where(by > 0, np.right_shift(x, np.maximum(by, 1) - 1) & 1, 0).astype(x.dtype)
    return [
        *(binary(op, element, x, y, function(x, y)) for op, function in BITS.items()),
        unary("bitwise_not", element, x, ~x),
        binary("logical_left_shift", element, x, by, np.left_shift(x, by)),
        binary("logical_right_shift", element, x, by, unsigned),
        binary("arithmetic_right_shift", element, x, by, np.right_shift(x, by), "{round = false} "),
        binary(
            "arithmetic_right_shift", f"{element}, rounding", x, by, np.right_shift(x, by) + last, "{round = true} "
        ),
    ]


def products() -> list[Case]:
    small, other = whole((3, 5), "i8", 0, -128, 128), whole((3, 5), "i8", 1, -128, 128)
    multiply = "%r = tosa.mul %a0, %a1, %s : ($A0, $A1, tensor<1xi8>) -> $R"
    found = [
        computed("tosa.mul", "f32, broadcast", [X, Y], NO_SHIFT + multiply, X * Y),
        computed("tosa.mul", "i8 to i32", [small, other], NO_SHIFT + multiply, small.astype(np.int32) * other),
    ]
    wide = [whole((3, 5), "i32", seed, -(1 << 31), 1 << 31) for seed in (0, 1)]
    for shift in (7, 31):
        exact = wide[0].astype(np.int64) * wide[1]
        wanted = (exact + (1 << shift - 1) >> shift).astype(np.int32)  # wraps, as the operation may
        found.append(computed("tosa.mul", f"i32, shift {shift}", wide, constant("s", [shift], "i8") + multiply, wanted))
    x, y = floats((2, 4, 6)), floats((2, 6, 3), seed=1)
    found.append(
        computed(
            "tosa.matmul",
            "f32",
            [x, y],
            ZERO + "%r = tosa.matmul %a0, %a1, %z, %z : ($A0, $A1, tensor<1xf32>, tensor<1xf32>) -> $R",
            x @ y,
            off=1e-5,
        )
    )
    x, y = whole((2, 4, 6), "i8", 0, -128, 128), whole((2, 6, 3), "i8", 1, -128, 128)
    points = constant("p", [3], "i8") + constant("q", [-5], "i8")
    wanted = (x.astype(np.int32) - 3) @ (y.astype(np.int32) + 5)
    found.append(
        computed(
            "tosa.matmul",
            "i8, zero points",
            [x, y],
            points + "%r = tosa.matmul %a0, %a1, %p, %q : ($A0, $A1, tensor<1xi8>, tensor<1xi8>) -> $R",
            wanted,
        )
    )
    return found


def clamped() -> list[Case]:
    found = []
    for element, low, high in (("i8", -10, 50), ("i16", -3, 100)):
        x = whole((4, 5), element, 0, -128, 128)
        found.append(
            unary(
                "clamp",
                element,
                x,
                np.clip(x, low, high),
                f"{{min_val = {low} : {element}, max_val = {high} : {element}}} ",
            )
        )
    x = X.copy()
    x[0, 0], x[1, 1] = np.nan, np.inf
    kept = np.clip(x, -0.5, 0.5)
    limits = "min_val = -0.5 : f32, max_val = 0.5 : f32"
    found.append(unary("clamp", "f32, NaN propagates", x, kept, f"{{{limits}}} "))
    found.append(
        unary(
            "clamp",
            "f32, NaN is ignored",
            x,
            np.where(np.isnan(x), np.float32(-0.5), kept),
            f"{{{limits}, nan_mode = IGNORE}} ",
        )
    )
    return found


CASES = [*elementwise(), *products(), *clamped()]
