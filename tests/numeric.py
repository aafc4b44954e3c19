"""Kernels that compute element by element, and comparisons of their results in units of the last place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from offload.runtime import Library

DTYPES: dict[str, Any] = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "complex<f32>": np.complex64, "complex<f64>": np.complex128,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "f8E4M3": ml_dtypes.float8_e4m3,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz, "f8E3M4": ml_dtypes.float8_e3m4,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
}  # fmt: skip


@dataclass(frozen=True)
class Form:
    """One kernel: results ``outputs`` (MLIR types) of ``body``, which computes %r0 … from %x0 … of ``inputs``.

    In ``body``, ``{T}`` stands for the type of the first input as the kernel has it: a scalar, or with ``width`` a
    vector of rank 1, or with ``shape`` a vector of that shape; ``{I}`` for integers of that shape, and any other
    name of ``types`` likewise.
    """

    name: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    body: str
    shape: tuple[int, ...] = ()
    types: dict[str, str] = field(default_factory=dict)

    @property
    def width(self) -> int:
        return int(np.prod(self.shape)) if self.shape else 1

    def _type(self, element: str) -> str:
        return f"vector<{'x'.join(map(str, self.shape))}x{element}>" if self.shape else element

    def kernel(self) -> str:
        """The text of the gpu.func: thread i computes element i, or the i-th vector."""
        kinds = [*((f"a{i}", kind) for i, kind in enumerate(self.inputs))]
        kinds += [(f"o{i}", kind) for i, kind in enumerate(self.outputs)]
        arguments = ", ".join(f"%{name}: memref<?x{kind}>" for name, kind in kinds)
        lines = ["%i = gpu.thread_id x", f"%w = arith.constant {self.width} : index", "%at = arith.muli %i, %w : index"]
        for i, kind in enumerate(self.inputs):
            lines += self._load(i, kind)
        types = {"T": self.inputs[0], "R": self.outputs[0], **self.types}
        lines.append(self.body.format(**{name: self._type(kind) for name, kind in types.items()}))
        for i, kind in enumerate(self.outputs):
            lines += self._store(i, kind)
        text = "\n".join(lines)
        return f"gpu.func @{self.name}({arguments}) kernel {{\n{text}\ngpu.return\n}}\n"

    def _load(self, i: int, kind: str) -> list[str]:
        if not self.shape:
            return [f"%x{i} = memref.load %a{i}[%at] : memref<?x{kind}>"]
        flat = f"vector<{self.width}x{kind}>"
        if len(self.shape) == 1:
            return [f"%x{i} = vector.load %a{i}[%at] : memref<?x{kind}>, {flat}"]
        return [
            f"%l{i} = vector.load %a{i}[%at] : memref<?x{kind}>, {flat}",
            f"%x{i} = vector.shape_cast %l{i} : {flat} to {self._type(kind)}",
        ]

    def _store(self, i: int, kind: str) -> list[str]:
        if not self.shape:
            return [f"memref.store %r{i}, %o{i}[%at] : memref<?x{kind}>"]
        flat = f"vector<{self.width}x{kind}>"
        if len(self.shape) == 1:
            return [f"vector.store %r{i}, %o{i}[%at] : memref<?x{kind}>, {flat}"]
        return [
            f"%s{i} = vector.shape_cast %r{i} : {self._type(kind)} to {flat}",
            f"vector.store %s{i}, %o{i}[%at] : memref<?x{kind}>, {flat}",
        ]

    def run(self, library: Library, *operands: Any) -> list[Any]:
        """The results for operands whose length is a multiple of the width."""
        count = len(operands[0]) if operands else self.width
        results = [np.zeros(count, DTYPES[kind]) for kind in self.outputs]
        assert count % self.width == 0
        threads = count // self.width
        assert threads <= 1024
        library.kernels[self.name][1, threads](*operands, *results)
        return results


def module(forms: Sequence[Form], outside: str = "") -> str:
    """A program of these kernels."""
    return "gpu.module @m {\n" + outside + "".join(form.kernel() for form in forms) + "}\n"


def same(got: Any, expected: Any) -> None:
    """Equal bit by bit, but for the bits of NaN; -0 is not 0."""
    wide = np.float64 if np.asarray(expected).dtype.kind in "fV" else None
    if wide is None:
        np.testing.assert_array_equal(got, expected)
        return
    got, expected = got.astype(wide), np.asarray(expected).astype(wide)
    np.testing.assert_array_equal(got, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(expected)[numbers])


@np.errstate(all="ignore")
def within(got: Any, exact: Any, ulps: float, zero_signs: bool = True) -> None:
    """Every result at most so many units of its last place from ``exact``, which has a wider type.

    NaN and infinity must be the same; values past the largest number may be either that or infinity.
    """
    dtype = got.dtype
    wide = np.longdouble
    exact = np.asarray(exact)
    rounded = exact.astype(np.float64).astype(dtype) if dtype != np.float64 else exact.astype(dtype)
    value, target = got.astype(np.float64).astype(wide) if dtype != np.float64 else got.astype(wide), exact.astype(wide)
    np.testing.assert_array_equal(np.isnan(value), np.isnan(target))
    near = rounded.astype(np.float64)
    if zero_signs:
        zeros = target == 0
        np.testing.assert_array_equal(np.signbit(got.astype(np.float64))[zeros], np.signbit(target)[zeros])
    finite = np.isfinite(near) & np.isfinite(value)
    other = ~finite & ~np.isnan(target)
    largest = float(ml_dtypes.finfo(dtype).max)
    bad = other & (value != near.astype(wide)) & (np.abs(value) != largest)
    assert not bad.any(), f"{got[bad]} where {exact[bad]} is right"
    info = ml_dtypes.finfo(dtype)
    unit = np.maximum(
        np.exp2(np.floor(np.log2(np.maximum(np.abs(target[finite]), 1e-4000)))), float(info.smallest_normal)
    )
    error = np.abs(value[finite] - target[finite]) / (unit * wide(float(info.eps)))
    if error.size and error.max() > ulps:
        at = int(np.argmax(error))
        raise AssertionError(
            f"{got[finite][at]!r} where {exact[finite][at]!r} is right: {float(error[at]):.3f} ulp > {ulps}"
        )


def specials(dtype: Any) -> list[float]:
    """Numbers at which functions go wrong."""
    info = ml_dtypes.finfo(dtype)
    small, tiny, large = float(info.smallest_normal), float(info.smallest_subnormal), float(info.max)
    one = float(info.eps)
    positive = [
        0.0,
        tiny,
        small / 2,
        small,
        1e-3,
        0.5,
        1 - one / 2,
        1.0,
        1 + one,
        1.5,
        2.0,
        2.5,
        3.0,
        10.0,
        large,
        np.inf,
    ]
    return [*positive, *(-x for x in positive), np.nan]


def numbers(kind: str, low: float, high: float, count: int = 96, seed: int = 1, special: bool = True) -> Any:
    """Random numbers of a range, and the special ones; a multiple of 4 of them."""
    dtype = DTYPES[kind]
    values = np.random.default_rng(seed).uniform(low, high, count)
    if special:
        values = np.concatenate([values, specials(dtype)])
    values = np.resize(values, -(-len(values) // 4) * 4)
    with np.errstate(all="ignore"):
        return values.astype(dtype)


Runner = Callable[[Library], None]
