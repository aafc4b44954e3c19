"""Loops behind a check that parts the threads of a block: those that pass it together take their steps together."""

from __future__ import annotations

import platform
import re

import numpy as np
import pytest
from compiling import emit, on_host
from cpu_levels import levels_here

STEPS, WIDTH = 7, 700
LOOP = """
  %s = scf.for %k = %c0 to %steps step %c1 iter_args(%sum = %zero) -> i32 {
    %v = memref.load %x[%k, %t] : memref<?x?xi32>
    %w = memref.load %x[%k, %c0] : memref<?x?xi32>
    %p = arith.muli %v, %w : i32
    %n2 = arith.addi %sum, %p : i32
    scf.yield %n2 : i32
  }
"""
STORE = LOOP + "  memref.store %s, %y[%t] : memref<?xi32>\n"
OTHER = STORE.replace("%n2 = arith.addi", "%n2 = arith.subi")
HEAD = f"""module attributes {{gpu.container_module}} {{ gpu.module @m {{
gpu.func @k(%x: memref<?x?xi32>, %y: memref<?xi32>, %from: index, %low: index, %high: index) kernel {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = memref.dim %x, %c0 : memref<?x?xi32>
  %zero = arith.constant 0 : i32
  %true = arith.constant true
  %width = arith.constant {WIDTH} : index
  %block = gpu.block_id x
  %size = gpu.block_dim x
  %tx = gpu.thread_id x
  %begin = arith.muli %block, %size : index
  %t = arith.addi %begin, %tx : index
  %is_there = arith.cmpi ult, %t, %width : index
  %i = arith.addi %from, %t : index
"""
TAIL = "  gpu.return\n} } }\n"


def inside(check: str, body: str = STORE, other: str = "") -> str:
    """A kernel whose check makes %ok of %i, %low and %high; the threads beyond the array do nothing."""
    other = f" else {{ {other} }}" if other else ""
    return f"{HEAD}scf.if %is_there {{\n{check}\nscf.if %ok {{ {body} }}{other}\n}}\n{TAIL}"


def compare(predicate: str, a: str, b: str, name: str = "ok") -> str:
    return f"%{name} = arith.cmpi {predicate}, %{a}, %{b} : index\n"


BETWEEN = compare("sge", "i", "low", "a") + compare("sgt", "high", "i", "b")
OUTSIDE = compare("slt", "i", "low", "a") + compare("sge", "i", "high", "b") + "%ok = arith.ori %a, %b : i1"

# A check, and which i pass it; the sums of the others stay what they were.
KERNELS = {
    "slt": (inside(compare("slt", "i", "high")), lambda i, low, high: i < high),
    "sge": (inside(compare("sge", "i", "low")), lambda i, low, high: i >= low),
    "swapped": (inside(compare("sle", "low", "i")), lambda i, low, high: low <= i),
    "ult": (inside(compare("ult", "i", "high")), lambda i, low, high: i.view(np.uint64) < high % 2**64),
    "ugt": (inside(compare("ugt", "i", "low")), lambda i, low, high: i.view(np.uint64) > low % 2**64),
    "between": (inside(BETWEEN + "%ok = arith.andi %a, %b : i1"), lambda i, low, high: (low <= i) & (i < high)),
    "not outside": (
        inside(OUTSIDE.replace("%ok", "%out") + "\n%ok = arith.xori %out, %true : i1"),
        lambda i, low, high: (low <= i) & (i < high),
    ),
    "nested": (
        inside(compare("sge", "i", "low"), compare("slt", "i", "high", "b") + f"scf.if %b {{ {STORE} }}"),
        lambda i, low, high: (low <= i) & (i < high),
    ),
    "leaves early": (
        f"{HEAD}cf.cond_br %is_there, ^there, ^end\n^there:\n{OUTSIDE}\ncf.cond_br %ok, ^end, ^go\n"
        f"^go:\n{STORE}\ncf.br ^end\n^end:\n{TAIL}",
        lambda i, low, high: (low <= i) & (i < high),
    ),
    "uniform and checked": (
        inside(compare("slt", "low", "high", "a") + compare("slt", "i", "high", "b") + "%ok = arith.andi %a, %b : i1"),
        lambda i, low, high: (low < high) & (i < high),
    ),
    "equal": (inside(compare("eq", "i", "low")), lambda i, low, high: i == low),
}  # fmt: skip
LIMITS = np.iinfo(np.int64)
BOUNDS = [
    (0, 0, 0), (0, 0, 1), (0, 3, 31), (0, 1, 32), (0, 0, 33), (0, 33, 64), (0, 31, 511), (0, 0, 512), (0, 100, 699),
    (0, 0, 700), (0, -5, 5000), (-40, -7, 300),
    (0, LIMITS.min, LIMITS.max), (0, LIMITS.max, LIMITS.min), (LIMITS.min, LIMITS.min, 9),
    (LIMITS.max - 20, 0, 50), (LIMITS.max - 40, LIMITS.max - 3, LIMITS.max), (-1, 0, 5), (-33, -1, -1), (-70, 20, 30),
]  # fmt: skip


def data() -> np.ndarray:
    return np.random.default_rng(1).integers(-9, 9, (STEPS, WIDTH), dtype=np.int32)


@pytest.mark.parametrize("level", levels_here())
@pytest.mark.parametrize("name", KERNELS)
def test_threads_that_pass_sum_and_others_do_not(name: str, level: str) -> None:
    """Blocks wholly inside, cut and wholly outside, ids that run over within a strip; strips wide and narrow."""
    source, passes = KERNELS[name]
    library = on_host(source, target=f"host:{level}")
    known = on_host(source.replace("kernel {", "kernel attributes {known_block_size = array<i32: 256, 1, 1>} {", 1))
    x = data()
    sums = (x * x[:, :1]).sum(0, dtype=np.int32)
    for start, low, high in BOUNDS:
        with np.errstate(over="ignore"):
            i = np.int64(start) + np.arange(WIDTH)
        expected = np.where(passes(i, low, high), sums, 77)
        for made, size in ((library, 24), (library, 64), (library, 100), (library, 256), (known, 256)):
            y = np.full(WIDTH, 77, np.int32)
            made.kernels.k[-(-WIDTH // size), size](x, y, start, low, high)
            np.testing.assert_array_equal(y, expected, f"{start} {low} {high} {size}")


@pytest.mark.parametrize("name", ["slt", "between"])
def test_both_ways_have_loops(name: str) -> None:
    check = compare("slt", "i", "high") if name == "slt" else BETWEEN + "%ok = arith.andi %a, %b : i1"
    library = on_host(inside(check, STORE, OTHER))
    x = data()
    sums = (x * x[:, :1]).sum(0, dtype=np.int32)
    for start, low, high in BOUNDS:
        with np.errstate(over="ignore"):
            i = np.int64(start) + np.arange(WIDTH)
        y = np.zeros(WIDTH, np.int32)
        library.kernels.k[-(-WIDTH // 96), 96](x, y, start, low, high)
        np.testing.assert_array_equal(y, np.where(KERNELS[name][1](i, low, high), sums, -sums), f"{start} {low} {high}")


NARROW = """module attributes {gpu.container_module} { gpu.module @m {
gpu.func @k(%x: memref<?x?xi32>, %y: memref<?xi64>, %from: i32, %bound: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %begin = arith.constant 0 : index
  %rows = memref.dim %x, %begin : memref<?x?xi32>
  %steps = arith.index_cast %rows : index to i32
  %zero = arith.constant 0 : i64
  %width = arith.constant 700 : i32
  %tx = gpu.thread_id x
  %bx = gpu.block_id x
  %dx = gpu.block_dim x
  %t0 = arith.index_cast %tx : index to i32
  %b = arith.index_cast %bx : index to i32
  %d = arith.index_cast %dx : index to i32
  %first = arith.muli %b, %d : i32
  %t = arith.addi %first, %t0 : i32
  %is_there = arith.cmpi ult, %t, %width : i32
  %i = arith.addi %from, %t : i32
  %ok = arith.cmpi PREDICATE, %i, %bound : i32
  %both = arith.andi %is_there, %ok : i1
  scf.if %both {
    %at = arith.index_cast %t : i32 to index
    %wide = arith.EXTEND %i : i32 to i64
    %s = scf.for %k = %c0 to %steps step %c1 iter_args(%sum = %zero) -> i64 : i32 {
      %row = arith.index_cast %k : i32 to index
      %v = memref.load %x[%row, %at] : memref<?x?xi32>
      %w = arith.extsi %v : i32 to i64
      %p = arith.muli %w, %wide : i64
      %next = arith.addi %sum, %p : i64
      scf.yield %next : i64
    }
    memref.store %s, %y[%at] : memref<?xi64>
  }
  gpu.return
} } }"""


@pytest.mark.parametrize("level", levels_here())
@pytest.mark.parametrize(
    ("predicate", "extend"), [("slt", "extsi"), ("sge", "extsi"), ("ult", "extui"), ("ule", "extui")]
)
def test_ids_of_32_bits(predicate: str, extend: str, level: str) -> None:
    """The ids run over within strips; what was widened of those that pass is what it would be in each thread alone."""
    library = on_host(NARROW.replace("PREDICATE", predicate).replace("EXTEND", extend), target=f"host:{level}")
    kind = np.int32 if extend == "extsi" else np.uint32
    compared = {"slt": np.less, "sge": np.greater_equal, "ult": np.less, "ule": np.less_equal}[predicate]
    x = data()
    for start in (0, -1, -40, -1000, 2**31 - 1, 2**31 - 50, 2**31 - 701, -(2**31)):
        i = (np.arange(WIDTH) + start).astype(np.int32).view(kind)
        for bound in (0, 1, 33, 640, -1, -30, 2**31 - 1, 2**31 - 40, -(2**31)):
            passes = compared(i, np.array(bound, np.int32).view(kind))
            expected = np.where(passes, x.sum(0, dtype=np.int64) * i.astype(np.int64), 77)
            for size in (96, 256):
                y = np.full(WIDTH, 77)
                library.kernels.k[-(-WIDTH // size), size](x, y, start, bound)
                np.testing.assert_array_equal(y, expected, f"{start} {bound} {size}")


PRODUCT = """func.func @product(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) {
  linalg.matmul ins(%a, %b : memref<?x?xf32>, memref<?x?xf32>) outs(%c : memref<?x?xf32>)
  return
}"""
GUARDED = """module attributes {gpu.container_module} { gpu.module @m {
gpu.func @k(%a: memref<?x?xf32>, %y: memref<?xf32>, %n: index, %m: index) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %b = gpu.block_id x
  %size = gpu.block_dim x
  %t = gpu.thread_id x
  %begin = arith.muli %b, %size : index
  %i = arith.addi %begin, %t : index
  %inside = arith.cmpi slt, %i, %n : index
  scf.if %inside {
    %s = scf.for %k = %c0 to %m step %c1 iter_args(%sum = %zero) -> f32 {
      %v = memref.load %a[%k, %i] : memref<?x?xf32>
      %w = arith.mulf %v, %v : f32
      %next = arith.addf %sum, %w : f32
      scf.yield %next : f32
    }
    memref.store %s, %y[%i] : memref<?xf32>
  }
  gpu.return
} } }"""

FLAT = """module attributes {gpu.container_module} { gpu.module @m {
gpu.func @k(%a: memref<?xf32>, %y: memref<?xf32>, %n: i32, %m: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %bx = gpu.block_id x
  %dx = gpu.block_dim x
  %tx = gpu.thread_id x
  %b = arith.index_cast %bx : index to i32
  %d = arith.index_cast %dx : index to i32
  %t = arith.index_cast %tx : index to i32
  %begin = arith.muli %b, %d : i32
  %i = arith.addi %begin, %t : i32
  %inside = arith.cmpi slt, %i, %n : i32
  scf.if %inside {
    %s = scf.for %k = %c0 to %m step %c1 iter_args(%sum = %zero) -> f32 : i32 {
      %row = arith.muli %k, %n : i32
      %cell = arith.addi %row, %i : i32
      %at = arith.index_cast %cell : i32 to index
      %v = memref.load %a[%at] : memref<?xf32>
      %w = arith.mulf %v, %v : f32
      %next = arith.addf %sum, %w : f32
      scf.yield %next : f32
    }
    %to = arith.index_cast %i : i32 to index
    memref.store %s, %y[%to] : memref<?xf32>
  }
  gpu.return
} } }"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads assembly of x86-64")
@pytest.mark.parametrize("source", [GUARDED, FLAT, PRODUCT], ids=["columns", "flat", "linalg.matmul"])
@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_loops_behind_a_bounds_check_are_vector_code(source: str, level: str) -> None:
    for emitted in emit(source, "isa", [f"host:{level}"]):  # a product has a kernel for large matrices, too
        text = emitted.data.decode()
        assert re.search(r"\tv?(mulps|fn?madd\d+ps)\t", text), text
        assert re.search(r"\tv?(addps|fn?madd\d+ps)\t", text), text


@pytest.mark.parametrize("size", [1, 15, 16, 33, 70])
def test_products_of_matrices_of_any_size(size: int) -> None:
    library = on_host(PRODUCT)
    rng = np.random.default_rng(size)
    a, b = (rng.integers(-4, 4, shape).astype(np.float32) for shape in ((size, 40), (40, size + 3)))
    c = np.ones((size, size + 3), np.float32)
    library.product(a, b, c)
    np.testing.assert_array_equal(c, a @ b + 1)
