"""The vector dialect in kernels: making, taking apart, rearranging and computing with vectors of rank 0 to 3."""

# ruff: noqa: E501 - the MLIR of a case is easier to read unbroken
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numeric import DTYPES

from offload.runtime import Library
from operations import Case, kernel

Expected = Callable[..., Any]


def numbers(shape: Sequence[int], element: str, seed: int) -> Any:
    """Small whole numbers: every sum and product of a few is exact in every type."""
    return np.random.default_rng(seed).integers(-5, 6, shape).astype(DTYPES[element])


def _vector(shape: Sequence[int], element: str) -> str:
    return f"vector<{'x'.join(map(str, [*shape, element]))}>"


def computed(
    op: str,
    form: str,
    inputs: Sequence[tuple[Sequence[int], str]],
    output: tuple[Sequence[int], str],
    body: str,
    expected: Expected,
) -> Case:
    """``body`` makes the vector %r from the vectors %x0, %x1 … of these shapes; NumPy says what it holds."""
    arguments, lines = [], ["%z = arith.constant 0 : index"]
    for i, (shape, element) in enumerate([*inputs, output]):
        arguments.append(f"%a{i}: memref<{'x'.join(map(str, [*shape, element]))}>")
        zeros, kind = ", ".join(["%z"] * len(shape)), _vector(shape, element)
        memory = f"memref<{'x'.join(map(str, [*shape, element]))}>"
        if i < len(inputs):
            lines.append(f"%x{i} = vector.load %a{i}[{zeros}] : {memory}, {kind}")
        else:
            lines += [body, f"vector.store %r, %a{i}[{zeros}] : {memory}, {kind}"]

    def run(library: Library) -> None:
        given = [numbers(shape, element, i) for i, (shape, element) in enumerate(inputs)]
        result = np.zeros(output[0], DTYPES[output[1]])
        library.kernels.k[1, 1](*given, result)
        want = np.asarray(expected(*given)).reshape(output[0])
        np.testing.assert_array_equal(result.astype(float), want.astype(float))

    return Case(f"vector.{op}", form, kernel("\n".join(lines), ", ".join(arguments)), run)


F4, F8, M23, M34, T234 = ((4,), "f32"), ((8,), "f32"), ((2, 3), "f32"), ((3, 4), "f32"), ((2, 3, 4), "f32")
I8, B8 = ((8,), "i32"), ((8,), "i1")


def _scalar(form: str, op: str, inputs: Any, body: str, expected: Expected, element: str = "f32") -> Case:
    """A scalar result %s, stored as a vector of one."""
    text = f"{body}\n%r = vector.broadcast %s : {element} to vector<1x{element}>"
    return computed(op, form, inputs, ((1,), element), text, expected)


# The thread's id, for a sum of constants would be folded before anything has to lower it.
_DYNAMIC = "%t = gpu.thread_id x\n%two = arith.constant 2 : index\n%p = arith.addi %t, %two : index\n"
MATMUL = """indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
  affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]"""
BATCH = """indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>,
  affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]"""
DOT = 'indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> (k)>, affine_map<(k) -> ()>], iterator_types = ["reduction"]'
MATVEC = """indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>],
  iterator_types = ["parallel", "reduction"]"""

MAKING = [
    computed("broadcast", "scalar to rank 1", [F4], F4, "%e = vector.extract %x0[2] : f32 from vector<4xf32>\n"
             "%r = vector.broadcast %e : f32 to vector<4xf32>", lambda x: [x[2]] * 4),
    computed("broadcast", "rank 1 to rank 3", [F4], T234, "%r = vector.broadcast %x0 : vector<4xf32> to vector<2x3x4xf32>",
             lambda x: np.broadcast_to(x, (2, 3, 4))),
    computed("broadcast", "stretching a dimension", [((3, 1), "f32")], M34,
             "%r = vector.broadcast %x0 : vector<3x1xf32> to vector<3x4xf32>", lambda x: np.broadcast_to(x, (3, 4))),
    computed("broadcast", "rank 0", [((), "f32")], F4, "%r = vector.broadcast %x0 : vector<f32> to vector<4xf32>",
             lambda x: [float(x)] * 4),
    computed("extract", "scalar, static", [M23], ((1,), "f32"), "%s = vector.extract %x0[1, 2] : f32 from vector<2x3xf32>\n"
             "%r = vector.broadcast %s : f32 to vector<1xf32>", lambda x: x[1, 2]),
    computed("extract", "vector of rank 1", [T234], F4, "%r = vector.extract %x0[1, 2] : vector<4xf32> from vector<2x3x4xf32>",
             lambda x: x[1, 2]),
    computed("extract", "scalar, dynamic", [F4], ((1,), "f32"), _DYNAMIC + "%s = vector.extract %x0[%p] : f32 from vector<4xf32>\n"
             "%r = vector.broadcast %s : f32 to vector<1xf32>", lambda x: x[2]),
    computed("extract", "last of several, dynamic", [F4, M34], ((1,), "f32"), _DYNAMIC
             + "%s = vector.extract %x1[1, %p] : f32 from vector<3x4xf32>\n%r = vector.broadcast %s : f32 to vector<1xf32>",
             lambda _, x: x[1, 2]),
    computed("extract", "row, dynamic", [F4, M34], F4, _DYNAMIC
             + "%r = vector.extract %x1[%p] : vector<4xf32> from vector<3x4xf32>", lambda _, x: x[2]),
    computed("extract", "first of several, dynamic", [T234], ((2,), "f32"), _DYNAMIC
             + "%s0 = vector.extract %x0[%t, %p, 3] : f32 from vector<2x3x4xf32>\n"
             "%s1 = vector.extract %x0[1, %p, %p] : f32 from vector<2x3x4xf32>\n"
             "%r = vector.from_elements %s0, %s1 : vector<2xf32>", lambda x: [x[0, 2, 3], x[1, 2, 2]]),
    computed("extract", "plane, dynamic", [T234], M34, _DYNAMIC
             + "%r = vector.extract %x0[%t] : vector<3x4xf32> from vector<2x3x4xf32>", lambda x: x[0]),
    computed("insert", "scalar, static", [M23], M23, "%c = arith.constant 7.0 : f32\n"
             "%r = vector.insert %c, %x0[1, 0] : f32 into vector<2x3xf32>", lambda x: _with(x, (1, 0), 7)),
    computed("insert", "scalar, dynamic", [F4], F4, _DYNAMIC + "%c = arith.constant 7.0 : f32\n"
             "%r = vector.insert %c, %x0[%p] : f32 into vector<4xf32>", lambda x: _with(x, 2, 7)),
    computed("insert", "row, dynamic", [F4, M34], M34, _DYNAMIC
             + "%r = vector.insert %x0, %x1[%p] : vector<4xf32> into vector<3x4xf32>", lambda v, x: _with(x, 2, v)),
    computed("insert", "first of several, dynamic", [T234], T234, _DYNAMIC + "%c = arith.constant 7.0 : f32\n"
             "%b = vector.insert %c, %x0[%t, %p, 3] : f32 into vector<2x3x4xf32>\n"
             "%r = vector.insert %c, %b[1, %p, %p] : f32 into vector<2x3x4xf32>",
             lambda x: _with(_with(x, (0, 2, 3), 7), (1, 2, 2), 7)),
    computed("insert", "plane, dynamic", [M34, T234], T234, _DYNAMIC
             + "%r = vector.insert %x0, %x1[%t] : vector<3x4xf32> into vector<2x3x4xf32>", lambda v, x: _with(x, 0, v)),
    computed("insert", "vector of rank 1", [F4, T234], T234,
             "%r = vector.insert %x0, %x1[1, 1] : vector<4xf32> into vector<2x3x4xf32>", lambda v, x: _with(x, (1, 1), v)),
    computed("from_elements", "rank 2", [F4], ((2, 2), "f32"), "%e:4 = vector.to_elements %x0 : vector<4xf32>\n"
             "%r = vector.from_elements %e#3, %e#1, %e#0, %e#0 : vector<2x2xf32>", lambda x: x[[3, 1, 0, 0]]),
    computed("to_elements", "rank 2", [M23], ((2,), "f32"), "%e:6 = vector.to_elements %x0 : vector<2x3xf32>\n"
             "%r = vector.from_elements %e#4, %e#1 : vector<2xf32>", lambda x: x.ravel()[[4, 1]]),
    computed("step", "rank 1", [I8], I8, "%i = vector.step : vector<8xindex>\n"
             "%j = arith.index_cast %i : vector<8xindex> to vector<8xi32>\n%r = arith.addi %x0, %j : vector<8xi32>",
             lambda x: x + np.arange(8)),
    computed("constant_mask", "rank 2", [M34], M34, "%m = vector.constant_mask [2, 3] : vector<3x4xi1>\n"
             "%c = arith.constant dense<0.0> : vector<3x4xf32>\n%r = arith.select %m, %x0, %c : vector<3x4xi1>, vector<3x4xf32>",
             lambda x: np.pad(x[:2, :3], ((0, 1), (0, 1)))),
    computed("create_mask", "rank 2", [F4, M34], M34, _DYNAMIC + "%q = arith.addi %p, %two : index\n%m2 = vector.create_mask %p, %q : vector<3x4xi1>\n"
             "%c = arith.constant dense<0.0> : vector<3x4xf32>\n%r = arith.select %m2, %x1, %c : vector<3x4xi1>, vector<3x4xf32>",
             lambda _, x: np.pad(x[:2], ((0, 1), (0, 0)))),
]  # fmt: skip


def _with(x: Any, at: Any, value: Any) -> Any:
    result = x.copy()
    result[at] = value
    return result


REARRANGING = [
    computed("extract_strided_slice", "rank 2", [M34], ((2, 2), "f32"),
             "%r = vector.extract_strided_slice %x0 {offsets = [1, 2], sizes = [2, 2], strides = [1, 1]} : "
             "vector<3x4xf32> to vector<2x2xf32>", lambda x: x[1:3, 2:4]),
    computed("extract_strided_slice", "rank 1 of 3", [T234], ((1, 3, 4), "f32"),
             "%r = vector.extract_strided_slice %x0 {offsets = [1], sizes = [1], strides = [1]} : "
             "vector<2x3x4xf32> to vector<1x3x4xf32>", lambda x: x[1:]),
    computed("insert_strided_slice", "rank 1 into 2", [((2,), "f32"), M34], M34,
             "%r = vector.insert_strided_slice %x0, %x1 {offsets = [2, 1], strides = [1]} : vector<2xf32> into vector<3x4xf32>",
             lambda v, x: _with(x, (2, slice(1, 3)), v)),
    computed("insert_strided_slice", "rank 2", [((2, 2), "f32"), M34], M34,
             "%r = vector.insert_strided_slice %x0, %x1 {offsets = [1, 1], strides = [1, 1]} : "
             "vector<2x2xf32> into vector<3x4xf32>", lambda v, x: _with(x, (slice(1, 3), slice(1, 3)), v)),
    computed("shuffle", "rank 1", [F4, ((2,), "f32")], F4,
             "%r = vector.shuffle %x0, %x1 [5, 0, 3, 4] : vector<4xf32>, vector<2xf32>",
             lambda x, y: np.concatenate([x, y])[[5, 0, 3, 4]]),
    computed("shuffle", "rank 2", [M23, M23], M23, "%r = vector.shuffle %x0, %x1 [3, 0] : vector<2x3xf32>, vector<2x3xf32>",
             lambda x, y: np.concatenate([x, y])[[3, 0]]),
    computed("interleave", "rank 1", [F4, F4], F8, "%r = vector.interleave %x0, %x1 : vector<4xf32> -> vector<8xf32>",
             lambda x, y: np.stack([x, y], -1)),
    computed("interleave", "rank 2", [M23, M23], ((2, 6), "f32"),
             "%r = vector.interleave %x0, %x1 : vector<2x3xf32> -> vector<2x6xf32>", lambda x, y: np.stack([x, y], -1)),
    computed("deinterleave", "rank 1", [F8], F4, "%e, %o = vector.deinterleave %x0 : vector<8xf32> -> vector<4xf32>\n"
             "%r = arith.subf %e, %o : vector<4xf32>", lambda x: x[::2] - x[1::2]),
    computed("deinterleave", "rank 2", [M34], ((3, 2), "f32"),
             "%e, %o = vector.deinterleave %x0 : vector<3x4xf32> -> vector<3x2xf32>\n%r = arith.subf %e, %o : vector<3x2xf32>",
             lambda x: x[:, ::2] - x[:, 1::2]),
    computed("deinterleave", "rank 2, indices", [((2, 4), "i64")], ((2, 2), "i64"),
             "%i = arith.index_cast %x0 : vector<2x4xi64> to vector<2x4xindex>\n"
             "%e, %o = vector.deinterleave %i : vector<2x4xindex> -> vector<2x2xindex>\n"
             "%d = arith.subi %e, %o : vector<2x2xindex>\n"
             "%r = arith.index_cast %d : vector<2x2xindex> to vector<2x2xi64>", lambda x: x[:, ::2] - x[:, 1::2]),
    computed("transpose", "rank 2", [M34], ((4, 3), "f32"), "%r = vector.transpose %x0, [1, 0] : vector<3x4xf32> to vector<4x3xf32>",
             lambda x: x.T),
    computed("transpose", "rank 3", [T234], ((4, 2, 3), "f32"),
             "%r = vector.transpose %x0, [2, 0, 1] : vector<2x3x4xf32> to vector<4x2x3xf32>", lambda x: x.transpose(2, 0, 1)),
    computed("shape_cast", "rank 3 to 2", [T234], ((4, 6), "f32"),
             "%r = vector.shape_cast %x0 : vector<2x3x4xf32> to vector<4x6xf32>", lambda x: x),
    computed("shape_cast", "rank 1 to 2", [F8], ((2, 4), "f32"), "%r = vector.shape_cast %x0 : vector<8xf32> to vector<2x4xf32>",
             lambda x: x),
    computed("shape_cast", "rank 0", [((), "f32")], ((1,), "f32"), "%r = vector.shape_cast %x0 : vector<f32> to vector<1xf32>",
             lambda x: x),
    computed("bitcast", "narrower", [F4], ((8,), "i16"), "%r = vector.bitcast %x0 : vector<4xf32> to vector<8xi16>",
             lambda x: x.view(np.int16)),
    computed("bitcast", "rank 2, wider", [((2, 4), "i16")], ((2, 2), "i32"),
             "%r = vector.bitcast %x0 : vector<2x4xi16> to vector<2x2xi32>", lambda x: x.view(np.int32)),
]  # fmt: skip

_LOGIC = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_KINDS: dict[str, Any] = {
    "add": np.add, "mul": np.multiply, "minsi": np.minimum, "maxsi": np.maximum,
    "minui": lambda x, y: np.minimum(x.view("u4"), y.view("u4")).view("i4"),
    "maxui": lambda x, y: np.maximum(x.view("u4"), y.view("u4")).view("i4"), **_LOGIC,
}  # fmt: skip
_FLOAT_KINDS: dict[str, Any] = {
    "add": np.add, "mul": np.multiply, "minnumf": np.minimum, "maxnumf": np.maximum, "minimumf": np.minimum,
    "maximumf": np.maximum,
}  # fmt: skip


def _folded(function: Any, x: Any, start: Any = None) -> Any:
    result = start
    for value in x:
        result = value if result is None else function(np.asarray(result), np.asarray(value))
    return result


def _reductions() -> list[Case]:
    cases = []
    for kinds, element in ((_KINDS, "i32"), (_FLOAT_KINDS, "f32"), (_FLOAT_KINDS, "f64"), (_FLOAT_KINDS, "f16"),
                           (_FLOAT_KINDS, "bf16")):  # fmt: skip
        for kind, function in kinds.items():
            cases.append(_scalar(f"{kind}, {element}", "reduction", [((6,), element)],
                                 f"%s = vector.reduction <{kind}>, %x0 : vector<6x{element}> into {element}",
                                 lambda x, function=function: _folded(function, x), element))  # fmt: skip
            if element in ("i32", "f32"):
                cases.append(_scalar(f"{kind}, {element}, onto a start", "reduction", [((6,), element), ((1,), element)],
                    f"%b = vector.extract %x1[0] : {element} from vector<1x{element}>\n"
                    f"%s = vector.reduction <{kind}>, %x0, %b : vector<6x{element}> into {element}",
                    lambda x, y, function=function: _folded(function, x, y[0]), element))  # fmt: skip
                for axes, form, shape in (([1], "inner", (2,)), ([0], "outer", (3,))):
                    cases.append(computed("multi_reduction", f"{kind}, {element}, {form}",
                        [((2, 3), element), (shape, element)], (shape, element),
                        f"%r = vector.multi_reduction <{kind}>, %x0, %x1 {axes} : vector<2x3x{element}> to "
                        f"vector<{shape[0]}x{element}>",
                        lambda x, y, function=function, axes=axes: [
                            _folded(function, row, start) for row, start in zip(x if axes == [1] else x.T, y, strict=False)]))  # fmt: skip
    cases += [
        _scalar("all dimensions", "multi_reduction", [T234, ((1,), "f32")],
                "%b = vector.extract %x1[0] : f32 from vector<1xf32>\n"
                "%s = vector.multi_reduction <add>, %x0, %b [0, 1, 2] : vector<2x3x4xf32> to f32", lambda x, y: x.sum() + y[0]),
        computed("multi_reduction", "rank 3, outer and inner", [T234, ((3,), "f32")], ((3,), "f32"),
                 "%r = vector.multi_reduction <add>, %x0, %x1 [0, 2] : vector<2x3x4xf32> to vector<3xf32>",
                 lambda x, y: x.sum((0, 2)) + y),
    ]  # fmt: skip
    return cases


def _scans() -> list[Case]:
    cases = []
    for inclusive in (True, False):

        def scan(x: Any, y: Any, inclusive: bool = inclusive) -> Any:
            sums = np.cumsum(x, 1)
            return sums if inclusive else sums - x + y[:, None]

        word = "inclusive" if inclusive else "exclusive"
        text = f"""%r, %t = vector.scan <add>, %x0, %x1 {{inclusive = {str(inclusive).lower()}, reduction_dim = 1}} :
          vector<3x4xf32>, vector<3xf32>"""
        cases.append(computed("scan", f"rank 2, {word}", [M34, ((3,), "f32")], M34, text, scan))
    return cases


COMPUTING = [
    computed("contract", "matmul", [M23, M34, ((2, 4), "f32")], ((2, 4), "f32"),
             f"%r = vector.contract {{{MATMUL}}} %x0, %x1, %x2 : vector<2x3xf32>, vector<3x4xf32> into vector<2x4xf32>",
             lambda x, y, z: x @ y + z),
    computed("contract", "batches", [T234, ((2, 4, 2), "f32"), ((2, 3, 2), "f32")], ((2, 3, 2), "f32"),
             f"%r = vector.contract {{{BATCH}}} %x0, %x1, %x2 : vector<2x3x4xf32>, vector<2x4x2xf32> into vector<2x3x2xf32>",
             lambda x, y, z: x @ y + z),
    computed("contract", "matmul, f16 into f32", [((2, 3), "f16"), ((3, 4), "f16"), ((2, 4), "f32")], ((2, 4), "f32"),
             f"%r = vector.contract {{{MATMUL}}} %x0, %x1, %x2 : vector<2x3xf16>, vector<3x4xf16> into vector<2x4xf32>",
             lambda x, y, z: x.astype(np.float32) @ y.astype(np.float32) + z),
    computed("contract", "matmul, i8 into i32", [((2, 3), "i8"), ((3, 4), "i8"), ((2, 4), "i32")], ((2, 4), "i32"),
             f"%r = vector.contract {{{MATMUL}}} %x0, %x1, %x2 : vector<2x3xi8>, vector<3x4xi8> into vector<2x4xi32>",
             lambda x, y, z: x.astype(np.int32) @ y.astype(np.int32) + z),
    computed("contract", "maxima", [M23, M34, ((2, 4), "f32")], ((2, 4), "f32"),
             f"%r = vector.contract {{{MATMUL}, kind = #vector.kind<maxnumf>}} %x0, %x1, %x2 : "
             "vector<2x3xf32>, vector<3x4xf32> into vector<2x4xf32>",
             lambda x, y, z: np.maximum((x[:, :, None] * y[None]).max(1), z)),
    computed("contract", "matrix and vector", [M34, F4, ((3,), "f32")], ((3,), "f32"),
             f"%r = vector.contract {{{MATVEC}}} %x0, %x1, %x2 : vector<3x4xf32>, vector<4xf32> into vector<3xf32>",
             lambda x, y, z: x @ y + z),
    _scalar("dot", "contract", [F4, F4, ((1,), "f32")], "%b = vector.extract %x2[0] : f32 from vector<1xf32>\n"
            f"%s = vector.contract {{{DOT}}} %x0, %x1, %b : vector<4xf32>, vector<4xf32> into f32",
            lambda x, y, z: x @ y + z[0]),
    computed("outerproduct", "vectors", [((2,), "f32"), F4, ((2, 4), "f32")], ((2, 4), "f32"),
             "%r = vector.outerproduct %x0, %x1, %x2 : vector<2xf32>, vector<4xf32>", lambda x, y, z: np.outer(x, y) + z),
    computed("outerproduct", "vector and scalar", [F4, ((1,), "f32")], F4,
             "%e = vector.extract %x1[0] : f32 from vector<1xf32>\n%r = vector.outerproduct %x0, %e : vector<4xf32>, f32",
             lambda x, y: x * y[0]),
    computed("fma", "rank 2", [M23, M23, M23], M23, "%r = vector.fma %x0, %x1, %x2 : vector<2x3xf32>", lambda x, y, z: x * y + z),
    computed("mask", "reduction", [F8], ((1,), "f32"), "%m = vector.constant_mask [5] : vector<8xi1>\n"
             "%s = vector.mask %m { vector.reduction <add>, %x0 : vector<8xf32> into f32 } : vector<8xi1> -> f32\n"
             "%r = vector.broadcast %s : f32 to vector<1xf32>", lambda x: x[:5].sum()),
    computed("mask", "multi_reduction", [M34, ((3,), "f32")], ((3,), "f32"), "%m = vector.constant_mask [2, 3] : vector<3x4xi1>\n"
             "%r = vector.mask %m { vector.multi_reduction <add>, %x0, %x1 [1] : vector<3x4xf32> to vector<3xf32> } : "
             "vector<3x4xi1> -> vector<3xf32>", lambda x, y: y + np.array([x[0, :3].sum(), x[1, :3].sum(), 0])),
    computed("mask", "contract", [M23, M34, ((2, 4), "f32")], ((2, 4), "f32"),
             "%m = vector.constant_mask [2, 3, 2] : vector<2x4x3xi1>\n"
             f"%r = vector.mask %m {{ vector.contract {{{MATMUL}}} %x0, %x1, %x2 : vector<2x3xf32>, vector<3x4xf32> into "
             "vector<2x4xf32> } : vector<2x4x3xi1> -> vector<2x4xf32>",
             lambda x, y, z: z + np.pad(x[:, :2] @ y[:2, :3], ((0, 0), (0, 1)))),
]  # fmt: skip

TURNED = BATCH.replace("(b, m, n)>", "(b, n, m)>")
ROWS = """indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>],
  iterator_types = ["parallel", "reduction"]"""


def _contractions() -> list[Case]:
    """Those that are no product of two matrices, of which MLIR's lowerings know the ones of one type that add."""
    cases = []
    for narrow, wide, kind, fold in (
        ("f16", "f32", "add", np.add), ("i8", "i32", "add", np.add), ("f32", "f64", "add", np.add),
        ("f32", "f32", "minnumf", np.fmin), ("i32", "i32", "maxsi", np.maximum), ("i8", "i32", "maxsi", np.maximum),
    ):  # fmt: skip
        form, types = f"{kind}, {narrow} into {wide}", (DTYPES[narrow], DTYPES[wide])
        combining = f", kind = #vector.kind<{kind}>"
        batch, other = ((2, 3, 4), narrow), ((2, 4, 2), narrow)

        def products(x: Any, y: Any, wide: Any = types[1]) -> Any:  # b, n, m, k
            return (x.astype(wide)[:, :, None] * y.astype(wide).swapaxes(1, 2)[:, None]).swapaxes(1, 2)

        def batches(x: Any, y: Any, z: Any, fold: Any = fold, products: Any = products) -> Any:
            return fold(z, fold.reduce(products(x, y), axis=-1))

        def rows(x: Any, y: Any, z: Any, fold: Any = fold, wide: Any = types[1]) -> Any:
            return fold(z, fold.reduce(x.astype(wide) * y.astype(wide), axis=-1))

        def masked(x: Any, y: Any, z: Any, rows: Any = rows) -> Any:
            z[:2] = rows(x[:2, :3], y[:2, :3], z[:2])
            return z

        def some(x: Any, y: Any, z: Any, batches: Any = batches) -> Any:
            z[:, :, :2] = batches(x[:, :2, :3], y[:, :3], z[:, :, :2])
            return z

        said = f"vector<2x3x4x{narrow}>, vector<2x4x2x{narrow}> into vector<2x2x3x{wide}>"
        row = f"vector<3x4x{narrow}>, vector<3x4x{narrow}> into vector<3x{wide}>"
        three = [((3, 4), narrow), ((3, 4), narrow), ((3,), wide)]
        contract = f"vector.contract {{{ROWS}{combining}}} %x0, %x1, %x2 : {row}"
        cases += [
            computed("contract", f"batches, {form}", [batch, other, ((2, 2, 3), wide)], ((2, 2, 3), wide),
                     f"%r = vector.contract {{{TURNED}{combining}}} %x0, %x1, %x2 : {said}", batches),
            computed("contract", f"rows, {form}", three, three[2], f"%r = {contract}", rows),
            computed("mask", f"contract of rows, {form}", three, three[2],
                     f"%m = vector.constant_mask [2, 3] : vector<3x4xi1>\n%r = vector.mask %m {{ {contract} }} : "
                     f"vector<3x4xi1> -> vector<3x{wide}>", masked),
            computed("mask", f"contract of batches, {form}", [batch, other, ((2, 2, 3), wide)], ((2, 2, 3), wide),
                     f"%m = vector.constant_mask [2, 2, 2, 3] : vector<2x3x2x4xi1>\n%r = vector.mask %m {{ "
                     f"vector.contract {{{TURNED}{combining}}} %x0, %x1, %x2 : {said} }} : "
                     f"vector<2x3x2x4xi1> -> vector<2x2x3x{wide}>", some),
            computed("contract", f"dot, {form}", [((4,), narrow), ((4,), narrow), ((1,), wide)], ((1,), wide),
                     f"%b = vector.extract %x2[0] : {wide} from vector<1x{wide}>\n"
                     f"%s = vector.contract {{{DOT}{combining}}} %x0, %x1, %b : vector<4x{narrow}>, vector<4x{narrow}> into {wide}\n"
                     f"%r = vector.broadcast %s : {wide} to vector<1x{wide}>", rows),
        ]  # fmt: skip
    return cases


CASES = [*MAKING, *REARRANGING, *_reductions(), *_scans(), *COMPUTING, *_contractions()]
