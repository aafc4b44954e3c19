"""Host programs on the CPU: streams and tokens, device memory, results of functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, emit_text, on_host, program

import offload

SIZES = [1, 5, 64, 100]


def numbers(n: int) -> Any:
    return np.arange(n, dtype=np.int32) * 3


@pytest.mark.parametrize("n", SIZES)
def test_a_chain_through_device_memory(n: int) -> None:
    y = np.zeros(n, np.int32)
    program("async").chain(numbers(n), y)
    np.testing.assert_array_equal(y, numbers(n) + 1)


@pytest.mark.parametrize("n", SIZES)
def test_two_streams_that_meet(n: int) -> None:
    for fill in (-5, 0, 1 << 30):
        out = np.zeros(n, np.int32)
        program("async").diamond(numbers(n), fill, out)
        np.testing.assert_array_equal(out, numbers(n) + 1 + fill + 2)


@pytest.mark.parametrize("times", [0, 1, 2, 50])
def test_a_token_goes_round_a_loop(times: int) -> None:
    x = numbers(10)
    program("async").loop(x, times)
    np.testing.assert_array_equal(x, numbers(10) + times)


def test_a_token_comes_out_of_a_branch() -> None:
    x = numbers(10)
    program("async").branch(x, True)
    np.testing.assert_array_equal(x, numbers(10) + 20)
    program("async").branch(x, False)
    np.testing.assert_array_equal(x, np.full(10, 17))


def test_a_token_goes_through_functions() -> None:
    x = numbers(10)
    program("async").calls(x)
    np.testing.assert_array_equal(x, numbers(10) + 2)


def test_a_token_made_in_a_function_is_used_after_it() -> None:
    x = numbers(10)
    program("async").made_inside(x)
    np.testing.assert_array_equal(x, numbers(10) + 4)


def test_no_dependencies() -> None:
    out = np.zeros(10, np.int32)
    program("async").no_dependency(numbers(10), out)
    np.testing.assert_array_equal(out, numbers(10))


def test_tokens_that_nothing_uses() -> None:
    """Whatever a driver puts off, the work is done where nobody can ask for it any more."""
    library = program("async")
    schedule = library._native.api.mgpuHostSchedule
    try:
        for seed in range(1, 20):
            schedule(seed)
            x, out = numbers(10), np.zeros(10, np.int32)
            library.unused(x, out)
            np.testing.assert_array_equal(out, numbers(10))
            library.unused_inside(x, out, 3, seed % 2 == 0)
            np.testing.assert_array_equal(out, numbers(10) + (13 if seed % 2 == 0 else 3))
            x, out = numbers(10), np.zeros(10, np.int32)
            library.unused_results(x, out, 3, seed % 2 == 0)
            np.testing.assert_array_equal(x, numbers(10) + 3)
            np.testing.assert_array_equal(out, np.full(10, seed % 2 == 0))
            library.unused_argument(x, out)
            np.testing.assert_array_equal(out, x)
    finally:
        schedule(0)


def test_tokens_that_some_ways_wait_for() -> None:
    """A function that returns has no work under way, whichever of its branches it took."""
    library = program("async")
    schedule = library._native.api.mgpuHostSchedule
    x = numbers(10)
    try:
        for seed in range(1, 20):
            schedule(seed)
            for wait in (False, True):
                out, other = np.zeros(10, np.int32), np.zeros(10, np.int32)
                library.in_one_branch(x, out, wait)
                np.testing.assert_array_equal(out, x)
                out[:] = 0
                library.one_of_two(x, out, other, wait)
                np.testing.assert_array_equal(out, x)
                np.testing.assert_array_equal(other, x)
                out[:] = 0
                library.before_a_loop(x, out, int(wait))
                np.testing.assert_array_equal(out, x)
            out[:] = 0
            library.each_iteration(out, 10)
            np.testing.assert_array_equal(out, np.ones(10))
    finally:
        schedule(0)


@pytest.mark.parametrize("n", SIZES)
def test_the_same_without_tokens(n: int) -> None:
    out = np.zeros(n, np.int32)
    program("async").sync(numbers(n), out, 4)
    np.testing.assert_array_equal(out, numbers(n) + 5)


def test_memory_shared_with_the_host() -> None:
    assert program("async").host_shared(20) == sum(range(20)) + 20 * 5


def test_registered_host_memory() -> None:
    x = numbers(10)
    program("async").registered(x)
    np.testing.assert_array_equal(x, numbers(10) + 1)


def test_many_calls_from_many_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    library = program("async")

    def call(seed: int) -> Any:
        out = np.zeros(50, np.int32)
        for _ in range(20):
            library.diamond(numbers(50), seed, out)
        return out

    with ThreadPoolExecutor(8) as pool:
        for seed, out in enumerate(pool.map(call, range(16))):
            np.testing.assert_array_equal(out, numbers(50) + 3 + seed)


def test_streams_of_a_function_go_back_when_it_returns() -> None:
    text = emit_text(PROGRAMS / "async.mlir", "host-llvm")
    bodies = dict(_named(text))
    for name in ("chain", "diamond", "loop", "branch"):
        assert "call void @mgpuScopeEnd" in bodies[name]
        assert "mgpuStreamCreate" not in bodies[name]
        assert "mgpuEvent" not in bodies[name]
    assert "mgpuScope" not in bodies["sync"]


def _functions(text: str) -> list[tuple[str, str]]:
    found = []
    for part in text.split("\ndefine ")[1:]:
        head, _, rest = part.partition("\n")
        found.append((head, rest.split("\n}\n")[0]))
    return found


def test_async_programs_build_for_every_target(tmp_path: Path) -> None:
    library = offload.load(offload.build(PROGRAMS / "async.mlir", tmp_path / "async.so", targets=ALL_TARGETS))
    assert [image.target for image in library.metadata.images] == ["nvvm", "rocdl", "host"]


FILLS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64}


@pytest.mark.parametrize("kind", FILLS)
def test_fills_of_every_width(kind: str) -> None:
    library = on_host(f"""
      func.func @fill(%x: memref<?x3x{kind}>, %v: {kind}) {{
        %t0 = gpu.wait async
        %t1 = gpu.memset async [%t0] %x, %v : memref<?x3x{kind}>, {kind}
        gpu.wait [%t1]
        return
      }}
    """)
    for rows in (1, 7):
        x = np.zeros((rows, 3), FILLS[kind])
        library.fill(x, 77)
        np.testing.assert_array_equal(x, 77)


# Results.


def test_results_of_functions() -> None:
    library = on_host("""
      func.func @sum(%x: memref<?xf64>) -> f64 {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %zero = arith.constant 0.0 : f64
        %n = memref.dim %x, %c0 : memref<?xf64>
        %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> f64 {
          %v = memref.load %x[%i] : memref<?xf64>
          %t = arith.addf %s, %v : f64
          scf.yield %t : f64
        }
        return %sum : f64
      }
      func.func @several(%n: i32, %flag: i1) -> (i32, i1, index, f32) {
        %r = arith.addi %n, %n : i32
        %i = arith.index_cast %n : i32 to index
        %f = arith.sitofp %n : i32 to f32
        return %r, %flag, %i, %f : i32, i1, index, f32
      }
      func.func @squares(%n: index) -> memref<?xi64> {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %m = memref.alloc(%n) : memref<?xi64>
        scf.parallel (%i) = (%c0) to (%n) step (%c1) {
          %v = arith.muli %i, %i : index
          %w = arith.index_cast %v : index to i64
          memref.store %w, %m[%i] : memref<?xi64>
        }
        return %m : memref<?xi64>
      }
      func.func @both(%x: memref<2x3xf32>) -> (memref<2x3xf32>, memref<3xf32, strided<[1], offset: 3>>) {
        %row = memref.subview %x[1, 0][1, 3][1, 1] : memref<2x3xf32> to memref<3xf32, strided<[1], offset: 3>>
        return %x, %row : memref<2x3xf32>, memref<3xf32, strided<[1], offset: 3>>
      }
    """)
    assert library.sum(np.arange(10.0)) == 45
    assert library.several(-21, True) == (-42, True, -21, -21.0)
    np.testing.assert_array_equal(np.from_dlpack(library.squares(100)), np.arange(100) ** 2)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    same, row = library.both(x)
    same[1, 1] = 50
    assert row.tolist() == [3, 50, 5]
    assert x[1, 1] == 50


def test_a_result_in_device_memory() -> None:
    library = on_host("""
      func.func @doubled(%x: memref<?xf32>) -> memref<?xf32> {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %n = memref.dim %x, %c0 : memref<?xf32>
        %m = gpu.alloc (%n) : memref<?xf32>
        scf.parallel (%i) = (%c0) to (%n) step (%c1) {
          %v = memref.load %x[%i] : memref<?xf32>
          %r = arith.addf %v, %v : f32
          memref.store %r, %m[%i] : memref<?xf32>
        }
        return %m : memref<?xf32>
      }
    """)
    result = library.doubled(np.arange(300, dtype=np.float32))
    np.testing.assert_array_equal(np.from_dlpack(result), 2 * np.arange(300, dtype=np.float32))


# Memory that programs above the gpu dialect allocate.


@pytest.mark.parametrize("n", SIZES)
def test_temporaries_of_kernels(n: int) -> None:
    library = program("temporaries")
    x = numbers(n).astype(np.float32)
    out = np.zeros_like(x)
    library.between(x, out)
    np.testing.assert_array_equal(out, 2 * (x + 3))
    assert library.shared(n) == 2 * sum(range(n))
    library.copied(x, out)
    np.testing.assert_array_equal(out, 2 * x)
    few = np.zeros(4, np.float32)
    library.elsewhere(few)
    np.testing.assert_array_equal(few, [2, 4, 6, 8])


def test_temporaries_of_kernels_are_device_memory() -> None:
    bodies = dict(_named(emit_text(PROGRAMS / "temporaries.mlir", "host-llvm")))
    assert "@malloc" not in bodies["between"]
    assert "@free" not in bodies["between"]
    assert bodies["between"].count("@mgpuMemAlloc") == bodies["between"].count("@mgpuMemFree") == 1
    assert bodies["copied"].count("@mgpuMemcpy(") == 2


def _named(text: str) -> list[tuple[str, str]]:
    return [(head.split("@")[1].split("(")[0], body) for head, body in _functions(text)]


def test_a_temporary_that_is_freed_by_another_name() -> None:
    library = program("chosen")
    for which in (True, False):
        out = np.zeros(1000, np.float32)
        library.chosen(out, which)
        np.testing.assert_array_equal(out, 1 if which else 2)
    body = dict(_named(emit_text(PROGRAMS / "chosen.mlir", "host-llvm")))["chosen"]
    assert ("@malloc(" in body) == ("@free(" in body)
    assert ("@mgpuMemAlloc" in body) == ("@mgpuMemFree" in body)


@pytest.mark.parametrize("kind", ["alloc", "alloca"])
def test_memory_of_kernels_is_as_aligned_as_the_program_says(kind: str) -> None:
    free = "memref.dealloc %m : memref<4xf32>" if kind == "alloc" else ""
    library = on_host(f"""func.func @f() -> i64 {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %m = memref.{kind}() {{alignment = 4096 : i64}} : memref<4xf32>
      gpu.launch blocks(%a, %b, %c) in (%p = %c1, %q = %c1, %r = %c1)
          threads(%d, %e, %g) in (%u = %c1, %v = %c1, %w = %c1) {{
        %k = arith.constant 1.0 : f32
        memref.store %k, %m[%c0] : memref<4xf32>
        gpu.terminator
      }}
      %i = memref.extract_aligned_pointer_as_index %m : memref<4xf32> -> index
      %j = arith.index_cast %i : index to i64
      {free}
      return %j : i64
    }}""")
    assert [library.f() % 4096 for _ in range(3)] == [0, 0, 0]
