"""Programs on parts of tensors and on tiles: slices, packing, the transforms of Winograd's convolution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import ALL_TARGETS, emit, emit_text, on_host
from emulator.running import running_on
from test_whole_programs import run

import offload

PARTS = """
func.func @returned(%x: tensor<?x?xf32>, %m: index, %n: index) -> tensor<?x?xf32> {
  %y = math.absf %x : tensor<?x?xf32>
  %part = tensor.extract_slice %y[0, 0] [%m, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
  return %part : tensor<?x?xf32>
}
func.func @of_argument(%x: tensor<?x?xf32>, %m: index, %n: index) -> tensor<?x?xf32> {
  %part = tensor.extract_slice %x[0, 0] [%m, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
  return %part : tensor<?x?xf32>
}
func.func @of_known_rows(%x: tensor<4x5xf32>, %m: index, %n: index) -> tensor<3x?xf32> {
  %y = math.absf %x : tensor<4x5xf32>
  %part = tensor.extract_slice %y[0, 0] [3, %n] [1, 1] : tensor<4x5xf32> to tensor<3x?xf32>
  return %part : tensor<3x?xf32>
}
func.func private @absolute(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = math.absf %x : tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
func.func @handed_on(%x: tensor<?x?xf32>, %m: index, %n: index) -> tensor<?x?xf32> {
  %part = tensor.extract_slice %x[0, 0] [%m, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
  %y = func.call @absolute(%part) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
"""


@pytest.mark.parametrize("opt", [0, 3])
@pytest.mark.parametrize("name", ["returned", "of_argument", "of_known_rows", "handed_on"])
def test_parts_of_rows_where_functions_begin_and_end(name: str, opt: int) -> None:
    """MLIR's bufferization takes the memory of such a part for that of a whole tensor."""
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    np.testing.assert_array_equal(on_host(PARTS, opt).functions[name](x, 3, 2).numpy(), x[:3, :2])


TILES = """
func.func @f(%x: tensor<?x?xf32>, %tiles: tensor<?x?x8x4xf32>, %to: tensor<?x?xf32>)
    -> (tensor<?x?x8x4xf32>, tensor<?x?xf32>) {
  %pad = arith.constant 0.5 : f32
  %r = linalg.pack %x padding_value(%pad : f32) outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [8, 4]
    into %tiles : tensor<?x?xf32> -> tensor<?x?x8x4xf32>
  %u = linalg.unpack %r outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [8, 4]
    into %to : tensor<?x?x8x4xf32> -> tensor<?x?xf32>
  return %r, %u : tensor<?x?x8x4xf32>, tensor<?x?xf32>
}
"""


@pytest.mark.parametrize("shape", [(13, 9), (16, 8), (1, 1)])
def test_tiles(shape: tuple[int, int]) -> None:
    rows, columns = -(-shape[0] // 8), -(-shape[1] // 4)
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    results = on_host(TILES).f(x, np.zeros((columns, rows, 8, 4), np.float32), np.zeros_like(x))
    tiles, back = (result.numpy() for result in results)
    rest = [(0, rows * 8 - shape[0]), (0, columns * 4 - shape[1])]
    padded = np.pad(x, rest, constant_values=0.5).reshape(rows, 8, columns, 4)
    np.testing.assert_array_equal(tiles, padded.transpose(2, 0, 1, 3))
    np.testing.assert_array_equal(back, x)
    assert len(emit(TILES, "object", ALL_TARGETS)) > len(ALL_TARGETS)


ANY_TILES = """
func.func @padded(%x: tensor<?x?xf32>, %rows: index, %columns: index) -> tensor<?x?x?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %pad = arith.constant 0.5 : f32
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?xf32>
  %a = arith.ceildivui %n, %rows : index
  %b = arith.ceildivui %m, %columns : index
  %to = tensor.empty(%b, %a, %columns, %rows) : tensor<?x?x?x?xf32>
  %r = linalg.pack %x padding_value(%pad : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1, 0]
    inner_tiles = [%columns, %rows] into %to : tensor<?x?xf32> -> tensor<?x?x?x?xf32>
  return %r : tensor<?x?x?x?xf32>
}
func.func @filled(%x: tensor<12x?xf32>, %rows: index) -> tensor<?x?x?xf32> {
  %c1 = arith.constant 1 : index
  %c12 = arith.constant 12 : index
  %m = tensor.dim %x, %c1 : tensor<12x?xf32>
  %a = arith.divui %c12, %rows : index
  %to = tensor.empty(%a, %m, %rows) : tensor<?x?x?xf32>
  %r = linalg.pack %x inner_dims_pos = [0] inner_tiles = [%rows] into %to : tensor<12x?xf32> -> tensor<?x?x?xf32>
  return %r : tensor<?x?x?xf32>
}
"""


@pytest.mark.parametrize("target", ["host", "sm_90", "gfx942"])
def test_tiles_of_any_size(target: str) -> None:
    x = np.random.default_rng(3).standard_normal((12, 7)).astype(np.float32)
    with running_on(target, ANY_TILES) as library:
        for rows, columns in [(5, 3), (4, 7), (1, 1), (20, 2)]:
            many, wide = -(-12 // rows), -(-7 // columns)
            rest = [(0, many * rows - 12), (0, wide * columns - 7)]
            padded = np.pad(x, rest, constant_values=0.5).reshape(many, rows, wide, columns)
            found = library.padded(library.device.array(x), rows, columns).numpy()
            np.testing.assert_array_equal(found, padded.transpose(2, 0, 3, 1))
        assert library.padded(library.device.array(x[:0]), 4, 2).shape == (4, 0, 2, 4)
        np.testing.assert_array_equal(
            library.filled(library.device.array(x), 4).numpy(), x.reshape(3, 4, 7).transpose(0, 2, 1)
        )
        with pytest.raises(offload.DeviceError, match=r"has to fill the tiles"):
            library.filled(library.device.array(x), 5)


WINOGRAD = """
func.func @f(%x: tensor<1x6x6x2xf32>, %w: tensor<3x3x3x2xf32>) -> tensor<1x4x4x3xf32> {
  %zero = arith.constant 0.0 : f32
  %w0 = tensor.empty() : tensor<6x6x2x3xf32>
  %w1 = linalg.winograd_filter_transform fmr(F_4_3) ins(%w : tensor<3x3x3x2xf32>)
    outs(%w0 : tensor<6x6x2x3xf32>) -> tensor<6x6x2x3xf32>
  %x0 = tensor.empty() : tensor<6x6x1x1x1x2xf32>
  %x1 = linalg.winograd_input_transform fmr(F_4_3) ins(%x : tensor<1x6x6x2xf32>)
    outs(%x0 : tensor<6x6x1x1x1x2xf32>) -> tensor<6x6x1x1x1x2xf32>
  %a = tensor.collapse_shape %x1 [[0, 1], [2, 3, 4], [5]] : tensor<6x6x1x1x1x2xf32> into tensor<36x1x2xf32>
  %b = tensor.collapse_shape %w1 [[0, 1], [2], [3]] : tensor<6x6x2x3xf32> into tensor<36x2x3xf32>
  %p0 = tensor.empty() : tensor<36x1x3xf32>
  %p1 = linalg.fill ins(%zero : f32) outs(%p0 : tensor<36x1x3xf32>) -> tensor<36x1x3xf32>
  %p = linalg.batch_matmul ins(%a, %b : tensor<36x1x2xf32>, tensor<36x2x3xf32>)
    outs(%p1 : tensor<36x1x3xf32>) -> tensor<36x1x3xf32>
  %q = tensor.expand_shape %p [[0, 1], [2, 3, 4], [5]] output_shape [6, 6, 1, 1, 1, 3]
    : tensor<36x1x3xf32> into tensor<6x6x1x1x1x3xf32>
  %y0 = tensor.empty() : tensor<1x4x4x3xf32>
  %y1 = linalg.fill ins(%zero : f32) outs(%y0 : tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32>
  %y = linalg.winograd_output_transform fmr(F_4_3) ins(%q : tensor<6x6x1x1x1x3xf32>)
    outs(%y1 : tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32>
  return %y : tensor<1x4x4x3xf32>
}
"""


def test_winograds_convolution() -> None:
    generator = np.random.default_rng(4)
    x, w = (generator.integers(-4, 5, shape).astype(np.float32) for shape in ((1, 6, 6, 2), (3, 3, 3, 2)))
    places = [(i, j) for i in range(3) for j in range(3)]
    expected = sum(np.einsum("nhwc,fc->nhwf", x[:, i : i + 4, j : j + 4], w[:, i, j]) for i, j in places)
    np.testing.assert_allclose(on_host(WINOGRAD).f(x, w).numpy(), expected, atol=1e-3)


TRANSFORMS = """
func.func @f(%x: tensor<2x14x10x5xf32>, %w: tensor<3x3x3x5xf32>, %y: tensor<2x12x8x3xf32>) -> tensor<2x12x8x3xf32> {
  %zero = arith.constant 0.0 : f32
  %w0 = tensor.empty() : tensor<6x6x5x3xf32>
  %w1 = linalg.winograd_filter_transform fmr(F_4_3) ins(%w : tensor<3x3x3x5xf32>)
    outs(%w0 : tensor<6x6x5x3xf32>) -> tensor<6x6x5x3xf32>
  %x0 = tensor.empty() : tensor<6x6x3x2x2x5xf32>
  %x1 = linalg.winograd_input_transform fmr(F_4_3) ins(%x : tensor<2x14x10x5xf32>)
    outs(%x0 : tensor<6x6x3x2x2x5xf32>) -> tensor<6x6x3x2x2x5xf32>
  %a = tensor.collapse_shape %x1 [[0, 1], [2, 3, 4], [5]] : tensor<6x6x3x2x2x5xf32> into tensor<36x12x5xf32>
  %b = tensor.collapse_shape %w1 [[0, 1], [2], [3]] : tensor<6x6x5x3xf32> into tensor<36x5x3xf32>
  %p0 = tensor.empty() : tensor<36x12x3xf32>
  %p1 = linalg.fill ins(%zero : f32) outs(%p0 : tensor<36x12x3xf32>) -> tensor<36x12x3xf32>
  %p = linalg.batch_matmul ins(%a, %b : tensor<36x12x5xf32>, tensor<36x5x3xf32>)
    outs(%p1 : tensor<36x12x3xf32>) -> tensor<36x12x3xf32>
  %q = tensor.expand_shape %p [[0, 1], [2, 3, 4], [5]] output_shape [6, 6, 3, 2, 2, 3]
    : tensor<36x12x3xf32> into tensor<6x6x3x2x2x3xf32>
  %r = linalg.winograd_output_transform fmr(F_4_3) ins(%q : tensor<6x6x3x2x2x3xf32>)
    outs(%y : tensor<2x12x8x3xf32>) -> tensor<2x12x8x3xf32>
  return %r : tensor<2x12x8x3xf32>
}
"""


def test_winograds_transforms_are_a_launch_each() -> None:
    """They were launches for every tile. The last one adds to what its output holds."""
    host, _, _ = emit_text(TRANSFORMS, "kernels").partition("gpu.module")
    assert "gpu.launch_func" in host
    assert "scf.for" not in host


@pytest.mark.parametrize("target", ["host", "host,O=0", "sm_90", "gfx1100"])
def test_winograds_convolution_of_many_tiles(target: str) -> None:
    generator = np.random.default_rng(5)
    shapes = ((2, 14, 10, 5), (3, 3, 3, 5), (2, 12, 8, 3))
    x, w, y = (generator.integers(-4, 5, shape).astype(np.float32) for shape in shapes)
    places = [(i, j) for i in range(3) for j in range(3)]
    expected = y + sum(np.einsum("nhwc,fc->nhwf", x[:, i : i + 12, j : j + 8], w[:, i, j]) for i, j in places)
    run(TRANSFORMS, target, lambda library: np.testing.assert_allclose(library.f(x, w, y).numpy(), expected, atol=1e-2))


RESHAPED = """
func.func @f(%x: tensor<?x?xf32>, %sizes: tensor<3xi32>) -> tensor<?x?x?xf32> {
  %r = tensor.reshape %x(%sizes) : (tensor<?x?xf32>, tensor<3xi32>) -> tensor<?x?x?xf32>
  return %r : tensor<?x?x?xf32>
}
"""


def test_a_reshape_to_other_sizes_is_an_error() -> None:
    """It read what is behind the array."""
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    for sizes in ((2, 3, 4), (24, 1, 1)):
        result = on_host(RESHAPED).f(x, np.array(sizes, np.int32)).numpy()
        np.testing.assert_array_equal(result, x.reshape(sizes))
    assert on_host(RESHAPED).f(x[:0], np.array([3, 0, 5], np.int32)).shape == (3, 0, 5)
    for sizes in ((2, 3, 5), (2, 3, 3), (0, 3, 4)):
        with pytest.raises(
            offload.DeviceError, match=r"<string>:3: tensor.reshape: the number of elements has to stay"
        ):
            on_host(RESHAPED).f(x, np.array(sizes, np.int32))


STEPS = """
func.func @f(%x: tensor<?x?x?xf32>, %at: index, %rows: index) -> (tensor<?x1xf32>, tensor<?x?x?xf32>) {
  %c1 = arith.constant 1 : index
  %v = arith.constant 7.0 : f32
  %part = tensor.extract_slice %x[0, %at, %at] [1, %rows, 1] [2, 1, 2] : tensor<?x?x?xf32> to tensor<?x1xf32>
  %changed = tensor.insert %v into %x[%c1, %c1, %c1] : tensor<?x?x?xf32>
  return %part, %changed : tensor<?x1xf32>, tensor<?x?x?xf32>
}
"""


def test_parts_that_take_steps_and_drop_dimensions() -> None:
    x = np.arange(2 * 4 * 3, dtype=np.float32).reshape(2, 4, 3)
    part, changed = (result.numpy() for result in on_host(STEPS).f(x, 1, 2))
    np.testing.assert_array_equal(part, x[0, 1:3, 1:2])
    expected = x.copy()
    expected[1, 1, 1] = 7
    np.testing.assert_array_equal(changed, expected)


FOLDED = """
func.func @f(%x: tensor<?x3xi32>) -> (tensor<?x3xi32>, tensor<?x3xi1>, tensor<?x1xi32>) {
  %same = linalg.transpose ins(%x : tensor<?x3xi32>) outs(%x : tensor<?x3xi32>) permutation = [0, 1]
  %zero = arith.xori %x, %same : tensor<?x3xi32>
  %true = arith.cmpi ule, %x, %x : tensor<?x3xi32>
  %one = arith.extui %true : tensor<?x3xi1> to tensor<?x3xi32>
  %changed = tensor.extract_slice %one[1, 2] [2, 1] [1, 1] : tensor<?x3xi32> to tensor<2x1xi32>
  %column = tensor.cast %changed : tensor<2x1xi32> to tensor<?x1xi32>
  return %zero, %true, %column : tensor<?x3xi32>, tensor<?x3xi1>, tensor<?x1xi32>
}
"""


@pytest.mark.parametrize("target", ["host", "sm_80", "gfx942"])
def test_what_folds_to_a_constant_of_unknown_shape(target: str) -> None:
    """MLIR makes a constant without bytes of it, at which the compiler ended."""

    def check(library: Any) -> None:
        for rows in (3, 4):
            zero, true, column = (r.numpy() for r in library.f(np.ones((rows, 3), np.int32)))
            np.testing.assert_array_equal(zero, np.zeros((rows, 3), np.int32))
            np.testing.assert_array_equal(true, np.ones((rows, 3), bool))
            np.testing.assert_array_equal(column, [[1], [1]])

    run(FOLDED, target, check)


EMPTY = """
func.func @f(%x: tensor<?x0xi32>, %y: tensor<3x?x0x2xi32>, %n: index) -> (tensor<?xi32>, tensor<3x?x2xi32>, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = tensor.collapse_shape %x [[0, 1]] : tensor<?x0xi32> into tensor<?xi32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %none) -> (tensor<?xi32>) {
    %b = arith.addi %a, %a : tensor<?xi32>
    scf.yield %b : tensor<?xi32>
  }
  %other = tensor.collapse_shape %y [[0], [1, 2], [3]] : tensor<3x?x0x2xi32> into tensor<3x?x2xi32>
  %size = tensor.dim %other, %c1 : tensor<3x?x2xi32>
  return %r, %other, %size : tensor<?xi32>, tensor<3x?x2xi32>, index
}
"""


@pytest.mark.parametrize("target", ["host", "sm_80", "gfx942"])
def test_no_elements_of_unknown_and_known_sizes_as_one_dimension(target: str) -> None:
    """MLIR took the size for a known one in the type of the memory, and the compiler ended at its allocation."""

    def check(library: Any) -> None:
        for rows, steps in ((0, 1), (4, 0), (4, 3)):
            empty, other, size = library.f(np.ones((rows, 0), np.int32), np.ones((3, rows, 0, 2), np.int32), steps)
            assert empty.shape == (0,)
            assert other.shape == (3, 0, 2)
            assert size == 0

    run(EMPTY, target, check)
