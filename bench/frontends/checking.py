"""Building a program, calling it and holding its results to JAX's."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

import offload

TESTS = str(Path(__file__).resolve().parents[2] / "tests")
"""Where the emulators are."""
TOLERANCES = {"float64": 1e-9, "float32": 2e-4, "float16": 3e-2}
ROUGH = 0.1
"""Of the small floats: JAX rounds what is between operations less often than the program says."""


def arrays_of(results: Any) -> list[NDArray[Any]]:
    """JAX's results, or a library's, as arrays of NumPy."""
    leaves = jax.tree_util.tree_leaves(results)
    return [each.numpy() if hasattr(each, "numpy") else np.asarray(each) for each in leaves]


def signless(array: NDArray[Any]) -> NDArray[Any]:
    """Programs after the lowering have integers without a sign, which are taken for signed ones."""
    return array.view(array.dtype.name[1:]) if array.dtype.kind == "u" else array


def difference(got: Sequence[NDArray[Any]], wanted: Sequence[NDArray[Any]]) -> str | None:
    """What is wrong with results; None where nothing is."""
    if len(got) != len(wanted):
        return f"{len(got)} results, not {len(wanted)}"
    for number, (each, want) in enumerate(zip(got, map(signless, wanted), strict=True)):
        if (each.shape, each.dtype) != (want.shape, want.dtype):
            return f"result {number} is {each.dtype}{list(each.shape)}, not {want.dtype}{list(want.shape)}"
        if want.dtype.kind in "iub":
            close = np.array_equal(each, want)
        else:
            kind = np.complex128 if want.dtype.kind == "c" else np.float64
            name = {"complex64": "float32", "complex128": "float64"}.get(want.dtype.name, want.dtype.name)
            tolerance = TOLERANCES.get(name, ROUGH)
            finite = np.abs(want.astype(kind))[np.isfinite(want)]
            scale = min(finite.max(initial=0), 1e3)
            close = np.allclose(each.astype(kind), want.astype(kind), tolerance, tolerance * scale, equal_nan=True)
        if not close:
            return f"result {number} is {each.ravel()[:4]}…, not {want.ravel()[:4]}…"
    return None


@contextmanager
def library(program: str, target: str) -> Iterator[Any]:
    """The program on the CPU (``host``, with options), or on an emulated chip (``sm_90``)."""
    if target.partition(":")[0] == "host":
        loaded = offload.compile(program, targets=[target])
        loaded.use("host")
        yield loaded
        return
    if TESTS not in sys.path:
        sys.path.insert(0, TESTS)
    from emulator.running import running_on

    with running_on(target, program) as on_device:
        yield on_device


def called(program: str, target: str, arguments: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """The results of the program's function @main."""
    with library(program, target) as loaded:
        return arrays_of(loaded.main(*(signless(np.array(each)) for each in arguments)))
