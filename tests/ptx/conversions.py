"""``cvt``: between numbers of all types, and of two at once into packed ones; ``cvta``: between address spaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from emulator.errors import EmulationError
from emulator.memory import PRIVATE_BASE, SHARED_BASE

from ptx.block import Block
from ptx.floats import directed, flushed, limited, narrowed
from ptx.integers import apply
from ptx.kinds import DTYPES, SIZES, SMALL, is_float
from ptx.maker import Maker, Step
from ptx.table import instruction

Array = Any

_TO_INTEGER: dict[str, Callable[[Array], Array]] = {
    "rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil,
}  # fmt: skip
_WINDOWS = {"shared": SHARED_BASE, "local": PRIVATE_BASE, "global": 0, "param": 0, "const": 0}


def to_integer(value: Array, kind: str) -> Array:
    """What does not fit becomes the nearest that does; NaN becomes 0, or of and to 64 bits the highest bit alone."""
    limits = np.iinfo(DTYPES[kind])
    size = value.astype(np.float64)
    fits = (size >= limits.min) & (size < float(limits.max) + 1.0)
    exact = np.where(fits, size, 0).astype(DTYPES[kind])
    most = np.where(size > 0, limits.max, limits.min).astype(DTYPES[kind])
    wide = value.dtype == np.float64 or SIZES[kind] == 8
    unknown = np.array(1 << 8 * SIZES[kind] - 1 if wide else 0, f"u{SIZES[kind]}").view(DTYPES[kind])
    return np.where(np.isnan(size), unknown, np.where(fits, exact, most))


def _from_integer(value: Array, kind: str, mode: str) -> Array:
    if kind == "f64" or mode == "rn":
        near = value.astype(np.float64 if kind == "f64" else np.float32)
        if kind in ("f16", "bf16"):  # of wide integers: rounded once
            near = np.array([_odd(number) for number in value.tolist()], np.float64)
            return near.astype(np.float16) if kind == "f16" else near
        if mode == "rn":
            return near
    near = value.astype(DTYPES[kind])
    left = [int(number) - int(found) for number, found in zip(value.tolist(), near.tolist(), strict=True)]
    return directed(near, np.sign(np.array(left, object)).astype(near.dtype), mode)


def _odd(number: int) -> float:
    """float64 of an integer, rounded to odd."""
    length = max(abs(number).bit_length() - 53, 0)
    kept = abs(number) >> length
    if kept << length != abs(number):
        kept |= 1
    return float((kept << length) * (-1 if number < 0 else 1))


def converted(wanted: str, given: str, modes: list[str]) -> Callable[[Array], Array]:
    """A conversion between two types of numbers."""
    mode = next((mode for mode in modes if mode in ("rn", "rz", "rm", "rp")), "rn")
    whole = next((_TO_INTEGER[mode] for mode in modes if mode in _TO_INTEGER), None)
    if is_float(given) and not is_float(wanted):
        if whole is None:
            raise EmulationError(f"cvt.{wanted}.{given} without a rounding")
        return lambda value: to_integer(whole(value), wanted)
    if is_float(given):

        def between(value: Array) -> Array:
            if whole is not None:
                value = whole(value)
            if SIZES[wanted] >= SIZES[given]:
                return value.astype(DTYPES[wanted])
            exact = value.astype(np.float64)
            if wanted == "bf16":
                return narrowed_bf16(exact, mode)
            return narrowed(exact, DTYPES[wanted], mode)

        return between
    if is_float(wanted):
        return lambda value: _from_integer(value, wanted, mode)
    if "sat" in modes:
        limits = np.iinfo(DTYPES[wanted])
        return lambda value: np.array(
            [min(max(number, limits.min), limits.max) for number in value.tolist()], DTYPES[wanted]
        )
    return lambda value: value.astype(DTYPES[wanted])


def narrowed_bf16(exact: Array, mode: str) -> Array:
    """float64 to bf16 as f32: towards zero cuts bits off, otherwise the writer rounds to nearest."""
    if mode == "rz":
        cut = narrowed(exact, np.float32, "rz").view(np.uint32) & np.uint32(0xFFFF0000)
        return np.where(np.isnan(exact), np.float32(np.nan), cut.view(np.float32))
    if mode != "rn":
        raise EmulationError(f"cvt.{mode} to bf16")
    return exact


@instruction("cvt")
def _convert(maker: Maker) -> Step:
    _, *modes, wanted, given = maker.op
    if wanted in ("f16x2", "bf16x2") or wanted[:4] in SMALL or given[:4] in SMALL or wanted == "tf32":
        return _packed(maker, modes, wanted, given)
    known = {"rn", "rz", "rm", "rp", "ftz", "sat", *_TO_INTEGER}
    if not set(modes) <= known:
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    function = converted(wanted, given, modes)

    def step(value: Array) -> Array:
        result = function(flushed(value) if "ftz" in modes and given == "f32" else value)
        if "ftz" in modes and wanted == "f32":
            result = flushed(result)
        return limited(result) if "sat" in modes and is_float(wanted) else result

    return apply(maker.target(maker.operands[0], wanted), step, maker.source(maker.operands[1], given))


def _packed(maker: Maker, modes: list[str], wanted: str, given: str) -> Step:
    """Two numbers into one register, the first operand into the upper half; 8-bit floats; tf32."""
    if wanted == "tf32":
        return _tf32(maker)
    if given[:4] in SMALL:
        return _from_small(maker, wanted, given)
    one = "bf16" if wanted == "bf16x2" else "f16"
    values = [maker.source(operand, given) for operand in maker.operands[1:3]]
    if wanted[:4] in SMALL:
        if given != "f32" or not wanted.endswith("x2"):
            raise EmulationError(f"no instruction {'.'.join(maker.op)}")
        put = maker.put_bits(maker.operands[0], "b16")
        dtype = SMALL[wanted[:4]]
        most = float(np.array([0x7E if wanted[:4] == "e4m3" else 0x7B], np.uint8).view(dtype)[0])

        def small(up: Array, low: Array) -> Array:
            both = [np.clip(value, -most, most).astype(dtype).view(np.uint8).astype(np.uint16) for value in (up, low)]
            return both[0] << np.uint16(8) | both[1]

        return apply(put, small, *values)
    function = converted(one, given, modes)
    target = maker.target(maker.operands[0], wanted)

    def pair(up: Array, low: Array) -> Array:
        both = [np.maximum(value, 0) if "relu" in modes else value for value in (function(low), function(up))]
        return np.stack(both, axis=1).reshape(-1)

    return apply(target, pair, *values)


def _from_small(maker: Maker, wanted: str, given: str) -> Step:
    bits = maker.bits(maker.operands[1], "b16")
    target = maker.target(maker.operands[0], wanted)
    dtype = SMALL[given[:4]]
    return apply(target, lambda value: value.view(np.uint8).view(dtype).astype(DTYPES[wanted]), bits)


def _tf32(maker: Maker) -> Step:
    """10 bits of fraction, ties away from zero (rna) or to even (rn)."""
    away = "rna" in maker.op

    def function(bits: Array) -> Array:
        half = np.uint32(0xFFF) + (np.uint32(1) if away else (bits >> np.uint32(13)) & np.uint32(1))
        rounded = (bits + half) & np.uint32(0xFFFFE000)
        return np.where(np.isfinite(bits.view(np.float32)), rounded, bits)

    return apply(maker.put_bits(maker.operands[0], "b32"), function, maker.bits(maker.operands[1], "b32"))


@instruction("cvta")
def _space(maker: Maker) -> Step:
    """Between addresses of a space and generic ones."""
    kind = maker.op[-1]
    back = maker.op[1] == "to"
    base = _WINDOWS[maker.op[-2].partition("::")[0]]
    value, put = maker.bits(maker.operands[1], "u64"), maker.put_bits(maker.operands[0], "u64")
    if kind not in ("u64", "u32"):
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    shift = np.uint64((1 << 64) - base if back and base else base)
    return lambda block: put(block, value(block) + shift)


@instruction("isspacep")
def _is_space(maker: Maker) -> Step:
    space = maker.op[1].partition("::")[0]
    value, put = maker.bits(maker.operands[1], "u64"), maker.target(maker.operands[0], "pred")

    def found(block: Block) -> Array:
        window = value(block) >> np.uint64(48)
        return window == {"shared": 1, "local": 2}.get(space, 0)

    return lambda block: put(block, found(block))
