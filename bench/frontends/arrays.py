"""Arguments of the programs: always the same random numbers for the same shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


def _random(shape: tuple[int, ...]) -> np.random.Generator:
    return np.random.default_rng([3, *shape])


def normal(*shape: int, dtype: DTypeLike = np.float32, scale: float = 1) -> NDArray[Any]:
    return np.asarray(_random(shape).standard_normal(shape) * scale).astype(dtype)


def positive(*shape: int, dtype: DTypeLike = np.float32) -> NDArray[Any]:
    return (np.abs(normal(*shape, dtype=np.float64)) + 0.1).astype(dtype)


def within(*shape: int, dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """Between -0.95 and 0.95."""
    return _random(shape).uniform(-0.95, 0.95, shape).astype(dtype)


def whole(*shape: int, low: int = -50, high: int = 50, dtype: DTypeLike = np.int32) -> NDArray[Any]:
    """Below ``high``."""
    return _random((*shape, low & 1023)).integers(low, high, shape).astype(dtype)


def truths(*shape: int) -> NDArray[np.bool_]:
    return _random(shape).integers(0, 2, shape).astype(bool)


def complexes(*shape: int) -> NDArray[np.complex64]:
    return (normal(*shape) + 1j * normal(*shape, 2)[..., 0]).astype(np.complex64)
