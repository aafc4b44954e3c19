"""Graphs of small operations on tensors, as other compilers lower them, for the CPU and on emulated devices."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, emit, on_host
from emulator.on_device import OnDevice
from emulator.running import running_on

import offload

PROGRAM = PROGRAMS / "graphs.mlir"
RE, IM = (grid.astype(np.float32) for grid in np.meshgrid(np.linspace(-2, 1, 8), np.linspace(-1, 1, 6)))
BYTES = np.arange(0, 256, 5, dtype=np.uint8)


def escapes(steps: int) -> np.ndarray:
    x, y, count = np.zeros_like(RE), np.zeros_like(RE), np.zeros(RE.shape, np.int32)
    for _ in range(steps):
        inside = x * x + y * y < 4
        next_x, next_y = x * x - y * y + RE, x * y + x * y + IM
        x, y, count = np.where(inside, next_x, x), np.where(inside, next_y, y), count + inside
    return count


def check(library: offload.Library | OnDevice) -> None:
    for steps in (0, 1, 12):
        np.testing.assert_array_equal(library.escapes(RE, IM, steps).numpy(), escapes(steps))
    for times in (0, 1, 3):
        np.testing.assert_array_equal(library.halved(BYTES, times).numpy(), BYTES >> times)
    words, largest = library.table()
    np.testing.assert_array_equal(words.numpy(), np.array([1, 65534, 300], np.uint16))
    np.testing.assert_array_equal(largest.numpy(), np.uint32(2**32 - 1))
    sums, products = library.waves(RE[0].copy())
    np.testing.assert_allclose(sums.numpy(), np.sin(RE[0]) + RE[0], rtol=1e-5)
    np.testing.assert_allclose(products.numpy(), np.sin(RE[0]) * RE[0], rtol=1e-5)


def test_on_the_cpu() -> None:
    library = on_host(PROGRAM)
    check(library)
    assert BYTES[1] == 5  # what came is as it was
    assert str(library.halved) == "<offload function halved(x: uint8[n], times: int64) -> uint8[m]>"


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100", "sm_80"])
def test_on_devices(chip: str) -> None:
    with running_on(chip, PROGRAM) as library:
        check(library)


def test_for_each_target() -> None:
    offload.compile(PROGRAM, targets=ALL_TARGETS)


def step(result: str, maps: str, inputs: str, body: str, rank: int) -> str:
    """One operation on elements, of which a graph has many."""
    kinds, out = ", ".join(['"parallel"'] * rank), f"tensor<{'x'.join('5' * rank)}xf32>"
    names = ", ".join(f"%v{i}: f32" for i in range(len(inputs.split(", "))))
    types = ", ".join([out] * len(inputs.split(", ")))
    return f"""
  {result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins({inputs} : {types}) outs(%e : {out}) {{
  ^bb0({names}, %o: f32):
    {body}
    linalg.yield %y : f32
  }} -> {out}"""


def recurrence(steps: int) -> str:
    """Clenshaw's for a sum of Chebyshev polynomials: each step reads the two before it."""
    body = "%p = arith.mulf %v0, %v1 : f32\n%d = arith.subf %p, %v2 : f32\n%y = arith.addf %d, %c : f32"
    maps = ", ".join(["affine_map<(i) -> (i)>"] * 4)
    lines = [step(f"%b{n}", maps, f"%x, %b{n - 1}, %b{n - 2}", body, 1) for n in range(2, steps + 2)]
    return f"""func.func @f(%x: tensor<5xf32>, %b0: tensor<5xf32>, %b1: tensor<5xf32>) -> tensor<5xf32> {{
  %c = arith.constant 0.25 : f32
  %e = tensor.empty() : tensor<5xf32>{"".join(lines)}
  return %b{steps + 1} : tensor<5xf32>
}}"""


def folded(steps: int) -> str:
    """Each step reads the one before it as it is and transposed."""
    maps = "affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>"
    body = "%s = arith.addf %v0, %v1 : f32\n%y = arith.mulf %s, %c : f32"
    lines = [step(f"%x{n}", maps, f"%x{n - 1}, %x{n - 1}", body, 2) for n in range(1, steps + 1)]
    return f"""func.func @f(%x0: tensor<5x5xf32>) -> tensor<5x5xf32> {{
  %c = arith.constant 0.75 : f32
  %e = tensor.empty() : tensor<5x5xf32>{"".join(lines)}
  return %x{steps} : tensor<5x5xf32>
}}"""


def parted(steps: int, each: bool) -> str:
    """Two operations of each step read the one before it, and a third one both; ``each``: of steps that all are
    results, times two."""
    one, two = (", ".join(["affine_map<(i) -> (i)>"] * count) for count in (2, 3))
    lines = [
        step(f"%m{n}", two, f"%x{n - 1}, %l", "%y = arith.maximumf %v0, %v1 : f32", 1)
        + step(f"%h{n}", one, f"%x{n - 1}", "%y = arith.mulf %v0, %c : f32", 1)
        + step(f"%x{n}", two, f"%m{n}, %h{n}", "%y = arith.subf %v0, %v1 : f32", 1)
        + step(f"%r{n}", one, f"%x{n}", "%y = arith.addf %v0, %v0 : f32", 1)
        for n in range(1, steps + 1)
    ]
    results = [f"%r{n}" for n in range(1, steps + 1)] if each else [f"%x{steps}"]
    types = ", ".join(["tensor<5xf32>"] * len(results))
    return f"""func.func @f(%x0: tensor<5xf32>, %l: tensor<5xf32>) -> ({types}) {{
  %c = arith.constant -0.5 : f32
  %e = tensor.empty() : tensor<5xf32>{"".join(lines)}
  return {", ".join(results)} : {types}
}}"""


@pytest.mark.parametrize("chip", ["host", "gfx942", "sm_90"])
def test_steps_whose_parts_read_what_came_before_them(chip: str) -> None:
    """The parts are one operation before anything is computed again: the last step has each one before it once."""
    x, low = np.linspace(-1, 1, 5, dtype=np.float32), np.full(5, 0.25, np.float32)
    wanted, value = [], x
    for _ in range(12):
        value = np.maximum(value, low) + value * np.float32(0.5)
        wanted.append(value + value)
    with running_on(chip, parted(12, each=False)) as library:
        np.testing.assert_allclose(library.f(x, low).numpy(), value, rtol=1e-5)
    with running_on(chip, parted(12, each=True)) as library:
        for got, expected in zip(library.f(x, low), wanted, strict=True):
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5)


def test_what_is_computed_grows_with_the_steps() -> None:
    (kernels,) = emit(parted(40, each=False), "kernels")
    assert kernels.data.count(b"arith.maximumf") == 40
    (kernels,) = emit(parted(40, each=True), "kernels")
    assert kernels.data.count(b"arith.maximumf") < 40 * 32


@pytest.mark.parametrize("chip", ["host", "gfx942", "sm_90"])
def test_steps_that_read_what_came_before_them_twice(chip: str) -> None:
    """Each was put into the next once for every time it is read there: forty steps were more than memory holds."""
    x = np.linspace(-1, 1, 5, dtype=np.float32)
    with running_on(chip, recurrence(40)) as library:
        before, last = np.zeros(5, np.float32), np.ones(5, np.float32)
        got = library.f(x, before, last).numpy()
    for _ in range(40):
        before, last = last, x * last - before + np.float32(0.25)
    np.testing.assert_allclose(got, last, rtol=1e-4, atol=1e-4)
    square = np.arange(25, dtype=np.float32).reshape(5, 5)
    with running_on(chip, folded(40)) as library:
        got = library.f(square).numpy()
    for _ in range(40):
        square = (square + square.T) * np.float32(0.75)
    np.testing.assert_allclose(got, square, rtol=1e-4)
