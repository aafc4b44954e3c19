"""The matrix units through the gpu dialect: gpu.subgroup_mma.

``INSTRUCTIONS`` is as in nvidia.py. Factors are small whole numbers, of which every type holds sums of products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from offload.runtime import Library
from operations import Case, kernel

CASES: list[Case] = []
INSTRUCTIONS: dict[str, Sequence[str]] = {}
_DTYPES: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i32": np.int32}
Expected = Callable[[Any, Any, Any], Any]


def _twice(a: Any, b: Any, c: Any) -> Any:
    return 2 * (a @ b) + c


def _add(
    op: str,
    form: str,
    kinds: tuple[str, ...],
    shape: tuple[int, int, int],
    compute: str,
    expected: Expected,
    *words: str,
) -> None:
    """A case for types in memory of a, b and c, and of the factors; ``compute`` as in :func:`_wmma`.

    ``expected`` gives what c has afterwards from a, b and c as they are, all of numbers as wide as c's.
    """

    def run(library: Library) -> None:
        m, n, k = shape
        random = np.random.default_rng(m + n)
        wide = _DTYPES["f32" if kinds[2] == "f16" else kinds[2]]
        low = 0 if kinds[3] == "ui8" else -2
        a = random.integers(low, 3, (m, k)).astype(_DTYPES[kinds[0]])
        b = random.integers(low, 3, (k, _between(n, kinds[1]))).astype(_DTYPES[kinds[1]])
        c = (random.integers(1, 4, (m, n)) * random.choice([-1, 1], (m, n))).astype(_DTYPES[kinds[2]])
        if kinds[3] == "ui8":
            a[a == 2], b[0] = -56, -1  # 200 and 255
        factors = [x.view(np.uint8) if kinds[3] == "ui8" else x for x in (a, b[:, :n])]
        wanted = expected(*(x.astype(wide) for x in factors), c.astype(wide)).astype(c.dtype)
        library.kernels.k[1, 32](a, b, c)
        np.testing.assert_allclose(c, wanted, rtol=np.finfo(c.dtype).resolution if c.dtype.kind == "f" else 0)

    CASES.append(Case(op, form, _wmma(*kinds[:4], shape, compute), run, chips={"nvvm": "sm_90"}))
    INSTRUCTIONS[f"{op}-{form}"] = words


def _between(columns: int, kind: str) -> int:
    """Elements from one row to the next: 16 bytes or more, as wmma wants it."""
    return max(columns, 16 // np.dtype(_DTYPES[kind]).itemsize)


def _wmma(a: str, b: str, c: str, element: str, shape: tuple[int, int, int], compute: str = "") -> str:
    m, n, k = shape
    row = _between(n, b)
    ta, tb, tc = (
        f'!gpu.mma_matrix<{rows}x{columns}x{kind}, "{use}Op">'
        for rows, columns, kind, use in ((m, k, element, "A"), (k, n, element, "B"), (m, n, c, "C"))
    )
    body = f"""%c0 = arith.constant 0 : index
%A = gpu.subgroup_mma_load_matrix %a[%c0, %c0] {{leadDimension = {k} : index}} : memref<{m}x{k}x{a}> -> {ta} // here
%B = gpu.subgroup_mma_load_matrix %b[%c0, %c0] {{leadDimension = {row} : index}} : memref<{k}x{row}x{b}> -> {tb}
%C = gpu.subgroup_mma_load_matrix %c[%c0, %c0] {{leadDimension = {n} : index}} : memref<{m}x{n}x{c}> -> {tc}
%D = gpu.subgroup_mma_compute %A, %B, %C : {ta}, {tb} -> {tc}
{compute.format(type=tc) or f"%E = gpu.subgroup_mma_compute %A, %B, %D : {ta}, {tb} -> {tc}"}
gpu.subgroup_mma_store_matrix %E, %c[%c0, %c0] {{leadDimension = {n} : index}} : {tc}, memref<{m}x{n}x{c}>"""
    return kernel(body, f"%a: memref<{m}x{k}x{a}>, %b: memref<{k}x{row}x{b}>, %c: memref<{m}x{n}x{c}>")


_HALVES, _MIXED, _BYTES = ("f16", "f16", "f16", "f16"), ("f16", "f16", "f32", "f16"), ("i8", "i8", "i32", "si8")
_WORDS, _DOUBLES = ("f32", "f32", "f32", "f32"), ("f64", "f64", "f64", "f64")
_TILE = (16, 16, 16)

for _form, _kinds, _shape, _words in (
    (
        "f16 to f32",
        _MIXED,
        _TILE,
        (
            "wmma.load.a.sync.aligned.row.m16n16k16.f16",
            "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32",
            "wmma.store.d.sync.aligned.row.m16n16k16.f32",
        ),
    ),
    ("f16 to f32, 32 rows and 8 columns", _MIXED, (32, 8, 16), ("wmma.mma.sync.aligned.row.row.m32n8k16.f32.f32",)),
    ("f16 to f32, 8 rows and 32 columns", _MIXED, (8, 32, 16), ("wmma.mma.sync.aligned.row.row.m8n32k16.f32.f32",)),
    ("f16 to f16", _HALVES, _TILE, ("wmma.mma.sync.aligned.row.row.m16n16k16.f16.f16",)),
    ("si8 to i32", _BYTES, _TILE, ("wmma.mma.sync.aligned.row.row.m16n16k16.s32.s8.s8.s32",)),
    ("ui8 to i32", ("i8", "i8", "i32", "ui8"), _TILE, ("wmma.mma.sync.aligned.row.row.m16n16k16.s32.u8.u8.s32",)),
    ("tf32", _WORDS, (16, 16, 8), ("wmma.mma.sync.aligned.row.row.m16n16k8.f32.tf32.tf32.f32",)),
    ("f64", _DOUBLES, (8, 8, 4), ("wmma.mma.sync.aligned.row.row.m8n8k4.f64.f64.f64.f64",)),
):
    _add("gpu.subgroup_mma_compute", _form, _kinds, _shape, "", _twice, *_words)
for _element, _word in (("si8", "s8"), ("ui8", "u8")):  # one of the two fragments is one register
    for _m, _n in ((32, 8), (8, 32)):
        _add(
            "gpu.subgroup_mma_compute",
            f"{_element} to i32, {_m} rows and {_n} columns",
            ("i8", "i8", "i32", _element),
            (_m, _n, 16),
            "",
            _twice,
            f"wmma.load.a.sync.aligned.row.m{_m}n{_n}k16.{_word}",
            f"wmma.load.b.sync.aligned.row.m{_m}n{_n}k16.{_word}",
            f"wmma.mma.sync.aligned.row.row.m{_m}n{_n}k16.s32.{_word}.{_word}.s32",
        )
_add(
    "gpu.subgroup_mma_elementwise",
    "addf, with a constant matrix",
    _MIXED,
    _TILE,
    "%f = arith.constant 1.0 : f32\n%K = gpu.subgroup_mma_constant_matrix %f : {type}\n"
    "%E = gpu.subgroup_mma_elementwise addf %D, %K : ({type}, {type}) -> {type}",
    lambda a, b, c: a @ b + c + 1,
    "wmma.mma.sync",
    "add.rn.f32",
)

_ELEMENTWISE: dict[str, Callable[[Any, Any], Any]] = {
    "addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide, "maxf": np.maximum,
    "minf": np.minimum, "negatef": lambda x, _: -x,
    "addi": np.add, "subi": np.subtract, "muli": np.multiply, "divs": lambda x, y: np.trunc(x / y),
    "divu": lambda x, y: x.view(np.uint32) // y.view(np.uint32), "negates": lambda x, _: -x,
}  # fmt: skip


def _elementwise(name: str) -> Expected:
    return lambda a, b, c: _ELEMENTWISE[name](a @ b + c, c)


for _names, _kinds in (
    ("addf subf mulf divf maxf minf negatef", _HALVES),
    ("addf subf mulf divf maxf minf negatef", _MIXED),
    ("addi subi muli divs divu negates", _BYTES),
):
    for _name in _names.split():
        _operands, _types = ("%D", "{type}") if _name.startswith("negate") else ("%D, %C", "{type}, {type}")
        _add(
            "gpu.subgroup_mma_elementwise",
            f"{_name}, {_kinds[2]}",
            _kinds,
            _TILE,
            f"%E = gpu.subgroup_mma_elementwise {_name} {_operands} : ({_types}) -> {{type}}",
            _elementwise(_name),
            "wmma.mma.sync",
        )
# Which element a lane has first is the target's: one is doubled, read again, and put back as it was.
for _kind, _index in (("f16", "%c0"), ("f32", "%c5"), ("f32", "%n"), ("i32", "%n")):
    _kinds = _BYTES if _kind == "i32" else ("f16", "f16", _kind, "f16")
    _body = f"""%c5 = arith.constant 5 : index
%n = gpu.block_id x
%v = gpu.subgroup_mma_extract_thread_local %D[{_index}] : {{type}} -> {_kind}
%w = arith.{"addi" if _kind == "i32" else "addf"} %v, %v : {_kind}
%F = gpu.subgroup_mma_insert_thread_local %w, %D[{_index}] : {_kind}, {{type}} -> {{type}}
%u = gpu.subgroup_mma_extract_thread_local %F[{_index}] : {{type}} -> {_kind}
%h = arith.{"subi" if _kind == "i32" else "subf"} %u, %v : {_kind}
%E = gpu.subgroup_mma_insert_thread_local %h, %F[{_index}] : {_kind}, {{type}} -> {{type}}"""
    for _name in ("extract", "insert"):
        _add(
            f"gpu.subgroup_mma_{_name}_thread_local",
            f"{_kind}, {'computed' if _index == '%n' else 'constant'} index",
            _kinds,
            _TILE,
            _body,
            lambda a, b, c: a @ b + c,
            "wmma.mma.sync",
        )
_A = '!gpu.mma_matrix<8x4xf64, "AOp">'
for _name in ("extract", "insert"):
    _add(
        f"gpu.subgroup_mma_{_name}_thread_local",
        "f64 that are multiplied",
        _DOUBLES,
        (8, 8, 4),
        f"%v = gpu.subgroup_mma_extract_thread_local %A[%c0] : {_A} -> f64\n"
        "%w = arith.addf %v, %v : f64\n"
        f"%A2 = gpu.subgroup_mma_insert_thread_local %w, %A[%c0] : f64, {_A} -> {_A}\n"
        '%E = gpu.subgroup_mma_compute %A2, %B, %D : !gpu.mma_matrix<8x4xf64, "AOp">, !gpu.mma_matrix<4x8xf64, "BOp"> '
        "-> {type}",
        lambda a, b, c: 3 * (a @ b) + c,
        "wmma.mma.sync",
    )
for _kinds, _shape in (
    (_WORDS, (16, 16, 8)),
    (_DOUBLES, (8, 8, 4)),
    (_BYTES, _TILE),
    (("i8", "i8", "i32", "ui8"), (8, 32, 16)),
):
    _name = "maxf" if _kinds[0].startswith("f") else "muli"
    _m, _n, _k = _shape
    _left, _right = f'!gpu.mma_matrix<{_m}x{_k}x{_kinds[3]}, "AOp">', f'!gpu.mma_matrix<{_k}x{_n}x{_kinds[3]}, "BOp">'
    _wide = np.uint8 if _kinds[3] == "ui8" else np.int8

    def _multiplied(a: Any, b: Any, c: Any, of: Any = _wide, name: str = _name) -> Any:
        squared = (a.astype(of) * a.astype(of)).astype(c.dtype) if name == "muli" else np.maximum(a, -a)
        return squared @ b + a @ b + c

    _more, _other = "", "%A"
    if _name == "maxf":
        _more, _other = f"%A1 = gpu.subgroup_mma_elementwise negatef %A : ({_left}) -> {_left}\n", "%A1"
    _add(
        "gpu.subgroup_mma_elementwise",
        f"{_name} of {_kinds[3]} that are multiplied",
        _kinds,
        _shape,
        f"{_more}%A2 = gpu.subgroup_mma_elementwise {_name} %A, {_other} : ({_left}, {_left}) -> {_left}\n"
        f"%E = gpu.subgroup_mma_compute %A2, %B, %D : {_left}, {_right} -> {{type}}",
        _multiplied,
        "wmma.mma.sync",
    )

_LOOP = """%c1 = arith.constant 1 : index
%n = gpu.block_dim x
%E = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %D) -> ({type}) {{
  %more = gpu.subgroup_mma_compute %A, %B, %sum : !gpu.mma_matrix<16x16xf16, "AOp">, \
!gpu.mma_matrix<16x16xf16, "BOp"> -> {type}
  scf.yield %more : {type}
}}"""
_BRANCH = """%x = gpu.block_id x
%first = arith.cmpi eq, %x, %c0 : index
%E = scf.if %first -> ({type}) {{
  scf.yield %D : {type}
}} else {{
  scf.yield %C : {type}
}}"""
for _form, _body, _expected in (
    ("summed up in a loop", _LOOP, lambda a, b, c: 33 * (a @ b) + c),
    ("chosen in a branch", _BRANCH, lambda a, b, c: a @ b + c),
):
    _add("gpu.subgroup_mma_compute", _form, _MIXED, _TILE, _body, _expected, "wmma.mma.sync")
