"""Products of matrices whose elements are spread over the lanes of a wave: MFMA (gfx9) and WMMA (gfx11, gfx12).

Where an element lies, for a wave of ``lanes``; ``per`` elements of A and B lie in each lane, in the order of k:
MFMA: lane = row (A) or column (B) + size * block + size * blocks * (k // per). D: column = lane % size, and rows come
in groups of four, first over the lanes, then over the registers.
WMMA: before gfx12 every 16 lanes hold A and B, so that these have to be alike.

On gfx90a products of f16 and bf16 take subnormal numbers for zero, and give none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator.errors import EmulationError
from emulator.operands import Array, constant, raw
from emulator.small_floats import SmallFloats

if TYPE_CHECKING:
    from emulator.program import Program
    from emulator.wave import Wave

Run = Callable[["Wave"], None]
_BITS = {"F64": 64, "F32": 32, "XF32": 32, "F16": 16, "BF16": 16, "FP8": 8, "BF8": 8, "I8": 8, "IU8": 8, "IU4": 4}


def step(program: Program, inst: Any, name: str) -> Run:
    """A product as a function of a wave."""
    found = re.fullmatch(
        r"V_(MFMA|WMMA)_(F64|F32|F16|BF16|I32)_(\d+)X(\d+)X(\d+)_?(?:(\d+)B_)?([A-Z]+\d+)(?:_([A-Z]+\d+))?(?:_1K)?",
        name,
    )
    if not found or found.group(7) not in _BITS:
        raise EmulationError(f"an unknown instruction: {name}")
    kind, result, rows, columns, depth, blocks, first, second = found.groups()
    shape = (int(blocks or 1), int(rows), int(columns), int(depth))
    kinds = (first, second or first, result)
    if kind == "MFMA":
        return _mfma(program, inst, shape, kinds)
    return _wmma(program, inst, shape, kinds)


def _numbers(words: Array, kind: str, small: SmallFloats, signed: bool = True) -> Array:
    """Registers [register, lane] as numbers [lane, element]."""
    data = np.ascontiguousarray(words.T)
    if kind == "F64":
        return data.view(np.float64)
    if kind in ("F32", "XF32"):
        return data.view(np.float32).astype(np.float64)
    if kind in ("F16", "BF16"):
        return small.numbers(data.view(np.uint16), kind.lower()).astype(np.float64)
    if kind in ("FP8", "BF8"):
        return small.numbers(data.view(np.uint8), kind.lower()).astype(np.float64)
    if kind in ("I8", "IU8"):
        return data.view(np.int8 if signed else np.uint8).astype(np.int64)
    if kind == "I32":
        return data.view(np.int32).astype(np.int64)
    nibbles = np.stack((data.view(np.uint8) & 15, data.view(np.uint8) >> 4), axis=-1).reshape(len(data), -1)
    return np.where(nibbles > 7, nibbles.astype(np.int64) - 16, nibbles) if signed else nibbles.astype(np.int64)


def _flushed(values: Array, kind: str) -> Array:
    """Zeros, of their sign, for subnormal numbers of a type."""
    least = np.finfo(np.float16 if kind == "F16" else np.float32).tiny
    return np.where(np.abs(values) < least, np.copysign(values.dtype.type(0), values), values)


def _words(values: Array, kind: str) -> Array:
    """Numbers [lane, register] as registers [register, lane]."""
    if kind == "F64":
        return np.ascontiguousarray(values).view(np.uint32).T
    if kind == "I32":
        return values.astype(np.int32).view(np.uint32).T
    return values.astype(np.float32).view(np.uint32).T


def _registers(inst: Any, field: str, accumulators: bool, count: int, kind: str = "F32") -> Callable[[Wave], Array]:
    """A constant is every element's, of their ``kind``; two elements of 16 bits are one word."""
    code = raw(inst, field)
    if code < 256:
        value = constant(code, kind, _BITS.get(kind, 32), 0)
        if value is None:
            raise EmulationError(f"the operand {code} of a product of matrices")
        element = np.array([value], np.uint64).view(np.uint32)
        if _BITS.get(kind) == 16:
            element = element[:1] * np.uint32(0x10001)
        words = np.resize(element if kind == "F64" else element[:1], count)
        return lambda wave: np.broadcast_to(words[:, None], (count, wave.lanes))
    start = code - 256 + (256 if accumulators else 0)
    return lambda wave: wave.v[start : start + count]


def _mfma(program: Program, inst: Any, shape: tuple[int, int, int, int], kinds: tuple[str, str, str]) -> Run:
    blocks, size, _, depth = shape
    if raw(inst, "cbsz") or raw(inst, "abid") or raw(inst, "blgp"):
        raise EmulationError("blocks of a matrix that are broadcast or permuted")
    lanes, small = 64, SmallFloats(program.chip)
    per = max(1, size * blocks * depth // lanes)
    acc = raw(inst, "acc")
    a = _registers(inst, "src0", bool(acc & 1), -(-per * _BITS[kinds[0]] // 32))
    b = _registers(inst, "src1", bool(acc & 2), -(-per * _BITS[kinds[1]] // 32))
    results = blocks * size * size // lanes
    words = results * (2 if kinds[2] == "F64" else 1)
    c = _registers(inst, "src2", bool(raw(inst, "acc_cd")), words, kinds[2])
    destination = raw(inst, "vdst") + (256 if raw(inst, "acc_cd") else 0)
    lane, register = np.arange(lanes), np.arange(results)
    column = np.broadcast_to(lane[:, None] % size, (lanes, results))
    if kinds[2] == "F64":
        block, row = _rows_f64(lane, register, size)
    elif size == 4:
        block, row = np.broadcast_to(lane[:, None] // 4, (lanes, results)), np.broadcast_to(register, (lanes, results))
    else:
        groups = lanes // size  # of four rows, over the lanes
        within = register % (size * size // lanes)
        block = np.broadcast_to(register // (size * size // lanes), (lanes, results))
        row = 4 * (lane[:, None] // size) + 4 * groups * (within // 4) + within % 4

    flush = program.chip == "gfx90a" and kinds[0] in ("F16", "BF16")

    def numbers(words: Array, kind: str) -> Array:
        made = _numbers(words, kind, small)
        return _flushed(made, kind) if flush else made

    def run(wave: Wave) -> None:
        left = _spread(numbers(a(wave), kinds[0])[:, :per], size, blocks, depth, per)
        right = _spread(numbers(b(wave), kinds[1])[:, :per], size, blocks, depth, per)
        product = np.einsum("bik,bjk->bij", left, right)
        total = product[block, row, column] + numbers(c(wave), kinds[2])
        if flush:
            total = _flushed(total.astype(np.float32), kinds[2])
        for index, word in enumerate(_words(total, kinds[2])):
            wave.v[destination + index] = word

    return run


def _rows_f64(lane: Array, register: Array, size: int) -> tuple[Array, Array]:
    if size == 4:
        shape = (len(lane), len(register))
        return np.broadcast_to(lane[:, None] // 4 % 4, shape), np.broadcast_to(lane[:, None] // 16, shape)
    return np.zeros((len(lane), len(register)), np.int64), lane[:, None] // 16 + 4 * register


def _spread(values: Array, size: int, blocks: int, depth: int, per: int) -> Array:
    """[lane, element] as [block, row, k]."""
    lane = np.arange(len(values))
    result = np.zeros((blocks, size, depth), values.dtype)
    for element in range(per):
        result[lane // size % blocks, lane % size, per * (lane // (size * blocks)) + element] = values[:, element]
    return result


def _wmma(program: Program, inst: Any, shape: tuple[int, int, int, int], kinds: tuple[str, str, str]) -> Run:
    depth = shape[3]
    small, is12 = SmallFloats(program.chip), program.family == "rdna4"
    neg = raw(inst, "neg")
    integers = kinds[2] == "I32"
    if not integers and (neg or raw(inst, "neg_hi")):
        raise EmulationError("a negated matrix")
    clamp = bool(raw(inst, "clmp"))
    if clamp and not integers:
        raise EmulationError("a product of matrices of floats with clamp")
    signed = (bool(neg & 1) or not integers, bool(neg & 2) or not integers)
    high = bool(raw(inst, "opsel") & 4)
    destination = raw(inst, "vdst")
    narrow = kinds[2] in ("F16", "BF16")

    def run(wave: Wave) -> None:
        if not wave.active.all():
            raise EmulationError("a product of matrices where not all lanes are active")
        copies = wave.lanes // 16  # lanes of a row
        per = depth // copies if is12 else depth
        sources = []
        for field, kind, sign in zip(("src0", "src1"), kinds, signed, strict=False):
            registers = _registers(inst, field, False, -(-per * _BITS[kind] // 32))(wave)
            if not is12 and (registers != np.tile(registers[:, :16], copies)).any():
                raise EmulationError("a matrix that not every 16 lanes hold alike")
            numbers = _numbers(registers, kind, small, sign)[:, :per]
            sources.append(_spread(numbers, 16, 1, depth, per)[0] if is12 else numbers[:16])
        results = 256 // wave.lanes
        lane, register = np.arange(wave.lanes)[:, None], np.arange(results)
        row = lane // 16 * results + register if is12 else register * copies + lane // 16
        packed = narrow and is12
        addend = _registers(inst, "src2", False, results // 2 if packed else results, kinds[2])(wave)
        numbers = _numbers(addend, kinds[2], small)
        if narrow and not is12:
            numbers = numbers[:, int(high) :: 2]
        product = np.einsum("ik,jk->ij", *sources)
        total = product[row, np.broadcast_to(lane % 16, row.shape)] + numbers
        if clamp:
            total = np.clip(total, -(2**31), 2**31 - 1)
        if not narrow:
            for index, word in enumerate(_words(total, kinds[2])):
                wave.v[destination + index] = word
            return
        halves = _halves(total, kinds[2])
        if packed:
            words = np.ascontiguousarray(halves).view(np.uint32).T
        else:
            shift = np.uint32(16 if high else 0)
            kept = wave.v[destination : destination + results] & ~(np.uint32(0xFFFF) << shift)
            words = kept | halves.T.astype(np.uint32) << shift
        for index, word in enumerate(words):
            wave.v[destination + index] = word

    return run


def _halves(values: Array, kind: str) -> Array:
    if kind == "F16":
        return values.astype(np.float16).view(np.uint16)
    from emulator.manual_math import f32_to_bf16

    return f32_to_bf16(values.astype(np.float32))
