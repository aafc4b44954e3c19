"""PTX's types as NumPy's: how registers' bits become numbers, and numbers bits. bf16 is computed with as f32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from emulator.errors import EmulationError
from emulator.manual_math import bf16_to_f32, f32_to_bf16

Array = Any

DTYPES: dict[str, Any] = {
    **{f"{letter}{8 * size}": np.dtype(f"{code}{size}") for letter, code in (("b", "u"), ("u", "u"), ("s", "i"))
       for size in (1, 2, 4, 8)},
    "f16": np.dtype(np.float16), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64), "pred": np.dtype(bool),
    "f16x2": np.dtype(np.float16), "u16x2": np.dtype(np.uint16), "s16x2": np.dtype(np.int16),
    "f32x2": np.dtype(np.float32), "bf16": np.dtype(np.float32), "bf16x2": np.dtype(np.float32),
    "tf32": np.dtype(np.float32),
}  # fmt: skip
SIZES = {"pred": 0, "bf16": 2, "f16x2": 4, "bf16x2": 4, "u16x2": 4, "s16x2": 4, "f32x2": 8, "tf32": 4}
SIZES |= {kind: dtype.itemsize for kind, dtype in DTYPES.items() if kind not in SIZES}
UNSIGNED = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}
SMALL = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def is_float(kind: str) -> bool:
    return kind.lstrip("b").startswith(("f", "tf"))


def is_signed(kind: str) -> bool:
    return kind.startswith("s")


def reader(kind: str) -> Callable[[Array], Array]:
    """Bits (unsigned, of the type's size; of pairs an element per lane) to numbers."""
    if kind.startswith("bf16"):
        return lambda bits: bf16_to_f32(bits.view(np.uint16))
    if kind in ("pred", "b8", "b16", "b32", "b64", "u8", "u16", "u32", "u64"):
        return lambda bits: bits
    if kind not in DTYPES:
        raise EmulationError(f"no type .{kind}")
    dtype = DTYPES[kind]
    return lambda bits: bits.view(dtype)


def writer(kind: str) -> Callable[[Array], Array]:
    """The counterpart of :func:`reader`."""
    if kind.startswith("bf16"):
        pairs = kind == "bf16x2"

        def narrow(value: Array) -> Array:
            bits = f32_to_bf16(value) if value.dtype == np.float32 else f32_to_bf16(odd_f32(value))
            return bits.view(np.uint32) if pairs else bits

        return narrow
    if kind == "pred":
        return lambda value: value
    dtype, unsigned = DTYPES[kind], UNSIGNED[SIZES[kind]]
    return lambda value: np.ascontiguousarray(value.astype(dtype, copy=False)).view(unsigned)


def odd_f32(value: Array) -> Array:
    """float64 to float32, rounded to odd, so that a narrower type is rounded to once."""
    near = value.astype(np.float32)
    bits = near.view(np.int32)
    exact = near.astype(np.float64)
    step = np.where(np.abs(exact) < np.abs(value), 1, -1)
    odd = np.where((exact != value) & np.isfinite(value) & (bits & 1 == 0), bits + step, bits).astype(np.int32)
    return np.where(np.isfinite(near), odd.view(np.float32), near)


def bits_of(text: str, kind: str) -> int:
    """A number of the text as an instruction of this type takes it."""
    size = max(SIZES.get(kind, 0), 1)
    if text[:2] in ("0f", "0F", "0d", "0D"):
        bits = int(text[2:], 16)
        if kind == "f64" and text[1] in "fF":
            return int(np.float64(np.uint32(bits).view(np.float32)).view(np.uint64))
        return bits
    if "." in text:
        bits_as = np.array([float(text)], DTYPES[kind])
        return int(bits_as.view(UNSIGNED[size])[0])
    return int(text, 0) & ((1 << (8 * size)) - 1)
