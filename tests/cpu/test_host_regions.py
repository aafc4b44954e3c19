"""What threads hand from one region between barriers to the next, on the CPU: their values' places, what is known to be
the same for all of them, and the code that comes of it."""

from __future__ import annotations

import platform
import re

import numpy as np
import pytest
from compiling import ROOT, emit_text, on_host

PROGRAMS = ROOT / "bench/host/programs"
x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="reads assembly of x86-64")

# Loops with a barrier, which carry: two values that change places; three that go around; one whose old value is used
# behind the barrier, too; one whose new value an inner loop computes; one that is new in every second step alone.
CARRIED = """module attributes {gpu.container_module} { gpu.module @m {
gpu.func @carried(%x: memref<?x9xi32>, %steps: index) workgroup(%seen: memref<128xi32, #gpu.address_space<workgroup>>)
    kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %one = arith.constant 1 : i32
  %three = arith.constant 3 : i32
  %t = gpu.thread_id x
  %d = gpu.block_dim x
  %after = arith.addi %t, %c1 : index
  %other = arith.remui %after, %d : index
  %i = arith.index_cast %t : index to i32
  %a0 = arith.muli %i, %three : i32
  %b0 = arith.addi %i, %three : i32
  %r:8 = scf.for %k = %c0 to %steps step %c1 iter_args(%a = %a0, %b = %b0, %p = %i, %q = %a0, %s = %b0, %old = %i,
      %inner = %i, %half = %one) -> (i32, i32, i32, i32, i32, i32, i32, i32) {
    memref.store %p, %seen[%t] : memref<128xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %theirs = memref.load %seen[%other] : memref<128xi32, #gpu.address_space<workgroup>>
    %new = arith.addi %old, %theirs : i32
    %folded = scf.for %j = %c0 to %c3 step %c1 iter_args(%f = %inner) -> i32 {
      %g = arith.muli %f, %three : i32
      %h = arith.addi %g, %theirs : i32
      scf.yield %h : i32
    }
    gpu.barrier
    %mixed = arith.xori %old, %new : i32
    %rest = arith.remui %k, %c2 : index
    %even = arith.cmpi eq, %rest, %c0 : index
    %turn = scf.if %even -> i32 {
      %n = arith.addi %half, %mixed : i32
      scf.yield %n : i32
    } else {
      scf.yield %half : i32
    }
    scf.yield %b, %a, %q, %s, %p, %new, %folded, %turn : i32, i32, i32, i32, i32, i32, i32, i32
  }
  %sum = arith.addi %r#0, %r#5 : i32
  memref.store %r#0, %x[%t, %c0] : memref<?x9xi32>
  memref.store %r#1, %x[%t, %c1] : memref<?x9xi32>
  memref.store %r#2, %x[%t, %c2] : memref<?x9xi32>
  memref.store %r#3, %x[%t, %c3] : memref<?x9xi32>
  memref.store %r#4, %x[%t, %c4] : memref<?x9xi32>
  memref.store %r#5, %x[%t, %c5] : memref<?x9xi32>
  memref.store %r#6, %x[%t, %c6] : memref<?x9xi32>
  memref.store %r#7, %x[%t, %c7] : memref<?x9xi32>
  memref.store %sum, %x[%t, %c8] : memref<?x9xi32>
  gpu.return
} } }"""

# A loop that is left at its end, where the value that its last step began with is still asked for.
LEFT_AT_ITS_END = """module attributes {gpu.container_module} { gpu.module @m {
gpu.func @left(%x: memref<?x3xi32>, %steps: i32) workgroup(%seen: memref<128xi32, #gpu.address_space<workgroup>>)
    kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %t = gpu.thread_id x
  %d = gpu.block_dim x
  %after = arith.addi %t, %c1 : index
  %other = arith.remui %after, %d : index
  %i = arith.index_cast %t : index to i32
  cf.br ^step(%i, %i, %zero : i32, i32, i32)
^step(%p: i32, %before: i32, %k: i32):
  memref.store %p, %seen[%t] : memref<128xi32, #gpu.address_space<workgroup>>
  gpu.barrier
  %theirs = memref.load %seen[%other] : memref<128xi32, #gpu.address_space<workgroup>>
  %twice = arith.addi %p, %p : i32
  %new = arith.addi %twice, %theirs : i32
  gpu.barrier
  %next = arith.addi %k, %one : i32
  %more = arith.cmpi slt, %next, %steps : i32
  cf.cond_br %more, ^step(%new, %p, %next : i32, i32, i32), ^end
^end:
  memref.store %p, %x[%t, %c0] : memref<?x3xi32>
  memref.store %new, %x[%t, %c1] : memref<?x3xi32>
  memref.store %before, %x[%t, %c2] : memref<?x3xi32>
  gpu.return
} } }"""

# A loop of known length, whose last value is asked for; and four operations a step, the same for all threads.
KNOWN_LENGTH = """module attributes {gpu.container_module} { gpu.module @m {
gpu.func @known(%x: memref<?x2xi32>, %seed: i32) workgroup(%seen: memref<128xi32, #gpu.address_space<workgroup>>)
    kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c12 = arith.constant 12 : index
  %m = arith.constant 1664525 : i32
  %p = arith.constant 1013904223 : i32
  %t = gpu.thread_id x
  %d = gpu.block_dim x
  %after = arith.addi %t, %c1 : index
  %other = arith.remui %after, %d : index
  %i = arith.index_cast %t : index to i32
  %r:2 = scf.for %k = %c0 to %c12 step %c1 iter_args(%v = %i, %h = %seed) -> (i32, i32) {
    %h1 = arith.muli %h, %m : i32
    %h2 = arith.xori %h1, %p : i32
    %h3 = arith.muli %h2, %p : i32
    %h4 = arith.addi %h3, %m : i32
    memref.store %v, %seen[%t] : memref<128xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %theirs = memref.load %seen[%other] : memref<128xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %sum = arith.addi %v, %theirs : i32
    %w = arith.xori %sum, %h4 : i32
    scf.yield %w, %h4 : i32, i32
  }
  memref.store %r#0, %x[%t, %c0] : memref<?x2xi32>
  memref.store %r#1, %x[%t, %c1] : memref<?x2xi32>
  gpu.return
} } }"""

# Two ways into one cycle, which is no loop for LLVM; the loop around it carries a value.
TWO_WAYS_IN = """module attributes {gpu.container_module} { gpu.module @m {
gpu.func @two_ways(%x: memref<?xi32>, %y: memref<?xi32>, %steps: i32, %first: i1) kernel {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %three = arith.constant 3 : i32
  %t = gpu.thread_id x
  %i = arith.index_cast %t : index to i32
  cf.br ^step(%i, %zero : i32, i32)
^step(%p: i32, %k: i32):
  %more = arith.cmpi slt, %k, %steps : i32
  cf.cond_br %more, ^enter, ^end
^enter:
  cf.cond_br %first, ^a(%zero : i32), ^b(%zero : i32)
^a(%n: i32):
  %w = arith.muli %p, %three : i32
  %n1 = arith.addi %n, %one : i32
  %v = arith.addi %w, %n1 : i32
  gpu.barrier
  %again = arith.cmpi slt, %n1, %two : i32
  cf.cond_br %again, ^b(%n1 : i32), ^latch
^b(%m: i32):
  memref.store %m, %y[%t] : memref<?xi32>
  cf.br ^a(%m : i32)
^latch:
  memref.store %v, %x[%t] : memref<?xi32>
  %k1 = arith.addi %k, %one : i32
  cf.br ^step(%v, %k1 : i32, i32)
^end:
  gpu.return
} } }"""

# The first thread counts down what all of them read to know whether to go on.
COUNTED_DOWN = """module attributes {gpu.container_module} { gpu.module @m {
gpu.func @counted(%left: memref<?xi32>, %x: memref<?xi32>)
    workgroup(%shared: memref<1xi32, #gpu.address_space<workgroup>>) kernel {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %block = gpu.block_id x
  %t = gpu.thread_id x
  %d = gpu.block_dim x
  %start = arith.muli %block, %d : index
  %at = arith.addi %start, %t : index
  %first = arith.cmpi eq, %t, %c0 : index
  scf.if %first {
    %n = memref.load %left[%block] : memref<?xi32>
    memref.store %n, %shared[%c0] : memref<1xi32, #gpu.address_space<workgroup>>
  }
  gpu.barrier
  scf.while : () -> () {
    %n = memref.load %shared[%c0] : memref<1xi32, #gpu.address_space<workgroup>>
    %more = arith.cmpi sgt, %n, %zero : i32
    scf.condition(%more)
  } do {
    gpu.barrier
    %v = memref.load %x[%at] : memref<?xi32>
    %w = arith.addi %v, %one : i32
    memref.store %w, %x[%at] : memref<?xi32>
    scf.if %first {
      %n = memref.load %shared[%c0] : memref<1xi32, #gpu.address_space<workgroup>>
      %less = arith.subi %n, %one : i32
      memref.store %less, %shared[%c0] : memref<1xi32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    scf.yield
  }
  gpu.return
} } }"""


def carried(threads: int, steps: int) -> np.ndarray:
    i = np.arange(threads, dtype=np.int32)
    a, b, p, q, s, old, inner, half = i * 3, i + 3, i, i * 3, i + 3, i, i, np.ones_like(i)
    for k in range(steps):
        theirs = np.roll(p, -1)
        new, folded = old + theirs, inner
        for _ in range(3):
            folded = folded * 3 + theirs
        if k % 2 == 0:
            half = half + (old ^ new)
        a, b, p, q, s, old, inner = b, a, q, s, p, new, folded
    return np.stack([a, b, p, q, s, old, inner, half, a + old], axis=1)


@pytest.mark.parametrize("way", ["host", "host,O=0", "host,coroutines"])
@pytest.mark.parametrize("threads", [1, 8, 33, 128])
def test_values_that_a_loop_with_barriers_carries(way: str, threads: int) -> None:
    target, opt = ("host", 0) if way == "host,O=0" else (way, 3)
    kernel = on_host(CARRIED, opt=opt, target=target).kernels["carried"]
    for steps in (0, 1, 2, 5):
        x = np.zeros((threads, 9), np.int32)
        kernel[1, threads](x, steps)
        np.testing.assert_array_equal(x, carried(threads, steps))


@pytest.mark.parametrize("way", ["host", "host,O=0", "host,coroutines"])
def test_the_old_value_behind_a_loop(way: str) -> None:
    target, opt = ("host", 0) if way == "host,O=0" else (way, 3)
    kernel = on_host(LEFT_AT_ITS_END, opt=opt, target=target).kernels["left"]
    for steps in (1, 2, 5):
        x = np.zeros((40, 3), np.int32)
        kernel[1, 40](x, np.int32(steps))
        new = old = before = np.arange(40, dtype=np.int32)
        for _ in range(steps):
            before, old, new = old, new, 2 * new + np.roll(new, -1)
        if steps == 1:
            before = old
        np.testing.assert_array_equal(x, np.stack([old, new, before], axis=1))


@pytest.mark.parametrize("way", ["host", "host,O=0", "host,coroutines"])
def test_a_loop_of_known_length(way: str) -> None:
    target, opt = ("host", 0) if way == "host,O=0" else (way, 3)
    x = np.zeros((40, 2), np.int32)
    on_host(KNOWN_LENGTH, opt=opt, target=target).kernels["known"][1, 40](x, np.int32(7))
    v, h = np.arange(40, dtype=np.int32), np.full(40, 7, np.int32)
    for _ in range(12):
        h = ((h * np.int32(1664525)) ^ np.int32(1013904223)) * np.int32(1013904223) + np.int32(1664525)
        v = (v + np.roll(v, -1)) ^ h
    np.testing.assert_array_equal(x, np.stack([v, h], axis=1))


@pytest.mark.parametrize("way", ["host", "host,coroutines"])
@pytest.mark.parametrize("first", [False, True])
def test_a_cycle_with_two_ways_in(way: str, first: bool) -> None:
    kernel = on_host(TWO_WAYS_IN, target=way).kernels["two_ways"]
    x, y = np.zeros((2, 40), np.int32)
    kernel[1, 40](x, y, np.int32(3), first)
    v = np.arange(40, dtype=np.int32)
    for _ in range(3):
        v = 3 * v + 2
    np.testing.assert_array_equal(x, v)


@pytest.mark.parametrize("way", ["host", "host,coroutines"])
def test_a_loop_that_ends_by_what_all_threads_read(way: str) -> None:
    """Threads that read one place get the same, so they come to the barrier together: loops will do."""
    kernel = on_host(COUNTED_DOWN, target=way).kernels["counted"]
    left, x = np.array([3, 0, 7], np.int32), np.zeros(3 * 40, np.int32)
    kernel[3, 40](left, x)
    np.testing.assert_array_equal(x, np.repeat(left, 40))
    suspends = "@counted.thread(" in emit_text(COUNTED_DOWN, "llvm", [way])
    assert suspends == (way == "host,coroutines")


def main_loop(assembly: str, instruction: str) -> list[int]:
    """The places that the loop with the most of these instructions loads from, in their order, from its first one."""
    blocks = re.split(r"^\.L\w+:", assembly, flags=re.MULTILINE)
    loads = [re.findall(rf"\t{instruction}\t(-?\d*)\(%\w+,%\w+,\d\), ", block) for block in blocks]
    return [int(offset or 0) for offset in max(loads, key=len)]


@x86_64
@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
def test_a_sum_is_read_from_front_to_back(level: str) -> None:
    """All 256 threads' elements of a step, upwards: processors fetch ahead of who reads so."""
    text = emit_text(PROGRAMS / "reduction.mlir", "isa", [f"host:{level}"])
    offsets = main_loop(text, "vaddps")
    assert len(offsets) >= 8, text
    assert offsets == sorted(offsets), offsets


@x86_64
def test_the_steps_of_a_tree_are_no_loop() -> None:
    """`128 >> step` is a number in each of them."""
    text = emit_text(PROGRAMS / "reduction.mlir", "isa", ["host:x86-64-v3"])
    assert not re.search(r"\tshr(x|q\t%cl)", text), text


@x86_64
def test_a_bound_from_before_a_barrier_lets_threads_go_together() -> None:
    """Each thread's part of a histogram begins one element behind its neighbour's: they count elements in a row."""
    text = emit_text(PROGRAMS / "histogram.mlir", "isa", ["host:x86-64-v3"])
    in_a_row = re.search(
        r"(\tmovslq\t-?\d*\(%\w+,%\w+,4\), %\w+\n(\t(add|inc)q\t.*\n)?\tincl\t\d*\(%\w+,%\w+,4\)\n){8}", text
    )
    assert in_a_row, text
