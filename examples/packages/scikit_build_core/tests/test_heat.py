"""The package, installed, against NumPy: on each backend that this machine has."""

import heat
import numpy as np
import pytest

import offload

pytestmark = pytest.mark.usefixtures("offload_backend")


def test_a_step() -> None:
    now = np.random.default_rng(1).random(1001, dtype=np.float32)
    then = now.copy()
    heat.step(0.25, offload.stage(now), offload.stage(then))
    expected = now.copy()
    expected[1:-1] += np.float32(0.25) * (now[:-2] + now[2:] - 2 * now[1:-1])
    np.testing.assert_allclose(then, expected, rtol=1e-6)
