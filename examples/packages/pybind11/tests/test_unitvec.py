"""The package, installed, against NumPy."""

import numpy as np
import pytest
import unitvec


def test_normalized() -> None:
    x = np.random.default_rng(1).normal(size=1000).astype(np.float32)
    np.testing.assert_allclose(unitvec.normalized(x), x / np.linalg.norm(x), rtol=1e-5)


def test_zeros_are_refused() -> None:
    with pytest.raises(ValueError, match="no direction"):
        unitvec.normalized(np.zeros(3, np.float32))
