"""Stack memory of a loop's body ends with each iteration, however many there are: on the host and in kernels."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import emit, on_host
from emulator.running import running_on

from offload.errors import CompileError

BODY = """
  {loop} {{
    {scope}
    %a = memref.alloca() : memref<1024xf32>
    %s = memref.load %x[%place] : memref<?xf32>
    %t = arith.addf %s, %one : f32
    memref.store %t, %a[%place] : memref<1024xf32>
    %u = memref.load %a[%same] : memref<1024xf32>
    memref.store %u, %x[%place] : memref<?xf32>
    {end}
  }}
"""
HEAD = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
"""
LOOPS = ["scf.for %i = %c0 to %n step %c1", "affine.for %i = 0 to %n"]
SCOPES = [("", ""), ("memref.alloca_scope {", "}")]


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("loop", LOOPS)
def test_on_the_host(loop: str, scope: tuple[str, str]) -> None:
    body = BODY.format(loop=loop, scope=scope[0], end=scope[1])
    library = on_host(
        f"func.func @f(%x: memref<?xf32>, %n: index, %place: index, %same: index) {{{HEAD}{body}  return\n}}"
    )
    x = np.zeros(3, np.float32)
    library.f(x, 100_000, 1, 1)
    np.testing.assert_array_equal(x, [0, 100_000, 0])


@pytest.mark.parametrize("scope", SCOPES)
def test_in_a_kernel(scope: tuple[str, str]) -> None:
    body = BODY.format(loop=LOOPS[0], scope=scope[0], end=scope[1])
    source = f"""
    func.func @f(%x: memref<?xf32>, %n: index, %place: index, %same: index) {{{HEAD}
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
                 threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {{
        {body}
        gpu.terminator
      }}
      return
    }}
    """
    x = np.zeros(3, np.float32)
    on_host(source).f(x, 100_000, 1, 1)
    np.testing.assert_array_equal(x, [0, 100_000, 0])


CHOSEN = """
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.alloca() : memref<1024xf32>
    %b = memref.alloca() : memref<1024xf32>
    %s = memref.load %x[%place] : memref<?xf32>
    %t = arith.addf %s, %one : f32
    %two = arith.addf %t, %one : f32
    memref.store %t, %a[%same] : memref<1024xf32>
    memref.store %two, %b[%same] : memref<1024xf32>
    %odd = arith.index_cast %i : index to i1
    %m = scf.if %odd -> memref<1024xf32> {
      %c = arith.select %odd, %a, %b : memref<1024xf32>
      scf.yield %c : memref<1024xf32>
    } else {
      scf.yield %b : memref<1024xf32>
    }
    %u = memref.load %m[%place] : memref<1024xf32>
    memref.store %u, %x[%place] : memref<?xf32>
  }
"""


@pytest.mark.parametrize("in_kernel", [False, True])
def test_memory_that_a_branch_chooses(in_kernel: bool) -> None:
    launch = """gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
                 threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {"""
    body = f"{launch}{CHOSEN}gpu.terminator\n}}" if in_kernel else CHOSEN
    source = f"""
    func.func @f(%x: memref<?xf32>, %n: index, %place: index, %same: index) {{{HEAD}
      {body}
      return
    }}
    """
    x = np.zeros(3, np.float32)
    on_host(source).f(x, 100_000, 1, 1)
    np.testing.assert_array_equal(x, [0, 150_000, 0])


PARTLY_FILLED = """
func.func @f(%x: memref<?x?xf32>, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<8x8xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> vector<8x8xf32> {
    %v = vector.transfer_read %x[%c0, %c0], %z : memref<?x?xf32>, vector<8x8xf32>
    %s = arith.addf %v, %a : vector<8x8xf32>
    scf.yield %s : vector<8x8xf32>
  }
  %t = vector.extract %r[1, 1] : f32 from vector<8x8xf32>
  return %t : f32
}
"""


def test_vectors_that_may_be_filled_in_part() -> None:
    assert on_host(PARTLY_FILLED).f(np.ones((5, 5), np.float32), 200_000) == 200_000


PASSED_ON = """
func.func @f(%n: index) -> i32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %first = memref.alloca() : memref<2xi32>
  memref.store %one, %first[%c0] : memref<2xi32>
  memref.store %one, %first[%c1] : memref<2xi32>
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%before = %first) -> memref<2xi32> {
    %now = memref.alloca() : memref<2xi32>
    %a = memref.load %before[%c0] : memref<2xi32>
    memref.store %a, %now[%c1] : memref<2xi32>
    %b = memref.load %before[%c1] : memref<2xi32>
    %sum = arith.addi %a, %b : i32
    memref.store %sum, %now[%c0] : memref<2xi32>
    scf.yield %now : memref<2xi32>
  }
  %r = memref.load %last[%c0] : memref<2xi32>
  return %r : i32
}
"""


def test_memory_that_is_passed_on_is_not_used_again() -> None:
    assert [on_host(PASSED_ON).f(n) for n in range(8)] == [1, 2, 3, 5, 8, 13, 21, 34]


ALLOCATED = """
gpu.module @m {{
  gpu.func @k(%x: memref<?xf32>, %n: index) kernel {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %t = gpu.thread_id x
    %zero = arith.constant 0.0 : f32
    {outside}
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> f32 {{
      {inside}
      scf.for %j = %c0 to %c4 step %c1 {{
        %v = memref.load %x[%t] : memref<?xf32>
        memref.store %v, %b[%j] : memref<4xf32>
      }}
      %part = memref.subview %b[1] [2] [1] : memref<4xf32> to memref<2xf32, strided<[1], offset: 1>>
      %u = memref.load %part[%c1] : memref<2xf32, strided<[1], offset: 1>>
      %more = arith.addf %s, %u : f32
      {freed_inside}
      scf.yield %more : f32
    }}
    {freed_outside}
    memref.store %sum, %x[%t] : memref<?xf32>
    gpu.return
  }}
}}
"""
MADE, FREED = "%b = memref.alloc() : memref<4xf32>", "memref.dealloc %b : memref<4xf32>"


@pytest.mark.parametrize("target", ["host", "sm_90", "gfx942"])
@pytest.mark.parametrize("place", ["inside", "outside"])
def test_allocations_of_a_thread(target: str, place: str) -> None:
    """Of a known size, they are its own memory: thousands of them take no more than one."""
    texts = dict.fromkeys(("inside", "outside", "freed_inside", "freed_outside"), "")
    source = ALLOCATED.format(**{**texts, place: MADE, f"freed_{place}": FREED})
    x = np.arange(8, dtype=np.float32)
    count = 50_000 if target == "host" else 5
    with running_on(target, source) as library:
        library.kernels.k[1, 8](x, count)
    np.testing.assert_array_equal(x, count * np.arange(8))


BLOCKS = """
gpu.module @m {{
  gpu.func @k(%x: memref<?xf32>, %n: index) kernel {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %first = memref.alloc() : memref<256xf32>
    %t = gpu.thread_id x
    cf.br ^head(%c0 : index{first})
  ^head(%i: index{taken}):
    %more = arith.cmpi ult, %i, %n : index
    cf.cond_br %more, ^body, ^end
  ^body:
    %b = memref.alloc() : memref<256xf32>
    %v = memref.load %x[%t] : memref<?xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %b[%c1] : memref<256xf32>
    %u = memref.load %b[%c1] : memref<256xf32>
    %h = arith.subf %u, %v : f32
    memref.store %h, %x[%t] : memref<?xf32>
    {freed}
    %j = arith.addi %i, %c1 : index
    cf.br ^head(%j : index{next})
  ^end:
    memref.dealloc %first : memref<256xf32>
    gpu.return
  }}
}}
"""


@pytest.mark.parametrize("target", ["host", "sm_90", "gfx1100"])
def test_allocations_in_loops_of_blocks(target: str) -> None:
    source = BLOCKS.format(first="", taken="", freed="memref.dealloc %b : memref<256xf32>", next="")
    x = np.arange(8, dtype=np.float32)
    with running_on(target, source) as library:
        library.kernels.k[1, 8](x, 100_000 if target == "host" else 5)
    np.testing.assert_array_equal(x, np.arange(8))


def test_an_allocation_that_a_block_is_given_needs_an_allocator() -> None:
    source = BLOCKS.format(
        first=", memref<256xf32>", taken=", %given: memref<256xf32>", freed="", next=", memref<256xf32>"
    )
    source = source.replace("(%c0 : index, ", "(%c0, %first : index, ").replace("(%j : index, ", "(%j, %b : index, ")
    source = source.replace("%u = memref.load %b", "%u = memref.load %given")
    with pytest.raises(CompileError, match="threads have no allocator") as caught:
        emit(source, "lowered")
    assert caught.value.diagnostics[0].line in (6, 13)


def test_an_allocation_that_is_passed_on_needs_an_allocator() -> None:
    source = """
    gpu.module @m {
      gpu.func @k(%x: memref<4xf32>, %n: index) kernel {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> memref<4xf32> {
          %b = memref.alloc() : memref<4xf32>
          memref.copy %s, %b : memref<4xf32> to memref<4xf32>
          scf.yield %b : memref<4xf32>
        }
        memref.copy %r, %x : memref<4xf32> to memref<4xf32>
        gpu.return
      }
    }
    """
    with pytest.raises(CompileError, match="threads have no allocator") as caught:
        emit(source, "lowered")
    assert caught.value.diagnostics[0].line == 7
