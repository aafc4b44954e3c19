"""The examples on the CPU against NumPy, out of libraries that hold code for every vendor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import ALL_TARGETS, EXAMPLES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import offload
from offload.runtime import Library

SIZES = [1, 2, 31, 255, 256, 257, 1000, 100_003]
SHAPES = [(1, 1), (1, 300), (300, 1), (32, 32), (33, 31), (7, 129), (100, 64)]
relaxed = settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="session")
def examples(built: dict[str, Path]) -> dict[str, Library]:
    libraries = {name: offload.load(path) for name, path in built.items()}
    for library in libraries.values():
        library.use("host")
    return libraries


def numbers(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def test_each_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.mlir")} == {"saxpy", "scale", "linear", "reduce", "transpose"}


def test_each_holds_code_for_every_target(examples: dict[str, Library]) -> None:
    for library in examples.values():
        modules = {image.module for image in library.metadata.images}
        held = {(image.module, f"{image.target}:{image.chip}") for image in library.metadata.images}
        targets = {*ALL_TARGETS[:2], f"host:{host_chip()}"}
        assert held == {(module, target) for module in modules for target in targets}


def host_chip() -> str:
    from offload.targets import registry

    return registry().get("host").default_chip()


def check_saxpy(library: Library, n: int, a: float) -> None:
    x, y = numbers(n), numbers(n)[::-1].copy()
    expected = np.float32(a) * x + y
    library.saxpy(a, x, y)
    np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n", SIZES)
def test_saxpy(examples: dict[str, Library], n: int) -> None:
    check_saxpy(examples["saxpy"], n, 2.5)


@relaxed
@given(n=st.integers(1, 3000), a=st.floats(-100, 100, width=32))
def test_saxpy_of_any_length(examples: dict[str, Library], n: int, a: float) -> None:
    check_saxpy(examples["saxpy"], n, a)


@pytest.mark.parametrize("shape", SHAPES)
def test_scale(examples: dict[str, Library], shape: tuple[int, int]) -> None:
    x = numbers(*shape)
    expected = np.float32(-3) * x
    examples["scale"].scale(-3, x)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("n", SIZES)
def test_block_sums(examples: dict[str, Library], n: int) -> None:
    x = numbers(n)
    out = np.full(-(-n // 256), np.nan, np.float32)
    examples["reduce"].block_sums(x, out)
    padded = np.zeros(len(out) * 256)
    padded[:n] = x
    np.testing.assert_allclose(out, padded.reshape(-1, 256).sum(axis=1), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
def test_transpose(examples: dict[str, Library], shape: tuple[int, int]) -> None:
    x = numbers(*shape)
    out = np.full(shape[::-1], np.nan, np.float32)
    examples["transpose"].transpose(x, out)
    np.testing.assert_array_equal(out, x.T)


def check_linear(library: Library, rows: int, inner: int, cols: int) -> None:
    x, w, bias = numbers(rows, inner), numbers(inner, cols), numbers(cols)
    out = np.full((rows, cols), np.nan, np.float32)
    library.linear_relu(x, w, bias, out)
    expected = np.maximum(x.astype(np.float64) @ w + bias, 0)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("rows", "inner", "cols"), [(1, 1, 1), (8, 32, 32), (33, 17, 65), (5, 100, 1), (64, 3, 50)])
def test_linear_relu(examples: dict[str, Library], rows: int, inner: int, cols: int) -> None:
    check_linear(examples["linear"], rows, inner, cols)


@relaxed
@given(rows=st.integers(1, 40), inner=st.integers(1, 40), cols=st.integers(1, 70))
def test_linear_relu_of_any_shape(examples: dict[str, Library], rows: int, inner: int, cols: int) -> None:
    check_linear(examples["linear"], rows, inner, cols)


def test_no_elements(examples: dict[str, Library]) -> None:
    empty, row = np.zeros(0, np.float32), np.zeros((0, 5), np.float32)
    examples["saxpy"].saxpy(2, empty, empty.copy())
    examples["reduce"].block_sums(empty, empty.copy())
    examples["scale"].scale(2, row)
    examples["scale"].scale(2, row.reshape(5, 0))
    examples["transpose"].transpose(row, row.reshape(5, 0))
    examples["linear"].linear_relu(
        row, np.zeros((5, 3), np.float32), np.zeros(3, np.float32), np.zeros((0, 3), np.float32)
    )


def test_a_product_over_nothing_is_the_bias(examples: dict[str, Library]) -> None:
    check_linear(examples["linear"], 4, 0, 5)


def test_kernels_are_callable_by_name(examples: dict[str, Library]) -> None:
    x = numbers(33, 70)
    out = np.zeros((70, 33), np.float32)
    examples["transpose"].kernels.transpose_tile[(3, 2), (32, 8)](x, out)
    np.testing.assert_array_equal(out, x.T)


def test_functions_tell_their_signature(examples: dict[str, Library]) -> None:
    from inspect import signature

    assert [list(signature(library.functions[name]).parameters) for library, name in [
        (examples["saxpy"], "saxpy"), (examples["linear"], "linear_relu"), (examples["transpose"], "transpose"),
    ]] == [["a", "x", "y"], ["x", "w", "bias", "out"], ["in_", "out"]]  # fmt: skip
