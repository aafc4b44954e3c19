"""Sizes that threads' functions ask for, and that threads alone know: threads compare what nobody could before."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from compiling import PROGRAMS, emit_text, on_host, program
from emulator.running import running_on

import offload

NAME = "thread_sizes"
SAME = "linalg.add: dimension 0 of operand 2 of 3 and dimension 0 of operand 1 of 3 have to be the same"
LEFT = "{}: the size has to be at most what is left of dimension {}"


def f(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 16


def at(*places: int) -> np.ndarray:
    return np.array(places, np.int64)


def fails(function: str, words: str, *arguments: Any) -> None:
    with pytest.raises(offload.DeviceError, match=re.escape(words)):
        getattr(program(NAME), function)(*arguments)


@pytest.mark.parametrize("function", ["called", "called_forall", "called_launch"])
def test_functions_that_threads_call(function: str) -> None:
    words = f'The kernel "{function}_kernel" failed an assertion in block (0, 0, 0), thread (0, 0, 0): '
    fails(function, words, f(8), f(4), 1)
    fails(function, SAME, f(8), f(4), 1)
    fails(function, SAME, f(0), f(4), 3)
    getattr(program(NAME), function)(f(8), f(4), 0)
    y = f(4)
    getattr(program(NAME), function)(f(4), y, 1)
    np.testing.assert_array_equal(y, 2 * f(4))


def test_functions_that_such_functions_call() -> None:
    program(NAME).calls_calls(f(2, 4), f(2, 4))
    program(NAME).calls_calls(f(0, 4), f(0, 3))
    fails("calls_calls", LEFT.format("memref.subview", 0), f(2, 4), f(2, 3))


@pytest.mark.parametrize("target", ["host,O=0", "sm_90", "gfx942"])
def test_functions_of_tensors_that_threads_call(target: str) -> None:
    with running_on(target, PROGRAMS / f"{NAME}.mlir") as library:
        np.testing.assert_array_equal(library.called_of_tensors(f(3, 4), f(4)).numpy(), f(3, 4) + f(4))
        with pytest.raises(offload.DeviceError, match=rf"{NAME}\.mlir:\d+: {re.escape(SAME)}: 4 and 3\.$"):
            library.called_of_tensors(f(3, 4), f(3))


def test_places_that_threads_read() -> None:
    lib = program(NAME)
    np.testing.assert_array_equal(lib.places(f(9), at(0, 5, 3)).numpy(), [f(9)[i : i + 4] for i in (0, 5, 3)])
    fails("places", LEFT.format("tensor.extract_slice", 0), f(9), at(0, 5, 6))
    fails("places", "tensor.extract_slice: the offset has to be within dimension 0", f(9), at(0, -1))
    y = np.zeros((2, 4), np.float32)
    lib.places_of_views(f(9), at(5, 0), y)
    np.testing.assert_allclose(y, np.exp([f(9)[5:], f(9)[:4]]), rtol=1e-6)
    fails("places_of_views", LEFT.format("memref.subview", 0), f(9), at(0, 6), y)
    fails("affine_places", LEFT.format("memref.subview", 0), f(4), at(2, 3), f(2))
    assert lib.summed_places(f(4), at(2, 1)) == f(4)[3] + f(4)[2]
    fails("summed_places", LEFT.format("memref.subview", 0), f(4), at(2, 3))


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_places_that_fit_on_gpus(target: str) -> None:
    with running_on(target, PROGRAMS / f"{NAME}.mlir") as library:
        for places in ([], [5, 0]):
            expected = np.reshape([f(9)[i : i + 4] for i in places], (len(places), 4))
            np.testing.assert_array_equal(library.places(f(9), at(*places)).numpy(), expected)


def test_branches() -> None:
    np.testing.assert_array_equal(program(NAME).branch(f(8), f(8), 2).numpy(), f(8))
    np.testing.assert_array_equal(program(NAME).branch(f(0), f(4), 1).numpy(), f(4))
    fails("branch", LEFT.format("tensor.extract_slice", 0), f(7), f(8), 2)


def test_loops_that_end_where_threads_see_it() -> None:
    x = np.array([[1, 2, -1], [3, -1, -1]], np.float32)
    np.testing.assert_array_equal(program(NAME).until(x, f(2)).numpy(), [2, 2])
    x[1] = 1
    fails("until", LEFT.format("tensor.extract_slice", 1), x, f(2))


def test_what_can_be_told_in_front_of_loops() -> None:
    lib = program(NAME)
    np.testing.assert_array_equal(lib.multiplied(f(8), f(8), 2).numpy(), f(8))
    fails("multiplied", LEFT.format("tensor.extract_slice", 0) + ": 4 and 3.", f(7), f(8), 2)
    np.testing.assert_array_equal(lib.divided(f(4), f(6), 2).numpy(), f(4)[[0, 1, 1, 2, 2, 3]])
    fails("divided", LEFT.format("tensor.extract_slice", 0) + ": 1 and 0.", f(3), f(6), 2)
    assert lib.divided(f(4), f(0), 0).numpy().shape == (0,)
    np.testing.assert_array_equal(lib.digits(f(3, 4), 3, 4).numpy(), f(12))
    fails("digits", LEFT.format("tensor.extract_slice", 1) + ": 1 and 0.", f(3, 4), 3, 5)
    assert lib.digits(f(3, 4), 3, 0).numpy().shape == (0,)
    np.testing.assert_allclose(lib.stepped(f(8), f(8), 8, 4).numpy(), np.exp(f(8)), rtol=1e-6)
    fails("stepped", LEFT.format("tensor.extract_slice", 0) + ": 4 and 3.", f(7), f(8), 8, 4)
    y = f(4)
    lib.inner_steps(f(4), y, 4, 2)
    np.testing.assert_array_equal(y, f(4) + f(4)[0] + f(4)[2])
    fails("inner_steps", LEFT.format("memref.subview", 0) + ": 1 and 0.", f(2), f(4), 4, 2)
    lib.inner_steps(f(0), f(0), 0, 0)
    found = lib.inserted(f(3, 4), np.zeros((3, 5), np.float32), 3, 4).numpy()
    np.testing.assert_array_equal(found, np.pad(f(3, 4), ((0, 0), (0, 1))))
    place = "tensor.parallel_insert_slice: dimension 0 of operand 1 of 4 has to be the size of its place: {} and {}."
    fails("inserted", place.format(4, 5), f(3, 4), f(3, 5), 3, 5)
    fails("inserted", place.format(5, 2), f(3, 5), f(3, 5), 3, 2)
    y = f(3, 4)[1]
    lib.copied(f(4), y, 2)
    np.testing.assert_array_equal(y, f(4))
    same = "memref.copy: dimension 0 of operand 2 of 2 and dimension 0 of operand 1 of 2 have to be the same: 3 and 4."
    fails("copied", same, f(4), f(3), 2)
    lib.copied(f(4), f(3), 0)
    y = f(2, 3)
    lib.affine_steps(2 * f(2, 3), y)
    np.testing.assert_array_equal(y, f(2, 3) * [1, 2, 2])
    fails("affine_steps", LEFT.format("memref.subview", 1) + ": 1 and 0.", f(2, 3), f(2, 2))
    lib.affine_steps(f(2, 1), f(0, 0))
    np.testing.assert_array_equal(lib.fits_in_branch(f(16, 8), f(16), True).numpy(), f(16, 8)[:, 3])
    y = f(6)
    lib.fits_in_function(y, 1)
    np.testing.assert_array_equal(y, 2 * f(6))
    kernels = emit_text(PROGRAMS / f"{NAME}.mlir", "kernels")
    for name in (
        "called_of_tensors",
        "multiplied",
        "divided",
        "digits",
        "stepped",
        "inner_steps",
        "inserted",
        "copied",
        "affine_steps",
        "fits_in_branch",
    ):
        assert "cf.assert" not in kernels.split(f"gpu.func @{name}_kernel(", 1)[1].split("gpu.return", 1)[0]


def test_functions_of_threads_whose_parts_are_known_to_fit() -> None:
    kernels = emit_text(PROGRAMS / f"{NAME}.mlir", "kernels").split("gpu.module @", 1)[1]
    function = kernels.split("func.func private @doubled_tiles", 1)[1].split("return", 1)[0]
    assert "memref.subview" in function
    assert "cf.assert" not in function


def test_loops_of_threads_are_compared_in_front_of_them() -> None:
    lib, y = program(NAME), np.zeros(3, np.float32)
    lib.found_steps(f(3, 4), at(2, 0, 1), y)
    np.testing.assert_array_equal(y, [f(3, 4)[0, 2:].sum(), 0, f(3, 4)[2, 1]])
    fails("found_steps", LEFT.format("memref.subview", 1), f(3, 3), at(1, 0, 2), y)
    fails("found_steps", LEFT.format("memref.subview", 0), f(2, 4), at(1, 1, 1), y)
    lib.found_steps(f(2, 4), at(1, 1, 0), y)
    y = np.zeros(1, np.float32)
    lib.calls_steps(f(4), y, 4)
    np.testing.assert_array_equal(y, f(4).sum())
    fails("calls_steps", LEFT.format("memref.subview", 0), f(4), y, 5)
    lib.calls_steps(f(0), y, 0)
    kernels = emit_text(PROGRAMS / f"{NAME}.mlir", "kernels")
    for function in ("func @found_steps_kernel", "func private @summed_steps"):
        code = kernels.split("gpu.module @", 1)[1].split(function, 1)[1].split("return", 1)[0]
        in_loop = code.split("scf.for", 1)[1]
        assert "cf.assert" in code
        assert "cf.assert" not in in_loop


def test_sizes_each_made_of_the_one_before_in_two_ways() -> None:
    sums = "".join(f"    %k{i + 1} = arith.addi %k{i}, %k{i} : index\n" for i in range(30))
    text = f"""
func.func @f(%a: memref<?xf32>, %y: memref<?xf32>, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
    %k0 = arith.subi %i, %c1 : index
{sums}
    %k = arith.remui %k30, %m : index
    %x = memref.subview %a[%k] [1] [1] : memref<?xf32> to memref<1xf32, strided<[1], offset: ?>>
    %v = memref.load %x[%c0] : memref<1xf32, strided<[1], offset: ?>>
    memref.store %v, %y[%i] : memref<?xf32>
  }}
  return
}}
"""
    y = np.zeros(3, np.float32)
    on_host(text).f(f(5), y, 3)
    np.testing.assert_array_equal(y, f(5)[[((i - 1) * 2**30) % 2**64 % 5 for i in range(3)]])


@pytest.mark.parametrize("size", [0, 3, 6, 8])
def test_views_of_parts_that_branches_alone_look_at(size: int) -> None:
    found, fitting = f(2), size // 4
    program(NAME).views_in_branches(f(size), found)
    expected = [*f(size)[3::4][:fitting], *f(2)[fitting:]]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(program(NAME).tensors_in_branches(f(size), f(2), fitting).numpy(), expected)
    if fitting < 2:
        fails("tensors_in_branches", LEFT.format("tensor.extract_slice", 0), f(size), f(2), fitting + 1)


def test_what_nobody_needs_asks_for_nothing() -> None:
    text = """
func.func @unused(%a: tensor<?x?xf32>, %n: index, %p: i1) -> tensor<?xf32> {
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?xf32> {
    %row = tensor.extract_slice %a[%i, 0] [1, %n] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %none = scf.if %p -> tensor<?x?xf32> {
      scf.yield %a : tensor<?x?xf32>
    } else {
      %part = tensor.extract_slice %a[%i, %n] [1, %n] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
      %all = tensor.expand_shape %part [[0, 1]] output_shape [1, %n] : tensor<?xf32> into tensor<1x?xf32>
      %same = tensor.cast %all : tensor<1x?xf32> to tensor<?x?xf32>
      scf.yield %same : tensor<?x?xf32>
    }
    %one = tensor.extract_slice %row[%i] [1] [1] : tensor<?xf32> to tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %one into %o[%i] [1] [1] : tensor<1xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}
"""
    np.testing.assert_array_equal(on_host(text).unused(f(3, 3), 3, False).numpy(), np.diag(f(3, 3)))
