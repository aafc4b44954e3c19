"""Arithmetic of floats: rounding to nearest and the other ways, subnormals flushed where it is said, approximations.

What hardware approximates is exact here, but for ``rcp`` and ``rsqrt`` of f64, of which it gives the upper 32 bits,
and ``sin`` and ``cos``, which lose digits of large angles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from emulator.errors import EmulationError
from emulator.manual_math import fma, fma_to_odd

from ptx.integers import apply, integer_product, integer_step
from ptx.kinds import is_float
from ptx.maker import Maker, Source, Step
from ptx.table import instruction

Array = Any

MODES = {"rn", "rz", "rm", "rp", "ftz", "sat", "approx", "full", "NaN", "noftz", "relu", "xorsign"}
_DIRECTED = {"rz", "rm", "rp"}


def flushed(value: Array) -> Array:
    """Subnormal numbers of f32 and f16 become zeros of their sign."""
    if value.dtype not in (np.float32, np.float16):
        return value
    return np.where(np.abs(value) < np.finfo(value.dtype).tiny, np.copysign(value.dtype.type(0), value), value)


def limited(value: Array) -> Array:
    """``.sat``: at least 0, at most 1; NaN becomes 0."""
    return np.where(np.isnan(value), value.dtype.type(0), np.clip(value, 0, 1)).astype(value.dtype)


def directed(value: Array, error: Array, mode: str) -> Array:
    """``value + error`` rounded towards zero, down or up, where ``value`` is the nearest and ``error`` what is left."""
    down = {"rm": error < 0, "rz": (error != 0) & ((error < 0) == (value > 0))}.get(mode, np.zeros(value.shape, bool))
    up = (error > 0) if mode == "rp" else np.zeros(value.shape, bool)
    towards = np.where(up, np.inf, np.where(mode == "rz", 0, -np.inf)).astype(value.dtype)
    return np.where((down | up) & np.isfinite(value), np.nextafter(value, towards), value)


def narrowed(wide: Array, dtype: Any, mode: str) -> Array:
    """float64, exact or rounded to odd, to a narrower type."""
    if mode not in _DIRECTED:
        return wide.astype(dtype)
    near = wide.astype(dtype)
    overflow = np.isinf(near) & np.isfinite(wide)
    most = np.copysign(np.finfo(dtype).max, wide)
    keeps = overflow & ((mode == "rz") | ((mode == "rm") & (wide > 0)) | ((mode == "rp") & (wide < 0)))
    return np.where(keeps, most, directed(near, wide - near.astype(np.float64), mode)).astype(dtype)


def two_sum_error(a: Array, b: Array, total: Array) -> Array:
    part = total - a
    return (a - (total - part)) + (b - part)


def rounded_sum(a: Array, b: Array, mode: str) -> Array:
    if a.dtype == np.float64:
        total = a + b
        return directed(total, two_sum_error(a, b, total), mode) if mode in _DIRECTED else total
    return narrowed(fma_to_odd(a, np.ones_like(a), b), a.dtype, mode) if mode in _DIRECTED else a + b


def rounded_fma(a: Array, b: Array, c: Array, mode: str) -> Array:
    if mode not in _DIRECTED:
        return fma(a, b, c)
    if a.dtype == np.float64:
        return exact_f64(a, b, c, mode)
    return narrowed(fma_to_odd(a, b, c), a.dtype, mode)


def exact_f64(a: Array, b: Array, c: Array, mode: str) -> Array:
    """a * b + c of f64 by fractions, lane by lane."""
    from fractions import Fraction

    near = fma(a, b, c)
    error = np.zeros_like(near)
    for lane, values in enumerate(zip(a.tolist(), b.tolist(), c.tolist(), near.tolist(), strict=True)):
        if np.isfinite(values).all():
            x, y, z, found = map(Fraction, values)
            left = x * y + z - found
            error[lane] = (left > 0) - (left < 0)
    return directed(near, error, mode)


def smaller(a: Array, b: Array) -> Array:
    """NaN only where both are; -0 is less than 0."""
    result = np.fmin(a, b)
    return np.where((a == b) & (np.signbit(a) | np.signbit(b)), np.where(np.signbit(a), a, b), result)


def larger(a: Array, b: Array) -> Array:
    return -smaller(-a, -b)


def _nan_of(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda a, b: np.where(np.isnan(a) | np.isnan(b), a.dtype.type(np.nan), function(a, b))


def half_of_bits(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """What hardware gives of f64: the lower 32 bits are 0."""
    return lambda a: (function(a).view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)


def wide(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda a: function(a.astype(np.float64)).astype(a.dtype)


def of_turns(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Sines and cosines as hardware has them: the angle is first multiplied by 1/(2 pi), and that rounded."""
    return lambda a: wide(lambda turns: function(2 * np.pi * turns))(a * a.dtype.type(1 / (2 * np.pi)))


UNARY: dict[str, Callable[[Array], Array]] = {
    "sqrt": np.sqrt, "rcp": lambda a: a.dtype.type(1) / a, "rsqrt": wide(lambda a: 1 / np.sqrt(a)),
    "ex2": wide(np.exp2), "lg2": wide(np.log2), "sin": of_turns(np.sin), "cos": of_turns(np.cos),
    "tanh": wide(np.tanh),
}  # fmt: skip


def function_of(name: str, modes: list[str], kind: str) -> Callable[..., Array]:
    """The arithmetic of an instruction, without flushing and limits."""
    mode = next((mode for mode in modes if mode in _DIRECTED), "rn")
    if name in UNARY:
        if mode != "rn":
            raise EmulationError(f"{name} rounded otherwise than to nearest")
        return (
            half_of_bits(UNARY[name]) if kind == "f64" and name in ("rcp", "rsqrt") and "ftz" in modes else UNARY[name]
        )
    if name in ("min", "max"):
        plain = smaller if name == "min" else larger
        return _nan_of(plain) if "NaN" in modes else plain
    functions: dict[str, Callable[..., Array]] = {
        "add": lambda a, b: rounded_sum(a, b, mode),
        "sub": lambda a, b: rounded_sum(a, -b, mode),
        "mul": (lambda a, b: rounded_fma(a, b, np.copysign(np.zeros_like(a), a * b), mode)) if mode != "rn"
        else lambda a, b: a * b,
        "fma": lambda a, b, c: rounded_fma(a, b, c, mode),
        "mad": lambda a, b, c: rounded_fma(a, b, c, mode),
        "div": lambda a, b: a / b,
    }  # fmt: skip
    if name == "div" and mode != "rn":
        raise EmulationError("div rounded otherwise than to nearest")
    return functions[name]


@instruction("add", "sub", "mul", "mad", "fma", "div", "rem", "min", "max", "sqrt", "rcp", "rsqrt", "ex2", "lg2",
             "sin", "cos", "tanh", "neg", "abs")  # fmt: skip
def _arithmetic(maker: Maker) -> Step:
    name, *modes, kind = maker.op
    mixed = "f32" in modes  # sums and products of f16 or bf16, but for the last operand, in f32
    if mixed and name in ("add", "sub", "fma"):
        modes.remove("f32")
    if not is_float(kind):
        return integer_product(maker) if name in ("mul", "mad") else integer_step(maker)
    if not set(modes) <= MODES:
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    if name in ("neg", "abs"):
        return _sign(maker, modes, kind)
    kinds = [kind] * len(maker.operands)
    if mixed:
        kind = kinds[0] = kinds[-1] = "f32"
    function = function_of(name, modes, kind)
    if kind.startswith("bf16") and name == "fma":
        function = fma_to_odd  # which is rounded when it is written; all others are exact enough in f32
    if "relu" in modes:
        function = _relu(function)
    if "ftz" in modes and kind != "f64":
        function = _with_flush(function)
    if "sat" in modes:
        function = _with_limit(function)
    sources = [maker.source(*pair) for pair in zip(maker.operands[1:], kinds[1:], strict=True)]
    if mixed:
        sources = [_in_f32(source) for source in sources]
    return apply(maker.target(maker.operands[0], kind), function, *sources)


def _in_f32(source: Source) -> Source:
    return lambda block: source(block).astype(np.float32)


def _sign(maker: Maker, modes: list[str], kind: str) -> Step:
    """neg and abs change a bit, of NaN too."""
    function = np.negative if maker.op[0] == "neg" else np.abs
    chosen = _with_flush(function) if "ftz" in modes else function
    return apply(maker.target(maker.operands[0], kind), chosen, maker.source(maker.operands[1], kind))


def _relu(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *values: np.where(np.signbit(result := function(*values)) & ~np.isnan(result), 0, result)


def _with_flush(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *values: flushed(function(*(flushed(value) for value in values)))


def _with_limit(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *values: limited(function(*values))


@instruction("copysign")
def _copysign(maker: Maker) -> Step:
    kind = maker.op[-1]
    sources = [maker.source(operand, kind) for operand in maker.operands[1:]]
    return apply(maker.target(maker.operands[0], kind), lambda a, b: np.copysign(b, a), *sources)


@instruction("testp")
def _test(maker: Maker) -> Step:
    _, test, kind = maker.op

    def function(a: Array) -> Array:
        tiny = (a != 0) & (np.abs(a) < np.finfo(a.dtype).tiny)
        return {
            "finite": np.isfinite(a), "infinite": np.isinf(a), "number": ~np.isnan(a), "notanumber": np.isnan(a),
            "normal": np.isfinite(a) & ~tiny & (a != 0), "subnormal": tiny,
        }[test]  # fmt: skip

    return apply(maker.target(maker.operands[0], "pred"), function, maker.source(maker.operands[1], kind))
