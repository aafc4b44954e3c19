"""Functions of tensors as cases of the operations' table."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template
from typing import Any

import numpy as np
from numeric import DTYPES
from numpy.lib.stride_tricks import sliding_window_view
from operations import Case

from offload.runtime import Library

Array = np.ndarray[Any, Any]
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items() if name != "index"}


def whole(shape: Sequence[int], element: str = "f32", seed: int = 0, low: int = -5, high: int = 6) -> Array:
    """Small whole numbers: every sum and product of a few is exact in every type."""
    return np.random.default_rng(seed).integers(low, high, shape).astype(DTYPES[element])


def floats(shape: Sequence[int], element: str = "f32", seed: int = 0) -> Array:
    """Numbers around zero."""
    return np.random.default_rng(seed).standard_normal(shape).astype(DTYPES[element])


def kind(array: Array, static: bool = True) -> str:
    """The type of a tensor of the array's elements and, unless it is not ``static``, sizes."""
    sizes = map(str, array.shape) if static else ["?"] * array.ndim
    return f"tensor<{'x'.join([*sizes, NAMES[array.dtype]])}>"


def computed(
    op: str,
    form: str,
    inputs: Sequence[Array],
    body: str,
    wanted: Array | list[Array],
    *,
    results: str = "%r",
    static: bool = True,
    off: float = 0.0,
    **options: Any,
) -> Case:
    """``body`` makes ``results`` of the tensors %a0, %a1 …, which should be ``wanted``, give or take a
    factor of ``off``. In it, $A0, $A1 … are the arguments' types, $R (or $R0, $R1 …) those of the results."""
    wanted = [np.asarray(each) for each in (wanted if isinstance(wanted, list) else [wanted])]
    types = {f"A{i}": kind(each, static) for i, each in enumerate(inputs)}
    types |= {f"R{i}": kind(each, static) for i, each in enumerate(wanted)}
    types["R"] = types["R0"]
    arguments = ", ".join(f"%a{i}: {types[f'A{i}']}" for i in range(len(inputs)))
    returned = ", ".join(types[f"R{i}"] for i in range(len(wanted)))
    source = (
        f"func.func @f({arguments}) -> ({returned}) {{\n"
        f"{Template(body).substitute(types).strip()}\nreturn {results} : {returned}\n}}\n"
    )

    def run(library: Library) -> None:
        found = library.f(*(each.copy() for each in inputs))
        for got, want in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
            array = got.numpy()
            assert (array.dtype, array.shape) == (want.dtype, want.shape)
            if off:
                np.testing.assert_allclose(array.astype(np.float64), want.astype(np.float64), rtol=off, atol=off)
            else:
                np.testing.assert_array_equal(array, want)

    return Case(op, form, source, run, **options)


def windows(x: Array, sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Array:
    """Every place of a window over the first dimensions of ``x``: these, the others of ``x``, those of the window."""
    extents = [(size - 1) * dilation + 1 for size, dilation in zip(sizes, dilations, strict=True)]
    seen = sliding_window_view(x, extents, tuple(range(len(sizes))))
    seen = seen[tuple(slice(None, None, stride) for stride in strides)]
    return seen[(..., *(slice(None, None, dilation) for dilation in dilations))]


def named(
    op: str,
    form: str,
    inputs: Sequence[Array],
    wanted: Array,
    attributes: str = "",
    *,
    before: Sequence[str] = (),
    off: float = 0.0,
) -> list[Case]:
    """An operation of linalg whose last input is what its result begins with; lines ``before`` it may make scalars of
    32 bits, which are its further inputs: %q0, %q1 … Once for known and once for unknown sizes."""
    count, scalars = len(inputs) - 1, [line.split()[0] for line in before]
    ins = ", ".join([*(f"%a{i}" for i in range(count)), *scalars])
    types = ", ".join([*(f"$A{i}" for i in range(count)), *["i32"] * len(scalars)])
    line = f"%r = linalg.{op} {attributes}ins({ins} : {types}) outs(%a{count} : $A{count}) -> $R"
    body = "\n".join([*before, line])
    return [
        computed(f"linalg.{op}", f"{form}{sizes}", inputs, body, wanted, static=not sizes, off=off)
        for sizes in ("", ", unknown sizes")
    ]
