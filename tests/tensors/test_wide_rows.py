"""Rows that GPUs go through several elements at once, and the CPU one by one: results as NumPy has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import emit_text, on_host
from emulator.running import running_on

CHIPS = ["host", "sm_90", "gfx942", "gfx1100"]
BITS = {"f64": "0xFFF0000000000000", "f32": "0xFF800000"}

_random = np.random.default_rng(23)


def softmax_text(name: str, rows: int, length: int, element: str, wide: str) -> str:
    """In parts, which are ``wide``; the last one writes memory of the caller's."""
    given, kept = f"{rows}x{length}x{element}", f"{rows}x{length}x{wide}"
    grown = f"arith.extf %e : {element} to {wide}" if element != wide else f"arith.addf %e, %nil : {wide}"
    less = f"arith.truncf %q : {wide} to {element}" if element != wide else f"arith.addf %q, %nil : {wide}"
    return f"""
func.func @{name}(%x: tensor<{given}>, %out_to: memref<{given}>) {{
  %out = bufferization.to_tensor %out_to restrict writable : memref<{given}> to tensor<{given}>
  %zero = arith.constant 0.0 : {wide}
  %nil = arith.constant -0.0 : {wide}
  %least = arith.constant {BITS[wide]} : {wide}
  %numbers = tensor.empty() : tensor<{rows}x{wide}>
  %elements = tensor.empty() : tensor<{kept}>
  %from = linalg.fill ins(%least : {wide}) outs(%numbers : tensor<{rows}x{wide}>) -> tensor<{rows}x{wide}>
  %nothing = linalg.fill ins(%zero : {wide}) outs(%numbers : tensor<{rows}x{wide}>) -> tensor<{rows}x{wide}>
  %most = linalg.generic {{indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}}
      ins(%x : tensor<{given}>) outs(%from : tensor<{rows}x{wide}>) {{
  ^bb0(%e: {element}, %sofar: {wide}):
    %v = {grown}
    %larger = arith.maximumf %v, %sofar : {wide}
    linalg.yield %larger : {wide}
  }} -> tensor<{rows}x{wide}>
  %powers = linalg.generic {{indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}}
      ins(%x, %most : tensor<{given}>, tensor<{rows}x{wide}>) outs(%elements : tensor<{kept}>) {{
  ^bb0(%e: {element}, %m: {wide}, %o: {wide}):
    %v = {grown}
    %less = arith.subf %v, %m : {wide}
    %power = math.exp %less : {wide}
    linalg.yield %power : {wide}
  }} -> tensor<{kept}>
  %sum = linalg.generic {{indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}}
      ins(%powers : tensor<{kept}>) outs(%nothing : tensor<{rows}x{wide}>) {{
  ^bb0(%v: {wide}, %sofar: {wide}):
    %more = arith.addf %v, %sofar : {wide}
    linalg.yield %more : {wide}
  }} -> tensor<{rows}x{wide}>
  %y = linalg.generic {{indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}}
      ins(%powers, %sum : tensor<{kept}>, tensor<{rows}x{wide}>) outs(%out : tensor<{given}>) {{
  ^bb0(%v: {wide}, %s: {wide}, %o: {element}):
    %q = arith.divf %v, %s : {wide}
    %part = {less}
    linalg.yield %part : {element}
  }} -> tensor<{given}>
  bufferization.materialize_in_destination %y in restrict writable %out_to : (tensor<{given}>, memref<{given}>) -> ()
  return
}}
"""


MAPS = "#all = affine_map<(i, k) -> (i, k)>\n#row = affine_map<(i, k) -> (i)>\n#step = affine_map<(i, k) -> (k)>\n"
CASES = [  # rows, elements of a row
    (5, 128, "f32", "f32"),  # a subgroup for a row, a piece for each lane
    (5, 132, "f32", "f32"),  # some have two
    (6, 1020, "f32", "f32"),
    (6, 1024, "f32", "f32"),  # a block's threads
    (5, 1028, "f32", "f32"),
    (3, 2052, "f32", "f32"),  # of a larger block
    (2, 4100, "f32", "f32"),
    (2, 8196, "f32", "f32"),  # more than a thread keeps
    (3, 130, "f64", "f64"),
    (5, 514, "f64", "f64"),
    (5, 264, "f16", "f32"),
    (5, 1032, "f16", "f32"),
    (5, 1030, "f16", "f32"),  # no whole pieces
    (5, 133, "f32", "f32"),
    (1, 1024, "f32", "f32"),
]
DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def program() -> str:
    return MAPS + "".join(softmax_text(f"f{i}", *case) for i, case in enumerate(CASES))


def softmax(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        powers = np.exp(wide - wide.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)


# Narrow indices hold no addresses, so none is asked for its alignment.
@pytest.mark.parametrize("chip", [*CHIPS, "sm_90,index=32", "gfx942,index=32"])
def test_softmax(chip: str) -> None:
    with running_on(chip, program()) as library:
        for i, (rows, length, element, _) in enumerate(CASES):
            x = _random.standard_normal((rows, length)).astype(DTYPES[element])
            x[0, length // 2] = np.inf if i % 3 == 0 else 3  # infinity and what comes of it
            x[-1, 0] = -np.inf
            x[rows // 2, length - 1] = np.nan if i % 3 == 1 else 1
            out = np.zeros_like(x)
            getattr(library, f"f{i}")(x, out)
            tolerance = 2e-3 if element == "f16" else 2e-5
            np.testing.assert_allclose(out, softmax(x), rtol=tolerance, atol=1e-7, err_msg=str(CASES[i]))


def test_in_place() -> None:
    """What is written may be the tensor itself."""
    library = on_host(program())
    for i in (2, 4, 7):
        x = _random.standard_normal(CASES[i][:2]).astype(np.float32)
        expected = softmax(x)
        getattr(library, f"f{i}")(x, x)
        np.testing.assert_allclose(x, expected, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("chip", ["sm_90", "gfx942"])
def test_in_place_on_devices(chip: str) -> None:
    with running_on(chip, program()) as library:
        for i in (2, 4, 7):
            x = _random.standard_normal(CASES[i][:2]).astype(np.float32)
            there = library.device.array(x)
            getattr(library, f"f{i}")(there, there)
            np.testing.assert_allclose(there.numpy(), softmax(x), rtol=2e-5, atol=1e-7)


PARTS = (
    MAPS
    + """
// Rows from anywhere in an array: less their sums, plus what a column has.
func.func @parts(%x: memref<?xi32>, %first: index, %stride: index, %rows: index, %length: index, %step: memref<?xi32>,
                 %sums: memref<?xi32>, %out: memref<?x?xi32>) {
  %zero = arith.constant 0 : i32
  %part = memref.reinterpret_cast %x to offset: [%first], sizes: [%rows, %length], strides: [%stride, 1]
      : memref<?xi32> to memref<?x?xi32, strided<[?, 1], offset: ?>>
  linalg.fill ins(%zero : i32) outs(%sums : memref<?xi32>)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%part : memref<?x?xi32, strided<[?, 1], offset: ?>>) outs(%sums : memref<?xi32>) {
  ^bb0(%v: i32, %sofar: i32):
    %more = arith.addi %v, %sofar : i32
    linalg.yield %more : i32
  }
  linalg.generic {indexing_maps = [#row, #step, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%sums, %step, %part : memref<?xi32>, memref<?xi32>, memref<?x?xi32, strided<[?, 1], offset: ?>>)
      outs(%out : memref<?x?xi32>) {
  ^bb0(%s: i32, %c: i32, %v: i32, %o: i32):
    %less = arith.subi %v, %s : i32
    %more = arith.addi %less, %c : i32
    linalg.yield %more : i32
  }
  return
}
"""
)


def check_parts(library: Any, rows: int, length: int, first: int, stride: int) -> None:
    x = _random.integers(-(2**31), 2**31, first + rows * stride + 3, np.int32)
    step = _random.integers(-(2**31), 2**31, length, np.int32)
    sums, out = np.zeros(rows, np.int32), np.zeros((rows, length), np.int32)
    library.parts(x, first, stride, rows, length, step, sums, out)
    part = np.lib.stride_tricks.as_strided(x[first:], (rows, length), (4 * stride, 4))
    np.testing.assert_array_equal(sums, part.sum(1, dtype=np.int32))
    np.testing.assert_array_equal(out, part - sums[:, None] + step)


ROWS = ((0, 64), (1, 0), (5, 64), (5, 1024), (3, 1028), (3, 1030), (2, 2052), (1, 5120), (9, 1536))
STARTS = ((0, 0), (4, 4), (1, 0), (2, 4), (4, 1), (8, 2))


@pytest.mark.parametrize("chip", CHIPS)
def test_parts_of_memory(chip: str, full: bool) -> None:
    """Of any alignment, and rows of any length, in pieces as they are loaded at once or not: another third on each
    emulated chip, all with ``--full``."""
    with running_on(chip, PARTS) as library:
        for row, (rows, length) in enumerate(ROWS):
            for start, (first, more) in enumerate(STARTS):
                if full or chip == "host" or (row + start + CHIPS.index(chip)) % 3 == 0:
                    check_parts(library, rows, length, first, length + more)


@pytest.mark.parametrize("between", ["f32", "f64"])
def test_what_is_between_steps_is_not_stored(between: str) -> None:
    """A kernel for all of it: what no step reads but in the same place has no memory where another type's has some."""
    text = emit_text(MAPS + softmax_text("f", 1030, 1024, "f32", between), "kernels", ["nvvm:sm_90"])
    assert text.count("gpu.launch_func") == 1
    assert text.count("gpu.alloc") == (0 if between == "f32" else 1)
    wide = text[text.index("scf.for") : text.index("} else {")]
    pieces = 2 if between == "f32" else 4
    assert (wide.count("vector.load"), wide.count("vector.store")) == (pieces, pieces)


APART = (
    MAPS
    + """
// What is written may lie elsewhere in memory that is read: it is written when all rows have been read.
func.func @apart(%x: memref<9x1024xf32>, %out: memref<9x1024xf32>) {
  %zero = arith.constant 0.0 : f32
  %sums = memref.alloc() : memref<9xf32>
  %less = memref.alloc() : memref<9x1024xf32>
  linalg.fill ins(%zero : f32) outs(%sums : memref<9xf32>)
  linalg.reduce {arith.addf} ins(%x : memref<9x1024xf32>) outs(%sums : memref<9xf32>) dimensions = [1]
  linalg.generic {indexing_maps = [#row, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%sums, %x : memref<9xf32>, memref<9x1024xf32>) outs(%less : memref<9x1024xf32>) {
  ^bb0(%s: f32, %v: f32, %o: f32):
    %r = arith.subf %v, %s : f32
    linalg.yield %r : f32
  }
  linalg.copy ins(%less : memref<9x1024xf32>) outs(%out : memref<9x1024xf32>)
  memref.dealloc %less : memref<9x1024xf32>
  memref.dealloc %sums : memref<9xf32>
  return
}
"""
)


def test_memory_that_may_overlap_is_written_last() -> None:
    library = on_host(APART)
    memory = _random.standard_normal((10, 1024)).astype(np.float32)
    x, out, before = memory[1:], memory[:-1], memory[1:].copy()
    library.apart(x, out)
    np.testing.assert_allclose(out, before - before.sum(1, keepdims=True), rtol=1e-4, atol=1e-4)


SCALED = (
    MAPS
    + """
// Each row's elements by its largest one, and by what their columns have.
func.func @scaled(%x: tensor<9x1024xf32>, %gamma: tensor<1024xf32>, %out_to: memref<9x1024xf32>) {
  %out = bufferization.to_tensor %out_to restrict writable : memref<9x1024xf32> to tensor<9x1024xf32>
  %least = arith.constant 0xFF800000 : f32
  %numbers = tensor.empty() : tensor<9xf32>
  %from = linalg.fill ins(%least : f32) outs(%numbers : tensor<9xf32>) -> tensor<9xf32>
  %most = linalg.reduce {arith.maximumf} ins(%x : tensor<9x1024xf32>) outs(%from : tensor<9xf32>) dimensions = [1]
  %r = linalg.generic {indexing_maps = [#all, #row, #step, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %most, %gamma : tensor<9x1024xf32>, tensor<9xf32>, tensor<1024xf32>) outs(%out : tensor<9x1024xf32>) {
  ^bb0(%v: f32, %m: f32, %g: f32, %o: f32):
    %q = arith.divf %v, %m : f32
    %y = arith.mulf %q, %g : f32
    linalg.yield %y : f32
  } -> tensor<9x1024xf32>
  bufferization.materialize_in_destination %r in restrict writable %out_to
      : (tensor<9x1024xf32>, memref<9x1024xf32>) -> ()
  return
}
"""
)


def test_factors_of_rows_are_no_products_of_matrices() -> None:
    """What rows have beside their elements, in dimensions of its own, does not keep steps from being one kernel."""
    program = """
#all = affine_map<(b, h, k) -> (b, h, k)>
#row = affine_map<(b, h, k) -> (b, h)>
#mask = affine_map<(b, h, k) -> (b, k)>
#place = affine_map<(b, h, k) -> (h, k)>
func.func @f(%x: tensor<3x5x128xf32>, %m: tensor<3x128xf32>, %p: tensor<5x128xf32>) -> tensor<3x5x128xf32> {
  %zero = arith.constant 0.0 : f32
  %numbers = tensor.empty() : tensor<3x5xf32>
  %elements = tensor.empty() : tensor<3x5x128xf32>
  %nothing = linalg.fill ins(%zero : f32) outs(%numbers : tensor<3x5xf32>) -> tensor<3x5xf32>
  %sums = linalg.generic {indexing_maps = [#all, #mask, #place, #row],
                          iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %m, %p : tensor<3x5x128xf32>, tensor<3x128xf32>, tensor<5x128xf32>) outs(%nothing : tensor<3x5xf32>) {
  ^bb0(%v: f32, %a: f32, %b: f32, %s: f32):
    %w = arith.mulf %v, %a : f32
    %c = arith.addf %w, %b : f32
    %square = arith.mulf %c, %c : f32
    %more = arith.addf %s, %square : f32
    linalg.yield %more : f32
  } -> tensor<3x5xf32>
  %r = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %sums : tensor<3x5x128xf32>, tensor<3x5xf32>) outs(%elements : tensor<3x5x128xf32>) {
  ^bb0(%v: f32, %s: f32, %o: f32):
    %q = arith.divf %v, %s : f32
    linalg.yield %q : f32
  } -> tensor<3x5x128xf32>
  return %r : tensor<3x5x128xf32>
}
"""
    assert emit_text(program, "kernels").count("gpu.launch_func") == 1
    x, m, p = (_random.standard_normal(shape).astype(np.float32) for shape in ((3, 5, 128), (3, 128), (5, 128)))
    sums = ((x * m[:, None] + p[None]) ** 2).sum(2, keepdims=True)
    np.testing.assert_allclose(on_host(program).f(x, m, p).numpy(), x / sums, rtol=1e-4, atol=1e-6)


def test_what_columns_have_is_no_part_of_the_output() -> None:
    assert emit_text(SCALED, "kernels").count("gpu.launch_func") == 1
    x, gamma, out = (_random.standard_normal(shape).astype(np.float32) for shape in ((9, 1024), 1024, (9, 1024)))
    on_host(SCALED).scaled(x, gamma, out)
    np.testing.assert_allclose(out, x / x.max(1, keepdims=True) * gamma, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("operation", "element"), [("powf %v, %v", "f64"), ("sin %v", "f64"), ("erf %v", "f16")])
def test_long_steps_are_not_written_out_for_each_piece(operation: str, element: str) -> None:
    """A length of many pieces with such steps took a minute to compile."""
    steps = "\n".join(f"    %v{i} = math.{operation.replace('%v', f'%v{i - 1}')} : {element}" for i in range(1, 9))
    program = f"""
func.func @f(%x: memref<300x8192x{element}>, %to: memref<300x{element}>) {{
  %sums = memref.alloc() : memref<300x{element}>
  %zero = arith.constant 0.0 : {element}
  linalg.fill ins(%zero : {element}) outs(%sums : memref<300x{element}>)
  linalg.generic {{indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}}
      ins(%x : memref<300x8192x{element}>) outs(%sums : memref<300x{element}>) {{
  ^bb0(%v0: {element}, %sum: {element}):
{steps}
    %more = arith.addf %sum, %v8 : {element}
    linalg.yield %more : {element}
  }}
  memref.copy %sums, %to : memref<300x{element}> to memref<300x{element}>
  memref.dealloc %sums : memref<300x{element}>
  return
}}
"""
    assert emit_text(program, "kernels").count(f"math.{operation.split()[0]}") <= 4 * 8
