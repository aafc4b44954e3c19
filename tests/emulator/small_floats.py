"""Conversions of 4-, 6- and 8-bit floats; of 8 bits gfx942 has the types without infinity and -0 (fnuz)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from emulator.manual_math import bf16_to_f32, f32_to_bf16

Array = Any

_OCP: dict[str, Any] = {
    "fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2, "fp6": ml_dtypes.float6_e2m3fn,
    "bf6": ml_dtypes.float6_e3m2fn, "fp4": ml_dtypes.float4_e2m1fn,
}  # fmt: skip
_FNUZ: dict[str, Any] = {**_OCP, "fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz}


class SmallFloats:
    """The functions of the descriptions for one chip, found by name: ``fp8_to_f32``, ``f32_to_bf8_scale``."""

    def __init__(self, chip: str) -> None:
        self.types = _FNUZ if chip == "gfx942" else _OCP

    def __getattr__(self, name: str) -> Callable[..., Array]:
        given, _, rest = name.partition("_to_")
        wanted, _, scaled = rest.partition("_")
        if scaled not in ("", "scale"):
            raise AttributeError(name)
        if given in self.types:
            return lambda x, scale=None: self._wide(x, given, wanted, scale)
        return lambda x, scale=None: self._small(x, given, wanted, scale)

    def numbers(self, bits: Array, kind: str) -> Array:
        """float32 of the bits of any narrow type."""
        if kind == "bf16":
            return bf16_to_f32(bits.astype(np.uint16))
        if kind == "f16":
            return bits.astype(np.uint16).view(np.float16).astype(np.float32)
        return np.ascontiguousarray(bits).astype(np.uint8).view(self.types[kind]).astype(np.float32)

    def _wide(self, bits: Array, given: str, wanted: str, scale: Array) -> Array:
        value = self.numbers(bits, given)
        if scale is not None:
            value = np.ldexp(value, scale.astype(np.int32) - 127)
        return {"f32": value, "f16": value.astype(np.float16)}[wanted] if wanted != "bf16" else f32_to_bf16(value)

    def _small(self, value: Array, given: str, wanted: str, scale: Array) -> Array:
        value = bf16_to_f32(value) if given == "bf16" else value.astype(np.float32)
        if scale is not None:
            value = np.ldexp(value, 127 - scale.astype(np.int32))
        return value.astype(self.types[wanted]).view(np.uint8)
