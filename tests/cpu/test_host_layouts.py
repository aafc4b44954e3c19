"""Vectors, strides and views on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import program
from hypothesis import given, settings
from hypothesis import strategies as st

# Vectors, strides, layouts.


def test_vectors() -> None:
    library = program("vectors")
    x = np.random.default_rng(0).random(64, np.float32)
    out = np.zeros_like(x)
    library.kernels.double_fours[1, 16](x, out)
    np.testing.assert_array_equal(out, x + x)
    sums = np.zeros(16, np.float32)
    library.kernels.sum_fours[1, 16](x, sums)
    np.testing.assert_allclose(sums, x.reshape(16, 4).sum(axis=1), rtol=1e-6)


def test_vectors_of_two_dimensions() -> None:
    x = np.random.default_rng(1).random((2, 6), np.float32)
    moved = np.zeros((6, 2), np.float32)
    program("vectors_2d").kernels.transpose_block[1, 1](x, moved)
    np.testing.assert_array_equal(moved[:4], x.T[:4])
    np.testing.assert_array_equal(moved[4:], 0)


VIEWS: dict[str, Any] = {
    "whole": lambda a: a,
    "every second row": lambda a: a[::2],
    "backwards": lambda a: a[::-1, ::-1],
    "transposed": lambda a: a.T,
    "inside": lambda a: a[1:-1, 2:-2],
    "one column": lambda a: a[:, 3:4],
    "spread": lambda a: np.broadcast_to(a[:1], a.shape).copy()[:, ::3],
}


@pytest.mark.parametrize("name", VIEWS)
def test_strided_arguments(name: str) -> None:
    base = np.arange(11 * 13, dtype=np.float32).reshape(11, 13)
    x = VIEWS[name](base.copy())
    expected = x * np.float32(2)
    program("strided").double(x)
    np.testing.assert_array_equal(x, expected)


@given(start=st.integers(0, 5), step=st.integers(1, 4), count=st.integers(0, 6))
@settings(max_examples=20)
def test_subviews_made_by_the_host_function(start: int, step: int, count: int) -> None:
    x = np.arange(40, dtype=np.float32)
    expected = x.copy()
    expected[start : start + step * count : step] *= 2
    program("strided").double_part(x, start, step, count)
    np.testing.assert_array_equal(x, expected)


def test_subviews_of_fixed_shape() -> None:
    x = np.zeros((8, 8), np.float32)
    program("strided").mark_corner(x)
    expected = np.zeros((8, 8), np.float32)
    expected[2:5, 4:8:2] = 1
    np.testing.assert_array_equal(x, expected)
