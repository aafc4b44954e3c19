"""The package, installed, against NumPy: on each backend that this machine has."""

import numpy as np
import pytest
import rowwise

import offload

pytestmark = pytest.mark.usefixtures("offload_backend")


def test_softmax() -> None:
    x = np.random.default_rng(1).normal(size=(33, 70)).astype(np.float32)
    y = np.empty_like(x)
    rowwise.softmax(offload.stage(x), offload.stage(y))
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5)
