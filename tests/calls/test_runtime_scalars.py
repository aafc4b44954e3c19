"""Scalars: what is passed, returned and refused."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runtime_support import real, refusal

from offload.runtime.dtypes import bfloat16_bits
from offload.runtime.memory import row_major

# Scalars.


class Truth:
    """Of a package whose numbers say what type they are of, and no shape."""

    dtype = np.dtype(bool)

    def __index__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        return other == 1

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("bool", [True, False, np.True_, 1, 0, np.array(True), np.array(0), Truth()]),
        ("int8", [-128, 127, np.int64(5), True, np.array(3), np.True_, np.array(False), Truth()]),
        ("int64", [-(2**63), 2**63 - 1]),
        ("uint64", [0, 2**64 - 1]),
        ("float32", [1, 0.5, np.float64(2), math.inf, -0.0, np.array(1.5)]),
        ("float64", [1e300, 2**53, np.float32(0.1)]),
        ("float16", [1.5, -65504, 6e-5, math.inf]),
        ("bfloat16", [1.5, -3e38, math.inf]),
    ],
)
def test_scalars_arrive_and_return(dtype: str, values: list[Any]) -> None:
    echo = getattr(real(), f"echo_{dtype}")
    for value in values:
        returned = echo(value)
        if "float" in dtype:
            assert returned == pytest.approx(float(value), rel=2**-7)
        else:
            assert returned == value
        kind = bool if dtype == "bool" else float if "float" in dtype else int
        assert type(returned) is kind
    if "float" in dtype:
        assert math.isnan(echo(math.nan))


@given(st.floats(width=32, allow_nan=False))
def test_bfloat16_rounds_to_nearest_even(value: float) -> None:
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    low, rest = bits >> 16, bits & 0xFFFF
    if math.isfinite(value) and low & 0x7FFF == 0x7F7F and rest >= 0x8000:
        assert "does not fit" in refusal(real().echo_bfloat16, value)
        return
    if rest > 0x8000 or (rest == 0x8000 and low & 1):
        low += 1
    assert real().echo_bfloat16(value) == struct.unpack("<f", struct.pack("<I", low << 16))[0]


@pytest.mark.parametrize(
    ("tie", "low", "high"), [(1 + 2**-8, 1, 1 + 2**-7), (1 + 3 * 2**-8, 1 + 2**-7, 1 + 2**-6), (2**-134, 0.0, 2**-133)]
)
def test_bfloat16_is_rounded_once(tie: float, low: float, high: float) -> None:
    """A number beside the middle of two is none, though the nearest float32 may be."""
    for sign in (1, -1):
        for _ in range(2):  # the second time it is a fast call
            assert real().echo_bfloat16(sign * tie * (1 - 2**-40)) == sign * low
            assert real().echo_bfloat16(sign * tie * (1 + 2**-40)) == sign * high
        assert bfloat16_bits(sign * tie * (1 + 2**-40)) == bfloat16_bits(sign * high)
        assert bfloat16_bits(sign * tie * (1 - 2**-40)) == bfloat16_bits(sign * low)


@given(st.floats(width=16, allow_nan=False))
def test_float16_is_exact(value: float) -> None:
    assert real().echo_float16(value) == value


def test_complex() -> None:
    assert real().conjugate(1 + 2j) == 1 - 2j
    assert real().conjugate(np.complex64(2j)) == -2j
    assert real().conjugate(3) == 3
    for value in (complex(math.nan, math.inf), np.complex64(complex(math.inf, math.nan))):
        assert math.isinf(abs(real().conjugate(value)))


@pytest.mark.parametrize(
    ("name", "value", "given", "advice"),
    [
        ("echo_int8", 128, "128, which does not fit", "pass an integer from -128 to 127"),
        ("echo_uint64", -1, "-1, which does not fit", "pass an integer from 0 to 18446744073709551615"),
        ("echo_int64", 2**63, "9223372036854775808, which does not fit", "pass an integer from"),
        ("echo_int64", 1.0, "1.0 (float)", "pass an integer, for instance int(...) of it"),
        ("echo_int64", np.float32(1), "(float32)", "pass an integer"),
        ("echo_int64", "1", "a str", "pass an integer"),
        ("echo_int64", np.ones(1, int), "an array of shape (1,)", "pass an integer"),
        ("echo_bool", 2, "the integer 2", "pass True or False"),
        ("echo_bool", 1.0, "1.0 (float)", "pass True or False"),
        ("echo_float32", 1e39, "1e+39, which does not fit", "pass a number in the range of float32"),
        ("echo_float16", 65520, "65520.0, which does not fit", "in the range of float16"),
        ("echo_bfloat16", 3.4e38, "3.4e+38, which does not fit", "in the range of bfloat16"),
        ("echo_float64", 10**400, "a number past the range of float64", "pass a smaller number"),
        ("echo_float64", np.longdouble(10) ** 4000, "a number past the range of float64", "pass a smaller number"),
        ("echo_float32", Decimal("1e400"), "a number past the range of float64", "pass a smaller number"),
        ("echo_float64", "1.0", "a str", "pass a real number"),
        ("echo_float64", np.str_("1.0"), "a str_", "pass a real number"),
        ("echo_float32", np.bytes_(b"1.0"), "a bytes_", "pass a real number"),
        ("echo_float64", np.array("1.0"), "a ndarray", "pass a real number"),
        ("echo_float64", np.array("1.0", dtype=object), "a ndarray", "pass a real number"),
        ("echo_float64", np.array("1.0", dtype=np.dtypes.StringDType()), "a ndarray", "pass a real number"),
        ("echo_float64", 1j, "a complex", "pass a real number"),
        ("echo_float64", np.ones(2), "an array of shape (2,)", "pass a number"),
        ("conjugate", 1e39j, "1e+39, which does not fit", "in the range of complex64"),
        ("conjugate", Fraction(10**400), "a number past the range of float64", "pass a smaller number"),
        (
            "conjugate",
            np.clongdouble(np.longdouble(10) ** 4000),
            "a number past the range of float64",
            "pass a smaller number",
        ),
        ("conjugate", "1", "a str", "pass a number"),
        ("conjugate", b"1", "a bytes", "pass a number"),
        ("conjugate", {}, "a dict", "pass a number"),
        ("conjugate", np.void(b"1"), "a void", "pass a number"),
        ("echo_float64", np.void(b"1"), "a void", "pass a real number"),
        ("echo_bfloat16", np.array(b"1", "V1"), "a ndarray", "pass a real number"),
        ("echo_int8", np.ma.array(True, mask=True), "a masked number", "pass an integer"),
        ("echo_bool", np.array([True]), "an array of shape (1,)", "pass True or False"),
        ("conjugate", np.str_("1"), "a str_", "pass a number"),
        ("conjugate", np.array("1", dtype=object), "a ndarray", "pass a number"),
        ("conjugate", np.array("1", dtype=np.dtypes.StringDType()), "a ndarray", "pass a number"),
        ("conjugate", Decimal("sNaN"), "a Decimal", "pass a number"),
    ],
)
def test_refused_scalars(name: str, value: Any, given: str, advice: str) -> None:
    message = refusal(getattr(real(), name), value)
    dtype = "complex64" if name == "conjugate" else name.removeprefix("echo_")
    argument = "z" if name == "conjugate" else "x"
    assert message.startswith(f"{name}(): argument '{argument}' (1 of 1): expected {dtype}, given ")
    assert given in message
    assert advice in message


def test_strides_of_empty_arrays_fit() -> None:
    assert row_major((0, 2**40, 2**40, 3)) == [2**63 - 1, 3 * 2**40, 3, 1]
