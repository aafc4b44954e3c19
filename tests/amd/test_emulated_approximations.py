"""What `fast` may not do: add in another order what keeps the digits of a sum in the functions of AMD's library, and
divide by reciprocals that are infinite."""

from __future__ import annotations

import numpy as np
import pytest
from emulator.driver import Driver, shared
from emulator.on_device import OnDevice, compiled
from numeric import DTYPES, Form, module

FUNCTIONS = {
    "log1p": np.log1p, "asinh": np.arcsinh, "atanh": np.arctanh, "sinh": np.sinh, "tanh": np.tanh, "expm1": np.expm1,
    "sin": np.sin, "cos": np.cos, "tan": np.tan,
}  # fmt: skip
OF_ANGLES = ("sin", "cos", "tan")


def _given(name: str, kind: str) -> np.ndarray:
    """Small numbers of which 1 + x keeps little or nothing, and angles of many turns."""
    random = np.random.default_rng(6)
    powers = random.uniform(0, 25, 128) if name in OF_ANGLES else random.uniform(-30, -1, 128)
    return np.asarray(10**powers * random.choice([-1, 1], 128)).astype(DTYPES[kind])


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100", "gfx1201", "gfx942,O=1"])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_functions_keep_their_digits(driver: Driver, kind: str, chip: str) -> None:
    forms = [Form(name, [kind], [kind], f"%r0 = math.{name} %x0 : {{T}}") for name in FUNCTIONS]
    with driver.chip(chip.split(",")[0]):
        library = OnDevice(compiled(module(forms), f"{chip},fast"))
        got = {form.name: form.run(library, _given(form.name, kind))[0] for form in forms}
    for name, function in FUNCTIONS.items():
        wanted = function(_given(name, kind).astype(np.float64))
        np.testing.assert_allclose(got[name], wanted, rtol=1e-6 if kind == "f32" else 1e-14, err_msg=name)


HALVES = """
gpu.module @m { gpu.func @k(%x: memref<?xf16>, %y: memref<?xf16>, %out: memref<?x4xf16>) kernel {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %t = gpu.thread_id x
  %v = memref.load %x[%t] : memref<?xf16>
  %w = memref.load %y[%t] : memref<?xf16>
  %q = arith.divf %v, %w FLAGS : f16
  %both = vector.from_elements %v, %w : vector<2xf16>
  %by = vector.from_elements %w, %w : vector<2xf16>
  %two = arith.divf %both, %by FLAGS : vector<2xf16>
  %first = vector.extract %two[0] : f16 from vector<2xf16>
  %second = vector.extract %two[1] : f16 from vector<2xf16>
  %r = arith.divf %one, %w FLAGS : f16
  %all = vector.from_elements %q, %first, %second, %r : vector<4xf16>
  vector.store %all, %out[%t, %c0] : memref<?x4xf16>, vector<4xf16>
  gpu.return
} }
"""


@pytest.mark.parametrize("flags", ["", "fastmath<afn>", "fastmath<arcp>"])
@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx942,O=0", "gfx1100", "gfx1201"])
def test_quotients_of_halves_whose_divisors_are_small(driver: Driver, target: str, flags: str) -> None:
    """The reciprocals of the smallest are infinite in f16, those of the largest are denormal."""
    numbers = np.array([0, 6e-8, 1e-7, 1e-5, 1.5e-5, 2e-5, 6.1e-5, 0.1, 1, 3, 20000, 65504, np.inf], np.float16)
    numbers = np.concatenate([numbers, -numbers, [np.float16(np.nan)]])
    x, y = (each.ravel() for each in np.meshgrid(numbers, numbers))
    out = np.zeros((len(x), 4), np.float16)
    target += "" if flags else ",fast"
    with driver.chip(target.split(",")[0]):
        OnDevice(compiled(HALVES.replace("FLAGS", flags), target)).kernels.k[1, len(x)](x, y, out)
    with np.errstate(all="ignore"):
        want = np.stack([x / y, x / y, y / y, 1 / y], axis=1)
    np.testing.assert_allclose(out.astype(np.float32), want.astype(np.float32), rtol=2e-3, atol=6e-8)
    if flags:
        np.testing.assert_array_equal(np.signbit(out[want == 0]), np.signbit(want[want == 0]))


LOOP = """
gpu.module @m { gpu.func @k(%x: memref<?xf16>, %y: memref<?xf16>, %n: index) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %w = memref.load %y[%c0] : memref<?xf16>
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf16>
    %q = arith.divf %v, %w FLAGS : f16
    memref.store %q, %x[%i] : memref<?xf16>
  }
  gpu.return
} }
"""


@pytest.mark.parametrize("flags", ["", "fastmath<fast>", "fastmath<arcp>"])
@pytest.mark.parametrize("chip", ["gfx942", "gfx1201", "sm_90"])
def test_quotients_of_halves_in_loops(chip: str, flags: str) -> None:
    """LLVM takes the reciprocal of what divides each time out of a loop, and it is infinite in f16."""
    given = np.array([1e-5, 2e-5, 1e-3, -1e-5, 0.25], np.float16)
    x, y = given.copy(), np.array([1e-5], np.float16)
    with shared("cuda" if chip == "sm_90" else "hip").chip(chip):
        library = compiled(LOOP.replace("FLAGS", flags), chip if flags else f"{chip},fast")
        OnDevice(library).kernels.k[1, 1](x, y, len(x))
    np.testing.assert_allclose(x, given / y, rtol=2e-3)
