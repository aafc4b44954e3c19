"""Reciprocal roots: the processor's estimate and a step of Newton's method, where there is one."""

from __future__ import annotations

import platform

import ml_dtypes
import numpy as np
import pytest
from compiling import emit_text
from cpu_levels import levels_here
from numeric import DTYPES

import offload

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="names levels of x86-64")

SOURCE = """module attributes {{gpu.container_module}} {{ gpu.module @m {{
gpu.func @k(%x: memref<?xf32>, %y: memref<?xf32>) kernel {{
  %zero = arith.constant 0 : index
  %n = memref.dim %x, %zero : memref<?xf32>
  %one = arith.constant 1.0 : f32
  %b = gpu.block_id x
  %d = gpu.block_dim x
  %t = gpu.thread_id x
  %p = arith.muli %b, %d : index
  %i = arith.addi %p, %t : index
  %inside = arith.cmpi ult, %i, %n : index
  scf.if %inside {{
    %v = memref.load %x[%i] : memref<?xf32>
    {body}
    memref.store %r, %y[%i] : memref<?xf32>
  }}
  gpu.return
}} }} }}"""
ROOT = SOURCE.format(body="%r = math.rsqrt %v : f32")
EXACT = SOURCE.format(body="%s = math.sqrt %v : f32\n%r = arith.divf %one, %s : f32")


def values() -> np.ndarray:
    """All signs and exponents with some mantissas, the mantissas' ends among them; each one on its own, for the part
    of a loop that is not taken in vectors, in a last odd element."""
    mantissas = np.concatenate(
        [np.random.default_rng(1).integers(0, 1 << 23, 500), [0, 1, 2, 0x3FFFFF, 0x400000, 0x7FFFFF]]
    )
    bits = (np.arange(512, dtype=np.uint32)[:, None] << np.uint32(23)) | mantissas.astype(np.uint32)
    return np.append(bits.reshape(-1), np.uint32(0x40400000)).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("level", levels_here())
def test_reciprocal_roots_are_close(level: str) -> None:
    x = values()
    y = np.empty_like(x)
    offload.compile(ROOT, targets=[f"host:{level}"]).kernels.k[len(x) // 256 + 1, 256](x, y)
    with np.errstate(all="ignore"):
        right = 1 / np.sqrt(x.astype(np.float64))
        finite = np.isfinite(right)
        units = np.abs(y[finite] - right[finite]) / np.spacing(right[finite].astype(np.float32))
    assert units.max() <= (1.2 if level == "x86-64-v4" else 1.5)
    np.testing.assert_array_equal(y[~finite], right[~finite].astype(np.float32))  # NaN, and infinities' signs
    assert (np.signbit(y[x == 0]) == np.signbit(x[x == 0])).all()


def test_vectors_and_single_elements_agree() -> None:
    """Elements give the same in a loop's vectors and in what is left over."""
    library = offload.compile(ROOT, targets=[f"host:{levels_here()[-1]}"])
    x = np.random.default_rng(2).random(256, np.float32) * 100
    whole, single = np.empty_like(x), np.empty_like(x)
    library.kernels.k[1, 256](x, whole)
    for i in range(len(x)):
        library.kernels.k[1, 256](x[i : i + 1], single[i : i + 1])
    np.testing.assert_array_equal(whole, single)


@pytest.mark.parametrize(("level", "estimated"), [("x86-64", False), ("x86-64-v3", False), ("x86-64-v4", True)])
def test_where_an_estimate_is_taken(level: str, estimated: bool) -> None:
    assert ("vrsqrt14ps" in emit_text(ROOT, "isa", [f"host:{level}"])) is estimated


def test_a_division_by_a_root_stays_exact() -> None:
    text = emit_text(EXACT, "isa", ["host:x86-64-v4"])
    assert "vsqrtps" in text and "vdivps" in text and "rsqrt14" not in text


@pytest.mark.parametrize("kind", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("level", levels_here())
def test_fast_roots_of_zero_and_infinity(level: str, kind: str) -> None:
    """`fast` leaves infinity and NaN their meaning; LLVM's own steps towards 1 / sqrt(0) have NaN."""
    dtype = DTYPES[kind]
    x = np.resize(np.array([0, 0, np.inf, -1, np.nan, 4, -np.inf, 1e-7, 0.25], dtype), 103)
    y = np.empty_like(x)
    text = ROOT.replace("f32", kind)
    offload.compile(text, targets=[f"host:{level},fast"]).kernels.k[1, 128](x, y)
    with np.errstate(all="ignore"):
        right = 1 / np.sqrt(x.astype(np.float64))
    np.testing.assert_allclose(y.astype(np.float64), right, rtol=2 * float(ml_dtypes.finfo(dtype).eps))
