"""Products of small matrices that the lanes of a warp hold together: mma, wmma, ldmatrix, stmatrix, movmatrix.

Which lane has which element is as the ISA says for ``mma``. For ``wmma`` it does not say it, and lanes have them here
in the order of rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from emulator.errors import EmulationError

from ptx.access import address, split
from ptx.block import WARP, Block
from ptx.kinds import DTYPES, SIZES, SMALL, UNSIGNED, reader, writer
from ptx.maker import Maker, Source, Step, Target
from ptx.spaces import check_aligned, read, write
from ptx.syntax import Operand, Vector
from ptx.table import instruction

Array = Any

LANES = np.arange(WARP)
GROUP, PLACE = LANES >> 2, LANES & 3
BITS = {"s4": 4, "u4": 4, "b1": 1, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "f16": 16, "bf16": 16, "tf32": 32, "f32": 32,
        "s32": 32, "f64": 64}  # fmt: skip


def parts(operand: Operand) -> tuple[Operand, ...]:
    return operand.parts if isinstance(operand, Vector) else (operand,)


def shape_of(maker: Maker) -> tuple[int, int, int]:
    """Rows, columns and the size of what is summed over: of ``m16n8k16``."""
    found = next(filter(None, (re.fullmatch(r"m(\d+)n(\d+)k(\d+)", word) for word in maker.op)), None)
    if not found:
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    m, n, k = map(int, found.groups())
    return m, n, k


# Elements of registers


def unpacked(words: Array, kind: str) -> Array:
    """Elements [lane, index] of registers [lane, register]."""
    if kind in ("f64", "f32", "s32"):
        return words.view(DTYPES[kind])
    if kind == "tf32":
        return (words & np.uint32(0xFFFFE000)).view(np.float32)
    if kind in ("s4", "u4"):
        nibbles = words[:, :, None] >> np.arange(0, 32, 4, dtype=np.uint32) & np.uint32(15)
        numbers = nibbles.reshape(len(words), -1).astype(np.int64)
        return np.where(numbers > 7, numbers - 16, numbers) if kind == "s4" else numbers
    if kind in SMALL:
        return words.view(np.uint8).view(SMALL[kind]).astype(np.float32)
    if kind in ("s8", "u8"):
        return words.view(DTYPES[kind])
    if kind in ("f16", "bf16"):
        return reader(kind)(words.view(np.uint16))
    raise EmulationError(f"no matrices of .{kind}")


def packed(elements: Array, kind: str) -> Array:
    """The counterpart of :func:`unpacked` for results."""
    bits = np.ascontiguousarray(writer(kind)(elements))
    return bits.view(np.uint32) if SIZES[kind] == 2 else bits


def registers(maker: Maker, operand: Operand, kind: str) -> Source:
    """Registers [lane, register]."""
    wide = "b64" if kind == "f64" else "b32"
    sources = [maker.bits(part, wide) for part in parts(operand)]
    return lambda block: np.stack([source(block) for source in sources], axis=1)


def results(maker: Maker, operand: Operand, kind: str) -> Target:
    """Where registers [lane, register] go."""
    puts = [maker.put_bits(part, "b64" if kind == "f64" else "b32") for part in parts(operand)]

    def put(block: Block, words: Array) -> None:
        for index, each in enumerate(puts):
            each(block, words[:, index].copy())

    return put


# Where elements are in a matrix: rows and columns [lane, index]


def _places(kind: str, count: int) -> tuple[int, Array, Array]:
    """Elements of a register, and of each element the register and the place in it."""
    each = max(32 // BITS[kind], 1)
    index = np.arange(count)
    return each, index // each, index % each


def places_a(kind: str, count: int) -> tuple[Array, Array]:
    """Of the left matrix."""
    each, register, inside = _places(kind, count)
    rows = GROUP[:, None] + 8 * (register & 1)
    return rows, (register >> 1) * 4 * each + PLACE[:, None] * each + inside


def places_b(kind: str, count: int) -> tuple[Array, Array]:
    """Of the right matrix."""
    each, register, inside = _places(kind, count)
    rows = register * 4 * each + PLACE[:, None] * each + inside
    return rows, np.broadcast_to(GROUP[:, None], rows.shape)


def places_c(count: int) -> tuple[Array, Array]:
    """Of sums."""
    index = np.arange(count)
    return GROUP[:, None] + 8 * (index >> 1), PLACE[:, None] * 2 + (index & 1)


def multiplied(a: Array, b: Array, c: Array, kind: str, *, limited: bool) -> Array:
    """a @ b + c; of integers without or with limits."""
    if kind == "s32":
        total = a.astype(np.int64) @ b.astype(np.int64) + c
        return (np.clip(total, -(1 << 31), (1 << 31) - 1) if limited else total).astype(np.int32)
    return (a.astype(np.float64) @ b.astype(np.float64) + c).astype(DTYPES[kind])


def warps_of(block: Block) -> list[slice]:
    """The warps that execute; all of a warp's lanes have to."""
    active = block.active.reshape(-1, WARP)
    if (active.any(axis=1) != active.all(axis=1)).any():
        raise EmulationError("not all lanes of a warp take part")
    return [slice(WARP * warp, WARP * (warp + 1)) for warp in np.flatnonzero(active[:, 0]).tolist()]


def whole_warps(block: Block) -> bool:
    """Waits for all lanes of the warps; False where none is left to go on."""
    return block.together(np.full(block.size, 0xFFFFFFFF, np.uint32))


def _loading(put: Target, words: Callable[[Block, slice], Array]) -> Step:
    """Registers [lane, register] of each warp."""

    def step(block: Block) -> None:
        if whole_warps(block):
            found = {warp.start: words(block, warp) for warp in warps_of(block)}
            some = next(iter(found.values()))
            result = np.zeros((block.size, some.shape[1]), some.dtype)
            for start, each in found.items():
                result[start : start + WARP] = each
            put(block, result)

    return step


def _storing(given: Source, send: Callable[[Block, slice, Array], None]) -> Step:
    """The counterpart of :func:`_loading`."""

    def step(block: Block) -> None:
        if whole_warps(block):
            words = given(block)
            for warp in warps_of(block):
                send(block, warp, np.ascontiguousarray(words[warp]))

    return step


@instruction("mma")
def _product(maker: Maker) -> Step:
    m, n, k = shape_of(maker)
    kinds = [word for word in maker.op if word in BITS]
    if len(kinds) != 4 or "row" not in maker.op or "col" not in maker.op or (m, n, k, kinds[1]) == (8, 8, 4, "f16"):
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    kind_d, kind_a, kind_b, kind_c = kinds
    a, b, c = (registers(maker, op, kind) for op, kind in zip(maker.operands[1:4], kinds[1:], strict=True))
    put = results(maker, maker.operands[0], kind_d)
    limited = "satfinite" in maker.op
    spread = _spreading(maker, k, kind_a) if maker.op[1].startswith("sp") else None

    def step(block: Block) -> None:
        if not whole_warps(block):
            return
        left, right, sums = (unpacked(source(block), kind) for source, kind in ((a, kind_a), (b, kind_b), (c, kind_c)))
        result = np.zeros_like(sums, dtype=DTYPES[kind_d])
        at_a, at_b, at_c = places_a(kind_a, left.shape[1]), places_b(kind_b, right.shape[1]), places_c(sums.shape[1])
        depth = k // 2 if spread else k
        for warp in warps_of(block):
            x, y, z = np.zeros((m, depth), left.dtype), np.zeros((k, n), right.dtype), np.zeros((m, n), sums.dtype)
            x[at_a], y[at_b], z[at_c] = left[warp], right[warp], sums[warp]
            x = spread(block, warp, x) if spread else x
            result[warp] = multiplied(x, y, z, kind_d, limited=limited)[at_c]
        put(block, packed(result, kind_d))

    return step


def _spreading(maker: Maker, k: int, kind: str) -> Callable[[Block, slice, Array], Array]:
    """Makes of the left matrix of ``mma.sp``, two of each four numbers of a row, the whole one.

    Where the two are, two bits each tell, of lanes that the last operand chooses: for 16 columns a word, the lower half
    of which is for a row of the upper eight."""
    if kind not in ("f16", "bf16"):
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    where, chosen = maker.bits(maker.operands[4], "b32"), maker.bits(maker.operands[5], "b32")

    def spread(block: Block, warp: slice, values: Array) -> Array:
        rows, quarters = np.arange(16)[:, None], np.arange(k // 4)
        lanes = 4 * (rows % 8) + k // 16 * int(chosen(block)[warp][0]) + quarters // 4
        bits = where(block)[warp][lanes] >> (16 * (rows // 8) + 4 * (quarters % 4)).astype(np.uint32)
        first, second = bits & 3, bits >> 2 & 3
        if (first >= second).any():
            raise EmulationError("numbers of a sparse matrix that are not in the order of their columns")
        whole = np.zeros((16, k), values.dtype)
        whole[rows, 4 * quarters + first], whole[rows, 4 * quarters + second] = values[:, ::2], values[:, 1::2]
        return whole

    return spread


# wmma


def _spread(matrix: Array, count: int) -> Array:
    """Elements [lane, index] in the order of rows, as often as there is room."""
    return np.resize(matrix.reshape(-1), (WARP, count))


def _gathered(elements: Array, shape: tuple[int, int]) -> Array:
    return elements.reshape(-1)[: shape[0] * shape[1]].reshape(shape)


def _count(operand: Operand, kind: str) -> int:
    return len(parts(operand)) * max(32 // BITS[kind], 1)


def _sizes(maker: Maker, which: str) -> tuple[int, int]:
    m, n, k = shape_of(maker)
    return {"a": (m, k), "b": (k, n)}.get(which, (m, n))


@instruction("wmma")
def _fragments(maker: Maker) -> Step:
    if maker.op[1] == "mma":
        return _wmma(maker)
    which, kind = maker.op[2], maker.op[-1]
    space = split(maker)[0]
    rows_first = "row" in maker.op
    if kind not in BITS or BITS[kind] < 8:
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    shape = _sizes(maker, which)
    loads = maker.op[1] == "load"
    operands = maker.operands if loads else (maker.operands[1], maker.operands[0], *maker.operands[2:])
    fragment, place = operands[:2]
    at = address(maker, place)
    usual = shape[1] if rows_first else shape[0]
    stride = maker.source(operands[2], "u32") if len(operands) > 2 else lambda block: np.full(block.size, usual)
    size, count = BITS[kind] // 8, _count(fragment, kind)
    row, column = np.indices(shape)

    def addresses(block: Block, warp: slice) -> Array:
        where, apart = at(block)[warp], stride(block)[warp]
        if (where != where[0]).any() or (apart != apart[0]).any():
            raise EmulationError("lanes of a warp with different addresses or strides of a matrix")
        step = int(apart[0])
        # To what a lane has of the matrix ("Matrix Storage for WMMA"); rows that follow each other closely, as they
        # do where no stride is given, may have less than that.
        aligned = count * size
        if step * size % min(aligned, 16):
            raise EmulationError(f"rows {step * size} bytes apart, which is not a multiple of {min(aligned, 16)}")
        check_aligned(where[:1], aligned, "a matrix")
        places = row * step + column if rows_first else column * step + row
        return where[0] + (places * size).reshape(-1).astype(np.uint64)

    def words(block: Block, warp: slice) -> Array:
        where = addresses(block, warp)
        data = read(block, space, np.full(len(where), warp.start), where, size)
        matrix = np.ascontiguousarray(data).view(UNSIGNED[size]).reshape(shape)
        return _spread(matrix, count).view(np.uint64 if size == 8 else np.uint32)

    def send(block: Block, warp: slice, words: Array) -> None:
        where = addresses(block, warp)
        matrix = _gathered(words.view(UNSIGNED[size]), shape)
        data = np.ascontiguousarray(matrix).reshape(-1, 1).view(np.uint8)
        write(block, space, np.full(len(where), warp.start), where, data)

    if loads:
        return _loading(results(maker, fragment, kind), words)
    return _storing(registers(maker, fragment, kind), send)


def _wmma(maker: Maker) -> Step:
    """``wmma.mma`` with types d.c of f16 matrices, or d.a.b.c."""
    kinds = [word for word in maker.op if word in BITS]
    kind_d, kind_c = kinds[0], kinds[-1]
    kind_a, kind_b = kinds[1:3] if len(kinds) == 4 else ("f16", "f16")
    if "b1" in kinds or "s4" in kinds or "u4" in kinds:
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    sources = [
        (registers(maker, operand, kind), kind, _sizes(maker, which))
        for operand, kind, which in zip(maker.operands[1:], (kind_a, kind_b, kind_c), "abc", strict=True)
    ]
    put = results(maker, maker.operands[0], kind_d)
    count, limited = _count(maker.operands[0], kind_d), "satfinite" in maker.op

    def step(block: Block) -> None:
        if not whole_warps(block):
            return
        given = [(unpacked(np.ascontiguousarray(source(block)), kind), shape) for source, kind, shape in sources]
        result = np.zeros((block.size, count), DTYPES[kind_d])
        for warp in warps_of(block):
            a, b, c = (_gathered(np.ascontiguousarray(elements[warp]), shape) for elements, shape in given)
            result[warp] = _spread(multiplied(a, b, c, kind_d, limited=limited), count)
        put(block, packed(result, kind_d))

    return step


# Between registers and shared memory


@instruction("ldmatrix", "stmatrix")
def _rows(maker: Maker) -> Step:
    """8 rows of 8 numbers of 16 bits, up to four times; lane 8 * i + r has the address of row r of matrix i."""
    loads = maker.op[0] == "ldmatrix"
    if "m8n8" not in maker.op or maker.op[-1] != "b16":
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    space = split(maker)[0]
    turned = "trans" in maker.op
    matrices = next(int(word[1]) for word in maker.op if re.fullmatch(r"x[124]", word))
    operands = maker.operands if loads else maker.operands[::-1]
    at = address(maker, operands[1])

    def rows(block: Block, warp: slice) -> tuple[Array, Array]:
        addresses = at(block)[warp][: 8 * matrices]
        check_aligned(addresses, 16, "a row")
        return np.arange(warp.start, warp.start + 8 * matrices), addresses

    def words(block: Block, warp: slice) -> Array:
        data = read(block, space, *rows(block, warp), 16).view(np.uint16).reshape(matrices, 8, 8)
        return lane_words(data.transpose(0, 2, 1) if turned else data)

    def send(block: Block, warp: slice, words: Array) -> None:
        data = words.view(np.uint16).reshape(WARP, matrices, 2).transpose(1, 0, 2).reshape(matrices, 8, 8)
        data = np.ascontiguousarray(data.transpose(0, 2, 1) if turned else data)
        write(block, space, *rows(block, warp), data.reshape(-1, 8).view(np.uint8))

    if loads:
        return _loading(results(maker, operands[0], "f16"), words)
    return _storing(registers(maker, operands[0], "f16"), send)


def lane_words(matrices: Array) -> Array:
    """Registers [lane, matrix] of matrices of 16 bits: a lane has two neighbours of a row."""
    pairs = np.ascontiguousarray(matrices).reshape(len(matrices), WARP, 2)
    return np.ascontiguousarray(pairs.transpose(1, 0, 2)).view(np.uint32).reshape(WARP, -1)


@instruction("movmatrix")
def _turn(maker: Maker) -> Step:
    put, given = maker.put_bits(maker.operands[0], "b32"), maker.bits(maker.operands[1], "b32")

    def step(block: Block) -> None:
        if not whole_warps(block):
            return
        words, result = given(block), np.zeros(block.size, np.uint32)
        for warp in warps_of(block):
            matrix = np.ascontiguousarray(words[warp]).view(np.uint16).reshape(1, 8, 8)
            result[warp] = lane_words(matrix.transpose(0, 2, 1))[:, 0]
        put(block, result)

    return step
