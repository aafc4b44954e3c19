"""Memory of the host's program that kernels use: where it is put, and that results are right."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, emit, emit_text, on_host, program

import offload
from offload.runtime import abi

TABLE = np.array([1, 2, 3, 4], np.float32)


@pytest.mark.parametrize("which", [True, False])
def test_a_choice_between_heap_and_stack(which: bool) -> None:
    out = np.zeros(4, np.float32)
    program("buffers").pick(which, out)
    np.testing.assert_array_equal(out, 2 * TABLE)


def test_a_global_that_kernels_and_host_code_change() -> None:
    library = on_host((PROGRAMS / "buffers.mlir").read_text() + "\n")
    total = 0.0
    for times in (0, 1, 3):
        total += 2 * times
        assert library.count(times) == total


@pytest.mark.parametrize("n", [0, 1, 7])
def test_a_buffer_that_a_loop_replaces(n: int) -> None:
    out = np.full(n, -1, np.float32)
    program("buffers").grow(n, out)
    np.testing.assert_array_equal(out, np.full(n, n, np.float32))


def test_where_the_memory_is() -> None:
    text = emit_text(PROGRAMS / "buffers.mlir", "kernels")
    assert text.count("gpu.alloc  host_shared") == 2  # `pick` stores into one, and the other may be the same
    for left in ("memref.alloc", "memref.dealloc", "memref.copy"):
        assert left not in text
    assert text.count("{offload.shared}") == 2
    assert "call ptr @mgpuSharedGlobal(" in emit_text(PROGRAMS / "buffers.mlir", "host-llvm")


def test_it_builds_for_every_target() -> None:
    assert len(emit(PROGRAMS / "buffers.mlir", "object", ALL_TARGETS)) == 4 * 3


def test_memory_of_host_code_alone_stays() -> None:
    text = emit_text(
        """
        memref.global "private" @g : memref<2xf32> = dense<3.0>
        func.func @f() -> f32 {
          %c0 = arith.constant 0 : index
          %a = memref.alloc() : memref<2xf32>
          %b = memref.alloca() : memref<2xf32>
          %g = memref.get_global @g : memref<2xf32>
          memref.copy %g, %a : memref<2xf32> to memref<2xf32>
          memref.copy %a, %b : memref<2xf32> to memref<2xf32>
          %r = memref.load %b[%c0] : memref<2xf32>
          memref.dealloc %a : memref<2xf32>
          return %r : f32
        }
        """,
        "kernels",
    )
    assert "gpu." not in text
    assert "offload.shared" not in text


WITHOUT_RANK = """
func.func private @copy(%x: memref<*xf32>, %y: memref<*xf32>) {
  memref.copy %x, %y : memref<*xf32> to memref<*xf32>
  return
}
func.func @f(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {
  %from = memref.cast %x : memref<?x?xf32> to memref<*xf32>
  %to = memref.cast %y : memref<?x?xf32> to memref<*xf32>
  call @copy(%from, %to) : (memref<*xf32>, memref<*xf32>) -> ()
  return
}
"""


def test_what_has_no_rank_is_copied_by_the_cpu() -> None:
    library = on_host(WITHOUT_RANK)
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros((3, 4), np.float32)
    library.f(x, y)
    np.testing.assert_array_equal(x, y)
    assert {argument.space for argument in library.f.signature.args} == {"host"}
    kernel = "  linalg.fill ins(%c : f32) outs(%x : memref<?x?xf32>)\n  %from ="
    text = WITHOUT_RANK.replace("  %from =", f"  %c = arith.constant 1.0 : f32\n{kernel}")
    with pytest.raises(offload.CompileError, match=r"<string>:3:3: error: .*cast them to memrefs with one first"):
        offload.compile(text, targets=["host"])


WHOSE = """
func.func @f(%mine: memref<4xf32>, %which: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %f = arith.constant 1.0 : f32
  %a = memref.alloc() : memref<4xf32>
  %x = arith.select %which, %mine, %a : memref<4xf32>
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    memref.store %f, %x[%i] : memref<4xf32>
  }
  memref.dealloc %x : memref<4xf32>
  return
}
"""


def test_a_deallocation_of_who_knows_what_is_refused() -> None:
    with pytest.raises(offload.CompileError, match=r"<string>:12:3: error: .*deallocation of its own"):
        offload.compile(WHOSE, targets=["host"])


TURNS = """
func.func @f(%x: memref<?xf32>, %steps: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %t = memref.alloc(%n) : memref<?xf32>
  %r:2 = scf.for %s = %c0 to %steps step %c1 iter_args(%a = %x, %b = %t) -> (memref<?xf32>, memref<?xf32>) {
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %v = memref.load %a[%i] : memref<?xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %b[%i] : memref<?xf32>
    }
    scf.yield %b, %a : memref<?xf32>, memref<?xf32>
  }
  memref.copy %r#0, %x : memref<?xf32> to memref<?xf32>
  memref.dealloc %t : memref<?xf32>
  return
}
"""


@pytest.mark.parametrize("steps", [0, 3, 4])
def test_a_temporary_that_takes_turns_with_an_argument(steps: int) -> None:
    """What is freed is the temporary, wherever its values may be."""
    x = np.arange(9, dtype=np.float32)
    on_host(TURNS).f(x, steps)
    np.testing.assert_array_equal(x, 2.0**steps * np.arange(9))


def test_an_alloca_that_leaves_its_block_is_refused() -> None:
    text = """
func.func @f(%which: i1, %mine: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %f = arith.constant 1.0 : f32
  %x = scf.if %which -> memref<4xf32> {
    %a = memref.alloca() : memref<4xf32>
    scf.yield %a : memref<4xf32>
  } else {
    scf.yield %mine : memref<4xf32>
  }
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    memref.store %f, %x[%i] : memref<4xf32>
  }
  return
}
"""
    with pytest.raises(offload.CompileError, match=r"<string>:8:10: error: .*use memref.alloc and memref.dealloc"):
        offload.compile(text, targets=["host"])


VIEWS = """
func.func @f(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {
  %x0, %y0 = memref.distinct_objects %x, %y : memref<?x?xf32>, memref<?x?xf32>
  %turned = memref.transpose %x0 (i, j) -> (j, i) : memref<?x?xf32> to memref<?x?xf32, strided<[1, ?]>>
  linalg.add ins(%turned, %turned : memref<?x?xf32, strided<[1, ?]>>, memref<?x?xf32, strided<[1, ?]>>)
    outs(%y0 : memref<?x?xf32>)
  return
}
"""


def test_memory_seen_through_views_of_every_kind_is_the_device_s() -> None:
    function = on_host(VIEWS).f
    assert [argument.space for argument in function.signature.args] == ["device", "device"]
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((3, 2), np.float32)
    function(x, y)
    np.testing.assert_array_equal(y, 2 * x.T)


EITHER = """
func.func @chosen(%device: i1, %n: index) -> memref<?xf32> {
  %r = scf.if %device -> memref<?xf32> {
    %x = gpu.alloc (%n) : memref<?xf32>
    scf.yield %x : memref<?xf32>
  } else {
    %x = memref.alloc(%n) : memref<?xf32>
    scf.yield %x : memref<?xf32>
  }
  return %r : memref<?xf32>
}
func.func @returned(%device: i1, %n: index) -> memref<?xf32> {
  cf.cond_br %device, ^there, ^here
^there:
  %x = gpu.alloc (%n) : memref<?xf32>
  return %x : memref<?xf32>
^here:
  %y = memref.alloc(%n) : memref<?xf32>
  return %y : memref<?xf32>
}
func.func @freed(%device: i1, %n: index) {
  %r = func.call @chosen(%device, %n) : (i1, index) -> memref<?xf32>
  memref.dealloc %r : memref<?xf32>
  return
}
"""


def test_memory_of_either_kind_is_freed_in_one_way() -> None:
    """What memref.alloc made was given back as a device's, which it was not, and stayed."""
    library = on_host(EITHER)
    before = library._native.api.mgpuCount(abi.COUNT_ALLOCATIONS)
    for device in (True, False):
        for function in (library.chosen, library.returned):
            array = function(device, 10)
            array.copy_from(np.arange(10, dtype=np.float32))
            np.testing.assert_array_equal(array.numpy(), np.arange(10))
            assert library._native.api.mgpuCount(abi.COUNT_ALLOCATIONS) == before + 1
            del array
            assert library._native.api.mgpuCount(abi.COUNT_ALLOCATIONS) == before
        library.freed(device, 10)
        assert library._native.api.mgpuCount(abi.COUNT_ALLOCATIONS) == before
    offload.compile(EITHER, targets=ALL_TARGETS)


OWNED = """
func.func @f(%x: memref<4xf32>, %whose: i1) -> memref<4xf32> {
  %t = memref.alloc() : memref<4xf32>
  linalg.exp ins(%x : memref<4xf32>) outs(%t : memref<4xf32>)
  %result = bufferization.clone %t : memref<4xf32> to memref<4xf32>
  bufferization.dealloc (%t : memref<4xf32>) if (%whose)
  return %result : memref<4xf32>
}
"""


def test_what_ownership_has_been_worked_out_for_is_freed() -> None:
    """As after MLIR's ownership-based deallocation. It was refused, with the advice to bufferize it."""
    library, x = on_host(OWNED), np.arange(4, dtype=np.float32)
    before = library._native.api.mgpuCount(abi.COUNT_ALLOCATIONS)
    np.testing.assert_allclose(np.asarray(library.f(x, True)), np.exp(x), rtol=1e-6)
    assert library._native.api.mgpuCount(abi.COUNT_ALLOCATIONS) == before
    library.f(x, False)
    assert library._native.api.mgpuCount(abi.COUNT_ALLOCATIONS) == before + 1
    offload.compile(OWNED, targets=ALL_TARGETS)


OF_ANOTHER_OBJECT = """
memref.global "private" @numbers_of_c : memref<4xf32>
func.func @f(%x: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  %g = memref.get_global @numbers_of_c : memref<4xf32>
  %v = memref.load %g[%c1] : memref<4xf32>
  memref.store %v, %x[%c1] : memref<?xf32>
  return
}
"""


def test_a_global_without_a_value_is_another_objects(tmp_path: Path) -> None:
    """MLIR's own spelling of such a declaration is private, which LLVM has for nothing that is elsewhere."""
    (tmp_path / "c.c").write_text("float numbers_of_c[4] = {5, 6, 7, 8};")
    subprocess.run(["cc", "-c", "-fPIC", "-o", tmp_path / "c.o", tmp_path / "c.c"], check=True)
    (tmp_path / "p.mlir").write_text(OF_ANOTHER_OBJECT)
    library = offload.load(
        offload.build(tmp_path / "p.mlir", tmp_path / "p.so", targets=["host"], objects=[tmp_path / "c.o"])
    )
    x = np.zeros(4, np.float32)
    library.f(x)
    np.testing.assert_array_equal(x, [0, 6, 0, 0])
    with pytest.raises(offload.LinkError, match="numbers_of_c"):
        on_host(OF_ANOTHER_OBJECT)


LARGE = """
memref.global "private" @bytes : memref<{}xi8> = uninitialized
func.func @f() {{
  %c1 = arith.constant 1 : index
  %g = memref.get_global @bytes : memref<{}xi8>
  gpu.launch blocks(%a, %b, %c) in (%d = %c1, %e = %c1, %f = %c1)
             threads(%g0, %h, %i) in (%j = %c1, %k = %c1, %l = %c1) {{
    %zero = arith.constant 0 : i8
    memref.store %zero, %g[%a] : memref<{}xi8>
    gpu.terminator
  }}
  return
}}
"""


@pytest.mark.parametrize("size", [5, 300_000_000, 536_870_912, 1_900_000_000])
def test_the_size_of_a_global_that_kernels_use(size: int) -> None:
    text = emit_text(LARGE.format(size, size, size), "host-llvm")
    (slot,) = re.findall(r"@offload_global.bytes = .*", text)
    assert f"i64 {size}," in slot or f"i64 {size})" in slot, slot


RELEASED = """
func.func private @release(%m: memref<?xf32>) attributes {no_inline} {
  memref.dealloc %m : memref<?xf32>
  return
}
func.func @f(%x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %a = memref.alloc(%n) : memref<?xf32>
  memref.copy %x, %a : memref<?xf32> to memref<?xf32>
  %u = memref.cast %a : memref<?xf32> to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %a[%i] : memref<?xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %a[%i] : memref<?xf32>
  }
  memref.copy %a, %x : memref<?xf32> to memref<?xf32>
  gpu.host_unregister %u : memref<*xf32>
  func.call @release(%a) : (memref<?xf32>) -> ()
  return
}
"""


def test_memory_is_unregistered_before_a_function_frees_it() -> None:
    text = emit_text(RELEASED, "kernels")
    assert text.index("gpu.host_unregister") < text.index("call @release")
    x = np.arange(5, dtype=np.float32)
    on_host(RELEASED).f(x)
    np.testing.assert_array_equal(x, 2 * np.arange(5))
