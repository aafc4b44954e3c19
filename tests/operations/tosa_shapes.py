"""TOSA: reductions, what moves elements, changes of types, branches."""

# ruff: noqa: E501 - the MLIR of a case is easier to read unbroken
from __future__ import annotations

import numpy as np
from tensor_cases import NAMES, computed, floats, kind, whole
from tosa_lines import constant, listed, shape, unary

from operations import Case

REDUCED = {"reduce_sum": np.sum, "reduce_product": np.prod, "reduce_max": np.max, "reduce_min": np.min}


def reductions() -> list[Case]:
    found = []
    x, numbers, truths = floats((3, 4, 5)), whole((3, 4, 5), "i32", 0, -100, 100), whole((3, 4, 5), "i1", 0, 0, 2)
    small = whole((3, 4, 5), "i8", 0, -128, 128)
    for axis in range(3):
        along = f"{{axis = {axis} : i32}} "
        for op, function in REDUCED.items():
            found.append(unary(op, f"f32, axis {axis}", x, function(x, axis=axis, keepdims=True), along, off=1e-5))
            if op != "reduce_product":
                wanted = function(numbers, axis=axis, keepdims=True).astype(np.int32)
                found.append(unary(op, f"i32, axis {axis}", numbers, wanted, along))
        found.append(unary("reduce_all", f"axis {axis}", truths, truths.all(axis, keepdims=True), along))
        found.append(unary("reduce_any", f"axis {axis}", truths, truths.any(axis, keepdims=True), along))
        found.append(unary("argmax", f"f32, axis {axis}", x, x.argmax(axis).astype(np.int32), along))
        found.append(unary("argmax", f"i8, axis {axis}", small, small.argmax(axis).astype(np.int32), along))
        found.append(unary("reverse", f"f32, axis {axis}", x, np.flip(x, axis), along))
    x = floats((4, 6))
    x[1, 2], x[2] = np.nan, np.nan
    ignored = np.fmax.reduce(x, axis=1, keepdims=True)
    found.append(unary("reduce_max", "f32, NaN propagates", x, x.max(1, keepdims=True), "{axis = 1 : i32} "))
    found.append(unary("reduce_max", "f32, NaN is ignored", x, ignored, "{axis = 1 : i32, nan_mode = IGNORE} "))
    return found


def moved() -> list[Case]:
    x, truths = floats((2, 3, 4)), whole((3, 4), "i1", 0, 0, 2)
    found = [
        unary(
            "transpose", str(order), x, np.ascontiguousarray(x.transpose(order)), f"{{perms = {listed(order, 'i32')}}} "
        )
        for order in ((0, 2, 1), (2, 0, 1), (1, 2, 0))
    ]
    lines = (
        shape("b", (1, 0, 1))
        + shape("n", (1, 2, 3))
        + "%t = tosa.slice %a0, %b, %n : ($A0, !tosa.shape<3>, !tosa.shape<3>) -> $R\n%r = tosa.abs %t : ($R) -> $R"
    )
    found.append(computed("tosa.slice", "f32", [x], lines, np.abs(x[1:2, 0:2, 1:4])))
    lines = shape("n", (2, 1, 3)) + "%r = tosa.tile %a0, %n : ($A0, !tosa.shape<3>) -> $R"
    found.append(computed("tosa.tile", "f32", [x], lines, np.tile(x, (2, 1, 3))))
    lines = (
        shape("p", (1, 0, 0, 2, 1, 1))
        + constant("v", [5])
        + "%r = tosa.pad %a0, %p, %v : ($A0, !tosa.shape<6>, tensor<1xf32>) -> $R"
    )
    found.append(computed("tosa.pad", "f32", [x], lines, np.pad(x, ((1, 0), (0, 2), (1, 1)), constant_values=5)))
    lines = (
        shape("p", (1, 0, 0, 2))
        + constant("v", [True], "i1")
        + "%r = tosa.pad %a0, %p, %v : ($A0, !tosa.shape<4>, tensor<1xi1>) -> $R"
    )
    found.append(computed("tosa.pad", "i1", [truths], lines, np.pad(truths, ((1, 0), (0, 2)), constant_values=True)))
    lines = (
        shape("n", (4, 6)) + "%e = tosa.reshape %a0, %n : ($A0, !tosa.shape<2>) -> $R\n%r = tosa.exp %e : ($R) -> $R"
    )
    found.append(computed("tosa.reshape", "f32", [x], lines, np.exp(x.reshape(4, 6)), off=1e-5))
    lines = "%e = tosa.exp %a0 : ($A0) -> $A0\n%r = tosa.concat %a0, %e, %a0 {axis = 1 : i32} : ($A0, $A0, $A0) -> $R"
    found.append(computed("tosa.concat", "f32", [x], lines, np.concatenate([x, np.exp(x), x], 1), off=1e-5))
    table, rows = floats((2, 7, 4)), np.array([[3, 0, 6], [1, 5, 2]], np.int32)
    gathered = np.stack([table[n, rows[n]] for n in range(2)])
    found.append(
        computed("tosa.gather", "f32", [table, rows], "%r = tosa.gather %a0, %a1 : ($A0, $A1) -> $R", gathered)
    )
    new, scattered = floats((2, 3, 4), seed=1), table.copy()
    for n in range(2):
        scattered[n, rows[n]] = new[n]
    lines = "%t = tosa.scatter %a0, %a1, %a2 : ($A0, $A1, $A2) -> $R\n%r = tosa.abs %t : ($R) -> $R"
    found.append(computed("tosa.scatter", "f32", [table, rows, new], lines, np.abs(scattered)))
    bytes_, found_at = whole((256,), "i8", 0, -128, 128), whole((3, 5), "i8", 1, -128, 128)
    lines = constant("t", bytes_, "i8") + "%r = tosa.table %a0, %t : ($A0, tensor<256xi8>) -> $R"
    found.append(computed("tosa.table", "i8", [found_at], lines, bytes_[found_at.astype(int) + 128]))
    return found


def cast() -> list[Case]:
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 200, -200, 1e20, -1e20, 0], np.float32)
    found = []
    for element in ("i8", "i16", "i32"):
        bits = int(element[1:])
        wanted = np.clip(np.rint(x.astype(np.float64)), -(1 << bits - 1), (1 << bits - 1) - 1)
        found.append(unary("cast", f"f32 to {element}", x, wanted.astype(f"i{bits // 8}")))
    found.append(unary("cast", "f32 to i1", x, x != 0))
    truths, numbers = whole((7,), "i1", 0, 0, 2), whole((9,), "i32", 0, -100, 100)
    found += [
        unary("cast", f"i1 to {NAMES[np.dtype(to)]}", truths, truths.astype(to))
        for to in (np.int8, np.int32, np.float32)
    ]
    found += [
        unary("cast", f"i32 to {NAMES[np.dtype(to)]}", numbers, numbers.astype(to))
        for to in (np.int8, np.int16, np.float32, np.bool_)
    ]
    return found


def branches() -> list[Case]:
    x = floats((3, 5))
    region = f"^bb0(%x: {kind(x)}, %y: {kind(x)}):\n%s = tosa.{{0}} %x, %y : ({kind(x)}, {kind(x)}) -> {kind(x)}\ntosa.yield %s : {kind(x)}\n"
    lines = f"%r = tosa.cond_if %a0 (%x = %a1, %y = %a2) : tensor<i1> ($A1, $A2) -> $R {{\n{region.format('add')}}} else {{\n{region.format('sub')}}}"
    return [
        computed("tosa.cond_if", str(truth).lower(), [np.array(truth), x, 2 * x], lines, 3 * x if truth else x - 2 * x)
        for truth in (True, False)
    ]


CASES = [*reductions(), *moved(), *cast(), *branches()]
