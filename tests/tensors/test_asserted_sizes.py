"""Sizes that no signature can compare are compared where the program runs, and end it with an error that tells them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from compiling import PROGRAMS, emit_text, on_host, program

import offload
from offload.runtime import abi

NAME = "asserted_sizes"
SOURCE = PROGRAMS / f"{NAME}.mlir"


def ones(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.ones(shape, dtype)


def line_of(text: str, function: str) -> int:
    """The line of the first operation that begins so, behind a function's beginning."""
    lines = SOURCE.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if f"@{function}(" in line)
    return next(i for i, line in enumerate(lines[start:], start) if text in line) + 1


def message(function: str, op: str, words: str) -> str:
    return f"{NAME}\\.mlir:{line_of(op, function)}: {re.escape(op)}: {re.escape(words)}\\.$"


def test_a_size_that_is_computed() -> None:
    half = program(NAME).half
    np.testing.assert_array_equal(half(ones(9), ones(4)).numpy(), 2 * ones(4))
    words = "dimension 0 of operand 2 of 3 and dimension 0 of operand 1 of 3 have to be the same: 3 and 4"
    with pytest.raises(offload.DeviceError, match=message("half", "linalg.add", words)):
        half(ones(8), ones(3))
    assert half(ones(1), ones(0)).numpy().shape == (0,)


def test_what_does_not_run_asks_for_nothing() -> None:
    maybe = program(NAME).maybe
    y = ones(3)
    maybe(False, ones(4), y)
    words = "dimension 0 of operand 2 of 2 and dimension 0 of operand 1 of 2 have to be the same: 3 and 4"
    with pytest.raises(offload.DeviceError, match=message("maybe", "linalg.exp", words)):
        maybe(True, ones(4), y)
    np.testing.assert_array_equal(y, ones(3))
    maybe(True, ones(3), y)
    np.testing.assert_allclose(y, np.e * ones(3), rtol=1e-6)


def test_arguments_of_functions_that_python_does_not_call() -> None:
    through, y = program(NAME).through, ones(4, dtype=np.float64)
    words = "dimension 0 of operand 1 of 3 and dimension 0 of operand 2 of 3 have to be the same: 5 and 4"
    with pytest.raises(offload.DeviceError, match=message("sum", "linalg.add", words)):
        through(ones(5, dtype=np.float64), y)
    through(ones(4, dtype=np.float64), y)
    np.testing.assert_array_equal(y, 2 * ones(4))


def test_arguments_of_functions_that_the_program_calls_too() -> None:
    y = np.zeros(16)
    words = "dimension 0 of operand 3 of 3 and dimension 0 of operand 1 of 3 have to be the same: 4 and 12"
    with pytest.raises(offload.DeviceError, match=message("doubled", "linalg.add", words)):
        program(NAME).through_public(np.ones(12), y[:4])
    assert not y.any()
    with pytest.raises(offload.SignatureError, match="dimension 0 has to be 12, as dimension 0 of 'x' is; it is 4"):
        program(NAME).doubled(np.ones(12), y[:4])


def test_arguments_of_functions_that_threads_call_too() -> None:
    """What Python passes is compared, and what threads do."""
    called = on_host("""
func.func @each(%x: memref<?xf32>, %y: memref<?xf32>) {
  linalg.abs ins(%x : memref<?xf32>) outs(%y : memref<?xf32>)
  return
}
func.func @many(%n: index, %x: memref<?xf32>) -> tensor<?xf32> {
  %t = tensor.generate %n {
  ^bb0(%i: index):
    func.call @each(%x, %x) : (memref<?xf32>, memref<?xf32>) -> ()
    %v = memref.load %x[%i] : memref<?xf32>
    tensor.yield %v : f32
  } : tensor<?xf32>
  return %t : tensor<?xf32>
}
""").each
    with pytest.raises(offload.SignatureError, match="dimension 0 has to be 8, as dimension 0 of 'x' is; it is 4"):
        called(ones(8), ones(4))


def test_a_choice_of_tensors_asks_for_no_size() -> None:
    either = program(NAME).either
    assert either.__doc__ == "either(x: float32[m], n: int64, all: bool) -> float32[k]"
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(either(x, 3, True).numpy(), x)
    np.testing.assert_array_equal(either(x, 3, False).numpy(), x[:3])


HIDDEN = """
func.func @hidden(%x: memref<8xf32>, %a: tensor<4xf32>, %b: tensor<6xf32>) -> tensor<?xf32> {
  %c10 = arith.constant 10 : index
  %any = memref.cast %x : memref<8xf32> to memref<?xf32>
  %v = memref.subview %any[4] [%c10] [1] : memref<?xf32> to memref<?xf32, strided<[1], offset: 4>>
  linalg.exp ins(%v : memref<?xf32, strided<[1], offset: 4>>) outs(%v : memref<?xf32, strided<[1], offset: 4>>)
  %c = tensor.cast %a : tensor<4xf32> to tensor<?xf32>
  %d = tensor.cast %b : tensor<6xf32> to tensor<?xf32>
  %r = linalg.add ins(%d, %c : tensor<?xf32>, tensor<?xf32>) outs(%d : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
"""


def test_what_can_never_be_right_is_an_error_of_the_build() -> None:
    with pytest.raises(offload.CompileError) as caught:
        offload.compile(HIDDEN, targets=["host"])
    first, second = caught.value.diagnostics
    assert first.message == "memref.subview: the size has to be at most what is left of dimension 0: 10 and 4"
    assert second.message.endswith("dimension 0 of operand 1 of 3 have to be the same: 4 and 6")
    assert (first.line, second.line) == (5, 9)


@pytest.mark.parametrize("dimension", [7, -1])
def test_a_dimension_that_is_not_there(dimension: int) -> None:
    text = f"""
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {{
  %c = arith.constant {dimension} : index
  %none = tensor.dim %x, %c : tensor<?xf32>
  %e = tensor.empty(%none) : tensor<?xf32>
  %r = linalg.exp ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}}
"""
    with pytest.raises(offload.CompileError, match=f"'tensor.dim' asks for size {dimension} of a tensor of rank 1"):
        offload.compile(text, targets=["host"])


def test_what_nobody_uses_asks_for_nothing() -> None:
    unused = program(NAME).unused
    np.testing.assert_array_equal(unused(ones(2), 0).numpy(), np.zeros(4))
    np.testing.assert_array_equal(unused(ones(5), 3).numpy(), 3 * ones(4))
    words = "the size has to be at most what is left of dimension 0: 4 and 2"
    with pytest.raises(offload.DeviceError, match=message("unused", "tensor.extract_slice", words)):
        unused(ones(2), 1)


def test_a_copy_is_as_large_as_what_it_copies() -> None:
    np.testing.assert_allclose(program(NAME).copied(ones(2, 3), 64).numpy(), np.e * ones(2, 3), rtol=1e-6)


def test_windows_stay_within_their_array() -> None:
    windows = program(NAME).windows
    for rows, columns in ((4, 5), (6, 5)):
        y = np.zeros((3, 3), np.float32)
        windows(ones(rows, columns), ones(2, 3), y)
        np.testing.assert_array_equal(y, 6 * ones(3, 3))
    words = "the last index has to be below dimension 1 of operand 1 of 3: 4 and 4"
    with pytest.raises(offload.DeviceError, match=message("windows", "linalg.conv_2d", words)):
        windows(ones(4, 4), ones(2, 3), y)
    windows(ones(0, 4), ones(2, 3), ones(0, 3))  # no step: nothing is read


def test_loops_that_run_backwards() -> None:
    backwards, y = program(NAME).backwards, np.zeros(8, np.float32)
    backwards(np.arange(8, dtype=np.float32), y)
    np.testing.assert_array_equal(y, np.arange(8)[::-1])
    words = "the last index has to be below dimension 0 of operand 1 of 2: 7 and 7"
    with pytest.raises(offload.DeviceError, match=message("backwards", "linalg.generic", words)):
        backwards(ones(7), y)
    words = "the first index must not be below zero in dimension 0 of operand 1 of 2: -1 and 0"
    with pytest.raises(offload.DeviceError, match=message("backwards", "linalg.generic", words)):
        backwards(ones(9), ones(9))


def test_parts_of_arrays() -> None:
    library = program(NAME)
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(library.part(x, 3, 5).numpy(), x[3:])
    assert library.part(x, 8, 0).numpy().shape == (0,)
    assert library.part(x, 9, 0).numpy().shape == (0,)
    for offset, size in ((9, 1), (-1, 2)):
        words = f"the offset has to be within dimension 0: {offset} and 8"
        with pytest.raises(offload.DeviceError, match=message("part", "tensor.extract_slice", words)):
            library.part(x, offset, size)
    for offset, size in ((3, 6), (3, -1)):
        words = f"the size has to be at most what is left of dimension 0: {size} and 5"
        with pytest.raises(offload.DeviceError, match=message("part", "tensor.extract_slice", words)):
            library.part(x, offset, size)
    np.testing.assert_array_equal(library.placed(x, x[:2], 6).numpy(), [0, 1, 2, 3, 4, 5, 0, 1])
    words = "the size has to be at most what is left of dimension 0: 2 and 1"
    with pytest.raises(offload.DeviceError, match=message("placed", "tensor.insert_slice", words)):
        library.placed(x, x[:2], 7)


def test_views_with_steps() -> None:
    library = program(NAME)
    y = np.zeros(10, np.float32)
    library.every(y, 1, 3, 4)
    np.testing.assert_array_equal(np.flatnonzero(y), [1, 5, 9])
    library.every(y, 10, 0, 4)  # of nothing, anywhere
    for first, count, step, last in ((2, 3, 4, 10), (0, 2, -1, -1)):
        words = f"the last index has to be within dimension 0: {last} and 10"
        with pytest.raises(offload.DeviceError, match=message("every", "memref.subview", words)):
            library.every(y, first, count, step)
    words = "the size must not be below zero in dimension 0: -1 and 0"
    with pytest.raises(offload.DeviceError, match=message("every", "memref.subview", words)):
        library.every(y, 9, -1, 4)
    words = "the first index has to be within dimension 0: -1 and 10"
    with pytest.raises(offload.DeviceError, match=message("every", "memref.subview", words)):
        library.every(y, -1, 2, 4)


def test_the_authors_words_come_first() -> None:
    own = program(NAME).own
    assert own(ones(4), 4).numpy().shape == (4,)
    with pytest.raises(offload.DeviceError, match="assertion failed: n is the length of a"):
        own(ones(4), 5)


def test_nothing_is_left_behind() -> None:
    library = program(NAME)

    def counts() -> list[int]:
        return [library._native.api.mgpuCount(what) for what in range(abi.COUNT_OPERANDS + 1)]

    def fail() -> None:
        with pytest.raises(offload.DeviceError, match="have to be the same"):
            library.half(ones(8), ones(3))

    fail()
    before = counts()
    for _ in range(1000):
        fail()
    assert counts() == before
    assert library.half(ones(8), ones(4)).numpy().shape == (4,)


def test_what_is_the_same_is_not_compared() -> None:
    kernels = emit_text(SOURCE, "kernels")
    bodies = dict(part.split("(", 1) for part in kernels.split("func.func @")[1:])
    assert "cf.assert" not in bodies["same"]
    assert "cf.assert" not in kernels.split("gpu.module", 1)[1].split("func.func", 1)[0]
    assert "cf.assert" not in bodies["rows"].split("gpu.launch_func", 1)[1]
    assert "cf.assert" not in kernels.split("gpu.func @generated", 1)[1].split("gpu.return", 1)[0]
    assert bodies["chain"].count("cf.assert") == 2
    assert bodies["chain"].count("gpu.launch_func") == 1


def test_a_caller_in_c_sees_what_c_does(tmp_path: Path) -> None:
    source = tmp_path / "f.mlir"
    source.write_text(
        "func.func @f(%n: index) {\n  %a = memref.alloc(%n) : memref<?xf32>\n  %b = memref.alloc() : memref<4xf32>\n"
        "  linalg.exp ins(%a : memref<?xf32>) outs(%b : memref<4xf32>)\n  memref.dealloc %a : memref<?xf32>\n"
        "  memref.dealloc %b : memref<4xf32>\n  return\n}\n"
    )
    path = offload.build(source, tmp_path / "f.so", targets=["host"])
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).f(ctypes.c_int64(3))"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
    assert done.returncode == -6
    assert "linalg.exp: dimension 0 of operand 1 of 2 and dimension 0 of operand 2 of 2 have to be" in done.stderr
    assert "the same: 3 and 4" in done.stderr


@pytest.mark.parametrize("op", ["addi", "subi", "muli", "floordivsi"])
def test_what_branches_yield_of_integers(op: str) -> None:
    """MLIR 22 ends the process where it compares the size of such a result with another one."""
    library = on_host(f"""
func.func @f(%a: tensor<?xi32>, %b: tensor<?xi32>, %which: i1, %n: index) -> tensor<?xi32> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%v = %a) -> (tensor<?xi32>) {{
    %y = scf.if %which -> (tensor<?xi32>) {{
      %d = arith.{op} %b, %v : tensor<?xi32>
      scf.yield %d : tensor<?xi32>
    }} else {{
      scf.yield %v : tensor<?xi32>
    }}
    scf.yield %y : tensor<?xi32>
  }}
  %z = arith.addi %r, %b : tensor<?xi32>
  return %z : tensor<?xi32>
}}""")
    a, b = np.array([1, -2, 3], np.int32), np.array([-50, 41, 7], np.int32)
    wanted = {"addi": a + 2 * b, "subi": a, "muli": a * b * b, "floordivsi": b // (b // a)}[op]
    np.testing.assert_array_equal(library.f(a, b, True, 2).numpy(), wanted + b)
    np.testing.assert_array_equal(library.f(a, b, False, 2).numpy(), a + b)
    with pytest.raises(offload.DeviceError, match="have to be the same: 2 and 3"):
        library.f(a, b[:2], False, 2)


PADDED = """
func.func @filled(%a: tensor<?xf32>, %l: index, %h: index) -> tensor<8xf32> {
  %z = arith.constant 7.0 : f32
  %r = tensor.pad %a low[%l] high[%h] {
  ^bb0(%i: index):
    tensor.yield %z : f32
  } : tensor<?xf32> to tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @longer(%a: tensor<?xf32>, %l: index, %h: index) -> tensor<?xf32> {
  %z = arith.constant 7.0 : f32
  %r = tensor.pad %a low[%l] high[%h] {
  ^bb0(%i: index):
    tensor.yield %z : f32
  } : tensor<?xf32> to tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @tiles(%a: tensor<?xf32>, %e: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 7.0 : f32
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %t = tensor.dim %e, %c0 : tensor<?x8xf32>
  %r = scf.forall (%i) in (%t) shared_outs(%o = %e) -> tensor<?x8xf32> {
    %at = affine.apply affine_map<(d0) -> (d0 * 8)>(%i)
    %s = affine.min affine_map<(d0)[s0] -> (8, s0 - d0 * 8)>(%i)[%n]
    %part = tensor.extract_slice %a[%at] [%s] [1] : tensor<?xf32> to tensor<?xf32>
    %h = affine.apply affine_map<(d0) -> (8 - d0)>(%s)
    %row = tensor.pad %part low[0] high[%h] {
    ^bb0(%j: index):
      tensor.yield %z : f32
    } : tensor<?xf32> to tensor<8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %row into %o[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<?x8xf32>
    }
  }
  return %r : tensor<?x8xf32>
}
"""


def test_what_is_padded() -> None:
    lib = on_host(PADDED)
    np.testing.assert_array_equal(lib.filled(ones(4), 3, 1).numpy(), [7, 7, 7, 1, 1, 1, 1, 7])
    for n in (3, 9):
        words = rf"tensor\.pad: dimension 0 has to be 8 with its padding: {n + 4} and 8\.$"
        with pytest.raises(offload.DeviceError, match=words):
            lib.filled(ones(n), 2, 2)
    np.testing.assert_array_equal(lib.longer(ones(2), 0, 1).numpy(), [1, 1, 7])
    for low, high in ((-1, 0), (0, -1)):
        words = r"tensor\.pad: the padding must not be below zero in dimension 0: -1 and 0\.$"
        with pytest.raises(offload.DeviceError, match=words):
            lib.longer(ones(4), low, high)
    np.testing.assert_array_equal(lib.tiles(ones(11), ones(2, 8)).numpy(), [[1] * 8, [1] * 3 + [7] * 5])
    assert "tensor.pad" not in emit_text(PADDED, "kernels").split("func.func @tiles")[1]


PLACED = """
func.func @placed(%a: tensor<?xf32>, %y: memref<?xf32>) {
  %e = linalg.exp ins(%a : tensor<?xf32>) outs(%a : tensor<?xf32>) -> tensor<?xf32>
  bufferization.materialize_in_destination %e in restrict writable %y : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}
"""


def test_what_is_placed_in_memory() -> None:
    y = np.zeros(4, np.float32)
    on_host(PLACED).placed(ones(4), y)
    np.testing.assert_allclose(y, np.e * ones(4), rtol=1e-6)
    for n in (3, 5):
        with pytest.raises(
            offload.SignatureError, match=f"dimension 0 has to be 4, as dimension 0 of 'a' is; it is {n}"
        ):
            on_host(PLACED).placed(ones(4), ones(n))
