"""Matrices of gpu.subgroup_mma in memory and in loops, on every target."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import emit, emit_text
from emulator.running import running_on

from offload.errors import CompileError

IN_PLACE = """
!C = !gpu.mma_matrix<16x16xf32, "COp">
gpu.module @m {
gpu.func @k(%c: memref<16x16xf32>) kernel {
  %zero = arith.constant 0 : index
  %m = gpu.subgroup_mma_load_matrix %c[%zero, %zero] {leadDimension = 16 : index, transpose} : memref<16x16xf32> -> !C
  %d = gpu.subgroup_mma_elementwise addf %m, %m : (!C, !C) -> !C
  gpu.subgroup_mma_store_matrix %d, %c[%zero, %zero] {leadDimension = 16 : index} : !C, memref<16x16xf32>
  %n = gpu.subgroup_mma_load_matrix %c[%zero, %zero] {leadDimension = 16 : index, transpose} : memref<16x16xf32> -> !C
  gpu.subgroup_mma_store_matrix %n, %c[%zero, %zero] {leadDimension = 16 : index} : !C, memref<16x16xf32>
  gpu.return
}
}
"""


@pytest.mark.parametrize("target", ["host", "host:generic,warp=64", "gfx942", "gfx1100", "sm_80"])
def test_a_matrix_that_is_stored_where_it_was_loaded(target: str) -> None:
    """All threads of a subgroup have loaded before any stores, and stored before any loads again."""
    c = np.arange(256, dtype=np.float32).reshape(16, 16)
    expected = 2 * c
    threads = 64 if target == "host:generic,warp=64" else 32
    with running_on(target, IN_PLACE) as library:
        library.kernels.k[1, threads](c)
    np.testing.assert_array_equal(c, expected)


LAYOUTS = """
!A = !gpu.mma_matrix<16x16xf16, "AOp">
!B = !gpu.mma_matrix<16x16xf16, "BOp">
!C = !gpu.mma_matrix<16x16xf32, "COp">
gpu.module @m {{
gpu.func @k(%a: memref<?x?xf16, strided<[?, 1], offset: ?>>, %b: memref<16x16xf16>, %c: memref<16x24xf32>)
    workgroup(%w: memref<16x{wide}xf16, #gpu.address_space<workgroup>>) kernel
    attributes {{known_block_size = array<i32: 64, 1, 1>}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %left = arith.constant {left_of_a} : index
  %aside = arith.constant {left_of_c} : index
  %c16 = arith.constant 16 : index
  %c256 = arith.constant 256 : index
  %n = gpu.block_dim x
  %t = gpu.thread_id x
  scf.for %i = %t to %c256 step %n {{
    %row = arith.divui %i, %c16 : index
    %column = arith.remui %i, %c16 : index
    %v = memref.load %b[%row, %column] : memref<16x16xf16>
    memref.store %v, %w[%row, %column] : memref<16x{wide}xf16, #gpu.address_space<workgroup>>
  }}
  gpu.barrier
  %p = gpu.subgroup_mma_load_matrix %a[%c2, %left] {{leadDimension = 40 : index{left}}}
    : memref<?x?xf16, strided<[?, 1], offset: ?>> -> !A
  %q = gpu.subgroup_mma_load_matrix %w[%c0, %c0] {{leadDimension = {wide} : index{right}}}
    : memref<16x{wide}xf16, #gpu.address_space<workgroup>> -> !B
  %f = arith.constant 0.5 : f32
  %z = gpu.subgroup_mma_constant_matrix %f : !C
  {product} : !A, !B -> !C
  gpu.subgroup_mma_store_matrix %d, %c[%c0, %aside] {{leadDimension = 24 : index{stored}}} : !C, memref<16x24xf32>
  gpu.return
}}
}}
"""
# Where the three matrices are in their memory: anywhere, and as PTX has it, at 32 bytes, with lines of whole 16 bytes.
ANYWHERE = {"left_of_a": 3, "wide": 20, "left_of_c": 1}
ALIGNED = {"left_of_a": 0, "wide": 24, "left_of_c": 8}
# Instead of a matrix, a choice of two sums of two.
SUM = """
  %none = arith.constant 0.0 : f16
  %zeros = gpu.subgroup_mma_constant_matrix %none : !B
  %choice = arith.cmpi ult, %n, %c256 : index
  %e = gpu.subgroup_mma_load_matrix %w[%c0, %c0] {{leadDimension = {wide} : index{other}}}
    : memref<16x{wide}xf16, #gpu.address_space<workgroup>> -> !B
  %s = gpu.subgroup_mma_elementwise addf %q, %e : (!B, !B) -> !B
  %v = gpu.subgroup_mma_elementwise addf %s, %zeros : (!B, !B) -> !B
  %u = arith.select %choice, %v, %s : !B
  %d = gpu.subgroup_mma_compute %p, %u, %z"""
BY_COLUMNS = ", transpose"


def _source(left: str, right: str, stored: str = "", aligned: bool = False) -> str:
    places = ALIGNED if aligned else ANYWHERE
    product = "%d = gpu.subgroup_mma_compute %p, %q, %z"
    return LAYOUTS.format(left=left, right=right, stored=stored, product=product, **places)


def _of_a_sum(one: str, other: str, says: str = "") -> str:
    product = SUM.format(other=other, **ALIGNED) + says
    return LAYOUTS.format(left="", right=one, stored="", product=product, **ALIGNED)


def _multiplied(chip: str, source: str, aligned: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the kernel takes for a and b, and what it makes; nothing else may be written."""
    random = np.random.default_rng(len(source))
    a, b = random.integers(-3, 4, (24, 40)).astype(np.float16), random.integers(-3, 4, (16, 16)).astype(np.float16)
    c = np.full((16, 24), -1, np.float32)
    with running_on(chip, source) as library:
        library.kernels.k[1, 64](a, b, c)
    places = ALIGNED if aligned else ANYWHERE
    column, first = places["left_of_a"], places["left_of_c"]
    made = c[:, first : first + 16].copy()
    c[:, first : first + 16] = -1
    assert (c == -1).all()
    return a[2:18, column : column + 16].astype(np.float32), b.astype(np.float32), made - np.float32(0.5)


@pytest.mark.parametrize("chip", ["host", "gfx942", "gfx1100", "gfx1201", "sm_80"])
@pytest.mark.parametrize("transposed", range(8))
def test_matrices_in_memory(chip: str, transposed: int) -> None:
    """By rows and by columns, in parts of larger arrays, in workgroup memory."""
    left, right, stored = (transposed & bit for bit in (1, 2, 4))
    words = (BY_COLUMNS if flag else "" for flag in (left, right, stored))
    aligned = chip == "sm_80"
    a, b, c = _multiplied(chip, _source(*words, aligned=aligned), aligned)
    product = (a.T if left else a) @ (b.T if right else b)
    np.testing.assert_array_equal(c, product.T if stored else product)


@pytest.mark.parametrize("chip", ["host", "gfx1100", "sm_80"])
def test_a_sum_of_matrices_by_columns(chip: str) -> None:
    """The product of a choice of sums does not say how they were loaded."""
    a, b, c = _multiplied(chip, _of_a_sum(BY_COLUMNS, BY_COLUMNS), aligned=True)
    np.testing.assert_array_equal(c, a @ (2 * b.T))


@pytest.mark.parametrize("target", ["nvvm:sm_90", "rocdl:gfx942", "host"])
def test_products_that_say_another_layout(target: str) -> None:
    """PTX leaves the result undefined, and the assembler takes it; other targets would ignore what is said."""
    wrong = _of_a_sum("", "", " {b_transpose}")
    with pytest.raises(CompileError, match="the matrix b is loaded without `transpose`, and its product is") as caught:
        emit(wrong, "lowered", [target])
    assert "{b_transpose}" in wrong.splitlines()[caught.value.diagnostics[0].line - 1]
    assert emit(_of_a_sum(BY_COLUMNS, BY_COLUMNS, " {b_transpose}"), "lowered", [target])


@pytest.mark.parametrize("chip", ["host", "gfx942"])
def test_a_matrix_of_two_that_are_loaded_differently(chip: str) -> None:
    """Threads of NVIDIA's have other elements of each; elsewhere it is a sum like any other."""
    mixed = _of_a_sum("", BY_COLUMNS)
    with pytest.raises(CompileError, match="made of some that are loaded with `transpose` and some that are not"):
        emit(mixed, "lowered", ["nvvm:sm_90"])
    a, b, c = _multiplied(chip, mixed, aligned=True)
    np.testing.assert_array_equal(c, a @ (b + b.T))


FLOW = """
!A = !gpu.mma_matrix<16x16xf16, "AOp">
!B = !gpu.mma_matrix<16x16xf16, "BOp">
!C = !gpu.mma_matrix<16x16xf32, "COp">
gpu.module @m {{
gpu.func @k(%a: memref<16x16xf16>, %b: memref<16x16xf16>, %c: memref<16x16xf32>, %n: index, %choice: i1) kernel {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = gpu.subgroup_mma_load_matrix %a[%c0, %c0] {{leadDimension = 16 : index}} : memref<16x16xf16> -> !A
  %q = gpu.subgroup_mma_load_matrix %b[%c0, %c0] {{leadDimension = 16 : index}} : memref<16x16xf16> -> !B
  %z = gpu.subgroup_mma_load_matrix %c[%c0, %c0] {{leadDimension = 16 : index}} : memref<16x16xf32> -> !C
  {flow}
  gpu.subgroup_mma_store_matrix %r, %c[%c0, %c0] {{leadDimension = 16 : index}} : !C, memref<16x16xf32>
  gpu.return
}}
}}
"""
FLOWS = {
    "affine": """%r = affine.for %i = 0 to %n iter_args(%s = %z) -> (!C) {
    %d = gpu.subgroup_mma_compute %p, %q, %s : !A, !B -> !C
    affine.yield %d : !C
  }""",
    "while": """%r, %end = scf.while (%s = %z, %i = %c0) : (!C, index) -> (!C, index) {
    %more = arith.cmpi ult, %i, %n : index
    scf.condition(%more) %s, %i : !C, index
  } do {
  ^bb0(%s: !C, %i: index):
    %d = gpu.subgroup_mma_compute %p, %q, %s : !A, !B -> !C
    %j = arith.addi %i, %c1 : index
    scf.yield %d, %j : !C, index
  }""",
    "branches": """cf.br ^head(%z, %c0 : !C, index)
^head(%s: !C, %i: index):
  %more = arith.cmpi ult, %i, %n : index
  cf.cond_br %more, ^body, ^end(%s : !C)
^body:
  %d = gpu.subgroup_mma_compute %p, %q, %s : !A, !B -> !C
  %j = arith.addi %i, %c1 : index
  cf.br ^head(%d, %j : !C, index)
^end(%r: !C):""",
    "select": """%1 = gpu.subgroup_mma_compute %p, %q, %z : !A, !B -> !C
  %2 = gpu.subgroup_mma_compute %p, %q, %1 : !A, !B -> !C
  %3 = gpu.subgroup_mma_compute %p, %q, %2 : !A, !B -> !C
  %r = arith.select %choice, %3, %z : !C""",
}


@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("chip", ["host", "gfx1100", "sm_80"])
def test_matrices_that_loops_carry(chip: str, flow: str) -> None:
    source = FLOW.format(flow=FLOWS[flow])
    random = np.random.default_rng(7)
    a, b = (random.integers(-3, 4, (16, 16)).astype(np.float16) for _ in range(2))
    c = random.integers(-9, 9, (16, 16)).astype(np.float32)
    expected = 3 * (a.astype(np.float32) @ b.astype(np.float32)) + c
    with running_on(chip, source) as library:
        library.kernels.k[1, 32](a, b, c, 3, True)
    np.testing.assert_array_equal(c, expected)


# Loops that load the next matrices while they multiply what they have.
AHEAD = """
!A = !gpu.mma_matrix<16x16xf16, "AOp">
!B = !gpu.mma_matrix<16x16xf16, "BOp">
!C = !gpu.mma_matrix<16x16xf32, "COp">
gpu.module @m {{
{function}
gpu.func @k(%a: memref<16x16xf16>, %b: memref<16x16xf16>, %c: memref<16x16xf32>, %n: index) kernel {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x0 = gpu.subgroup_mma_load_matrix %a[%c0, %c0] {{leadDimension = 16 : index{left}}} : memref<16x16xf16> -> !A
  %y0 = gpu.subgroup_mma_load_matrix %b[%c0, %c0] {{leadDimension = 16 : index{right}}} : memref<16x16xf16> -> !B
  %z = gpu.subgroup_mma_load_matrix %c[%c0, %c0] {{leadDimension = 16 : index}} : memref<16x16xf32> -> !C
  %r:3 = {loop} iter_args({carried}) -> ({types}) {{
    %d = {product} : {signature}
    %x1 = gpu.subgroup_mma_load_matrix %a[%c0, %c0] {{leadDimension = 16 : index{left}}} : memref<16x16xf16> -> !A
    %y1 = gpu.subgroup_mma_load_matrix %b[%c0, %c0] {{leadDimension = 16 : index{right}}} : memref<16x16xf16> -> !B
    {end} {yielded} : {types}
  }}
  gpu.subgroup_mma_store_matrix %r#{sum}, %c[%c0, %c0] {{leadDimension = 16 : index}} : !C, memref<16x16xf32>
  gpu.return
}}
}}
"""
PRODUCT = "gpu.subgroup_mma_compute %x, %y, %acc"
FUNCTION = f"""func.func private @g(%x: !A, %y: !B, %acc: !C) -> !C {{
  %d = {PRODUCT} : !A, !B -> !C
  return %d : !C
}}"""
CARRIED = {"x": ("%x = %x0", "!A", "%x1"), "y": ("%y = %y0", "!B", "%y1"), "z": ("%acc = %z", "!C", "%d")}


def _ahead(order: str, left: str, right: str, loop: str = "scf", called: bool = False) -> str:
    carried, types, yielded = (", ".join(parts) for parts in zip(*(CARRIED[each] for each in order), strict=True))
    heads = {"scf": "scf.for %i = %c0 to %n step %c1", "affine": "affine.for %i = 0 to %n"}
    return AHEAD.format(
        left=left, right=right, carried=carried, types=types, yielded=yielded, sum=order.index("z"),
        loop=heads[loop], end=f"{loop}.yield", function=FUNCTION if called else "",
        product="func.call @g(%x, %y, %acc)" if called else PRODUCT,
        signature="(!A, !B, !C) -> !C" if called else "!A, !B -> !C",
    )  # fmt: skip


@pytest.mark.parametrize("loop", ["scf", "affine"])
@pytest.mark.parametrize("order", ["xyz", "zxy", "yzx"])
@pytest.mark.parametrize(("left", "right"), [("", ""), (BY_COLUMNS, ""), ("", BY_COLUMNS), (BY_COLUMNS, BY_COLUMNS)])
def test_loops_that_load_ahead(left: str, right: str, order: str, loop: str) -> None:
    """The emulator of PTX takes products of any layout alike: what they say is compared with the loads."""
    source = _ahead(order, left, right, loop)
    words = ".".join("col" if each else "row" for each in (left, right))
    text = emit_text(source, "isa", ["nvvm:sm_80"])
    assert text.count("wmma.mma.sync.aligned.") == text.count(f"wmma.mma.sync.aligned.{words}.") > 0
    random = np.random.default_rng(7)
    a, b = (random.integers(-3, 4, (16, 16)).astype(np.float16) for _ in range(2))
    wide = [x.astype(np.float32).T if flag else x.astype(np.float32) for x, flag in ((a, left), (b, right))]
    c = random.integers(-9, 9, (16, 16)).astype(np.float32)
    expected = 3 * (wide[0] @ wide[1]) + c
    for chip in ("host", "gfx1100"):
        found = c.copy()
        with running_on(chip, source) as library:
            library.kernels.k[1, 32](a, b, found, 3)
        np.testing.assert_array_equal(found, expected)


def test_a_loop_that_changes_how_it_loads() -> None:
    first, _, rest = _ahead("xyz", "", "").partition("%x1 = ")
    mixed = f"{first}%x1 = {rest.replace('16 : index}', '16 : index, transpose}', 1)}"
    with pytest.raises(CompileError, match="the matrix a is made of some that are loaded with `transpose` and some"):
        emit(mixed, "lowered", ["nvvm:sm_80"])


def test_functions_of_matrices() -> None:
    """NVIDIA's take them; how they are loaded is known where they are called."""
    text = emit_text(_ahead("xyz", BY_COLUMNS, "", called=True), "isa", ["nvvm:sm_80"])
    assert text.count("wmma.mma.sync.aligned.") == text.count("wmma.mma.sync.aligned.col.row.") > 0


def test_functions_that_give_matrices() -> None:
    source = _ahead("xyz", BY_COLUMNS, "").replace(
        "gpu.func @k",
        """func.func private @ahead(%m: memref<16x16xf16>) -> !A {
  %c0 = arith.constant 0 : index
  %x = gpu.subgroup_mma_load_matrix %m[%c0, %c0] {leadDimension = 16 : index, transpose} : memref<16x16xf16> -> !A
  return %x : !A
}
gpu.func @k""",
    )
    start = source.index("%x1 = ")
    end = source.index("\n", start)
    source = source[:start] + "%x1 = func.call @ahead(%a) : (memref<16x16xf16>) -> !A" + source[end:]
    text = emit_text(source, "isa", ["nvvm:sm_80"])
    assert text.count("wmma.mma.sync.aligned.") == text.count("wmma.mma.sync.aligned.col.row.") > 0
    # The first is what the function gives, the second what the loop begins with.
    with pytest.raises(CompileError, match="the matrix a is made of some that are loaded with `transpose` and some"):
        emit(source.replace("16 : index, transpose}", "16 : index}", 1), "lowered", ["nvvm:sm_80"])
