"""What `fast` may not do to the functions of AMD's library: add in another order what keeps the digits of a sum."""

from __future__ import annotations

import numpy as np
import pytest
from emulator.driver import Driver
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
