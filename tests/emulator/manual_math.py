"""The functions that the ISA manuals' descriptions call, over arrays with an element per lane."""

from __future__ import annotations

import ctypes
import ctypes.util
from typing import Any

import numpy as np

Array = Any

# The type of a result that is not the type of the first argument.
RESULTS = {
    "exponent": "i32", "sign": "u1", "isNAN": "u1", "isSignalNAN": "u1", "isQuietNAN": "u1", "isEven": "u1",
    "bitCount": "u32", "s_ff1_i32_b64": "i32", "s_ff1_i32_b32": "i32",
}  # fmt: skip

_FIELDS = {2: (10, 15, np.uint16, np.int16), 4: (23, 127, np.uint32, np.int32), 8: (52, 1023, np.uint64, np.int64)}
_libm = ctypes.CDLL(ctypes.util.find_library("m"))
_libm.fma.restype = ctypes.c_double
_libm.fma.argtypes = [ctypes.c_double] * 3


def _fields(x: Array) -> tuple[Array, int, int, int]:
    """The bits of a float, how many are its fraction, the bias and the mask of the exponent."""
    mantissa, bias, unsigned, _ = _FIELDS[x.dtype.itemsize]
    return x.view(unsigned), mantissa, bias, 2 * bias + 1


def fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once."""
    dtype = a.dtype
    a, b, c = np.broadcast_arrays(a, b, c)
    if dtype == np.float64:
        lanes = zip(*(np.atleast_1d(value).tolist() for value in (a, b, c)), strict=True)
        return np.array([_libm.fma(*lane) for lane in lanes], np.float64)
    return fma_to_odd(a, b, c).astype(dtype)


def fma_to_odd(a: Array, b: Array, c: Array) -> Array:
    """a * b + c of narrower floats in 64 bits, rounded to odd, so that rounding it again is the only rounding."""
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + addend
    part = total - product
    error = (product - (total - part)) + (addend - part)
    bits = total.view(np.int64)
    away = np.where((error > 0) == (total > 0), 1, -1)
    odd = np.where((error != 0) & np.isfinite(total) & (bits & 1 == 0), bits + away, bits)
    return odd.view(np.float64)


def exponent(x: Array) -> Array:
    bits, mantissa, _, ones = _fields(x)
    return ((bits >> bits.dtype.type(mantissa)) & bits.dtype.type(ones)).astype(np.int32)


def sign(x: Array) -> Array:
    return np.signbit(x)


def mantissa(x: Array) -> Array:
    return np.frexp(x)[0].astype(x.dtype)


def abs(x: Array) -> Array:
    return np.abs(x)


def isNAN(x: Array) -> Array:
    return np.isnan(x)


def _quiet(x: Array) -> Array:
    bits, mantissa, _, _ = _fields(x)
    return ((bits >> bits.dtype.type(mantissa - 1)) & 1).astype(bool)


def isSignalNAN(x: Array) -> Array:
    return np.isnan(x) & ~_quiet(x)


def isQuietNAN(x: Array) -> Array:
    return np.isnan(x) & _quiet(x)


def cvtToQuietNAN(x: Array) -> Array:
    bits, mantissa, _, _ = _fields(x)
    return (bits | bits.dtype.type(1 << (mantissa - 1))).view(x.dtype)


def isEven(x: Array) -> Array:
    return np.fmod(x, 2) == 0


def floor(x: Array) -> Array:
    return np.floor(x)


def trunc(x: Array) -> Array:
    return np.trunc(x)


def fract(x: Array) -> Array:
    return x - np.floor(x)


def sqrt(x: Array) -> Array:
    return np.sqrt(x)


def log2(x: Array) -> Array:
    return np.log2(x.astype(np.float64)).astype(x.dtype)


def pow(base: Array, x: Array) -> Array:
    return np.power(np.float64(base), x.astype(np.float64)).astype(x.dtype)


def sin(x: Array) -> Array:
    return np.sin(x.astype(np.float64)).astype(x.dtype)


def cos(x: Array) -> Array:
    return np.cos(x.astype(np.float64)).astype(x.dtype)


def ldexp(x: Array, n: Array) -> Array:
    wide = np.ldexp(x.astype(np.float64), np.clip(n, -4096, 4096)) if x.dtype != np.float64 else np.ldexp(x, n)
    return wide.astype(x.dtype)


def signext_from_bit(x: Array, width: Array) -> Array:
    """Bit width - 1 is the sign; with width 0 the value is 0."""
    one, width = x.dtype.type(1), width.astype(x.dtype)
    top = one << np.maximum(width - one, 0).astype(x.dtype)
    return np.where(width == 0, x.dtype.type(0), (x ^ top) - top)


def reversed_bits(x: Array, width: int) -> Array:
    bits = np.unpackbits(np.atleast_1d(x).view(np.uint8).reshape(-1, width // 8), axis=1, bitorder="little")
    return np.packbits(bits[:, ::-1].copy(), axis=1, bitorder="little").reshape(-1).view(x.dtype)


def pick(values: list[Array], index: Array) -> Array:
    """An element of a small array, by lane."""
    result = values[0]
    for number, value in enumerate(values[1:], 1):
        result = np.where(index == number, value, result)
    return result


def bitCount(x: Array) -> Array:
    return np.bitwise_count(x).astype(np.uint32)


def multiply_add_unsigned(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """Carry and 64 bits of a * b + c."""
    product = a.astype(np.uint64) * b.astype(np.uint64)
    total = product + c
    return total < product, total


def multiply_add_signed(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """As above for signed factors."""
    a, b = a.astype(np.int64), b.astype(np.int64)
    c = c.view(np.int64) if c.dtype == np.uint64 else c
    total = a * b + c
    return (total < c) != (a * b < 0), total.view(np.uint64)


def _to_integer(x: Array, dtype: Any) -> Array:
    """At most 32 bits, towards zero; what does not fit becomes the nearest that does, and NaN 0."""
    limits = np.iinfo(dtype)
    wide = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
    return np.clip(wide, float(limits.min), float(limits.max)).astype(dtype)


def f32_to_i32(x: Array) -> Array:
    return _to_integer(x, np.int32)


def f32_to_u32(x: Array) -> Array:
    return _to_integer(x, np.uint32)


def f32_to_u8(x: Array) -> Array:
    return _to_integer(x, np.uint8)


f64_to_i32, f64_to_u32 = f32_to_i32, f32_to_u32


def f32_to_i16(x: Array) -> Array:
    return _to_integer(x, np.int16)


def f32_to_u16(x: Array) -> Array:
    return _to_integer(x, np.uint16)


f16_to_i16, f16_to_u16 = f32_to_i16, f32_to_u16


def _norm(x: Array, scale: float, low: float, dtype: Any) -> Array:
    return np.rint(np.clip(np.nan_to_num(x.astype(np.float64)), low, 1.0) * scale).astype(dtype)


def f32_to_snorm(x: Array) -> Array:
    return _norm(x, 32767.0, -1.0, np.int16)


def f32_to_unorm(x: Array) -> Array:
    return _norm(x, 65535.0, 0.0, np.uint16)


f16_to_snorm, f16_to_unorm = f32_to_snorm, f32_to_unorm


def i32_to_i16(x: Array) -> Array:
    return np.clip(x, -32768, 32767).astype(np.int16)


def u32_to_u16(x: Array) -> Array:
    return np.minimum(x, 65535).astype(np.uint16)


def _widen(dtype: Any) -> Any:
    return lambda x: x.astype(dtype)


i32_to_f32 = u32_to_f32 = f16_to_f32 = f64_to_f32 = _widen(np.float32)
i32_to_f64 = u32_to_f64 = f32_to_f64 = _widen(np.float64)
i16_to_f16 = u16_to_f16 = f32_to_f16 = _widen(np.float16)
i16_to_i32 = i8_to_i32 = i4_to_i32 = _widen(np.int32)
u16_to_u32 = u8_to_u32 = u4_to_u32 = _widen(np.uint32)


def bf16_to_f32(x: Array) -> Array:
    return (x.astype(np.uint32) << np.uint32(16)).view(np.float32)


def f32_to_bf16(x: Array) -> Array:
    bits = x.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(x), (bits >> np.uint32(16)) | np.uint32(0x40), rounded).astype(np.uint16)
