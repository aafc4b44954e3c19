"""What the CPU keeps in registers where threads hand values on: sums across barriers, workgroup memory, short loops."""

from __future__ import annotations

import platform
import re

import numpy as np
import pytest
from compiling import ROOT, emit_text, on_host

PROGRAMS = ROOT / "bench/host/programs"
x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="reads assembly of x86-64")


def assembly(program: str, level: str = "icelake-server") -> list[str]:
    """The basic blocks of a program's kernels, in order."""
    text = emit_text(PROGRAMS / f"{program}.mlir", "isa", [f"host:{level}"])
    return re.split(r"^\.L\w+:", text, flags=re.MULTILINE)


@x86_64
def test_sums_of_whole_steps_are_never_stored() -> None:
    """The last steps, which not all threads take, need the sums in memory: nobody else pays for that."""
    blocks = assembly("layer_norm")
    adding = [number for number, block in enumerate(blocks) if len(re.findall(r"\tvaddps\t\d*\(%r", block)) >= 16]
    assert adding
    for number in adding:
        assert not re.search(r"\tvmovaps\t%zmm\d+, \d+\(%rsp", blocks[number - 1]), blocks[number - 1]


@x86_64
def test_a_tree_in_workgroup_memory_becomes_registers() -> None:
    """Each of its steps reads what the one before wrote, at places that are known."""
    halves = [block for block in assembly("layer_norm") if "\tvextractf128\t" in block]
    assert halves
    assert not any(re.search(r"\tv(movlps|movaps)\t%[xy]mm\d+, \(%r", block) for block in halves), halves


@pytest.mark.parametrize("columns", [1, 31, 255, 256, 257, 1000, 1024, 1311])
def test_rows_of_any_length(columns: int) -> None:
    random = np.random.default_rng(columns)
    x = random.random((3, columns), np.float32)
    gamma, beta = random.random((2, columns), np.float32)
    out = np.full_like(x, np.nan)
    on_host((PROGRAMS / "layer_norm.mlir").read_text()).layer_norm(x, gamma, beta, out, 1e-5)
    centred = x.astype(np.float64) - x.mean(axis=1, keepdims=True, dtype=np.float64)
    wanted = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * gamma + beta
    np.testing.assert_allclose(out, wanted, atol=1e-5, rtol=1e-4)


TURNED = """module attributes {gpu.container_module} { gpu.module @m {
gpu.func @turned(%x: memref<?xi32>, %n: index) workgroup(%all: memref<SIZExi32, #gpu.address_space<workgroup>>) kernel {
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %d = gpu.block_dim x
  %b = gpu.block_id x
  %front = arith.muli %b, %n : index
  scf.for %i = %t to %n step %d {
    %from = arith.addi %front, %i : index
    %v = memref.load %x[%from] : memref<?xi32>
    memref.store %v, %all[%i] : memref<SIZExi32, #gpu.address_space<workgroup>>
  }
  gpu.barrier
  %last = arith.subi %n, %c1 : index
  scf.for %i = %t to %n step %d {
    %other = arith.subi %last, %i : index
    %v = memref.load %all[%other] : memref<SIZExi32, #gpu.address_space<workgroup>>
    %to = arith.addi %front, %i : index
    memref.store %v, %x[%to] : memref<?xi32>
  }
  gpu.return
} } }"""


@pytest.mark.parametrize("size", [4096, 4097])  # the most that is on the stack, and more
def test_workgroup_memory_wherever_it_is(size: int) -> None:
    x = np.arange(3 * size, dtype=np.int32)
    on_host(TURNED.replace("SIZE", str(size))).kernels["turned"][3, 64](x, size)
    np.testing.assert_array_equal(x, np.arange(3 * size).reshape(3, size)[:, ::-1].ravel())


NEVER_WRITTEN = """module attributes {gpu.container_module} { gpu.module @m {
gpu.func @guess(%x: memref<?xi32>) workgroup(%flag: memref<1xi32, #gpu.address_space<workgroup>>) kernel {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  gpu.barrier
  %v = memref.load %flag[%c0] : memref<1xi32, #gpu.address_space<workgroup>>
  %set = arith.cmpi ne, %v, %zero : i32
  %r = arith.select %set, %two, %one : i32
  %t = gpu.thread_id x
  memref.store %r, %x[%t] : memref<?xi32>
  gpu.return
} } }"""


def test_what_was_never_written_is_one_value_for_all() -> None:
    """It is a fault of the program, and must not become one of the compiler's."""
    x = np.zeros(64, np.int32)
    on_host(NEVER_WRITTEN).kernels["guess"][1, 64](x)
    assert set(x.tolist()) in ({1}, {2})


# A loop with barriers whose new values come of a loop inside: one whose old value is asked for behind that, one whose
# last value alone is.
CARRIED = """module attributes {gpu.container_module} { gpu.module @m {
gpu.func @carried(%x: memref<?x3xi32>, %steps: index) workgroup(%seen: memref<128xi32, #gpu.address_space<workgroup>>)
    kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %three = arith.constant 3 : i32
  %zero = arith.constant 0 : i32
  %t = gpu.thread_id x
  %d = gpu.block_dim x
  %after = arith.addi %t, %c1 : index
  %other = arith.remui %after, %d : index
  %i = arith.index_cast %t : index to i32
  %r:3 = scf.for %k = %c0 to %steps step %c1 iter_args(%a = %i, %b = %i, %sum = %zero) -> (i32, i32, i32) {
    memref.store %b, %seen[%t] : memref<128xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %theirs = memref.load %seen[%other] : memref<128xi32, #gpu.address_space<workgroup>>
    %new:2 = scf.for %j = %c0 to %c3 step %c1 iter_args(%f = %a, %g = %b) -> (i32, i32) {
      %p = arith.muli %f, %three : i32
      %q = arith.addi %p, %theirs : i32
      %u = arith.xori %g, %q : i32
      scf.yield %q, %u : i32, i32
    }
    gpu.barrier
    %next = arith.addi %sum, %a : i32
    scf.yield %new#0, %new#1, %next : i32, i32, i32
  }
  memref.store %r#0, %x[%t, %c0] : memref<?x3xi32>
  memref.store %r#1, %x[%t, %c1] : memref<?x3xi32>
  memref.store %r#2, %x[%t, %c2] : memref<?x3xi32>
  gpu.return
} } }"""


@pytest.mark.parametrize("way", ["host", "host,coroutines", "host,O=0"])
@pytest.mark.parametrize("steps", [0, 1, 5])
def test_values_that_a_loop_inside_computes(way: str, steps: int) -> None:
    x = np.zeros((100, 3), np.int32)
    on_host(CARRIED, target=way).kernels["carried"][1, 100](x, steps)
    a = b = np.arange(100, dtype=np.int32)
    total = np.zeros(100, np.int32)
    for _ in range(steps):
        theirs, old = np.roll(b, -1), a
        for _ in range(3):
            a = a * np.int32(3) + theirs
            b = b ^ a
        total = total + old
    np.testing.assert_array_equal(x, np.stack([a, b, total], axis=1))


# Values from before a branch with barriers, of which each way hands on another.
CHOSEN = """module attributes {gpu.container_module} { gpu.module @m {
gpu.func @chosen(%x: memref<?xi32>, %first: i1) workgroup(%seen: memref<128xi32, #gpu.address_space<workgroup>>)
    kernel {
  %three = arith.constant 3 : i32
  %c0 = arith.constant 0 : index
  %t = gpu.thread_id x
  %own = memref.load %x[%t] : memref<?xi32>
  %one = arith.muli %own, %three : i32
  %two = arith.addi %own, %three : i32
  cf.cond_br %first, ^here, ^there
^here:
  gpu.barrier
  memref.store %own, %seen[%t] : memref<128xi32, #gpu.address_space<workgroup>>
  cf.br ^joined(%one : i32)
^there:
  memref.store %three, %seen[%t] : memref<128xi32, #gpu.address_space<workgroup>>
  gpu.barrier
  cf.br ^joined(%two : i32)
^joined(%r: i32):
  gpu.barrier
  %common = memref.load %seen[%c0] : memref<128xi32, #gpu.address_space<workgroup>>
  %sum = arith.addi %r, %common : i32
  memref.store %sum, %x[%t] : memref<?xi32>
  gpu.return
} } }"""


@pytest.mark.parametrize("way", ["host", "host,coroutines", "host,O=0"])
@pytest.mark.parametrize("first", [True, False])
def test_values_from_before_a_branch(way: str, first: bool) -> None:
    x = np.arange(5, 105, dtype=np.int32)
    on_host(CHOSEN, target=way).kernels["chosen"][1, 100](x, first)
    own = np.arange(5, 105, dtype=np.int32)
    np.testing.assert_array_equal(x, own * 3 + 5 if first else own + 6)


@x86_64
def test_sums_of_tiles_are_not_copied_behind_each() -> None:
    """Each thread's sixteen sums are where the next tile wants them."""
    for block in assembly("matmul"):
        moved = (
            re.findall(r"\tvmovaps\t\d+\(%rsp,%r\w+\), %zmm", block),
            re.findall(r"%zmm\d+, \d+\(%rsp,%r\w+\)", block),
        )
        assert "vfmadd" in block or min(map(len, moved)) < 16, block


@x86_64
def test_short_rows_are_one_loop() -> None:
    """A loop that waits for its sum gains nothing by several steps at once, and loses where it ends."""
    sums = [block for block in assembly("spmv") if re.search(r"\tvfmadd\w+ss\t", block)]
    assert sums
    assert all(len(re.findall(r"\tvfmadd\w+ss\t", block)) == 1 for block in sums), sums


def product(columns: int, depth: int = 24) -> str:
    return f"""
func.func @f(%a: memref<1100x{depth}xf32>, %b: memref<{depth}x{columns}xf32>, %c: memref<1100x{columns}xf32>) {{
  linalg.matmul ins(%a, %b : memref<1100x{depth}xf32>, memref<{depth}x{columns}xf32>)
      outs(%c : memref<1100x{columns}xf32>)
  return
}}"""


@x86_64
@pytest.mark.parametrize("columns", [12, 22, 31])
def test_rows_of_odd_lengths_are_whole_vectors_and_a_few_threads(columns: int) -> None:
    """In one piece, what did not fill a vector was computed number by number: five times as slow."""
    text = emit_text(product(columns, 1000), "isa", ["host:x86-64-v3"])
    blocks = re.split(r"^\.L\w+:", text, flags=re.MULTILINE)
    assert any(re.search(r"\tv(mul|fmadd\d+)ps\t", block) for block in blocks)
    assert max(len(re.findall(r"\tv(?:mul|fmadd\d+)ss\t", block)) for block in blocks) <= 12


@pytest.mark.parametrize("columns", range(4, 68, 3))
def test_products_with_rows_of_any_length(columns: int) -> None:
    random = np.random.default_rng(columns)
    a, b, c = (random.standard_normal(shape, np.float32) for shape in ((1100, 24), (24, columns), (1100, columns)))
    wanted = c + a @ b
    on_host(product(columns)).f(a, b, c)
    np.testing.assert_allclose(c, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("threads", [5, 7, 12, 22, 31])
@pytest.mark.parametrize("step", [1, 3, 5])
def test_an_authors_loop_of_as_many_steps_is_none_over_threads(threads: int, step: int) -> None:
    """Loops over an odd number of threads are taken apart; this one has the same bound, and steps of its own."""
    source = f"""
gpu.module @device {{
  gpu.func @k(%a: memref<?x{threads}xf32>, %b: memref<?xf32>, %out: memref<{threads}x{threads}xf32>) kernel
      attributes {{known_block_size = array<i32: {threads}, 1, 1>}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %none = arith.constant 0 : i32
    %step = arith.constant {step} : i32
    %end = arith.constant {threads} : i32
    %x = gpu.thread_id x
    %n = memref.dim %a, %c0 : memref<?x{threads}xf32>
    %sum = scf.for %j = %c0 to %n step %c1 iter_args(%sofar = %zero) -> (f32) {{
      %p = memref.load %a[%j, %x] : memref<?x{threads}xf32>
      %q = memref.load %b[%j] : memref<?xf32>
      %r = arith.mulf %p, %q : f32
      %t = arith.addf %sofar, %r : f32
      scf.yield %t : f32
    }}
    %last = scf.while (%j = %none) : (i32) -> i32 {{
      %row = arith.index_cast %j : i32 to index
      %u = memref.atomic_rmw addf %sum, %out[%row, %x] : (f32, memref<{threads}x{threads}xf32>) -> f32
      %next = arith.addi %j, %step : i32
      %more = arith.cmpi ult, %next, %end : i32
      scf.condition(%more) %next : i32
    }} do {{
    ^bb0(%j: i32):
      scf.yield %j : i32
    }}
    gpu.return
  }}
}}
"""
    a, b = np.random.default_rng(threads).integers(-3, 4, (9, threads)).astype(np.float32), np.ones(9, np.float32)
    out, expected = np.zeros((2, threads, threads), np.float32)
    expected[::step] = a.sum(0)
    on_host(source).kernels.k[1, threads](a, b, out)
    np.testing.assert_array_equal(out, expected)
