"""Comparisons and choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from emulator.errors import EmulationError

from ptx.block import Block
from ptx.floats import flushed
from ptx.integers import apply
from ptx.kinds import is_float
from ptx.maker import Maker, Step
from ptx.table import instruction

Array = Any

_ORDERED: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip
_JOINED: dict[str, Callable[[Array, Array], Array]] = {
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor,
}  # fmt: skip


def comparison(name: str, kind: str) -> Callable[[Array, Array], Array]:
    """Of floats a name with ``u`` holds for NaN, too; without it none does."""
    if not is_float(kind):
        return _ORDERED[name]

    def unordered(a: Array, b: Array) -> Array:
        return np.isnan(a) | np.isnan(b)

    if name in ("num", "nan"):
        return unordered if name == "nan" else lambda a, b: ~unordered(a, b)
    if name.endswith("u") and name[:-1] in _ORDERED:
        return lambda a, b: _ORDERED[name[:-1]](a, b) | unordered(a, b)
    return lambda a, b: _ORDERED[name](a, b) & ~unordered(a, b)


@instruction("setp", "set")
def _compare(maker: Maker) -> Step:
    name, test, *modes, kind = maker.op
    result = "pred"
    if name == "set":
        result = modes.pop()
    compare = comparison(test, kind)
    a, b = (maker.source(operand, kind) for operand in maker.operands[1:3])
    flush = flushed if "ftz" in modes else lambda value: value
    join = next((_JOINED[mode] for mode in modes if mode in _JOINED), None)
    given = maker.source(maker.operands[3], "pred") if join else None
    first, second = maker.pair(maker.operands[0])
    packed = kind.endswith("x2")

    def found(block: Block) -> tuple[Array, Array]:
        holds = compare(flush(a(block)), flush(b(block)))
        if packed:
            return holds[0::2], holds[1::2]
        other = ~holds
        if join and given:
            holds, other = join(holds, given(block)), join(other, given(block))
        return holds, other

    if name == "set":
        number = maker.target(first, result)
        one = 1.0 if is_float(result) else -1 if result[0] == "s" else (1 << int(result[1:])) - 1
        dtype = np.dtype(result.replace("f32", "float32").replace("u32", "uint32").replace("s32", "int32"))
        return lambda block: number(block, np.where(found(block)[0], dtype.type(one), dtype.type(0)))
    put, put_other = maker.target(first, "pred"), maker.target(second, "pred")

    def step(block: Block) -> None:
        holds, other = found(block)
        put(block, holds)
        put_other(block, other)

    return step


@instruction("selp")
def _select(maker: Maker) -> Step:
    kind = maker.op[-1]
    a, b = (maker.bits(operand, kind) for operand in maker.operands[1:3])
    chosen = maker.source(maker.operands[3], "pred")
    put = maker.put_bits(maker.operands[0], kind)
    return lambda block: put(block, np.where(chosen(block), a(block), b(block)))


@instruction("slct")
def _select_by_sign(maker: Maker) -> Step:
    *_, kind, test = maker.op
    a, b = (maker.bits(operand, kind) for operand in maker.operands[1:3])
    sign = maker.source(maker.operands[3], test)
    return apply(maker.put_bits(maker.operands[0], kind), lambda x, y, c: np.where(c >= 0, x, y), a, b, sign)


@instruction("mov")
def _move(maker: Maker) -> Step:
    kind = maker.op[-1]
    if len(maker.op) != 2:
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    value, put = maker.bits(maker.operands[1], kind), maker.put_bits(maker.operands[0], kind)
    return lambda block: put(block, value(block))
