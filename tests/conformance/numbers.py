"""Numbers of all kinds, through barriers too."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from conformance import Answer, Launch, Theme
from conformance.lanes import DTYPES

THEME = Theme("numbers")
SMALL = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}


@THEME.kernel("f16", "bf16", "f32", "f64")
def arithmetic(launch: Launch, kind: str) -> Answer:
    x, y = (launch.integers(1, 200, DTYPES[kind]) for _ in range(2))
    expected = np.stack([x + y, x * y, x / y, np.maximum(x, y)], axis=1).astype(x.dtype)
    return Answer([x, y, np.zeros((launch.total, 4), x.dtype)], [x, y, expected])


@THEME.kernel()
def narrowed(launch: Launch) -> Answer:
    bf16 = DTYPES["bf16"]

    def nearest(number: int) -> float:
        shift = max(abs(number).bit_length() - 8, 0)
        head, rest = divmod(abs(number), 1 << shift)
        head += 2 * rest > 1 << shift or (2 * rest == 1 << shift and head & 1)
        return float(head << shift) * (-1 if number < 0 else 1)

    # Numbers just beside the middle between two of bf16, which a rounding to f32 on the way would make the middle.
    halves = launch.integers(128, 256, np.int64) * 2 + 1
    x = halves * (1 + launch.integers(-1, 2, np.int64) * 2.0**-40)
    y = (halves << launch.integers(1, 55, np.int64)) + launch.integers(-1, 2, np.int64)
    y = np.where(launch.integers(0, 2) == 1, y, launch.any_of(np.int64))
    scaled = np.array([nearest(int(value * 2.0**40)) for value in x]) * 2.0**-40
    singles = np.array([nearest(int(value * 2.0**40)) for value in x.astype(np.float32).astype(np.float64)]) * 2.0**-40
    signed = [nearest(int(value)) for value in y]
    unsigned = [nearest(int(value)) for value in y.view(np.uint64)]
    signed_half = [nearest(int(value)) for value in y.astype(np.int32)]
    unsigned_half = [nearest(int(value)) for value in y.astype(np.uint32)]
    columns = [scaled, singles, signed, unsigned, signed_half, unsigned_half]
    expected = np.stack(columns, axis=1).astype(np.float32).astype(bf16)
    return Answer([x, y, np.zeros((launch.total, 6), bf16)], [x, y, expected])


@THEME.kernel("i8", "i16", "i32", "i64")
def integers(launch: Launch, kind: str) -> Answer:
    x, y = launch.any_of(DTYPES[kind]), launch.any_of(DTYPES[kind]) | DTYPES[kind](1)
    unsigned = f"u{x.itemsize}"
    quotient = (x.view(unsigned) // y.view(unsigned)).view(x.dtype)
    bits = np.array([bin(value).count("1") for value in x.view(unsigned).tolist()], x.dtype)
    with np.errstate(over="ignore"):
        expected = np.stack([x + y, x * y, quotient, np.minimum(x, y), bits, x >> x.dtype.type(3)], axis=1)
    return Answer([x, y, np.zeros((launch.total, 6), x.dtype)], [x, y, expected])


@THEME.kernel(*SMALL)
def small(launch: Launch, kind: str) -> Answer:
    x = launch.integers(-15, 16, np.float32).astype(SMALL[kind])
    return Answer([x, np.zeros_like(x)], [x, (x.astype(np.float32) / 2).astype(x.dtype)])


@THEME.kernel()
def bits(launch: Launch) -> Answer:
    x, y = launch.any_of(np.int32), launch.any_of(np.int32)
    expected = ((x < y) ^ (x.view(np.uint32) < y.view(np.uint32))).astype(np.int8)
    return Answer([x, y, np.zeros_like(expected)], [x, y, expected])


@THEME.kernel()
def odd_widths(launch: Launch) -> Answer:
    x = launch.any_of(np.int64)

    def signed(value: int, width: int) -> int:
        value %= 1 << width
        return value - (1 << width) if value >> (width - 1) else value

    sums = [signed(v * v, 7) + v * v % (1 << 23) + signed(2 * v, 48) for v in x.tolist()]
    return Answer([x, np.zeros_like(x)], [x, np.array(sums, np.int64)])


@THEME.kernel()
def complex_numbers(launch: Launch) -> Answer:
    parts = launch.integers(-50, 50, np.float32, (2, launch.total, 2))
    x, y = (parts[i].view(np.complex64).ravel() for i in range(2))
    return Answer([x, y, np.zeros_like(x)], [x, y, x * y + x])


@THEME.kernel()
def vectors(launch: Launch) -> Answer:
    x = launch.integers(-50, 50, np.float32, (launch.total, 8))
    fused = x[:, :4] * x[:, 4:] + x[:, :4]
    expected = fused[:, 0] + fused[:, 2] + x[:, 0] + x[:, 2]
    return Answer([x, np.zeros(launch.total, np.float32)], [x, expected])


@THEME.kernel()
def functions(launch: Launch) -> Answer:
    x = launch.random.uniform(-3, 3, launch.total)
    return Answer([x, np.zeros_like(x)], [x, np.sqrt(np.exp(x)) + np.abs(np.tanh(x))], tolerance=1e-12)
