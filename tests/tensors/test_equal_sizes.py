"""Sizes that linalg needs to be equal: calls are refused where they are not, and signatures say it."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from compiling import PROGRAMS, ROOT, command, on_host, program, python

import offload
from offload.artifact.meta import EqualSizes, Signature

SCALED = "expected array float32[?, ?], given float32[2, 7]; dimension 1 has to be 8; it is 7"
CALLS = """
import sys, numpy as np, offload
library = offload.load(sys.argv[1])
library.use("host")
x, y = np.ones(5, np.float32), np.ones(3, np.float32)
for arguments in ((x, x, x), (x, x, y), (y, x, y), (x[:0], x[:0], x[:0])):
    try:
        print(library.add(*arguments))
    except offload.SignatureError as error:
        print(error)
"""
LENGTHS = (
    "argument {} of 3): expected array float32[?], given float32[{}]; dimension 0 has to be {}, as dimension 0 of 'x' "
    "is; it is {}"
)
SAID = f"""\
None
add(): {LENGTHS.format("'z' (3", 3, 5, 3)}
add(): {LENGTHS.format("'y' (2", 5, 3, 5)}
None
"""


@pytest.mark.parametrize("fast", ["0", "1"])
def test_calls_with_different_sizes(fast: str, tmp_path: Path) -> None:
    path = offload.build(PROGRAMS / "equal_sizes.mlir", tmp_path / "sizes.so", targets=["host"])
    assert python(CALLS, path, cwd=tmp_path, environment={"OFFLOAD_FAST_CALLS": fast}) == SAID


def test_sizes_that_are_known() -> None:
    library = program("equal_sizes")
    x, bias = np.ones((2, 8), np.float32), np.arange(8, dtype=np.float32)
    scale, other = np.array([1, 2], np.float32), np.ones(3, np.float32)
    np.testing.assert_array_equal(library.scaled(x, scale, bias, other).numpy(), 2 * scale[:, None] + bias)
    with pytest.raises(offload.SignatureError) as caught:
        library.scaled(np.ones((2, 7), np.float32), scale, bias, other)
    assert str(caught.value) == f"scaled(): argument 'x' (1 of 4): {SCALED}"
    with pytest.raises(offload.SignatureError, match=r"argument 'scale' .* as dimension 0 of 'x' is; it is 3$"):
        library.scaled(x, np.ones(3, np.float32), bias, other)
    a, b, c = np.ones((2, 3)), np.ones((3, 4)), np.zeros((2, 4))
    library.product(a, b, c)
    np.testing.assert_array_equal(c, a @ b)
    with pytest.raises(offload.SignatureError, match=r"argument 'b' .* be 3, as dimension 1 of 'a' is; it is 2"):
        library.product(a, np.ones((2, 4)), c)


def test_arrays_on_the_device_and_staged_ones() -> None:
    library = program("equal_sizes")
    x, y = library.device.array(np.ones(5, np.float32)), library.device.array(np.ones(3, np.float32))
    library.add(x, x, x)
    assert x.numpy().tolist() == [2] * 5
    for other in (y, offload.stage(np.ones(3, np.float32))):
        with pytest.raises(offload.SignatureError, match=r"argument 'y' .* 5, as dimension 0 of 'x' is; it is 3$"):
            library.add(x, other, x)


def test_what_may_not_run_asks_for_nothing() -> None:
    library = program("equal_sizes")
    x, y = np.ones(5, np.float32), np.ones(3, np.float32)
    library.maybe(False, x, y, x)
    assert library.signatures["maybe"].equal == (EqualSizes(((1, 0), (3, 0))),)


@pytest.mark.parametrize("way", ["fast", "ctypes"])
def test_none_where_an_array_is_needed(way: str) -> None:
    """None has no element: code that goes through it with another array would write to address 0."""
    maybe = program("equal_sizes").maybe
    call = maybe if way == "fast" else maybe._call
    x, y = np.ones(5, np.float32), np.ones(3, np.float32)
    advice = "dimension 0 has to be 5, as dimension 0 of 'x' is; it is"
    for given, said in ((None, f"None; {advice} 0"), (y, f"float32[3]; {advice} 3")):
        with pytest.raises(offload.SignatureError) as caught:
            call(False, x, y, given)
        assert str(caught.value) == f"maybe(): argument 'z' (4 of 4): expected array float32[?], given {said}"
    call(False, x[:0], y)


def test_signatures_show_them(tmp_path: Path) -> None:
    library = program("equal_sizes")
    assert str(inspect.signature(library.add)) == "(x: 'float32[n]', y: 'float32[n]', z: 'float32[n]') -> 'None'"
    assert library.scaled.__doc__ == (
        "scaled(x: float32[n, 8], scale: float32[n], bias: float32[8], other: float32[m]) -> float32[n, 8]"
    )
    path = offload.build(PROGRAMS / "equal_sizes.mlir", tmp_path / "sizes.so", targets=["host"])
    functions = json.loads(command("inspect", path, "--json", cwd=tmp_path).stdout)["functions"]
    (product,) = [function for function in functions if function["name"] == "product"]
    assert product["equal"] == [{"dimensions": [[0, 1], [1, 0]]}, {"dimensions": [[0, 0], [2, 0]]}]
    for name in ("product", "scaled"):
        signature = library.signatures[name]
        assert Signature.from_json(json.loads(json.dumps(signature.to_json()))) == signature
    (scaled,) = [function for function in functions if function["name"] == "scaled"]
    assert scaled["result_sizes"] == [[0, 0, 0, 0], [0, 1, 0, 1]]


def test_sizes_of_results_are_those_of_arguments() -> None:
    library = on_host(
        """
func.func @attend(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>) -> (tensor<?x?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %q, %c0 : tensor<?x64xf32>
  %n = tensor.dim %k, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %h = arith.divui %m, %c2 : index
  %half = tensor.empty(%h) : tensor<?xf32>
  %g = linalg.fill ins(%zero : f32) outs(%half : tensor<?xf32>) -> tensor<?xf32>
  return %f, %g : tensor<?x?xf32>, tensor<?xf32>
}
"""
    )
    given = "attend(q: float32[n, 64], k: float32[m, 64])"
    assert library.attend.__doc__ == f"{given} -> tuple[float32[m, n], float32[d3]]"


@pytest.mark.parametrize(
    ("equal", "said"),
    [
        ([{"dimensions": []}], r"expected pairs of integers in the field 'dimensions', found \[\]"),
        ([{"dimensions": [[0]]}], r"expected pairs of integers"),
        ([{"dimensions": [[3, 0], [0, 0]]}], r"no argument 3 with a dimension 0"),
        ([{"dimensions": [[0, 1], [1, 0]]}], r"no argument 0 with a dimension 1"),
    ],
)
def test_damaged_metadata(equal: object, said: str) -> None:
    value = program("equal_sizes").signatures["add"].to_json()
    with pytest.raises(offload.ArtifactError, match=said):
        Signature.from_json({**value, "equal": equal})


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ([[0, 0, 0]], r"expected four integers, found \[0, 0, 0\]"),
        ([[1, 0, 0, 0]], r"no result 1 with a dimension 0"),
        ([[0, 0, 0, 2]], r"no argument 0 with a dimension 2"),
    ],
)
def test_damaged_metadata_of_results(sizes: object, said: str) -> None:
    value = program("equal_sizes").signatures["scaled"].to_json()
    with pytest.raises(offload.ArtifactError, match=said):
        Signature.from_json({**value, "result_sizes": sizes})


CALLS_IN_CPP = """
#include "sizes.h"
#include <cstdio>
#include <functional>
int main() {
  float x[8] = {1, 1, 1, 1, 1, 1, 1, 1}, y[8] = {};
  for (const std::function<void()> &call : std::initializer_list<std::function<void()>>{
           [&] { sizes::add({x, {5}}, {x, {5}}, {y, {5}}); }, [&] { sizes::add({x, {5}}, {x, {3}}, {y, {5}}); },
           [&] { sizes::add({x, {3}}, {x, {3}}, {y, {5}}); }, [&] { sizes::add({x, {0}}, {x, {0}}, {y, {0}}); }})
    try {
      call();
      std::printf("%g\\n", y[4]);
    } catch (const offload::Error &error) {
      std::printf("%s\\n", error.what());
    }
}
"""


def test_calls_from_cpp(tmp_path: Path) -> None:
    """A header's functions refuse what Python's do."""
    words = [
        "library",
        "libsizes.so",
        "equal_sizes.mlir",
        "--root",
        PROGRAMS,
        "--header",
        "sizes.h",
        "--target",
        "host",
    ]
    subprocess.run([sys.executable, "-m", "offload.hooks", *words], cwd=tmp_path, check=True)
    (tmp_path / "use.cpp").write_text(CALLS_IN_CPP)
    includes = ["-I", ROOT / "runtime_c", "-I", ROOT / "offload" / "cmake" / "include", "-I."]
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-o", "use", "-Wl,-rpath,."]
    subprocess.run(["g++", *flags, *includes, "use.cpp", "libsizes.so"], cwd=tmp_path, check=True)
    done = subprocess.run(["./use"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "2",
        "add(): y is float32[?]; dimension 0 has to be 5, as dimension 0 of x is, it is 3",
        "add(): z is float32[?]; dimension 0 has to be 3, as dimension 0 of x is, it is 5",
        "2",
    ]


TILES = """
func.func @softmax(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {
  linalg.softmax dimension(1) ins(%x : memref<?x?xf32>) outs(%y : memref<?x?xf32>)
  return
}
func.func @pack(%s: tensor<?x?xf32>, %d: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  %zero = arith.constant 0.0 : f32
  %r = linalg.pack %s padding_value(%zero : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [8] into %d
      : tensor<?x?xf32> -> tensor<?x?x8xf32>
  return %r : tensor<?x?x8xf32>
}
func.func @exactly(%s: tensor<?xf32>, %d: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %r = linalg.pack %s inner_dims_pos = [0] inner_tiles = [8] into %d : tensor<?xf32> -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}
func.func @unpack(%s: tensor<?x8xf32>, %d: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.unpack %s inner_dims_pos = [0] inner_tiles = [8] into %d : tensor<?x8xf32> -> tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @scatter(%s: tensor<?x1x?xf32>, %d: tensor<?x?xf32>, %i: tensor<?x1xindex>) -> tensor<?x?xf32> {
  %r = tensor.scatter %s into %d[%i] scatter_dims([0]) unique
      : (tensor<?x1x?xf32>, tensor<?x?xf32>, tensor<?x1xindex>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
"""


DYNAMIC_TILES = """
func.func @unpack(%s: tensor<?x?x?x?xf32>, %d: tensor<?x?xf32>, %t: index, %u: index) -> tensor<?x?xf32> {
  %r = linalg.unpack %s inner_dims_pos = [0, 1] inner_tiles = [%t, %u] into %d : tensor<?x?x?x?xf32> -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
"""


def floats(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def test_operations_that_are_taken_apart() -> None:
    """What becomes several loops has no operands of its own any more that could be compared."""
    library = on_host(TILES)
    x, y = floats(2, 5), np.zeros((2, 5), np.float32)
    library.softmax(x, y)
    np.testing.assert_allclose(y.sum(1), np.ones(2), rtol=1e-6)
    with pytest.raises(offload.SignatureError, match="dimension 0 has to be 4, as dimension 0 of 'x' is; it is 2"):
        library.softmax(floats(4, 100), y)
    packed = library.pack(floats(3, 20), np.zeros((3, 3, 8), np.float32)).numpy()
    np.testing.assert_array_equal(packed.transpose(1, 0, 2).reshape(3, 24)[:, :20], floats(3, 20))
    with pytest.raises(offload.DeviceError, match="dimension 1 of operand 1 of 3 has to fit into the tiles"):
        library.pack(floats(3, 20), np.zeros((2, 3, 8), np.float32))
    with pytest.raises(offload.SignatureError, match="dimension 1 has to be 3, as dimension 0 of 's' is; it is 4"):
        library.pack(floats(3, 20), np.zeros((3, 4, 8), np.float32))
    filled = library.exactly(floats(16), np.zeros((2, 8), np.float32)).numpy()
    np.testing.assert_array_equal(filled, floats(2, 8))
    with pytest.raises(offload.DeviceError, match="has to fill the tiles of dimension 0 of operand 2 of 2"):
        library.exactly(floats(12), np.zeros((2, 8), np.float32))
    for length in (9, 16):
        unpacked = library.unpack(floats(2, 8), np.zeros(length, np.float32)).numpy()
        np.testing.assert_array_equal(unpacked, floats(length))
    with pytest.raises(offload.DeviceError, match="has to fit into the tiles of dimension 0 of operand 1 of 2"):
        library.unpack(floats(2, 8), np.zeros(17, np.float32))
    scattered = library.scatter(floats(2, 1, 3), np.zeros((4, 3), np.float32), np.array([[3], [1]]))
    np.testing.assert_array_equal(scattered.numpy(), [[0, 0, 0], [3, 4, 5], [0, 0, 0], [0, 1, 2]])
    for places, width in ((1, 3), (2, 2)):
        with pytest.raises(offload.SignatureError, match="has to be"):
            library.scatter(floats(2, 1, 3), np.zeros((4, width), np.float32), np.zeros((places, 1), np.int64))


def test_tiles_whose_size_is_an_argument() -> None:
    library = on_host(DYNAMIC_TILES)
    unpacked = library.unpack(floats(2, 3, 2, 2), np.zeros((4, 6), np.float32), 2, 2).numpy()
    np.testing.assert_array_equal(unpacked, floats(2, 3, 2, 2).transpose(0, 2, 1, 3).reshape(4, 6))
    for tile in (4, -4):
        with pytest.raises(offload.DeviceError, match="dimension 2 of operand 1 of 4 has to be the size of the tiles"):
            library.unpack(floats(2, 3, 1, 2), np.zeros((8, 6), np.float32), tile, 2)


VIEWS = """
func.func @cast(%x: tensor<?xf32>) -> tensor<8xf32> {
  %c = tensor.cast %x : tensor<?xf32> to tensor<8xf32>
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.exp ins(%c : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @expand(%x: tensor<?xf32>, %m: index, %n: index) -> tensor<?x?xf32> {
  %c = tensor.expand_shape %x [[0, 1]] output_shape [%m, %n] : tensor<?xf32> into tensor<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %r = linalg.exp ins(%c : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
func.func @chosen(%x: memref<?xf32>, %wide: i1) {
  %one = arith.constant 1.0 : f32
  %c = memref.cast %x : memref<?xf32> to memref<8xf32>
  scf.if %wide {
    linalg.fill ins(%one : f32) outs(%c : memref<8xf32>)
  }
  return
}
"""


def test_views_that_say_more_than_is_there() -> None:
    library = on_host(VIEWS)
    np.testing.assert_array_equal(library.cast(np.zeros(8, np.float32)).numpy(), np.ones(8))
    with pytest.raises(offload.DeviceError, match="dimension 0 of operand 1 of 1 has to be 8, as it is cast to: 6 and"):
        library.cast(np.zeros(6, np.float32))
    for shape in ((2, 3), (0, 3)):
        made = library.expand(np.zeros(shape, np.float32).ravel(), *shape).numpy()
        np.testing.assert_array_equal(made, np.ones(shape))
    with pytest.raises(offload.DeviceError, match="product of the sizes that it is expanded to: 6 and 9"):
        library.expand(np.zeros(6, np.float32), 3, 3)
    for size, wide in ((8, True), (6, False)):
        x = np.zeros(size, np.float32)
        library.chosen(x, wide)
        np.testing.assert_array_equal(x, np.full(size, float(wide)))
    with pytest.raises(offload.DeviceError, match="has to be 8"):
        library.chosen(np.zeros(6, np.float32), True)
