"""linalg operations that reduce everything to one value: many threads share the work, and the output stays in place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from compiling import ALL_TARGETS, emit, emit_text, on_host
from emulator.driver import shared
from emulator.on_device import OnDevice

import offload

DOT = """func.func @f(%x: memref<?xi32>, %y: memref<?xi32>, %to: memref<i32>) {
  linalg.dot ins(%x, %y : memref<?xi32>, memref<?xi32>) outs(%to : memref<i32>)
  return
}"""
SIZES = (0, 1, 2, 31, 33, 1000, 2049, 131_073, 300_000)


def check_dot(function: Callable[..., object], size: int) -> None:
    x, y = np.random.default_rng(size).integers(-40, 40, (2, size), dtype=np.int32)
    to = np.array(5, np.int32)
    function(x, y, to)
    assert to == 5 + x @ y, size


def test_products_of_vectors() -> None:
    function = on_host(DOT).f
    for size in SIZES:
        check_dot(function, size)
    assert len(emit(DOT, "object", ALL_TARGETS)) == 4 * len(ALL_TARGETS)


@pytest.mark.parametrize("chip", ["gfx90a", "gfx1100"])
def test_on_devices(chip: str) -> None:
    library = offload.compile(DOT, targets=[f"rocdl:{chip}"])
    with shared().chip(chip):
        library.use("hip")
        for size in (0, 1, 300):
            check_dot(OnDevice(library).f, size)
    shared().check()


def test_host_code_does_not_touch_the_output() -> None:
    """It may be memory of a device, which kernels alone read and write."""
    text = emit_text(DOT, "kernels", ["host"])
    host = text[: text.index("gpu.module")]
    assert "memref.load" not in host, text
    assert "memref.store" not in host, text


def reduce(kind: str, operation: str, shape: str, dimensions: str) -> str:
    array = f"memref<{shape}x{kind}>"
    return f"""func.func @f(%x: {array}, %to: memref<{kind}>) {{
      linalg.reduce ins(%x : {array}) outs(%to : memref<{kind}>) dimensions = [{dimensions}]
        (%a: {kind}, %b: {kind}) {{
          %s = arith.{operation} %a, %b : {kind}
          linalg.yield %s : {kind}
        }}
      return
    }}"""


OPERATIONS = {
    "addi": ("i64", np.int64, np.add), "muli": ("i32", np.int32, np.multiply), "andi": ("i8", np.int8, np.bitwise_and),
    "ori": ("i1", np.bool_, np.logical_or), "xori": ("i16", np.int16, np.bitwise_xor),
    "maxsi": ("i32", np.int32, np.maximum), "minsi": ("i32", np.int32, np.minimum),
    "maxui": ("i64", np.uint64, np.maximum), "minui": ("i64", np.uint64, np.minimum),
    "addf": ("f64", np.float64, np.add), "mulf": ("f32", np.float32, np.multiply),
    "maximumf": ("f32", np.float32, np.maximum), "minimumf": ("f32", np.float32, np.minimum),
    "maxnumf": ("f64", np.float64, np.fmax), "minnumf": ("f16", np.float16, np.fmin),
}  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations(operation: str) -> None:
    kind, dtype, reference = OPERATIONS[operation]
    function = on_host(reduce(kind, operation, "?", "0")).f
    for size in (0, 1, 40, 3000):
        x = np.random.default_rng(size).integers(1, 2 if operation == "mulf" else 100, size).astype(dtype)
        to = np.array(1, dtype)
        if operation == "muli":
            x |= 1  # else the product is soon 0
        expected = reference.reduce(x, initial=to, dtype=dtype)
        function(x.view(np.int64) if dtype == np.uint64 else x, to.view(np.int64) if dtype == np.uint64 else to)
        assert to == expected, size


@pytest.mark.parametrize(
    "shape",
    [(0, 5), (5, 0), (1, 1), (3, 1000), (1000, 3), (700, 257), (4, 0, 3), (3, 50, 41), (70, 3, 255), (2, 3, 5, 7)],
)
def test_several_dimensions(shape: tuple[int, ...]) -> None:
    dimensions = ", ".join(str(i) for i in range(len(shape)))
    function = on_host(reduce("i64", "addi", "x".join("?" for _ in shape), dimensions)).f
    x = np.random.default_rng(1).integers(-50, 50, shape)
    to = np.array(3)
    function(x, to)
    assert to == 3 + x.sum()


@pytest.mark.parametrize("size", [1, 256, 257, 5000])
def test_known_sizes(size: int) -> None:
    library = offload.compile(reduce("i32", "addi", str(size), "0"), targets=["host"], bare_pointers=True)
    to = np.array(1, np.int32)
    library.f(np.arange(size, dtype=np.int32), to)
    assert to == 1 + size * (size - 1) // 2


SEVERAL = """
#all = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>
#row = affine_map<(i, j) -> (i)>
#none = affine_map<(i, j) -> ()>
#first = affine_map<(i, j) -> (0)>
func.func @f(%x: memref<?x?xi32>, %y: memref<?x?xi32, strided<[?, ?], offset: ?>>, %w: memref<?xi32>, %k: i32,
             %sum: memref<1xi64>, %largest: memref<i32>, %times: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %times step %c1 {
    linalg.generic {indexing_maps = [#all, #turned, #row, #none, #first, #none],
                    iterator_types = ["reduction", "reduction"]}
        ins(%x, %y, %w, %k : memref<?x?xi32>, memref<?x?xi32, strided<[?, ?], offset: ?>>, memref<?xi32>, i32)
        outs(%sum, %largest : memref<1xi64>, memref<i32>) {
    ^bb0(%a: i32, %b: i32, %c: i32, %d: i32, %s: i64, %m: i32):
      %i = linalg.index 0 : index
      %n = arith.index_cast %i : index to i32
      %p = arith.muli %a, %b : i32
      %q = arith.addi %p, %c : i32
      %r = arith.muli %q, %d : i32
      %e = arith.extsi %r : i32 to i64
      %s2 = arith.addi %s, %e : i64
      %v = arith.addi %r, %n : i32
      %m2 = arith.maxsi %v, %m : i32
      linalg.yield %s2, %m2 : i64, i32
    }
  }
  return
}"""


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (40, 30), (300, 301)])
def test_several_results_of_arrays_that_lie_elsewhere(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    x, y, w = (rng.integers(-9, 9, each, dtype=np.int32) for each in (shape, shape[::-1], shape[:1]))
    total, largest = np.array([7]), np.array(-(2**31), np.int32)
    on_host(SEVERAL).f(x, y, w, 2, total, largest, 3)
    each = 2 * (x * y.T + w[:, None])
    assert total[0] == 7 + 3 * each.sum()
    assert largest == (each + np.arange(shape[0])[:, None]).max(initial=-(2**31))


IN_ORDER = """func.func @f(%x: memref<?xf64>, %to: memref<f64>) {
  linalg.reduce ins(%x : memref<?xf64>) outs(%to : memref<f64>) dimensions = [0] (%a: f64, %b: f64) {
    %half = arith.constant 0.5 : f64
    %s = arith.mulf %b, %half : f64
    %t = arith.addf %s, %a : f64
    linalg.yield %t : f64
  }
  return
}"""


def test_what_is_no_plain_reduction_is_done_in_order() -> None:
    x = np.random.default_rng(4).random(5000)
    expected = 1.0
    for value in x:
        expected = expected * 0.5 + value
    to = np.array(1.0)
    on_host(IN_ORDER).f(x, to)
    assert to == expected


RUNNING = """func.func @f(%x: memref<?xi32>, %sum: memref<i32>, %largest: memref<i32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> ()>],
                  iterator_types = ["reduction"]}
      ins(%x : memref<?xi32>) outs(%sum, %largest : memref<i32>, memref<i32>) {
  ^bb0(%a: i32, %s: i32, %l: i32):
    %t = arith.addi %s, %a : i32
    %m = arith.maxsi %l, %t : i32
    linalg.yield %t, %m : i32, i32
  }
  return
}"""


def test_a_result_that_is_made_of_another_on_its_way_is_done_in_order() -> None:
    x = np.random.default_rng(5).integers(-50, 50, 3000, dtype=np.int32)
    total, largest = np.zeros((), np.int32), np.array(-(2**31), np.int32)
    on_host(RUNNING).f(x, total, largest)
    assert (total, largest) == (x.sum(), np.cumsum(x).max())
