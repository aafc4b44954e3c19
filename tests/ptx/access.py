"""Loads, stores and atomic operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from emulator.errors import EmulationError
from emulator.memory import SHARED_BASE, WINDOW

from ptx.block import Block
from ptx.floats import flushed, larger, smaller
from ptx.kinds import SIZES, UNSIGNED, reader, writer
from ptx.maker import Maker, Source, Step
from ptx.spaces import check_aligned, read, write
from ptx.syntax import Address, Number, Operand, Register, Symbol, Vector
from ptx.table import instruction

Array = Any

SPACES = ("global", "shared", "local", "param", "const")
# How others see the access, and what caches do with it: all accesses here are seen at once.
IGNORED = {
    "volatile", "relaxed", "acquire", "release", "acq_rel", "weak", "mmio", "sys", "gpu", "cta", "cluster", "nc", "ca",
    "cg", "cs", "cv", "lu", "wb", "wt", "L1::evict_last", "L1::evict_first", "L1::no_allocate", "L1::evict_normal",
    "L1::evict_unchanged", "L2::64B", "L2::128B", "L2::256B", "L2::cache_hint", "noftz", "unified",
}  # fmt: skip

ORDERED = {"volatile", "relaxed", "acquire", "release", "mmio"}
"""Of these, accesses of other threads at the same time are meant."""


def split(maker: Maker) -> tuple[str, int, list[str], str]:
    """The space ("": generic), how many elements, what else the operation says, the type."""
    space, count, rest = "", 1, []
    for word in maker.op[1:-1]:
        if word.partition("::")[0] in SPACES:
            space = word.partition("::")[0]
        elif word in ("v2", "v4", "v8"):
            count = int(word[1:])
        elif word not in IGNORED:
            rest.append(word)
    return space, count, rest, maker.op[-1]


def address(maker: Maker, operand: Operand) -> Source:
    """Addresses, an element per lane. Those of parameters of the kernel are in the process's memory."""
    if not isinstance(operand, Address):
        if isinstance(operand, Symbol):
            operand = Address(operand)
        else:
            raise EmulationError(f"no address: {operand}")
    base, offset = operand.base, operand.offset
    if isinstance(base, Number):
        value = int(base.text, 0) + offset
        return lambda block: np.full(block.size, value, np.uint64)
    if isinstance(base, Symbol):
        key, whole = base.key, base.offset + offset
        return lambda block: np.full(block.size, block.launch.address(key) + whole, np.uint64)
    bits = maker.bits(base, "b64") if _is_wide(maker, base) else maker.bits(base, "b32")
    shift = np.uint64(offset & ((1 << 64) - 1))
    if _is_wide(maker, base):
        return lambda block: bits(block) + shift
    return lambda block: (bits(block).astype(np.uint64) + shift) & np.uint64(0xFFFFFFFF)


def _is_wide(maker: Maker, base: Operand) -> bool:
    return not isinstance(base, Register) or maker.program.module.registers[base.key].endswith("64")


def lane_param(maker: Maker, operand: Operand, space: str) -> tuple[str, int] | None:
    """A function's parameter or one of a call: name and offset of bytes that each lane has its own of."""
    if space == "param" and isinstance(operand, Address) and isinstance(operand.base, Symbol):
        key = operand.base.key
        if key in maker.program.lane_params:
            return key, operand.base.offset + operand.offset
    return None


@instruction("ld", "ldu")
def _load(maker: Maker) -> Step:
    space, count, rest, kind = split(maker)
    if rest:
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    target, place = maker.operands[:2]
    targets = target.parts if isinstance(target, Vector) else (target,)
    puts = [maker.put_bits(each, kind) for each in targets]
    size = SIZES[kind]
    param = lane_param(maker, place, space)
    at = None if param else address(maker, place)
    dtype, ordered = UNSIGNED[size], bool(ORDERED.intersection(maker.op))

    def step(block: Block) -> None:
        if param:
            held = block.params[param[0]]
            data = held[:, param[1] : param[1] + size * count]
        else:
            assert at
            lanes = block.indices
            addresses = at(block)[lanes]
            check_aligned(addresses, size * count, "a read")
            data = np.zeros((block.size, size * count), np.uint8)
            data[lanes] = read(block, space, lanes, addresses, size * count, ordered=ordered)
        for index, put in enumerate(puts):
            part = np.ascontiguousarray(data[:, index * size : (index + 1) * size])
            put(block, part.reshape(-1).view(dtype))

    return step


@instruction("st")
def _store(maker: Maker) -> Step:
    space, count, rest, kind = split(maker)
    if rest:
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    place, value = maker.operands[:2]
    values = [maker.bits(each, kind) for each in (value.parts if isinstance(value, Vector) else (value,))]
    size = SIZES[kind]
    param = lane_param(maker, place, space)
    at = None if param else address(maker, place)
    ordered = bool(ORDERED.intersection(maker.op))

    def step(block: Block) -> None:
        lanes = block.indices
        parts = [each(block)[lanes].reshape(-1, 1).view(np.uint8).reshape(-1, size) for each in values]
        data = np.concatenate(parts, axis=1)
        if param:
            block.params[param[0]][lanes, param[1] : param[1] + size * count] = data
            return
        assert at
        addresses = at(block)[lanes]
        check_aligned(addresses, size * count, "a write")
        write(block, space, lanes, addresses, data, ordered=ordered)

    return step


def _wrapped_add(old: Array, limit: Array) -> Array:
    return np.where(old >= limit, 0, old + 1).astype(old.dtype)


def _wrapped_sub(old: Array, limit: Array) -> Array:
    return np.where((old == 0) | (old > limit), limit, old - 1).astype(old.dtype)


ATOMIC: dict[str, Callable[..., Array]] = {
    "add": lambda old, value: old + value,
    "min": lambda old, value: smaller(old, value) if old.dtype.kind == "f" else np.minimum(old, value),
    "max": lambda old, value: larger(old, value) if old.dtype.kind == "f" else np.maximum(old, value),
    "and": lambda old, value: old & value,
    "or": lambda old, value: old | value,
    "xor": lambda old, value: old ^ value,
    "inc": _wrapped_add,
    "dec": _wrapped_sub,
    "exch": lambda old, value: value,
}


def _sum_in_memory(addresses: Array, old: Array, value: Array) -> Array:
    """Of f32: the GPU's memory flushes subnormal numbers, a block's keeps them."""
    shared = addresses & np.uint64((1 << 64) - WINDOW) == SHARED_BASE
    return np.where(shared, old + value, flushed(flushed(old) + flushed(value)))


def _turns(lanes: Array, addresses: Array) -> Iterator[Array]:
    """Lanes of different addresses, in the first turn each address's first lane, and so on."""
    order = np.argsort(addresses, kind="stable")
    ordered = addresses[order]
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    turn = np.empty(len(lanes), np.int64)
    turn[order] = np.arange(len(lanes)) - np.repeat(begins, np.diff([*begins, len(lanes)]))
    for number in range(int(turn.max()) + 1):
        yield lanes[turn == number]


@instruction("atom", "red")
def _atomic(maker: Maker) -> Step:
    """Lanes with one address one after the other, in their order."""
    space, count, rest, kind = split(maker)
    if rest == ["cas"] and count == 1:
        return _exchange(maker, space, kind)
    if len(rest) != 1 or rest[0] not in ATOMIC:
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    function, size = ATOMIC[rest[0]], SIZES[kind]
    operands = list(maker.operands)
    put = None
    if maker.op[0] == "atom":
        target = operands.pop(0)
        targets = target.parts if isinstance(target, Vector) else (target,)
        put = [maker.put_bits(each, kind) for each in targets]
    at = address(maker, operands[0])
    given = [each.parts if isinstance(each, Vector) else (each,) for each in operands[1:2]]
    values = [[maker.bits(part, kind) for part in parts] for parts in given]
    read_number, write_number = reader(kind), writer(kind)
    dtype = UNSIGNED[size]
    in_memory = rest[0] == "add" and kind == "f32" and space in ("", "global")

    def step(block: Block) -> None:
        lanes = block.indices
        addresses = at(block)
        check_aligned(addresses[lanes], size * count, "an atomic operation")
        columns = [[part(block) for part in parts] for parts in values]
        before = np.zeros((block.size, count), dtype)
        for one in _turns(lanes, addresses[lanes]):
            old = (
                read(block, space, one, addresses[one], size * count, ordered=True)
                .reshape(-1)
                .view(dtype)
                .reshape(-1, count)
            )
            before[one] = old
            new = []
            for part in range(count):
                numbers = [read_number(old[:, part].copy()), *(read_number(column[part][one]) for column in columns)]
                result = _sum_in_memory(addresses[one], *numbers) if in_memory else function(*numbers)
                new.append(np.ascontiguousarray(write_number(result)).view(np.uint8).reshape(-1, size))
            write(block, space, one, addresses[one], np.concatenate(new, axis=1), ordered=True)
        for part, each in enumerate(put or ()):
            each(block, before[:, part].copy())

    return step


def _exchange(maker: Maker, space: str, kind: str) -> Step:
    """``cas``: of lanes with one address the first whose comparison holds, then those behind it see its value."""
    size = SIZES[kind]
    put, at = maker.put_bits(maker.operands[0], kind), address(maker, maker.operands[1])
    compare, value = (maker.bits(operand, kind) for operand in maker.operands[2:4])
    dtype = UNSIGNED[size]

    def step(block: Block) -> None:
        addresses, wanted, new = at(block), compare(block), value(block)
        before = np.zeros(block.size, dtype)
        left = block.indices
        check_aligned(addresses[left], size, "an atomic operation")
        while len(left):
            old = read(block, space, left, addresses[left], size, ordered=True).reshape(-1).view(dtype)
            _, place = np.unique(addresses[left], return_inverse=True)
            holds, order = old == wanted[left], np.arange(len(left))
            first = np.full(len(left), len(left))
            np.minimum.at(first, place[holds], order[holds])
            done = order <= first[place]
            before[left[done]] = old[done]
            lucky = left[order == first[place]]
            data = new[lucky].reshape(-1, 1).view(np.uint8)
            write(block, space, lucky, addresses[lucky], data, ordered=True)
            left = left[~done]
        put(block, before)

    return step


@instruction("prefetch", "prefetchu", "membar", "fence", "discard", "applypriority", "createpolicy", "griddepcontrol")
def _nothing(maker: Maker) -> Step:
    """Accesses are in order and seen at once."""
    return lambda block: None
