"""The matrix units through the gpu dialect: gpu.subgroup_mma. NVIDIA's alone; refused elsewhere, at their own lines.

``INSTRUCTIONS`` is as in nvidia.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from operations import Case, kernel

CASES: list[Case] = []
INSTRUCTIONS: dict[str, Sequence[str]] = {}
_REFUSED = {"rocdl": "has no fixed layout of fragments on AMD GPUs", "host": "works on the matrix units of NVIDIA"}


def _add(op: str, form: str, source: str, *instructions: str) -> None:
    CASES.append(Case(op, form, source, refused=_REFUSED, chips={"nvvm": "sm_90"}))
    INSTRUCTIONS[f"{op}-{form}"] = instructions


def _wmma(a: str, b: str, c: str, element: str, shape: tuple[int, int, int], compute: str = "") -> str:
    m, n, k = shape
    ta, tb, tc = (
        f'!gpu.mma_matrix<{rows}x{columns}x{kind}, "{use}Op">'
        for rows, columns, kind, use in ((m, k, element, "A"), (k, n, element, "B"), (m, n, c, "C"))
    )
    body = f"""%c0 = arith.constant 0 : index
%A = gpu.subgroup_mma_load_matrix %a[%c0, %c0] {{leadDimension = {k} : index}} : memref<{m}x{k}x{a}> -> {ta} // here
%B = gpu.subgroup_mma_load_matrix %b[%c0, %c0] {{leadDimension = {n} : index}} : memref<{k}x{n}x{b}> -> {tb}
%C = gpu.subgroup_mma_load_matrix %c[%c0, %c0] {{leadDimension = {n} : index}} : memref<{m}x{n}x{c}> -> {tc}
%D = gpu.subgroup_mma_compute %A, %B, %C : {ta}, {tb} -> {tc}
{compute.format(type=tc) or f"%E = gpu.subgroup_mma_compute %A, %B, %D : {ta}, {tb} -> {tc}"}
gpu.subgroup_mma_store_matrix %E, %c[%c0, %c0] {{leadDimension = {n} : index}} : {tc}, memref<{m}x{n}x{c}>"""
    return kernel(body, f"%a: memref<{m}x{k}x{a}>, %b: memref<{k}x{n}x{b}>, %c: memref<{m}x{n}x{c}>")


_add(
    "gpu.subgroup_mma_compute",
    "f16 to f32",
    _wmma("f16", "f16", "f32", "f16", (16, 16, 16)),
    "wmma.load.a.sync.aligned.row.m16n16k16.f16",
    "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32",
    "wmma.store.d.sync.aligned.row.m16n16k16.f32",
)
_add(
    "gpu.subgroup_mma_compute",
    "f16 to f16",
    _wmma("f16", "f16", "f16", "f16", (16, 16, 16)),
    "wmma.mma.sync.aligned.row.row.m16n16k16.f16.f16",
)
_add(
    "gpu.subgroup_mma_compute",
    "si8 to i32",
    _wmma("i8", "i8", "i32", "si8", (16, 16, 16)),
    "wmma.mma.sync.aligned.row.row.m16n16k16.s32.s8.s8.s32",
)
_add(
    "gpu.subgroup_mma_compute",
    "tf32",
    _wmma("f32", "f32", "f32", "f32", (16, 16, 8)),
    "wmma.mma.sync.aligned.row.row.m16n16k8.f32.tf32.tf32.f32",
)
for _element, _word in (("si8", "s8"), ("ui8", "u8")):  # one of the two fragments is one register
    for _m, _n in ((32, 8), (8, 32)):
        _add(
            "gpu.subgroup_mma_compute",
            f"{_element} to i32, {_m} rows and {_n} columns",
            _wmma("i8", "i8", "i32", _element, (_m, _n, 16)),
            f"wmma.load.a.sync.aligned.row.m{_m}n{_n}k16.{_word}",
            f"wmma.load.b.sync.aligned.row.m{_m}n{_n}k16.{_word}",
            f"wmma.mma.sync.aligned.row.row.m{_m}n{_n}k16.s32.{_word}.{_word}.s32",
        )
_add(
    "gpu.subgroup_mma_compute",
    "f64",
    _wmma("f64", "f64", "f64", "f64", (8, 8, 4)),
    "wmma.mma.sync.aligned.row.row.m8n8k4.f64.f64.f64.f64",
)
_add(
    "gpu.subgroup_mma_elementwise",
    "addf, with a constant matrix",
    _wmma(
        "f16",
        "f16",
        "f32",
        "f16",
        (16, 16, 16),
        "%f = arith.constant 1.0 : f32\n%K = gpu.subgroup_mma_constant_matrix %f : {type}\n"
        "%E = gpu.subgroup_mma_elementwise addf %D, %K : ({type}, {type}) -> {type}",
    ),
    "wmma.mma.sync",
    "add.rn.f32",
)

for _names, _shape, _kinds in (
    ("addf subf mulf divf maxf minf negatef", (16, 16, 16), ("f16", "f16", "f16", "f16")),
    ("addf subf mulf divf maxf minf negatef", (16, 16, 16), ("f16", "f16", "f32", "f16")),
    ("addi subi muli divs divu negates", (16, 16, 16), ("i8", "i8", "i32", "si8")),
):
    for _name in _names.split():
        _operands, _types = ("%D", "{type}") if _name.startswith("negate") else ("%D, %C", "{type}, {type}")
        _add(
            "gpu.subgroup_mma_elementwise",
            f"{_name}, {_kinds[2]}",
            _wmma(*_kinds, _shape, f"%E = gpu.subgroup_mma_elementwise {_name} {_operands} : ({_types}) -> {{type}}"),
            "wmma.mma.sync",
        )
for _kind, _index in (("f16", "%c0"), ("f32", "%c5"), ("f32", "%n"), ("i32", "%n")):
    _kinds = ("i8", "i8", "i32", "si8") if _kind == "i32" else ("f16", "f16", _kind, "f16")
    _form = f"{_kind}, {'computed' if _index == '%n' else 'constant'} index"
    _body = f"""%c5 = arith.constant 5 : index
%n = gpu.block_id x
%v = gpu.subgroup_mma_extract_thread_local %D[{_index}] : {{type}} -> {_kind}
%E = gpu.subgroup_mma_insert_thread_local %v, %C[{_index}] : {_kind}, {{type}} -> {{type}}"""
    for _name in ("extract", "insert"):
        _op = f"gpu.subgroup_mma_{_name}_thread_local"
        _add(_op, _form, _wmma(*_kinds, (16, 16, 16), _body), "wmma.mma.sync")
_A = '!gpu.mma_matrix<8x4xf64, "AOp">'
for _name in ("extract", "insert"):
    _add(
        f"gpu.subgroup_mma_{_name}_thread_local",
        "f64 that are multiplied",
        _wmma("f64", "f64", "f64", "f64", (8, 8, 4)).replace(
            "%D = gpu.subgroup_mma_compute %A,",
            f"%v = gpu.subgroup_mma_extract_thread_local %A[%c0] : {_A} -> f64\n"
            f"%A2 = gpu.subgroup_mma_insert_thread_local %v, %A[%c0] : f64, {_A} -> {_A}\n"
            "%D = gpu.subgroup_mma_compute %A2,",
        ),
        "wmma.mma.sync",
    )
for _kinds, _shape in (
    (("f32", "f32", "f32", "f32"), (16, 16, 8)),
    (("f64", "f64", "f64", "f64"), (8, 8, 4)),
    (("i8", "i8", "i32", "si8"), (16, 16, 16)),
    (("i8", "i8", "i32", "ui8"), (8, 32, 16)),
):
    _name = "maxf" if _kinds[0].startswith("f") else "muli"
    _add(
        "gpu.subgroup_mma_elementwise",
        f"{_name} of {_kinds[3]} that are multiplied",
        _wmma(*_kinds, _shape).replace(
            "%D = gpu.subgroup_mma_compute %A,",
            f"%A2 = gpu.subgroup_mma_elementwise {_name} %A, %A : (TYPE, TYPE) -> TYPE\n"
            "%D = gpu.subgroup_mma_compute %A2,".replace(
                "TYPE", f'!gpu.mma_matrix<{_shape[0]}x{_shape[2]}x{_kinds[3]}, "AOp">'
            ),
        ),
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
  scf.yield %C : {type}
}} else {{
  scf.yield %D : {type}
}}"""
for _form, _body in (("summed up in a loop", _LOOP), ("chosen in a branch", _BRANCH)):
    _add("gpu.subgroup_mma_compute", _form, _wmma("f16", "f16", "f32", "f16", (16, 16, 16), _body), "wmma.mma.sync")
