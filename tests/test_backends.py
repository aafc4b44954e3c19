"""The examples with their arrays on the device, on every backend that has one here: the CPU always, GPUs if any.

The report's header says which backends are here; for those that are not, nothing is collected and nothing skipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import ALL_TARGETS, EXAMPLES, backends_here
from offload.targets import parse_targets

import offload
from offload.runtime import Library


@pytest.fixture(scope="session")
def for_this_machine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every example for the usual targets and for the devices in this machine."""
    folder = tmp_path_factory.mktemp("native")
    chips = {(target.name, target.chip): target for target in parse_targets([*ALL_TARGETS, "native"])}
    return {
        path.stem: offload.build(path, folder / f"{path.stem}.so", targets=chips.values())
        for path in sorted(EXAMPLES.glob("*.mlir"))
    }


@pytest.fixture(params=backends_here())
def load(request: pytest.FixtureRequest, for_this_machine: dict[str, Path]) -> Any:
    """Loads an example on one backend."""

    def on_backend(name: str) -> Library:
        library = offload.load(for_this_machine[name])
        library.use(request.param)
        assert library.backend == request.param
        return library

    return on_backend


def numbers(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


@pytest.mark.parametrize("n", [1, 257, 100_003])
def test_saxpy(load: Any, n: int) -> None:
    library = load("saxpy")
    x, y = numbers(n), numbers(n)[::-1].copy()
    there = library.device.array(y)
    library.saxpy(2.5, library.device.array(x), there)
    np.testing.assert_allclose(there.numpy(), np.float32(2.5) * x + y, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (33, 65), (257, 300)])
def test_transpose_and_its_kernel(load: Any, shape: tuple[int, int]) -> None:
    library = load("transpose")
    x = numbers(*shape)
    there, out = library.device.array(x), library.device.zeros(shape[::-1], np.float32)
    library.transpose(there, out)
    np.testing.assert_array_equal(out.numpy(), x.T)
    again = library.device.zeros(shape[::-1], np.float32)
    library.kernels.transpose_tile[(-(-shape[1] // 32), -(-shape[0] // 32)), (32, 8)](there, again)
    np.testing.assert_array_equal(again.numpy(), x.T)


@pytest.mark.parametrize("n", [1, 256, 12_345])
def test_block_sums(load: Any, n: int) -> None:
    library = load("reduce")
    x = numbers(n)
    out = library.device.zeros((-(-n // 256),), np.float32)
    library.block_sums(library.device.array(x), out)
    np.testing.assert_allclose(out.numpy(), np.add.reduceat(x, np.arange(0, n, 256)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("rows", "inner", "cols"), [(1, 1, 1), (33, 17, 65)])
def test_linear_relu(load: Any, rows: int, inner: int, cols: int) -> None:
    library = load("linear")
    x, w, bias = numbers(rows, inner), numbers(inner, cols), numbers(cols)
    out = library.device.zeros((rows, cols), np.float32)
    library.linear_relu(*map(library.device.array, (x, w, bias)), out)
    np.testing.assert_allclose(out.numpy(), np.maximum(x @ w + bias, 0), rtol=1e-4, atol=1e-4)


def test_scale(load: Any) -> None:
    library = load("scale")
    x = numbers(33, 65)
    there = library.device.array(x)
    library.scale(-3, there)
    np.testing.assert_array_equal(there.numpy(), np.float32(-3) * x)
