"""Operations without a lowering in MLIR 22, which offload writes out: results against NumPy's, machine code for all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import ALL_TARGETS, command, emit, on_host
from emulator.driver import shared
from emulator.on_device import OnDevice
from emulator.running import running_on

import offload


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


SOFTMAX = """
func.func @f(%x: memref<DIMSxTYPE, strided<[STRIDES], offset: ?>>, %y: memref<DIMSxTYPE>) {
  linalg.softmax dimension(AXIS) ins(%x : memref<DIMSxTYPE, strided<[STRIDES], offset: ?>>) outs(%y : memref<DIMSxTYPE>)
  return
}
"""


def softmax_of(rank: int, axis: int, kind: str) -> str:
    parts = {"DIMS": "x".join("?" * rank), "STRIDES": ", ".join("?" * rank), "TYPE": kind, "AXIS": str(axis)}
    text = SOFTMAX
    for name, part in parts.items():
        text = text.replace(name, part)
    return text


@pytest.mark.parametrize(("rank", "axis"), [(1, 0), (2, 0), (2, 1), (3, 1)])
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_softmax(rank: int, axis: int, kind: str) -> None:
    text = softmax_of(rank, axis, kind)
    dtype = np.dtype(kind.replace("f", "float"))
    for shape in ((5, 7, 6), (1, 1, 1), (0, 3, 2), (3, 0, 2)):
        x = np.random.default_rng(rank).standard_normal(shape[:rank][::-1]).astype(dtype).T
        y = np.zeros(shape[:rank], dtype)
        on_host(text).f(x, y)
        if y.size:
            np.testing.assert_allclose(y, softmax(x.astype(np.float64), axis), rtol=8 * np.finfo(dtype).eps)
    assert len(emit(text, "object", ALL_TARGETS)) == len(ALL_TARGETS)


ROWS = """
func.func @known(%x: memref<9x100xKIND>, %y: memref<9x100xKIND>) {
  linalg.softmax dimension(1) ins(%x : memref<9x100xKIND>) outs(%y : memref<9x100xKIND>)
  return
}
func.func @unknown(%x: memref<?x?x?xKIND>, %y: memref<?x?x?xKIND>) {
  linalg.softmax dimension(2) ins(%x : memref<?x?x?xKIND>) outs(%y : memref<?x?x?xKIND>)
  return
}
func.func @in_place(%x: memref<70xKIND>) {
  linalg.softmax dimension(0) ins(%x : memref<70xKIND>) outs(%x : memref<70xKIND>)
  return
}
"""


def check_rows(library: offload.Library | OnDevice, kind: str, lengths: tuple[int, ...]) -> None:
    dtype = np.dtype(kind.replace("f", "float"))
    random, close = np.random.default_rng(3), {"rtol": 16 * np.finfo(dtype).eps, "atol": np.finfo(dtype).tiny}
    x, y = random.standard_normal((9, 100)).astype(dtype), np.zeros((9, 100), dtype)
    library.known(x, y)
    np.testing.assert_allclose(y, softmax(x.astype(np.float64), 1), **close)
    row = random.standard_normal(70).astype(dtype)
    want = softmax(row.astype(np.float64), 0)
    library.in_place(row)
    np.testing.assert_allclose(row, want, **close)
    for length in lengths:
        x, y = random.standard_normal((2, 3, length)).astype(dtype), np.zeros((2, 3, length), dtype)
        library.unknown(x, y)
        np.testing.assert_allclose(y, softmax(x.astype(np.float64), 2), **close)


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_softmax_of_rows_that_subgroups_share(kind: str) -> None:
    check_rows(on_host(ROWS.replace("KIND", kind)), kind, (1, 63, 64, 65, 500))


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx1100", "sm_80"])
def test_softmax_of_rows_on_devices(chip: str) -> None:
    with running_on(chip, ROWS.replace("KIND", "f32")) as library:
        check_rows(library, "f32", (3, 70))


def test_softmax_of_values_that_are_no_numbers() -> None:
    """As linalg's own decomposition on tensors has it."""
    x = np.array([[1, np.nan, 2], [-np.inf, 0, 0], [-np.inf] * 3, [3e38, -3e38, 0]], np.float32)
    y = np.zeros_like(x)
    on_host(softmax_of(2, 1, "f32")).f(x, y)
    np.testing.assert_array_equal(y, [[np.nan] * 3, [0, 0.5, 0.5], [np.nan] * 3, [1, 0, 0]])


KERNEL = """
gpu.module @m { gpu.func @k(%x: memref<4x6xf32>) kernel {
  %t = gpu.thread_id x
  %row = memref.subview %x[%t, 0] [1, 6] [1, 1] : memref<4x6xf32> to memref<6xf32, strided<[1], offset: ?>>
  linalg.softmax dimension(0) ins(%row : memref<6xf32, strided<[1], offset: ?>>)
    outs(%row : memref<6xf32, strided<[1], offset: ?>>)
  gpu.return
} }
"""
LOOP = """
func.func @f(%x: memref<4x6xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %row = memref.subview %x[%i, 0] [1, 6] [1, 1] : memref<4x6xf32> to memref<6xf32, strided<[1], offset: ?>>
    linalg.softmax dimension(0) ins(%row : memref<6xf32, strided<[1], offset: ?>>)
      outs(%row : memref<6xf32, strided<[1], offset: ?>>)
  }
  return
}
"""


def test_softmax_in_kernels_and_loops() -> None:
    x = np.random.default_rng(4).standard_normal((4, 6)).astype(np.float32)
    in_kernel, in_loop = x.copy(), x.copy()
    on_host(KERNEL).kernels.k[1, 4](in_kernel)
    on_host(LOOP).f(in_loop)
    np.testing.assert_allclose(in_kernel, softmax(x, 1), rtol=1e-6)
    np.testing.assert_allclose(in_loop, softmax(x, 1), rtol=1e-6)


EXPANDED = """
func.func @host(%x: memref<?xi32>, %a: index, %b: index) -> memref<?x?x2xi32> {
  %e = memref.expand_shape %x [[0, 1, 2]] output_shape [%a, %b, 2] : memref<?xi32> into memref<?x?x2xi32>
  return %e : memref<?x?x2xi32>
}
func.func @kernel(%x: memref<?x?xi32, strided<[?, 2], offset: ?>>, %a: index, %b: index, %y: memref<?x?x?xi32>) {
  %c1 = arith.constant 1 : index
  %m = memref.dim %x, %c1 : memref<?x?xi32, strided<[?, 2], offset: ?>>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %a, %gy = %b, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %m, %sy = %c1, %sz = %c1) {
    %e = memref.expand_shape %x [[0, 1], [2]] output_shape [%a, %b, %m]
      : memref<?x?xi32, strided<[?, 2], offset: ?>> into memref<?x?x?xi32, strided<[?, ?, 2], offset: ?>>
    %v = memref.load %e[%bx, %by, %tx] : memref<?x?x?xi32, strided<[?, ?, 2], offset: ?>>
    memref.store %v, %y[%bx, %by, %tx] : memref<?x?x?xi32>
    gpu.terminator
  }
  return
}
func.func @temporary(%n: index, %a: index, %b: index, %y: memref<?x?xi32>) {
  %x = memref.alloc(%n) : memref<?xi32>
  %three = arith.constant 3 : i32
  linalg.fill ins(%three : i32) outs(%x : memref<?xi32>)
  %e = memref.expand_shape %x [[0, 1]] output_shape [%a, %b] : memref<?xi32> into memref<?x?xi32>
  linalg.add ins(%e, %y : memref<?x?xi32>, memref<?x?xi32>) outs(%y : memref<?x?xi32>)
  memref.dealloc %x : memref<?xi32>
  return
}
"""


def check_expanded(library: Any) -> None:
    x = np.arange(120, dtype=np.int32).reshape(10, 12)[1:7, ::2]
    y = np.zeros((2, 3, 6), np.int32)
    library.kernel(x, 2, 3, y)
    np.testing.assert_array_equal(y, x.reshape(2, 3, 6))
    ones = np.ones((3, 5), np.int32)
    library.temporary(15, 3, 5, ones)
    assert (ones == 4).all()


def test_two_unknown_sizes_of_one() -> None:
    """mlir-opt 22 ends with a segmentation fault."""
    library = on_host(EXPANDED)
    x = np.arange(30, dtype=np.int32)
    np.testing.assert_array_equal(library.host(x, 3, 5), x.reshape(3, 5, 2))
    check_expanded(library)


STEPS = """
func.func @host(%x: memref<2x3x4xi32>, %step: index, %n: index, %v: i32) {
  %part = memref.subview %x[1, %step, 0] [1, 1, %n] [%step, %step, 2]
    : memref<2x3x4xi32> to memref<1x?xi32, strided<[?, 2], offset: ?>>
  gpu.memset %part, %v : memref<1x?xi32, strided<[?, 2], offset: ?>>, i32
  return
}
func.func @loops(%x: memref<2x3x4xi32>, %step: index, %v: i32) {
  %one = arith.constant 1 : index
  %part = memref.subview %x[1, %step, 0] [%one, 1, 2] [1, %step, 2]
    : memref<2x3x4xi32> to memref<?x2xi32, strided<[12, 2], offset: ?>>
  %line = memref.subview %part[0, 0] [1, 2] [2, 1]
    : memref<?x2xi32, strided<[12, 2], offset: ?>> to memref<2xi32, strided<[2], offset: ?>>
  linalg.fill ins(%v : i32) outs(%line : memref<2xi32, strided<[2], offset: ?>>)
  return
}
func.func @kernel(%x: memref<2x3x4xi32>, %step: index, %v: i32) {
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %two, %sy = %one, %sz = %one) {
    %part = memref.subview %x[1, %step, %tx] [1, 1, 1] [%step, %step, 3]
      : memref<2x3x4xi32> to memref<1x1xi32, strided<[?, 3], offset: ?>>
    %c0 = arith.constant 0 : index
    memref.store %v, %part[%c0, %c0] : memref<1x1xi32, strided<[?, 3], offset: ?>>
    gpu.terminator
  }
  return
}
"""


def test_views_with_steps_and_fewer_dimensions() -> None:
    """Which dimension of size 1 goes is open to MLIR where steps change the strides: mlir-opt 22 ends there."""
    library = on_host(STEPS)
    x, places = np.zeros((2, 3, 4), np.int32), np.zeros((2, 3, 4), np.int32)
    library.host(x, 2, 2, 5)
    places[1, 2, ::2] = 5
    np.testing.assert_array_equal(x, places)
    library.loops(x, 1, 6)
    places[1, 1, ::2] = 6
    np.testing.assert_array_equal(x, places)
    library.kernel(x, 1, 7)
    places[1, 1, :2] = 7
    np.testing.assert_array_equal(x, places)
    assert len(emit(STEPS, "object", ALL_TARGETS)) == 2 * len(ALL_TARGETS)


GROWN = """
func.func @f(%n: index, %v: f32, %y: memref<?xf32>) {
  %small = memref.alloc() : memref<4xf32>
  linalg.fill ins(%v : f32) outs(%small : memref<4xf32>)
  %other = memref.realloc %small(%n) : memref<4xf32> to memref<?xf32>
  %c0 = arith.constant 0 : index
  %size = memref.dim %y, %c0 : memref<?xf32>
  %part = memref.subview %other[0] [%size] [1] : memref<?xf32> to memref<?xf32, strided<[1]>>
  linalg.add ins(%part, %y : memref<?xf32, strided<[1]>>, memref<?xf32>) outs(%y : memref<?xf32>)
  memref.dealloc %other : memref<?xf32>
  return
}
"""


@pytest.mark.parametrize("size", [2, 4, 1000])
def test_memory_of_another_size(size: int) -> None:
    y = np.ones(min(size, 4), np.float32)
    on_host(GROWN).f(size, 2.0, y)
    assert (y == 3).all()


MAPPED = """
func.func @f(%x: memref<8x64xf32>, %y: memref<?xf32>) {
  %c = arith.constant 2.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?xf32>
  scf.forall (%i) in (8) {
    scf.forall (%j) in (64) {
      memref.store %c, %x[%i, %j] : memref<8x64xf32>
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  scf.forall (%i) = (0) to (%n) step (4) {
    %size = affine.min affine_map<(i)[n] -> (4, n - i)>(%i)[%n]
    %part = memref.subview %y[%i] [%size] [1] : memref<?xf32> to memref<?xf32, strided<[1], offset: ?>>
    linalg.fill ins(%c : f32) outs(%part : memref<?xf32, strided<[1], offset: ?>>)
  } {mapping = [#gpu.warp<linear_dim_0>]}
  return
}
"""


def test_mapped_loops() -> None:
    """How the transform dialect would map them is nothing that loops compute."""
    x, y = np.ones((8, 64), np.float32), np.ones(13, np.float32)
    on_host(MAPPED).f(x, y)
    assert (x == 2).all()
    assert (y == 2).all()


@pytest.mark.parametrize("chip", ["gfx942", "gfx1201"])
def test_on_devices(chip: str) -> None:
    x = np.random.default_rng(5).standard_normal((4, 6)).astype(np.float32)
    with shared().chip(chip):
        for source, call in ((LOOP, lambda library: library.f), (KERNEL, lambda library: library.kernels.k[1, 4])):
            library = offload.compile(source, targets=[f"rocdl:{chip}"])
            library.use("hip")
            got = x.copy()
            call(OnDevice(library))(got)
            np.testing.assert_allclose(got, softmax(x, 1), rtol=1e-6)
        library = offload.compile(EXPANDED, targets=[f"rocdl:{chip}"])
        library.use("hip")
        check_expanded(OnDevice(library))
    shared().check()


OPEN = "memref<?x?x14x?xf32, strided<[?, ?, ?, ?], offset: ?>>"
# Of %x[n, n, n + i, 0], i below 6: which of the three dimensions of size 1 stay, the shape of the part says.
PARTS = {
    "front": ("memref<1x?xf32, strided<[?, ?], offset: ?>>", "%c0, %i"),
    "back": ("memref<?x1xf32, strided<[?, ?], offset: ?>>", "%i, %c0"),
    "both": ("memref<1x?x1xf32, strided<[?, ?, ?], offset: ?>>", "%c0, %i, %c0"),
    "none": ("memref<?xf32, strided<[?], offset: ?>>", "%i"),
}


def part(name: str, steps: str) -> str:
    kind, at = PARTS[name]
    return f"""
func.func @{name}(%x: {OPEN}, %n: index, %size: index, %out: memref<?xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %part = memref.subview %x[%n, %n, %n, 0] [1, 1, %size, 1] [{steps}] : {OPEN} to {kind}
  scf.parallel (%i) = (%c0) to (%size) step (%c1) {{
    %v = memref.load %part[{at}] : {kind}
    memref.store %v, %out[%i] : memref<?xf32>
  }}
  return
}}
"""


@pytest.mark.parametrize("steps", ["1, 1, 1, 1", "3, 3, 2, 1"])
@pytest.mark.parametrize("target", ["host", "rocdl:gfx942"])
def test_some_of_several_dimensions_of_size_1_are_dropped(steps: str, target: str) -> None:
    library = offload.compile("".join(part(name, steps) for name in PARTS), targets=[target])
    x = np.arange(2 * 3 * 14 * 5, dtype=np.float32).reshape(2, 3, 14, 5)
    with shared().chip("gfx942"):
        library.use("host" if target == "host" else "hip")
        library.auto_stage = True
        for name in PARTS:
            out = np.zeros(6, np.float32)
            library.functions[name](x, 1, 6, out)
            np.testing.assert_array_equal(out, x[1, 1, 1 :: int(steps[6]), 0][:6], name)
    shared().check()


SMALL_PRINTS = """
func.func @main() {
  %a = arith.constant 1.4 : f8E4M3FN
  %b = arith.constant dense<[[-0.5, 6.0]]> : vector<1x2xf4E2M1FN>
  %c = arith.constant dense<[1.25, -448.0]> : vector<2xf8E5M2>
  vector.print %a : f8E4M3FN
  vector.print %b : vector<1x2xf4E2M1FN>
  vector.print %c : vector<2xf8E5M2>
  return
}
"""


def test_prints_of_small_numbers(tmp_path: Path) -> None:
    """MLIR calls a function for them that is in a library of its own."""
    (tmp_path / "p.mlir").write_text(SMALL_PRINTS)
    done = command("run", "p.mlir", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1.375\n( ( -0.5, 6 ) )\n( 1.25, -448 )\n"), done.stderr
