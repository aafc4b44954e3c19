"""Loops whose threads take several elements: the same values at every size, on the CPU and on emulated devices."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from compiling import PROGRAMS, emit_text, on_host
from emulator.on_device import OnDevice
from emulator.running import running_on

import offload

PROGRAM = PROGRAMS / "thread_steps.mlir"
BLOCK = 2048
"""Elements of a block where a thread takes eight."""

_random = np.random.default_rng(23)


def numpy_of(result: Any) -> np.ndarray:
    return result if isinstance(result, np.ndarray) else result.numpy()


def check(library: offload.Library | OnDevice, sizes: tuple[int, ...]) -> None:
    for n in sizes:
        x, y = (_random.standard_normal(n).astype(np.float16) for _ in range(2))
        np.testing.assert_array_equal(numpy_of(library.halves(x, y)), x + y)
        given, taken = _random.integers(-128, 128, n, np.int8), np.zeros(n + 5, np.int8)
        library.bytes(given, taken, n)
        np.testing.assert_array_equal(taken, np.append(given, np.zeros(5, np.int8)))
        v, wide = _random.standard_normal(n), np.zeros(2 * n + 1)
        library.doubles(v, wide[1::2])
        np.testing.assert_allclose(wide[1::2], np.exp(v), rtol=1e-14)
        assert not wide[::2].any()
        numbers = _random.integers(-1000, 1000, n + 7, np.int32)
        expected = numbers.copy()
        expected[2 : n + 1 : 3] **= 2
        library.thirds(numbers, 2, n + 1)
        np.testing.assert_array_equal(numbers, expected)
    m, factors = _random.standard_normal((11, 600)).astype(np.float32), np.arange(11, dtype=np.float32)
    np.testing.assert_array_equal(numpy_of(library.rows(m, factors)), m * factors[:, None])


def test_on_the_cpu() -> None:
    library = on_host(PROGRAM)
    around = [BLOCK * blocks + more for blocks in (1, 2, 5) for more in (-1, 0, 1)]
    check(library, (0, 1, 255, 256, 257, 511, 1000, *around, 300_001))
    x = _random.standard_normal(1 << 20).astype(np.float32)
    y = np.zeros_like(x)
    library.whole(x, y)
    np.testing.assert_array_equal(y, abs(x))


@pytest.mark.parametrize("chip", ["gfx90a", "gfx1100", "sm_80"])
def test_on_devices(chip: str) -> None:
    with running_on(chip, PROGRAM) as library:
        check(library, (0, 1, 300, BLOCK, BLOCK + 1, 2 * BLOCK + 700))


@pytest.mark.parametrize("chip", ["nvvm:sm_90", "rocdl:gfx942"])
def test_loads_come_first(chip: str) -> None:
    """All loads of a thread's steps are on their way before the first store; the last block goes step by step."""
    load, store = ("ld.global", "st.global") if chip.startswith("nvvm") else ("global_load", "global_store")
    halves = PROGRAM.read_text().partition("// Rows")[0]
    kinds = re.findall(rf"{re.escape(load)}|{re.escape(store)}", emit_text(halves, "isa", [chip]))
    order = "".join("S" if kind == store else "L" for kind in kinds)
    assert sorted(order) == sorted("L" * 16 + "S" * 8 + "LLS")
    assert "L" * 16 + "S" * 8 in order
