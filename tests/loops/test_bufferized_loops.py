"""Parallel loops as MLIR's passes leave them: with memory that an iteration allocates and frees, and with mappings that
stand on some of a nest's loops, are scf.forall's, or are on loops that reduce."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import ALL_TARGETS, emit_text, on_host
from emulator.on_device import OnDevice
from emulator.running import running_on

import offload

ROWS = """
func.func @FORM(%x: memref<40x16xf32>, %y: memref<40x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c15 = arith.constant 15 : index
  %c16 = arith.constant 16 : index
  %c40 = arith.constant 40 : index
  LOOP {
    %row = memref.alloc() : memref<16xf32>
    INNER {
      %v = memref.load %x[%i, %j] : memref<40x16xf32>
      %k = arith.subi %c15, %j : index
      memref.store %v, %row[%k] : memref<16xf32>
    }
    INNER {
      %v = memref.load %row[%j] : memref<16xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %y[%i, %j] : memref<40x16xf32>
    }
    FREE
  }
  return
}
"""
FREE = "memref.dealloc %row : memref<16xf32>"
FORMS = {
    "parallel": ("scf.parallel (%i) = (%c0) to (%c40) step (%c1)", FREE),
    "affine": ("affine.parallel (%i) = (0) to (40)", FREE),
    "forall": ("scf.forall (%i) in (40)", FREE),
    "kept": ("scf.parallel (%i) = (%c0) to (%c40) step (%c1)", ""),
}
"""What an iteration keeps for itself, freed and not."""

TILES = """
func.func @tiles(%x: memref<?xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  scf.forall (%i) = (0) to (%n) step (8) {
    %size = affine.min affine_map<(i)[n] -> (n - i, 8)>(%i)[%n]
    %from = memref.subview %x[%i] [%size] [1] : memref<?xf32> to memref<?xf32, strided<[1], offset: ?>>
    %to = memref.subview %y[%i] [%size] [1] : memref<?xf32> to memref<?xf32, strided<[1], offset: ?>>
    %tile = memref.alloc(%size) {alignment = 64 : i64} : memref<?xf32>
    linalg.map {math.absf} ins(%from : memref<?xf32, strided<[1], offset: ?>>) outs(%tile : memref<?xf32>)
    memref.copy %tile, %to : memref<?xf32> to memref<?xf32, strided<[1], offset: ?>>
    memref.dealloc %tile : memref<?xf32>
  }
  return
}
"""

SWAPPED = """
func.func @swapped(%x: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %two = arith.constant 2.0 : f32
  scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
    %a = memref.alloc() : memref<1xf32>
    %b = memref.alloc() : memref<1xf32>
    %v = memref.load %x[%i] : memref<64xf32>
    memref.store %v, %a[%c0] : memref<1xf32>
    %r:2 = scf.for %q = %c0 to %n step %c1 iter_args(%p = %a, %o = %b) -> (memref<1xf32>, memref<1xf32>) {
      %w = memref.load %p[%c0] : memref<1xf32>
      %u = arith.mulf %w, %two : f32
      memref.store %u, %o[%c0] : memref<1xf32>
      scf.yield %o, %p : memref<1xf32>, memref<1xf32>
    }
    %s = memref.load %r#0[%c0] : memref<1xf32>
    memref.store %s, %x[%i] : memref<64xf32>
    memref.dealloc %r#0 : memref<1xf32>
    memref.dealloc %r#1 : memref<1xf32>
    scf.reduce
  }
  return
}
"""

INNER = {
    "parallel": "scf.parallel (%j) = (%c0) to (%c16) step (%c1)",
    "serial": "scf.for %j = %c0 to %c16 step %c1",
}


def rows(form: str, inner: str) -> str:
    loop, free = FORMS[form]
    text = ROWS.replace("FORM", f"{form}_{inner}").replace("LOOP", loop)
    return text.replace("INNER", INNER[inner]).replace("FREE", free)


PROGRAM = SWAPPED + TILES + "".join(rows(form, inner) for form in FORMS for inner in INNER)


def check(library: offload.Library | OnDevice) -> None:
    x = np.random.default_rng(1).standard_normal((40, 16)).astype(np.float32)
    for name in FORMS:
        for inner in INNER:
            y = np.zeros_like(x)
            getattr(library, f"{name}_{inner}")(x, y)
            np.testing.assert_array_equal(y, 2 * x[:, ::-1], err_msg=name)
    last = x[:4].ravel().copy()
    library.swapped(last, 3)
    np.testing.assert_array_equal(last, 8 * x[:4].ravel())
    for size in (0, 7, 8, 29):
        line, out = x.ravel()[:size].copy(), np.zeros(size, np.float32)
        library.tiles(line, out)
        np.testing.assert_array_equal(out, abs(line))


def test_what_an_iteration_allocates() -> None:
    check(on_host(PROGRAM))
    offload.compile(PROGRAM, targets=ALL_TARGETS)


@pytest.mark.parametrize("chip", ["gfx1100", "sm_80"])
def test_what_an_iteration_allocates_on_devices(chip: str) -> None:
    with running_on(chip, PROGRAM) as library:
        check(library)


def test_it_is_memory_of_a_thread_once() -> None:
    text = emit_text(PROGRAM, "kernels")
    assert text.count("memref.alloca()") == len(FORMS) * len(INNER) + 3
    assert "memref.dealloc" not in text


LEVELS = """
func.func @f(%x: memref<64x96xf32>, %y: memref<64x96xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c96 = arith.constant 96 : index
  %three = arith.constant 3.0 : f32
  scf.parallel (%i, %j) = (%c0, %c0) to (%c64, %c96) step (%c8, %c32) {
    scf.parallel (%k, %l) = (%c0, %c0) to (%c8, %c32) step (%c4, %c4) {
      scf.parallel (%m, %n) = (%c0, %c0) to (%c4, %c4) step (%c1, %c1) {
        %a = arith.addi %i, %k : index
        %b = arith.addi %j, %l : index
        %row = arith.addi %a, %m : index
        %column = arith.addi %b, %n : index
        %v = memref.load %x[%row, %column] : memref<64x96xf32>
        %w = arith.mulf %v, %three : f32
        memref.store %w, %y[%row, %column] : memref<64x96xf32>
      } INNERMOST
    } INNER
  } OUTER
  return
}
"""


def mapped(*processors: str) -> str:
    one = "#gpu.loop_dim_map<processor = {}, map = (d0) -> (d0), bound = (d0) -> (d0)>"
    return "{mapping = [" + ", ".join(one.format(processor) for processor in processors) + "]}"


def mappings(outer: str, inner: str, innermost: str) -> str:
    return LEVELS.replace("OUTER", outer).replace("INNERMOST", innermost).replace("INNER", inner)


UNFIT = {
    "some of the loops": mappings(mapped("block_y", "block_x"), "", ""),
    "the inner loops": mappings("", mapped("thread_y", "thread_x"), mapped("sequential", "sequential")),
    "too few": mappings(mapped("block_x"), mapped("thread_x"), mapped("sequential")),
    "of scf.forall": mappings(
        "{mapping = [#gpu.block<y>, #gpu.block<x>]}", "{mapping = [#gpu.warp<linear_dim_1>, #gpu.warp<linear_dim_0>]}",
        "{mapping = [#gpu.thread<y>, #gpu.thread<x>]}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("unfit", UNFIT)
def test_mappings_that_are_not_of_the_nest(unfit: str) -> None:
    x = np.random.default_rng(2).standard_normal((64, 96)).astype(np.float32)
    y = np.zeros_like(x)
    on_host(UNFIT[unfit]).f(x, y)
    np.testing.assert_array_equal(y, 3 * x)
    offload.compile(UNFIT[unfit], targets=ALL_TARGETS)


def test_a_mapping_of_all_loops_is_followed() -> None:
    fit = mappings(mapped("block_y", "block_x"), mapped("thread_y", "thread_x"), mapped("sequential", "sequential"))
    assert "known_block_size = array<i32: 8, 2, 1>" in emit_text(fit, "kernels")


SUM = """
func.func @f(%x: memref<?xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : memref<?xf32>
  %sum = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%zero) -> f32 {
    %v = memref.load %x[%i] : memref<?xf32>
    scf.reduce(%v : f32) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      scf.reduce.return %s : f32
    }
  } MAPPING
  return %sum : f32
}
"""


@pytest.mark.parametrize("mapping", [mapped("block_x"), "{mapping = [#gpu.thread<x>]}"])
def test_loops_that_reduce_have_an_order_of_their_own(mapping: str) -> None:
    x = np.arange(1000, dtype=np.float32)
    assert on_host(SUM.replace("MAPPING", mapping)).f(x) == x.sum()


BEHIND = """
func.func @f(%x: memref<8xf32>, %copied: i1) -> memref<8xf32> {
  %no = arith.constant false
  %yes = arith.constant true
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r:2 = scf.if %copied -> (memref<8xf32>, i1) {
    %a = memref.alloc() : memref<8xf32>
    memref.copy %x, %a : memref<8xf32> to memref<8xf32>
    scf.yield %a, %yes : memref<8xf32>, i1
  } else {
    scf.yield %x, %no : memref<8xf32>, i1
  }
  %y = memref.alloc() : memref<8xf32>
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    %v = memref.load %r#0[%i] : memref<8xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %y[%i] : memref<8xf32>
  }
  %base, %offset, %size, %stride = memref.extract_strided_metadata %r#0
    : memref<8xf32> -> memref<f32>, index, index, index
  scf.if %r#1 {
    memref.dealloc %base : memref<f32>
  }
  return %y : memref<8xf32>
}
"""


@pytest.mark.parametrize("chip", ["host", "gfx942", "sm_80"])
def test_a_deallocation_behind_a_condition_is_of_what_the_program_made(chip: str) -> None:
    """So bufferization leaves it, where some ways to it made the memory and others were given it."""
    x = np.arange(8, dtype=np.float32)
    with running_on(chip, BEHIND) as library:
        for copied in (True, False, True):
            np.testing.assert_array_equal(library.f(x, copied).numpy(), 2 * x)
