"""The package, installed, against NumPy: on each backend that this machine has."""

import numpy as np
import pytest
import smooth

import offload

pytestmark = pytest.mark.usefixtures("offload_backend")


def test_box() -> None:
    x = np.random.default_rng(1).random(1001, dtype=np.float32)
    y = x.copy()
    smooth.box(offload.stage(x), offload.stage(y))
    expected = x.copy()
    expected[1:-1] = (x[:-2] + x[1:-1] + x[2:]) / 3
    np.testing.assert_allclose(y, expected, rtol=1e-6)
