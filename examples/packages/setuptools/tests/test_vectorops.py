"""The package, installed, against NumPy: on each backend that this machine has."""

import numpy as np
import pytest
from vectorops import kernels

import offload

pytestmark = pytest.mark.usefixtures("offload_backend")


def test_saxpy() -> None:
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    kernels.saxpy(2, offload.stage(x), offload.stage(y))
    np.testing.assert_allclose(y, 2 * np.arange(1000) + 1)


def test_scale() -> None:
    x = np.arange(777, dtype=np.float32)
    kernels.scale(3, offload.stage(x))
    np.testing.assert_allclose(x, 3 * np.arange(777))
