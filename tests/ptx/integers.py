"""Integer arithmetic, and bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from emulator.errors import EmulationError
from emulator.manual_math import reversed_bits

from ptx.block import Block
from ptx.kinds import SIZES, UNSIGNED
from ptx.maker import Maker, Source, Step, Target
from ptx.table import instruction

Array = Any


def unsigned(kind: str) -> str:
    return f"u{8 * SIZES[kind]}"


def apply(target: Target, function: Callable[..., Array], *sources: Source) -> Step:
    """``target`` becomes the function of the sources."""
    if len(sources) == 2:
        a, b = sources
        return lambda block: target(block, function(a(block), b(block)))
    return lambda block: target(block, function(*(source(block) for source in sources)))


def simple(maker: Maker, function: Callable[..., Array], kind: str, result: str | None = None) -> Step:
    """All operands are of one type."""
    sources = [maker.source(operand, kind) for operand in maker.operands[1:]]
    return apply(maker.target(maker.operands[0], result or kind), function, *sources)


def divided(a: Array, b: Array) -> Array:
    """Towards zero; by zero all bits are set (what hardware gives is not said)."""
    safe = np.where(b == 0, b.dtype.type(1), b)
    if a.dtype.kind == "u":
        return np.where(b == 0, ~a.dtype.type(0), a // safe)
    safe = np.where((a == np.iinfo(a.dtype).min) & (b == -1), safe.dtype.type(1), safe)
    quotient = a // safe
    quotient += ((a - quotient * safe) != 0) & ((a < 0) != (safe < 0))
    return np.where(b == 0, a.dtype.type(-1), quotient).astype(a.dtype)


def remainder(a: Array, b: Array) -> Array:
    return np.where(b == 0, a, a - divided(a, b) * b).astype(a.dtype)


def high(a: Array, b: Array) -> Array:
    """The upper half of the product."""
    size = a.dtype.itemsize
    if size < 8:
        wide = np.dtype(f"{a.dtype.kind}{2 * size}")
        return (a.astype(wide) * b.astype(wide) >> wide.type(8 * size)).astype(a.dtype)
    x, y = a.view(np.uint64), b.view(np.uint64)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    cross = (x & low) * (y & low)
    middle = (x >> half) * (y & low) + (cross >> half)
    other = (x & low) * (y >> half) + (middle & low)
    result = (x >> half) * (y >> half) + (middle >> half) + (other >> half)
    if a.dtype.kind == "i":
        result = result - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return result.view(a.dtype)


def saturated(function: Callable[..., Array]) -> Callable[..., Array]:
    """``.sat`` of s32."""

    def clamp(*values: Array) -> Array:
        wide = function(*(value.astype(np.int64) for value in values))
        return np.clip(wide, -(1 << 31), (1 << 31) - 1).astype(np.int32)

    return clamp


INTEGERS: dict[str, Callable[..., Array]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "div": divided,
    "rem": remainder,
    "min": np.minimum,
    "max": np.maximum,
    "neg": lambda a: -a,
    "abs": np.abs,
}


def integer_step(maker: Maker) -> Step:
    """add, sub, div, rem, min, max, neg, abs of integers."""
    name, *modes, kind = maker.op
    if name in ("add", "sub") and modes == ["cc"]:
        return with_carry(maker)
    function = INTEGERS[name]
    if modes == ["sat"]:
        function = saturated(function)
    elif modes not in ([], ["relu"]):
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    if modes == ["relu"]:
        return simple(maker, lambda a, b: np.maximum(INTEGERS[name](a, b), 0), kind)
    return simple(maker, function, kind)


def product(a: Array, b: Array, how: str) -> Array:
    """``lo``, ``hi`` or ``wide``."""
    if how == "lo":
        return a * b
    if how == "hi":
        return high(a, b)
    wide = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
    return a.astype(wide) * b.astype(wide)


def integer_product(maker: Maker) -> Step:
    """mul and mad of integers."""
    name, how, *modes, kind = maker.op
    if name == "mad" and modes == ["cc"]:
        return with_carry(maker)
    wide = f"{kind[0]}{16 * SIZES[kind]}" if how == "wide" else kind
    if modes not in ([], ["sat"]) or how not in ("lo", "hi", "wide"):
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    a, b = (maker.source(operand, kind) for operand in maker.operands[1:3])
    target = maker.target(maker.operands[0], wide)
    if name == "mul":
        return lambda block: target(block, product(a(block), b(block), how))
    c = maker.source(maker.operands[3], wide)
    if modes:
        return lambda block: target(block, saturated(lambda x, y: x + y)(high(a(block), b(block)), c(block)))
    return lambda block: target(block, product(a(block), b(block), how) + c(block))


@instruction("mul24", "mad24")
def _narrow_product(maker: Maker) -> Step:
    _, how, kind = maker.op

    def cut(value: Array) -> Array:
        return value.astype(np.int64) << 40 >> 40 if kind == "s32" else value.astype(np.int64) & 0xFFFFFF

    def function(a: Array, b: Array, c: Array | int = 0) -> Array:
        return ((cut(a) * cut(b) >> (16 if how == "hi" else 0)) + c).astype(a.dtype)

    return simple(maker, function, kind)


@instruction("addc", "subc", "madc")
def with_carry(maker: Maker) -> Step:
    """Additions, subtractions and products that take or leave a carry bit."""
    name, *modes, kind = maker.op
    keeps, takes = "cc" in modes, name.endswith("c")
    kind = unsigned(kind)
    sources = [maker.source(operand, kind) for operand in maker.operands[1:]]
    target = maker.target(maker.operands[0], kind)

    def step(block: Block) -> None:
        a, b, *rest = (source(block) for source in sources)
        if name.startswith("mad"):
            a, b = product(a, b, modes[0]), rest[0]
        given = block.carry if takes else np.zeros(block.size, bool)
        if name.startswith("sub"):
            result = a - b - given.astype(a.dtype)
            carry = (a < b) | ((a == b) & given)
        else:
            result = a + b + given.astype(a.dtype)
            carry = (result < a) | ((result == a) & given)
        target(block, result)
        if keeps:
            block.carry = np.where(block.active, carry, block.carry)

    return step


@instruction("and", "or", "xor", "not", "cnot")
def _logic(maker: Maker) -> Step:
    functions: dict[str, Callable[..., Array]] = {
        "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "not": lambda a: ~a,
        "cnot": lambda a: (a == 0).astype(a.dtype),
    }  # fmt: skip
    return simple(maker, functions[maker.op[0]], maker.op[-1])


def shifted_left(a: Array, amount: Array) -> Array:
    width = 8 * a.dtype.itemsize
    return np.where(amount < width, a << np.minimum(amount, width - 1).astype(a.dtype), a.dtype.type(0))


def shifted_right(a: Array, amount: Array) -> Array:
    width = 8 * a.dtype.itemsize
    moved = a >> np.minimum(amount, width - 1).astype(a.dtype)
    return moved if a.dtype.kind == "i" else np.where(amount < width, moved, a.dtype.type(0))


@instruction("shl", "shr")
def _shift(maker: Maker) -> Step:
    name, kind = maker.op
    value, amount = maker.source(maker.operands[1], kind), maker.source(maker.operands[2], "u32")
    return apply(maker.target(maker.operands[0], kind), shifted_left if name == "shl" else shifted_right, value, amount)


@instruction("shf")
def _funnel(maker: Maker) -> Step:
    _, side, mode, kind = maker.op

    def function(low: Array, up: Array, amount: Array) -> Array:
        amount = (amount & 31 if mode == "wrap" else np.minimum(amount, 32)).astype(np.uint64)
        both = low.astype(np.uint64) | up.astype(np.uint64) << np.uint64(32)
        moved = both << amount >> np.uint64(32) if side == "l" else both >> amount
        if side == "l":
            moved = np.where(amount == 32, low, moved)
        return moved.astype(np.uint32)

    return simple(maker, function, kind)


@instruction("popc", "clz", "brev", "bfind")
def _counted(maker: Maker) -> Step:
    name, *modes, kind = maker.op
    width = 8 * SIZES[kind]

    def length(a: Array) -> Array:
        """Bits up to the highest that is set."""
        found = np.zeros(a.shape, np.int64)
        for bit in range(width):
            found = np.where(a >> a.dtype.type(bit) & a.dtype.type(1), bit + 1, found)
        return found

    def bfind(a: Array) -> Array:
        bits = np.where(a < 0, ~a, a).view(UNSIGNED[SIZES[kind]]) if kind[0] == "s" else a
        place = length(bits) - 1
        return np.where(place < 0, -1, width - 1 - place if modes else place).astype(np.int32).view(np.uint32)

    functions: dict[str, Callable[..., Array]] = {
        "popc": lambda a: np.bitwise_count(a).astype(np.uint32), "clz": lambda a: (width - length(a)).astype(np.uint32),
        "brev": lambda a: reversed_bits(a, width), "bfind": bfind,
    }  # fmt: skip
    return simple(maker, functions[name], kind, kind if name == "brev" else "u32")


@instruction("bfe", "bfi", "bmsk", "szext")
def _fields(maker: Maker) -> Step:
    name, *modes, kind = maker.op
    width = 8 * SIZES[kind]
    target = maker.target(maker.operands[0], kind)
    count = 2 if name == "bfi" else 0 if name == "bmsk" else 1
    values = [maker.source(operand, kind) for operand in maker.operands[1 : 1 + count]]
    numbers = [maker.source(operand, "u32") for operand in maker.operands[1 + count :]]

    def mask(length: Array, dtype: Any) -> Array:
        return shifted_left(np.ones(length.shape, dtype), length) - dtype.type(1)

    def bfe(a: Array, place: Array, length: Array) -> Array:
        place, length = place & 0xFF, length & 0xFF
        bits = a.view(UNSIGNED[SIZES[kind]])
        field = shifted_right(bits, place) & mask(length, bits.dtype)
        if kind[0] == "s":
            top = np.minimum(place + length - 1, width - 1)
            sign = (length > 0) & (shifted_right(bits, top) & bits.dtype.type(1) != 0)
            field = np.where(sign, field | ~mask(np.minimum(length, np.maximum(width - place, 0)), bits.dtype), field)
        return field.view(a.dtype)

    def bfi(a: Array, b: Array, place: Array, length: Array) -> Array:
        place, length = place & 0xFF, length & 0xFF
        chosen = shifted_left(mask(length, a.dtype), place)
        return (b & ~chosen) | (shifted_left(a, place) & chosen)

    def bmsk(place: Array, length: Array) -> Array:
        if modes == ["wrap"]:
            place, length = place & 31, length & 31
        return shifted_left(mask(length, np.dtype(np.uint32)), place)

    def szext(a: Array, length: Array) -> Array:
        length = length & 31 if modes == ["wrap"] else np.minimum(length, 32)
        return bfe(a, np.zeros_like(length), length)

    return apply(target, {"bfe": bfe, "bfi": bfi, "bmsk": bmsk, "szext": szext}[name], *values, *numbers)


@instruction("prmt")
def _permute(maker: Maker) -> Step:
    mode = maker.op[2] if len(maker.op) > 2 else ""
    if mode:
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")

    def function(a: Array, b: Array, selector: Array) -> Array:
        given = np.concatenate([a.view(np.uint8).reshape(-1, 4), b.view(np.uint8).reshape(-1, 4)], axis=1)
        chosen = np.empty((len(a), 4), np.uint8)
        for place in range(4):
            which = selector >> np.uint32(4 * place)
            byte = np.take_along_axis(given, (which & 7)[:, None].astype(np.int64), axis=1)[:, 0]
            sign = (byte.view(np.int8) >> np.int8(7)).view(np.uint8)
            chosen[:, place] = np.where(which & 8, sign, byte)
        return chosen.reshape(-1).view(np.uint32)

    return simple(maker, function, "b32")


@instruction("lop3")
def _any_logic(maker: Maker) -> Step:
    if maker.op != ("lop3", "b32"):
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")

    def function(a: Array, b: Array, c: Array, table: Array) -> Array:
        result = np.zeros_like(a)
        for row in range(8):
            terms = [value if row >> (2 - place) & 1 else ~value for place, value in enumerate((a, b, c))]
            result |= np.where(table >> np.uint32(row) & 1, terms[0] & terms[1] & terms[2], np.uint32(0))
        return result

    return simple(maker, function, "b32")


@instruction("dp4a", "dp2a", "sad")
def _sums(maker: Maker) -> Step:
    name, *modes = maker.op
    if name == "sad":
        return simple(maker, lambda a, b, c: c + (np.maximum(a, b) - np.minimum(a, b)), modes[-1])
    if name != "dp4a":
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    left, right = (np.int8 if kind == "s32" else np.uint8 for kind in modes)
    kind = "s32" if "s32" in modes else "u32"

    def dot(a: Array, b: Array, c: Array) -> Array:
        x, y = (value.view(dtype).reshape(-1, 4).astype(np.int64) for value, dtype in ((a, left), (b, right)))
        return ((x * y).sum(axis=1) + c).astype(c.dtype)

    return simple(maker, dot, kind)
