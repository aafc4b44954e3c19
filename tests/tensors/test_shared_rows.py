"""Steps on the same rows whose memory is shared, or may be: two outputs, arguments that are one array, gathers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from emulator.running import running_on

CHIPS = ["host", "sm_90", "gfx942", "gfx1100"]

_random = np.random.default_rng(29)


def generic(inputs: str, outputs: str, body: str, reduces: bool = False) -> str:
    """A linalg.generic on names that are a matrix (%A) or a number for each of its rows (%a); the body has %i0, …
    for elements of the inputs, %o0, … for those of the outputs, and ends with what it yields."""
    names = [*inputs.split(), *outputs.split()]
    has_rows = any(name[1].isupper() for name in names)
    maps = ", ".join("#all" if name[1].isupper() else "#row" if has_rows else "#one" for name in names)
    kinds = '"parallel", "reduction"' if reduces else '"parallel", "parallel"' if has_rows else '"parallel"'

    def operands(clause: str, names: list[str]) -> str:
        types = ", ".join("MATRIX" if name[1].isupper() else "NUMBERS" for name in names)
        return f"{clause}({', '.join(names)} : {types})" if names else ""

    elements = [f"%i{i}: i32" for i in range(len(inputs.split()))] + [
        f"%o{i}: i32" for i in range(len(outputs.split()))
    ]
    return f"""
  linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      {operands("ins", inputs.split())} {operands("outs", outputs.split())} {{
  ^bb0({", ".join(elements)}):
    {body}
  }}"""


def sum_of(matrix: str, to: str) -> str:
    return generic(matrix, to, "%r = arith.addi %o0, %i0 : i32\n    linalg.yield %r : i32", reduces=True)


def program(arguments: str, steps: str, rows: int, length: int, before: str = "") -> str:
    types = ", ".join(
        f"{name}: {'i1' if name == '%which' else 'MATRIX' if name[1].isupper() else 'NUMBERS'}"
        for name in arguments.split()
    )
    text = f"""
#all = affine_map<(i, k) -> (i, k)>
#row = affine_map<(i, k) -> (i)>
#one = affine_map<(i) -> (i)>
{before}
func.func @f({types}) {{
  %zero = arith.constant 0 : i32
  %u = memref.alloc() : NUMBERS
  linalg.fill ins(%zero : i32) outs(%u : NUMBERS)
  {steps}
  memref.dealloc %u : NUMBERS
  return
}}
"""
    return text.replace("MATRIX", f"memref<{rows}x{length}xi32>").replace("NUMBERS", f"memref<{rows}xi32>")


def numbers(*shape: int) -> np.ndarray:
    return _random.integers(-100, 100, shape, np.int32)


@contextmanager
def shared(library: Any, x: np.ndarray) -> Iterator[Any]:
    """One array for several arguments; on a device, where a host array would be copied for each of them."""
    if library.backend == "host":
        yield x
        return
    there = library.device.array(x)
    yield there
    x[:] = there.numpy()


def sums(x: np.ndarray) -> np.ndarray:
    return x.sum(-1, dtype=np.int32)


TWICE_AND_SQUARES = "%p = arith.addi %i0, %i0 : i32\n %q = arith.muli %p, %i0 : i32\n linalg.yield %p, %q : i32, i32"
PLUS = "%r = arith.addi %i0, %i1 : i32\n    linalg.yield %r : i32"
PLUS_OLD = "%r = arith.addi %i0, %o0 : i32\n    linalg.yield %r : i32"
SUM_OF_BOTH = "%q = arith.addi %i0, %i1 : i32\n %r = arith.addi %q, %o0 : i32\n linalg.yield %r : i32"
TWICE = "%r = arith.addi %i0, %i0 : i32\n    linalg.yield %r : i32"


@pytest.fixture(params=CHIPS)
def chip(request: pytest.FixtureRequest) -> Iterator[str]:
    yield request.param


def test_an_output_beside_another_one_is_there_for_later_steps(chip: str) -> None:
    steps = generic("%X", "%A %B", TWICE_AND_SQUARES) + sum_of("%A", "%u") + generic("%u", "%A", PLUS_OLD)
    x, a, b = numbers(5, 128), np.zeros((5, 128), np.int32), np.zeros((5, 128), np.int32)
    with running_on(chip, program("%X %A %B", steps, 5, 128)) as library:
        library.f(x, a, b)
    np.testing.assert_array_equal(a, 2 * x + sums(2 * x)[:, None])
    np.testing.assert_array_equal(b, 2 * x * x)


def test_memory_between_the_steps_beside_memory_of_unknown_origin(chip: str) -> None:
    steps = (
        "%Out = arith.select %which, %A, %B : MATRIX\n  %P = memref.alloc() : MATRIX"
        + generic("%X", "%P %Out", TWICE_AND_SQUARES)
        + generic("%P %Out", "%u", SUM_OF_BOTH, reduces=True)
        + generic("%P %u", "%Out", PLUS)
        + "\n  memref.dealloc %P : MATRIX"
    )  # fmt: skip
    x, a, b = numbers(5, 128), np.zeros((5, 128), np.int32), np.zeros((5, 128), np.int32)
    with running_on(chip, program("%X %A %B %which", steps, 5, 128)) as library:
        library.f(x, a, b, True)
    np.testing.assert_array_equal(a, 2 * x + sums(2 * x + 2 * x * x)[:, None])
    assert not b.any()


@pytest.mark.parametrize(("rows", "length"), [(5, 132), (6, 1028), (1, 1028)])
def test_threads_without_elements_gather_nothing(chip: str, rows: int, length: int) -> None:
    gather = (
        "%i = arith.index_cast %o0 : i32 to index\n    %e = memref.load %table[%i] : memref<16xi32>\n"
        "    %c = arith.constant 100000000 : i32\n    %r = arith.addi %e, %c : i32\n    linalg.yield %r : i32"
    )
    steps = (
        "%numbers = memref.get_global @table : memref<16xi32>\n  %table = memref.alloc() : memref<16xi32>\n"
        "  memref.copy %numbers, %table : memref<16xi32> to memref<16xi32>"
        + generic("", "%X", gather) + sum_of("%X", "%u") + generic("%u", "%X", PLUS_OLD)
        + "\n  memref.dealloc %table : memref<16xi32>"
    )  # fmt: skip
    before = f'memref.global "private" constant @table : memref<16xi32> = dense<{list(range(16))}>'
    x = _random.integers(0, 16, (rows, length), np.int32)
    gathered = x + np.int32(100000000)
    with running_on(chip, program("%X", steps, rows, length, before)) as library:
        library.f(x)
    np.testing.assert_array_equal(x, gathered + sums(gathered)[:, None])


def test_numbers_of_rows_under_two_names(chip: str) -> None:
    steps = sum_of("%X", "%t") + generic("%s", "%t", PLUS_OLD)
    x, s = numbers(5, 128), numbers(5)
    want = 2 * (s + sums(x))
    with running_on(chip, program("%X %s %t", steps, 5, 128)) as library, shared(library, s) as both:
        library.f(x, both, both)
    np.testing.assert_array_equal(s, want)


def test_numbers_that_are_read_under_one_name_and_left_under_another(chip: str) -> None:
    steps = (
        "%X = memref.alloc() : MATRIX\n  %Y = memref.alloc() : MATRIX\n  memref.copy %Given, %X : MATRIX to MATRIX"
        + sum_of("%X", "%u")
        + generic("%s %u", "%t", "%r = arith.muli %i0, %i1 : i32\n    linalg.yield %r : i32")
        + generic("%X %t", "%Y", "%r = arith.muli %i0, %i1 : i32\n    linalg.yield %r : i32")
        + "\n  memref.copy %Y, %Left : MATRIX to MATRIX\n"
        "  memref.dealloc %X : MATRIX\n  memref.dealloc %Y : MATRIX"
    )
    x, s, y = numbers(8, 4096) // 10, numbers(8) // 10, np.zeros((8, 4096), np.int32)
    want = x * (s * sums(x))[:, None]
    with running_on(chip, program("%Given %s %t %Left", steps, 8, 4096)) as library, shared(library, s) as both:
        library.f(x, both, both, y)
    np.testing.assert_array_equal(y, want)


def test_elements_that_were_written_under_another_name(chip: str) -> None:
    steps = (
        "%C = memref.alloc() : MATRIX\n  %one = arith.constant 1 : i32"
        + generic("%A", "%B", "%r = arith.addi %i0, %one : i32\n    linalg.yield %r : i32")
        + generic("%B", "%A", TWICE)
        + generic("%B", "%C", "%r = arith.addi %i0, %one : i32\n    linalg.yield %r : i32")
        + sum_of("%C", "%u")
        + generic("%u %B", "%A", "linalg.yield %i0 : i32")
        + "\n  memref.dealloc %C : MATRIX"
    )
    for length in (128, 127):
        a = numbers(5, length)
        want = np.broadcast_to(sums(2 * (a + 1) + 1)[:, None], a.shape)
        with running_on(chip, program("%A %B", steps, 5, length)) as library, shared(library, a) as both:
            library.f(both, both)
        np.testing.assert_array_equal(a, want)


def test_other_rows_of_what_another_operation_writes(chip: str) -> None:
    text = """
#element = affine_map<(i, j, k) -> (i, j, k)>
#across = affine_map<(i, j, k) -> (j, i, k)>
#row = affine_map<(i, j, k) -> (i, j)>
func.func @f(%a: memref<4x4x128xi32>, %b: memref<4x4x128xi32>, %out: memref<4x4xi32>) {
  linalg.generic {indexing_maps = [#element, #element], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%b : memref<4x4x128xi32>) outs(%a : memref<4x4x128xi32>) {
  ^bb0(%v: i32, %old: i32):
    %r = arith.addi %v, %v : i32
    linalg.yield %r : i32
  }
  linalg.generic {indexing_maps = [#across, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%b : memref<4x4x128xi32>) outs(%out : memref<4x4xi32>) {
  ^bb0(%v: i32, %sum: i32):
    %r = arith.addi %v, %sum : i32
    linalg.yield %r : i32
  }
  return
}
"""
    a, out = numbers(4, 4, 128), np.zeros((4, 4), np.int32)
    want = sums(2 * a).T
    with running_on(chip, text) as library, shared(library, a) as both:
        library.f(both, both, out)
    np.testing.assert_array_equal(out, want)
