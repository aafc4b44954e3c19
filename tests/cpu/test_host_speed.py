"""Typical kernels are vector code on every level of x86-64: no call, no mask where only a bounds check asks for one."""

from __future__ import annotations

import functools
import platform
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from compiling import emit_text
from cpu_levels import LEVELS, levels_here

import offload

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="reads assembly of x86-64")

HEAD = """
  %bx = gpu.block_id x
  %dx = gpu.block_dim x
  %tx = gpu.thread_id x
  %by = gpu.block_id y
  %dy = gpu.block_dim y
  %ty = gpu.thread_id y
  %p = arith.muli %bx, %dx : index
  %i = arith.addi %p, %tx : index
  %q = arith.muli %by, %dy : index
  %j = arith.addi %q, %ty : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %column = arith.cmpi slt, %i, %n : index
  %row = arith.cmpi slt, %j, %m : index
  %after_first = arith.cmpi sge, %i, %c1 : index
  %n1 = arith.subi %n, %c1 : index
  %before_last = arith.cmpi slt, %i, %n1 : index
  %inner = arith.andi %after_first, %before_last : i1
  %cell = arith.andi %row, %column : i1
"""
F, F2, H, B, I32 = "memref<?xf32>", "memref<?x?xf32>", "memref<?xf16>", "memref<?xbf16>", "memref<?xi32>"
STRIDED = "memref<?x?xf32, strided<[?, 1], offset: ?>>"

# Name: types of the two arrays, the check, what is done to %v at the place %at, and the instruction to look for.
KERNELS = {
    "add": (F, F, "%column", "%r = arith.addf %v, %v : f32", "addps"),
    "multiply rows": (F2, F2, "%cell", "%r = arith.mulf %v, %v : f32", "mulps"),
    "strided rows": (STRIDED, STRIDED, "%cell", "%r = arith.mulf %v, %v : f32", "mulps"),
    "inside": (F, F, "%inner", "%r = arith.addf %v, %v : f32", "addps"),
    "clip": (F, F, "%column", "%r = arith.maxnumf %v, %zero : f32", "maxps"),
    "root": (F, F, "%column", "%r = math.rsqrt %v : f32", "sqrtps|rsqrt14ps"),
    "exp": (F, F, "%column", "%r = math.exp %v : f32", "mulps"),
    "log": (F, F, "%column", "%r = math.log %v : f32", "divps"),
    "tanh": (F, F, "%column", "%r = math.tanh %v : f32", "divps"),
    "powf": (F, F, "%column", "%r = math.powf %v, %v : f32", "mulpd"),
    "floor": (F, F, "%column", "%r = math.floor %v : f32", "roundps|addps|vrndscaleps"),
    "fma": (F, F, "%column", "%r = math.fma %v, %v, %v : f32", r"fmadd\d+ps|mulpd"),
    "f16": (H, H, "%column", "%r = arith.mulf %v, %v : f16", "mulps"),
    "bf16": (B, B, "%column", "%r = arith.mulf %v, %v : bf16", "mulps"),
    "f32 to f16": (F, H, "%column", "%r = arith.truncf %v : f32 to f16", "vcvtps2ph|addps"),
    "i8 to f32": ("memref<?xi8>", F, "%column", "%r = arith.sitofp %v : i8 to f32", "cvtdq2ps"),
    "f32 to f64": (F, "memref<?xf64>", "%column", "%r = arith.extf %v : f32 to f64", "cvtps2pd"),
    "integers": (I32, I32, "%column", "%r = arith.addi %v, %v : i32", "paddd|pslld"),
    "select": (
        F,
        F,
        "%column",
        "%g = arith.cmpf ogt, %v, %zero : f32\n%w = arith.mulf %v, %v : f32\n%r = arith.select %g, %w, %zero : f32",
        "mulps",
    ),
    "polynomial": (
        F,
        F,
        "%column",
        "%c0 = arith.constant 0 : index\n%c8 = arith.constant 8 : index\n"
        "%r = scf.for %k = %c0 to %c8 step %c1 iter_args(%s = %zero) -> f32 {\n%a = arith.mulf %s, %v : f32\n"
        "%b = arith.addf %a, %v : f32\nscf.yield %b : f32\n}",
        "mulps",
    ),
}


def source(name: str) -> str:
    from_, to, check, body, _ = KERNELS[name]
    at = "%j, %i" if "?x?" in from_ else "%i"
    return (
        f"module attributes {{gpu.container_module}} {{ gpu.module @m {{\n"
        f"gpu.func @k(%x: {from_}, %y: {to}, %n: index, %m: index) kernel {{{HEAD}"
        f"scf.if {check} {{\n%v = memref.load %x[{at}] : {from_}\n{body}\nmemref.store %r, %y[{at}] : {to}\n}}\n"
        "gpu.return\n} } }"
    )


@functools.cache
def loops(name: str, level: str) -> str:
    """The assembly of the function that runs blocks."""
    text = emit_text(source(name), "isa", [f"host:{level}"])
    return text.split("k.blocks:\n", 1)[1].split(".Lfunc_end", 1)[0]


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("name", KERNELS)
def test_vector_code_without_calls_and_masks(name: str, level: str) -> None:
    text = loops(name, level)
    # One of a loop, not of the remainder's single elements.
    assert re.search(rf"\tv?({KERNELS[name][4]})\t.*%[xyz]mm", text), text
    assert not re.search(r"\tcall", text), text
    assert "vmaskmov" not in text, text


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3"])
@pytest.mark.parametrize("name", ["add", "inside", "multiply rows"])
@pytest.mark.parametrize(("n", "m"), [(0, 3), (1, 1), (2, 5), (255, 2), (256, 3), (257, 4), (1000, 2)])
def test_clamped_loops_do_what_the_check_says(name: str, level: str, n: int, m: int) -> None:
    """Blocks wholly inside, cut by the bound and wholly outside of it."""
    library = offload.compile(source(name), targets=[f"host:{level}"])
    shape = (m, 1024) if "rows" in name else (1024,)
    x = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    y, expected = np.zeros_like(x), np.zeros_like(x)
    inside = {"add": np.s_[:n], "inside": np.s_[1 : max(n - 1, 1)], "multiply rows": np.s_[:m, :n]}[name]
    expected[inside] = x[inside] * (x[inside] if "rows" in name else 2)
    library.kernels.k[(4, m), 256](x, y, n, m)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3"])
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_conversions_of_16_bit_floats(kind: str, level: str) -> None:
    """All 65,536 to f32; back, all of these, what lies halfway between two of them, and next to it."""
    text = (
        "module attributes {gpu.container_module} { gpu.module @m {\n"
        + "".join(
            f"gpu.func @{name}(%x: memref<?x{a}>, %y: memref<?x{b}>, %n: index, %m: index) kernel {{{HEAD}"
            f"scf.if %column {{\n%v = memref.load %x[%i] : memref<?x{a}>\n%r = arith.{op} %v : {a} to {b}\n"
            f"memref.store %r, %y[%i] : memref<?x{b}>\n}}\ngpu.return\n}}\n"
            for name, a, b, op in (("widen", kind, "f32", "extf"), ("narrow", "f32", kind, "truncf"))
        )
        + "} }"
    )
    library = offload.compile(text, targets=[f"host:{level}"])
    bits = np.arange(65536, dtype=np.uint16)
    short = bits.view(np.float16) if kind == "f16" else bits.view(ml_dtypes.bfloat16)
    wide = np.empty(65536, np.float32)
    library.kernels.widen[256, 256](short, wide, 65536, 1)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(wide, short.astype(np.float32))
        step = wide.view(np.uint32)
        half = np.uint32(1 << (12 if kind == "f16" else 15))
        values = np.concatenate([(step + half + np.uint32(d & 0xFFFFFFFF)).view(np.float32) for d in (0, 1, -1)])
        values = np.concatenate([wide, values, (wide[:65535] + wide[1:]) / 2])
        narrow = np.empty(len(values), short.dtype)
        library.kernels.narrow[len(values) // 256 + 1, 256](values, narrow, len(values), 1)
        expected = values.astype(short.dtype)
    nan = np.isnan(values)
    np.testing.assert_array_equal(narrow.view(np.uint16)[~nan], expected.view(np.uint16)[~nan])
    assert np.isnan(narrow[nan].astype(np.float32)).all()


@pytest.mark.parametrize("given", [range(4), (0, 2), (1, 3), (3, 0)])
def test_the_best_level_that_the_cpu_has_is_loaded(given: tuple[int, ...], tmp_path: Path) -> None:
    """Each image is linked with a function of its own that says which it is."""
    names = list(LEVELS)
    targets = []
    for number in given:
        file = tmp_path / f"{number}.ll"
        file.write_text(f"define i32 @level() {{ ret i32 {number} }}\n")
        targets.append(f"host:{names[number]},link={file}")
    library = offload.compile(
        """module attributes {gpu.container_module} { gpu.module @m {
        func.func private @level() -> i32
        gpu.func @k(%y: memref<i32>) kernel {
          %l = func.call @level() : () -> i32
          memref.store %l, %y[] : memref<i32>
          gpu.return
        } } }""",
        targets=targets,
    )
    y = np.full((), -1, np.int32)
    library.kernels.k[1, 1](y)
    assert y == max(number for number in given if number < len(levels_here()))
