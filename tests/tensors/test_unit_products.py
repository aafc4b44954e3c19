"""Products of halves and bytes: by matrix units on GPUs, by threads on the CPU, with results as NumPy's everywhere."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from compiling import PROGRAMS, emit, on_host
from emulator.on_device import OnDevice
from emulator.running import running_on

import offload

PROGRAM = PROGRAMS / "unit_products.mlir"


def whole(*shape: int, kind: type[np.number] = np.float16) -> np.ndarray:
    """Small whole numbers, whose products and sums every order of steps gets right; bytes are any."""
    least, end = (-128, 128) if kind is np.int8 else (-3, 4)
    return np.random.default_rng(sum(shape)).integers(least, end, shape).astype(kind)


def check(library: offload.Library | OnDevice, sizes: tuple[tuple[int, int, int], ...]) -> None:
    for m, k, n in sizes:
        a, b, c = whole(m, k), whole(k, n), whole(m, n, kind=np.float32)
        want = c + a.astype(np.float32) @ b.astype(np.float32)
        library.product(a, b, c)
        np.testing.assert_array_equal(c, want)
        left, right, sums = whole(m, k, kind=np.int8), whole(k, n, kind=np.int8), whole(m, n, kind=np.int32)
        total = sums + left.astype(np.int32) @ right.astype(np.int32)
        library.bytes(left, right, sums)
        np.testing.assert_array_equal(sums, total)


def check_all(library: offload.Library | OnDevice) -> None:
    a, b, c = whole(128, 160), whole(160, 64), whole(128, 64)
    want = c + a.astype(np.float32) @ b.astype(np.float32)
    library.whole(a, b, c)
    np.testing.assert_array_equal(c, want.astype(np.float16))
    a, b, c = whole(2, 140, 70), whole(2, 80, 140), np.full((2, 70, 80), 0.5, np.float32)
    library.across(a, b, c)
    np.testing.assert_array_equal(c, np.float32(0.5) + np.einsum("nki,njk->nij", a, b, dtype=np.float32))
    for columns in (64, 33, 131):
        a, b = (whole(*shape, kind=ml_dtypes.bfloat16) for shape in ((64, 136), (136, columns)))
        c = whole(64, columns, kind=np.float32)
        want = c + a.astype(np.float32) @ b.astype(np.float32)
        library.bfloats(a, b, c)
        np.testing.assert_array_equal(c, want)


def test_on_the_cpu() -> None:
    library = on_host(PROGRAM)
    check(library, ((64, 128, 64), (65, 129, 130), (200, 300, 100), (3, 500, 70), (0, 128, 64)))
    check_all(library)


@pytest.mark.parametrize("chip", ["sm_75", "sm_90", "gfx90a", "gfx942", "gfx1100", "gfx1100,wave64", "gfx1201"])
def test_on_devices(chip: str) -> None:
    with running_on(chip, PROGRAM) as library:
        check(library, ((70, 137, 65),))
        check_all(library)


def test_what_is_no_number_stays_where_it_is() -> None:
    """Beyond the last steps there are zeros on both sides, and rows beyond the last ones count for no others."""
    for chip in ("sm_90", "gfx942", "gfx1100"):
        with running_on(chip, PROGRAM) as library:
            a, b, c = whole(70, 137), whole(137, 65), np.zeros((70, 65), np.float32)
            a[69, 136], b[0, 64] = np.nan, np.inf
            with np.errstate(invalid="ignore"):
                want = a.astype(np.float32) @ b.astype(np.float32)
            library.product(a, b, c)
            np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize(
    ("target", "instructions"),
    [
        ("nvvm:sm_70", ["m16n16k16.f32.f32"]),
        ("nvvm:sm_75", ["m16n16k16.f32.f32", "m16n16k16.s32.s8.s8.s32"]),
        ("nvvm:sm_80", ["m16n8k16.row.col.f32.f16.f16.f32", "ldmatrix", "m16n16k16.s32.s8.s8.s32"]),
        ("nvvm:sm_90", ["m16n8k16.row.col.f32.f16.f16.f32", "cp.async", "m16n16k16.s32.s8.s8.s32"]),
        ("rocdl:gfx908", ["v_mfma_f32_16x16x16f16", "v_mfma_i32_16x16x16i8", "v_mfma_f32_16x16x8bf16"]),
        ("rocdl:gfx90a", ["v_mfma_f32_16x16x16f16", "v_mfma_i32_16x16x16i8", "v_mfma_f32_16x16x16bf16_1k"]),
        ("rocdl:gfx942", ["v_mfma_f32_16x16x16_f16", "v_mfma_i32_16x16x32_i8", "v_mfma_f32_16x16x16_bf16"]),
        ("rocdl:gfx1100", ["v_wmma_f32_16x16x16_f16", "v_wmma_i32_16x16x16_iu8", "v_wmma_f32_16x16x16_bf16"]),
        ("rocdl:gfx1201", ["v_wmma_f32_16x16x16_f16", "v_wmma_i32_16x16x16_iu8", "v_wmma_f32_16x16x16_bf16"]),
        ("nvvm:sm_72", ["m16n16k16.f32.f32"]),
        ("nvvm:sm_61", []),
        ("rocdl:gfx906", []),
        ("rocdl:gfx1030", []),
        ("rocdl:gfx1100,wave64", []),
        ("host", []),
    ],
)
def test_which_chips_have_units(target: str, instructions: list[str]) -> None:
    text = "\n".join(item.data.decode() for item in emit(PROGRAM, "isa", [target]))
    assert [word for word in instructions if word not in text] == []
    if len(instructions) < 2:
        absent = ["wmma", "mfma", "bpermute", "shfl"] if not instructions else ["s8.s8"]
        assert [word for word in absent if word in text] == []


@pytest.mark.parametrize("order", [("sm_70", "sm_75"), ("sm_75", "sm_70")])
def test_chips_with_other_units_are_lowered_apart(order: tuple[str, str]) -> None:
    texts: dict[str, str] = dict.fromkeys(order, "")
    for item in emit(PROGRAM, "isa", [f"nvvm:{chip}" for chip in order]):
        texts[item.label.rpartition(".")[2]] += item.data.decode()
    assert "s8.s8" in texts["sm_75"]
    assert "s8.s8" not in texts["sm_70"]


def test_halves_that_a_step_extends_in_a_branch() -> None:
    """Then the CPU's memory keeps them as they are: the branch has an operation that takes halves."""
    text = """
func.func @f(%a: memref<128x256xf16>, %b: memref<256x128xf16>, %c: memref<128x128xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                                   affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<128x256xf16>, memref<256x128xf16>) outs(%c : memref<128x128xf32>) {
  ^bb0(%x: f16, %y: f16, %o: f32):
    %i = linalg.index 0 : index
    %k = linalg.index 2 : index
    %zero = arith.constant 0.0 : f32
    %right = arith.extf %y : f16 to f32
    %below = arith.cmpi ule, %k, %i : index
    %left = scf.if %below -> (f32) {
      %p = arith.extf %x : f16 to f32
      scf.yield %p : f32
    } else {
      scf.yield %zero : f32
    }
    %m = arith.mulf %left, %right : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  }
  return
}
"""
    assert emit(text, "isa", verify_each=True)
    a, b, c = whole(128, 256), whole(256, 128), whole(128, 128, kind=np.float32)
    want = c + np.tril(a.astype(np.float32)) @ b.astype(np.float32)
    on_host(text).f(a, b, c)
    np.testing.assert_array_equal(c, want)
