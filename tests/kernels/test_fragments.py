"""gpu.subgroup_mma on every target: AMD's matrix units where they can be used, lanes by themselves where not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from compiling import emit_text
from emulator.on_device import OnDevice
from emulator.running import running_on
from operations import fragments, kernel

import offload
from offload.errors import BuildWarning, CompileError

_AMD = ("gfx90a", "gfx942", "gfx1100", "gfx1100,wave64", "gfx1201")
_PRODUCTS = [case for case in fragments.CASES if case.op == "gpu.subgroup_mma_compute"]
# c += a b of matrices with `rows` and 16 columns, 16 rows by each subgroup, in steps of 16.
TILES = """
!A = !gpu.mma_matrix<16x16x{unit}, "AOp">
!B = !gpu.mma_matrix<16x16x{unit}, "BOp">
!C = !gpu.mma_matrix<16x16x{sum}, "COp">
func.func @product(%a: memref<{rows}x48x{kind}>, %b: memref<48x16x{kind}>,
                   %c: memref<{rows}x16x{sum}>) {{
  %one = arith.constant 1 : index
  %threads = arith.constant {threads} : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
             threads(%x, %y, %z) in (%tx = %threads, %ty = %one, %tz = %one) {{
    %zero = arith.constant 0 : index
    %step = arith.constant 16 : index
    %depth = arith.constant 48 : index
    {number}
    %row = arith.muli %number, %step : index
    %old = gpu.subgroup_mma_load_matrix %c[%row, %zero] {{leadDimension = 16 : index}} : memref<{rows}x16x{sum}> -> !C
    %new = scf.for %k = %zero to %depth step %step iter_args(%sum = %old) -> (!C) {{
      %p = gpu.subgroup_mma_load_matrix %a[%row, %k] {{leadDimension = 48 : index}} : memref<{rows}x48x{kind}> -> !A
      %q = gpu.subgroup_mma_load_matrix %b[%k, %zero] {{leadDimension = 16 : index}} : memref<48x16x{kind}> -> !B
      %more = gpu.subgroup_mma_compute %p, %q, %sum : !A, !B -> !C
      scf.yield %more : !C
    }}
    gpu.subgroup_mma_store_matrix %new, %c[%row, %zero] {{leadDimension = 16 : index}} : !C, memref<{rows}x16x{sum}>
    gpu.terminator
  }}
  return
}}
"""
BY_ID = "%id = gpu.subgroup_id : index\n%number = arith.addi %id, %zero : index"
BY_THREAD = "%warp = arith.constant 32 : index\n%number = arith.divui %x, %warp : index"
DTYPES = {"f16": np.float16, "f32": np.float32, "i8": np.int8, "i32": np.int32}


def _tiles(unit: str = "f16", total: str = "f32", number: str = BY_ID, threads: int = 128, rows: int = 32) -> str:
    kind = "i8" if unit in ("si8", "ui8") else unit
    return TILES.format(unit=unit, kind=kind, sum=total, rows=rows, number=number, threads=threads)


def _check(library: offload.Library | OnDevice, rows: int, unit: str = "f16", total: str = "f32") -> None:
    random = np.random.default_rng(rows)
    low = 0 if unit == "ui8" else -3
    kind = "i8" if unit in ("si8", "ui8") else unit
    a = random.integers(low, 4, (rows, 48)).astype(DTYPES[kind])
    b = random.integers(low, 4, (48, 16)).astype(DTYPES[kind])
    c = random.integers(-9, 9, (rows, 16)).astype(DTYPES[total])
    expected = a.astype(np.float64) @ b.astype(np.float64) + c
    library.product(a, b, c)
    np.testing.assert_array_equal(c, expected)


def _on(chip: str, source: str, rows: int, unit: str = "f16", total: str = "f32") -> None:
    with running_on(chip, source) as library:
        _check(library, rows, unit, total)


@pytest.mark.parametrize("case", _PRODUCTS, ids=lambda case: case.form.replace(" ", "_"))
@pytest.mark.parametrize("chip", _AMD)
def test_products_of_lanes(chip: str, case: fragments.Case) -> None:
    assert case.run
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BuildWarning)
        with running_on(chip, case.source) as library:
            case.run(library)


@pytest.mark.parametrize(
    ("chip", "unit", "total", "instruction"),
    [
        ("gfx90a", "f16", "f32", "v_mfma_f32_16x16x16f16"),
        ("gfx942", "f16", "f32", "v_mfma_f32_16x16x16_f16"),
        ("gfx942", "f16", "f16", "v_mfma_f32_16x16x16_f16"),
        ("gfx950", "f16", "f32", "v_mfma_f32_16x16x16_f16"),
        ("gfx90a", "si8", "i32", "v_mfma_i32_16x16x16i8"),
        ("gfx942", "si8", "i32", "v_mfma_i32_16x16x32_i8"),
        ("gfx1100", "f16", "f32", "v_wmma_f32_16x16x16_f16"),
        ("gfx1201", "f16", "f16", "v_wmma_f32_16x16x16_f16"),
        ("gfx1100", "si8", "i32", "v_wmma_i32_16x16x16_iu8"),
        ("gfx1201", "ui8", "i32", "v_wmma_i32_16x16x16_iu8"),
    ],
)
def test_matrix_units(chip: str, unit: str, total: str, instruction: str) -> None:
    """Where 64 threads are a subgroup, two of 16 rows each; where 32 are, four."""
    rows = 32 if chip.startswith("gfx9") else 64
    source = _tiles(unit, total, rows=rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error", BuildWarning)
        assert instruction in emit_text(source, "isa", [f"rocdl:{chip}"])
        _on(chip, source, rows, unit, total)


@pytest.mark.parametrize("number", [BY_ID, BY_THREAD], ids=["subgroup_id", "thread_id"])
@pytest.mark.parametrize("chip", ["host", "host:generic,warp=32", "gfx1100", "sm_80"])
def test_subgroups_of_32(chip: str, number: str) -> None:
    source = _tiles(number=number, rows=64)
    _on(chip, source, 64)


@pytest.mark.parametrize(
    ("number", "threads", "why"),
    [
        (BY_THREAD, 128, "threads may name several matrices: name them by gpu.subgroup_id"),
        ("%number = arith.addi %zero, %zero : index", 32, "blocks do not have a known multiple of 64 threads"),
    ],
)
def test_warps_on_wide_subgroups(number: str, threads: int, why: str) -> None:
    """Programs that count in warps are right on waves of 64 threads, and told that their matrix units idle."""
    rows = threads // 2
    source = _tiles(number=number, threads=threads, rows=rows)
    with pytest.warns(BuildWarning, match=why) as said:
        _on("gfx942", source, rows)
    assert "keeps 'product_kernel' from the matrix units of gfx942" in str(said[0].message)
    assert "<string>:" in str(said[0].message)


def test_a_number_of_a_thread_that_a_narrow_type_cannot_hold() -> None:
    """What is 128 in 8 bits is -128, and of its quotients not all threads of a subgroup have the same."""
    narrow = (
        "%n8 = arith.index_cast %x : index to i8\n%c64 = arith.constant 64 : i8\n"
        "%q8 = arith.divsi %n8, %c64 : i8\n%number = arith.index_cast %q8 : i8 to index"
    )
    with pytest.warns(BuildWarning, match="threads may name several matrices"):
        assert "v_mfma" not in emit_text(_tiles(number=narrow, threads=256), "isa", ["rocdl:gfx942"])


def test_waves_of_64_where_units_are_for_32() -> None:
    with pytest.warns(BuildWarning, match="they are for waves of 32 threads: build without wave64"):
        _on("gfx1100,wave64", _tiles(number=BY_THREAD, rows=64), 64)


ALONGSIDE = """
gpu.module @m {
gpu.func @k(%a: memref<16x16xf16>, %c: memref<16x16xf32>, %x: memref<32x8xf32>,
            %unit: memref<16x16xf16>, %y: memref<16x16xf32>) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>} {
  %zero = arith.constant 0 : index
  %p = gpu.subgroup_mma_load_matrix %a[%zero, %zero] {leadDimension = 16 : index}
    : memref<16x16xf16> -> !gpu.mma_matrix<16x16xf16, "AOp">
  %q = gpu.subgroup_mma_load_matrix %a[%zero, %zero] {leadDimension = 16 : index}
    : memref<16x16xf16> -> !gpu.mma_matrix<16x16xf16, "BOp">
  %old = gpu.subgroup_mma_load_matrix %c[%zero, %zero] {leadDimension = 16 : index}
    : memref<16x16xf32> -> !gpu.mma_matrix<16x16xf32, "COp">
  %new = gpu.subgroup_mma_compute %p, %q, %old
    : !gpu.mma_matrix<16x16xf16, "AOp">, !gpu.mma_matrix<16x16xf16, "BOp"> -> !gpu.mma_matrix<16x16xf32, "COp">
  gpu.subgroup_mma_store_matrix %new, %c[%zero, %zero] {leadDimension = 16 : index}
    : !gpu.mma_matrix<16x16xf32, "COp">, memref<16x16xf32>
  OTHER
  gpu.return
}
}
"""
OTHERS = {
    "another shape": """%s = gpu.subgroup_mma_load_matrix %x[%zero, %zero] {leadDimension = 8 : index}
    : memref<32x8xf32> -> !gpu.mma_matrix<32x8xf32, "COp">
  %d = gpu.subgroup_mma_elementwise addf %s, %s
    : (!gpu.mma_matrix<32x8xf32, "COp">, !gpu.mma_matrix<32x8xf32, "COp">) -> !gpu.mma_matrix<32x8xf32, "COp">
  gpu.subgroup_mma_store_matrix %d, %x[%zero, %zero] {leadDimension = 8 : index}
    : !gpu.mma_matrix<32x8xf32, "COp">, memref<32x8xf32>""",
    "an element of a sum": """%five = arith.constant 5 : index
  %one = gpu.subgroup_mma_extract_thread_local %new[%five] : !gpu.mma_matrix<16x16xf32, "COp"> -> f32
  %double = arith.addf %one, %one : f32
  %r = gpu.subgroup_mma_insert_thread_local %double, %new[%five]
    : f32, !gpu.mma_matrix<16x16xf32, "COp"> -> !gpu.mma_matrix<16x16xf32, "COp">
  gpu.subgroup_mma_store_matrix %r, %y[%zero, %zero] {leadDimension = 16 : index}
    : !gpu.mma_matrix<16x16xf32, "COp">, memref<16x16xf32>""",
    "an element of a factor": """%one = gpu.subgroup_mma_extract_thread_local %p[%zero]
    : !gpu.mma_matrix<16x16xf16, "AOp"> -> f16
  %double = arith.addf %one, %one : f16
  %r = gpu.subgroup_mma_insert_thread_local %double, %p[%zero]
    : f16, !gpu.mma_matrix<16x16xf16, "AOp"> -> !gpu.mma_matrix<16x16xf16, "AOp">
  %unit_matrix = gpu.subgroup_mma_load_matrix %unit[%zero, %zero] {leadDimension = 16 : index}
    : memref<16x16xf16> -> !gpu.mma_matrix<16x16xf16, "BOp">
  %nothing = arith.constant 0.0 : f32
  %none = gpu.subgroup_mma_constant_matrix %nothing : !gpu.mma_matrix<16x16xf32, "COp">
  %same = gpu.subgroup_mma_compute %r, %unit_matrix, %none
    : !gpu.mma_matrix<16x16xf16, "AOp">, !gpu.mma_matrix<16x16xf16, "BOp"> -> !gpu.mma_matrix<16x16xf32, "COp">
  gpu.subgroup_mma_store_matrix %same, %y[%zero, %zero] {leadDimension = 16 : index}
    : !gpu.mma_matrix<16x16xf32, "COp">, memref<16x16xf32>""",
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("chip", ["gfx942", "gfx1100", "gfx1201"])
@pytest.mark.filterwarnings("ignore::offload.errors.BuildWarning")
def test_what_units_have_no_place_for(chip: str, other: str) -> None:
    """Beside a product that they could make."""
    random = np.random.default_rng(5)
    a, c = random.integers(-3, 4, (16, 16)).astype(np.float16), random.integers(-9, 9, (16, 16)).astype(np.float32)
    x, y = random.integers(1, 9, (32, 8)).astype(np.float32), np.zeros((16, 16), np.float32)
    product, doubled = a.astype(np.float32) @ a.astype(np.float32) + c, 2 * x
    threads = 64 if chip == "gfx942" else 32
    source = ALONGSIDE.replace("OTHER", OTHERS[other]).replace("i32: 64", f"i32: {threads}")
    with running_on(chip, source) as library:
        library.kernels.k[1, threads](a, c, x, np.eye(16, dtype=np.float16), y)
    np.testing.assert_array_equal(c, product)
    if other == "another shape":
        np.testing.assert_array_equal(x, doubled)
    else:  # each thread of a warp has doubled one, and all others are as they were
        before = product if other == "an element of a sum" else a
        changed = y != before
        assert np.count_nonzero(changed) <= 32 <= np.count_nonzero(changed) + np.count_nonzero(before == 0)
        np.testing.assert_array_equal(y[changed], 2 * before[changed])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "%p = gpu.subgroup_mma_load_matrix %x[%c0, %c0] {leadDimension = 16 : index} : memref<?x?xf16> -> "
            '!gpu.mma_matrix<16x8xf16, "AOp">\n'
            "%q = gpu.subgroup_mma_load_matrix %x[%c0, %c0] {leadDimension = 16 : index} : memref<?x?xf16> -> "
            '!gpu.mma_matrix<8x16xf16, "BOp">\n'
            "%z = gpu.subgroup_mma_load_matrix %x[%c0, %c0] {leadDimension = 16 : index} : memref<?x?xf16> -> "
            '!gpu.mma_matrix<16x16xf16, "COp">\n'
            "%d = gpu.subgroup_mma_compute %p, %q, %z : "
            '!gpu.mma_matrix<16x8xf16, "AOp">, !gpu.mma_matrix<8x16xf16, "BOp"> -> !gpu.mma_matrix<16x16xf16, "COp">\n'
            "gpu.subgroup_mma_store_matrix %d, %x[%c0, %c0] {leadDimension = 16 : index} : "
            '!gpu.mma_matrix<16x16xf16, "COp">, memref<?x?xf16>',
            "multiplies matrices of shapes and types that no instruction of NVIDIA's takes",
        ),
        (
            "%p = gpu.subgroup_mma_load_matrix %x[%c0, %c0] {leadDimension = 16 : index} : memref<?x?xf16> -> "
            '!gpu.mma_matrix<5x7xf16, "COp">\n'
            "gpu.subgroup_mma_store_matrix %p, %x[%c0, %c0] {leadDimension = 16 : index} : "
            '!gpu.mma_matrix<5x7xf16, "COp">, memref<?x?xf16>',
            "32 threads cannot share",
        ),
        (
            "%p = gpu.subgroup_mma_load_matrix %x[%c0, %c0] {leadDimension = 16 : index} : memref<?x?xf16> -> "
            '!gpu.mma_matrix<16x16xf32, "COp">\n'
            "gpu.subgroup_mma_store_matrix %p, %x[%c0, %c0] {leadDimension = 16 : index} : "
            '!gpu.mma_matrix<16x16xf32, "COp">, memref<?x?xf16>',
            "has a matrix of 'f32' and memory of 'f16': give them the same type",
        ),
        (
            "%p = gpu.subgroup_mma_load_matrix %x[%c0, %c0] {leadDimension = 16 : index} : memref<?x?xf16> -> "
            '!gpu.mma_matrix<16x16xf16, "AOp">\n'
            "%q = gpu.subgroup_mma_elementwise addf %p, %p : "
            '(!gpu.mma_matrix<16x16xf16, "AOp">, !gpu.mma_matrix<16x16xf16, "AOp">) '
            '-> !gpu.mma_matrix<16x16xf16, "COp">\n'
            "gpu.subgroup_mma_store_matrix %q, %x[%c0, %c0] {leadDimension = 16 : index} : "
            '!gpu.mma_matrix<16x16xf16, "COp">, memref<?x?xf16>',
            "shape and operand have to be the same, and the elements too",
        ),
        (
            "%p = gpu.subgroup_mma_load_matrix %x[%c0, %c0] {leadDimension = 16 : index} : memref<?x?xf16> -> "
            '!gpu.mma_matrix<16x16xf16, "COp">\n'
            'func.call @f(%p) : (!gpu.mma_matrix<16x16xf16, "COp">) -> ()',
            "write what it does where it is called",
        ),
    ],
    ids=["shape", "rows", "memory", "operand", "call"],
)
@pytest.mark.parametrize("target", ["host", "rocdl:gfx942"])
def test_what_has_no_lowering(target: str, body: str, message: str) -> None:
    outside = 'func.func private @f(!gpu.mma_matrix<16x16xf16, "COp">)' if "func.call" in body else ""
    source = kernel(f"%c0 = arith.constant 0 : index\n{body}", "%x: memref<?x?xf16>", outside=outside)
    with pytest.raises(CompileError, match=message) as caught:
        offload.compile(source, targets=[target])
    assert caught.value.diagnostics[0].line > 0
