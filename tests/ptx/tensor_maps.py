"""Copies of whole tiles (TMA): through descriptors, which are as the stand-in of NVIDIA's driver writes them.

The bytes come when the barrier is waited for to which they belong; those that go to global memory go at once.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from emulator.errors import EmulationError

from ptx.access import address
from ptx.block import Block
from ptx.maker import Maker, Source, Step
from ptx.memory_barriers import MemoryBarrier, barrier_at
from ptx.spaces import check_aligned, read, write
from ptx.syntax import Address, Operand, Vector

Array = Any

_BYTES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)  # of an element, by CUtensorMapDataType
_ROW_BITS = (0, 1, 2, 3)  # by CUtensorMapSwizzle: of the address, that are mixed into those of its 16 bytes


@dataclass(frozen=True)
class TensorMap:
    """Sizes and such from the innermost dimension."""

    address: int
    strides: tuple[int, ...]
    sizes: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    element: int
    swizzle: int
    nan: bool

    @classmethod
    def read(cls, data: bytes) -> TensorMap:
        start, *strides = struct.unpack_from("<6Q", data)
        sizes, box = struct.unpack_from("<5I", data, 48), struct.unpack_from("<5H", data, 68)
        rank, *rest = struct.unpack_from("<11B", data, 78)
        steps, (kind, interleave, swizzle, _, fill) = rest[:5], rest[5:]
        if not 1 <= rank <= 5 or interleave:
            raise EmulationError("no descriptor of a tensor, or one of an interleaved one")
        element = _BYTES[kind]
        whole = (element, *strides[: rank - 1])
        return cls(start, whole, sizes[:rank], box[:rank], tuple(steps[:rank]), element, swizzle, fill == 1)

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(-(-size // step) for size, step in zip(self.box, self.steps, strict=True))

    @property
    def size(self) -> int:
        """Bytes of a tile."""
        return int(np.prod(self.counts)) * self.element

    def rows(self, at: tuple[int, ...]) -> Iterator[tuple[int, list[int | None]]]:
        """For each row of the tile its offset there, and of its elements the addresses; None is outside."""
        counts = self.counts
        for number, outer in enumerate(itertools.product(*(range(count) for count in reversed(counts[1:])))):
            places = [
                begin + index * step for begin, index, step in zip(at[1:], outer[::-1], self.steps[1:], strict=True)
            ]
            inside = all(0 <= place < size for place, size in zip(places, self.sizes[1:], strict=True))
            start = self.address + sum(place * stride for place, stride in zip(places, self.strides[1:], strict=True))
            columns = [at[0] + index * self.steps[0] for index in range(counts[0])]
            yield (
                number * counts[0] * self.element,
                [start + x * self.element if inside and 0 <= x < self.sizes[0] else None for x in columns],
            )

    def mixed(self, place: int) -> int:
        """Where the byte at an address of shared memory is."""
        return place ^ (place >> 7 & ((1 << _ROW_BITS[self.swizzle]) - 1)) << 4

    def fill(self, block: Block, lane: Array, to: int, at: tuple[int, ...]) -> None:
        """Copies a tile into shared memory."""
        outside = b"\xff\x7f" * (self.element // 2) if self.nan else bytes(self.element)
        for offset, addresses in self.rows(at):
            data = [outside if x is None else block.launch.memory.read(x, self.element) for x in addresses]
            row = b"".join(data)
            for begin in range(0, len(row), 16):  # which stay together
                part = np.frombuffer(row[begin : begin + 16], np.uint8).reshape(1, -1)
                write(block, "shared", lane, np.array([self.mixed(to + offset + begin)], np.uint64), part)

    def drain(self, block: Block, lane: Array, given: int, at: tuple[int, ...]) -> None:
        """Its counterpart."""
        for offset, addresses in self.rows(at):
            for index, x in enumerate(addresses):
                if x is not None:
                    place = self.mixed(given + offset + index * self.element)
                    data = read(block, "shared", lane, np.array([place], np.uint64), self.element)
                    block.launch.memory.write(x, data.tobytes())


class Tile(NamedTuple):
    """What a lane copies: a tile's place in shared memory, and its coordinates from the innermost."""

    tensor: TensorMap
    lane: int
    place: int
    at: tuple[int, ...]


def _operands(maker: Maker, place: Operand) -> tuple[Source, list[Source]]:
    """A descriptor's address, and coordinates from the innermost."""
    assert isinstance(place, Address)
    (where,) = place.rest
    assert isinstance(where, Vector)
    return address(maker, Address(place.base, place.offset)), [maker.source(part, "s32") for part in where.parts]


def bulk(maker: Maker) -> Step:
    """cp.async.bulk and all that begins so."""
    words = maker.op[3:]
    if words[0] == "commit_group":
        return lambda block: None
    if words[0] in ("wait_group", "prefetch"):
        return lambda block: None
    if words[0] != "tensor":
        return _plain(maker)
    if "tile" not in words and any(word.startswith("im2col") for word in words):
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    if words[2].startswith("shared"):
        return _tensor_load(maker)
    return _tensor_store(maker)


def _tiles(maker: Maker, shared: Operand, place: Operand) -> Callable[[Block], Iterator[Tile]]:
    """The tiles that the lanes copy."""
    at = address(maker, shared)
    map_, where = _operands(maker, place)

    def tiles(block: Block) -> Iterator[Tile]:
        axes = [axis(block) for axis in where]
        for lane in block.indices.tolist():
            tensor = _map_at(block, lane, int(map_(block)[lane]))
            check_aligned(at(block)[[lane]], 128, "a tile")
            if len(axes) != len(tensor.sizes):
                raise EmulationError(f"{len(axes)} coordinates of a tensor of {len(tensor.sizes)} dimensions")
            yield Tile(tensor, lane, int(at(block)[lane]), tuple(int(axis[lane]) for axis in axes))

    return tiles


def _tensor_load(maker: Maker) -> Step:
    to, place, barrier_place, *rest = maker.operands
    tiles, barrier = _tiles(maker, to, place), address(maker, barrier_place)
    blocks = maker.source(rest[0], "u16") if "multicast::cluster" in maker.op else None

    def step(block: Block) -> None:
        for tile in tiles(block):
            targets = [block]
            if blocks:
                mask = int(blocks(block)[tile.lane])
                targets = [block.launch.in_cluster(block, rank) for rank in range(16) if mask >> rank & 1]
            for target in targets:
                _begin(target, barrier_at(target, int(barrier(block)[tile.lane])), tile)

    return step


def _begin(block: Block, barrier: MemoryBarrier, tile: Tile) -> None:
    def finish() -> None:
        tile.tensor.fill(block, np.array([tile.lane]), tile.place, tile.at)
        barrier.bring(tile.tensor.size)

    block.begin_copy(barrier, finish)


def _tensor_store(maker: Maker) -> Step:
    place, given = maker.operands[:2]
    tiles = _tiles(maker, given, place)

    def step(block: Block) -> None:
        for tile in tiles(block):
            tile.tensor.drain(block, np.array([tile.lane]), tile.place, tile.at)

    return step


def _map_at(block: Block, lane: int, place: int) -> TensorMap:
    check_aligned(np.array([place], np.uint64), 64, "a descriptor")
    return TensorMap.read(read(block, "", np.array([lane]), np.array([place], np.uint64), 128).tobytes())


def _plain(maker: Maker) -> Step:
    """Bytes without a descriptor: into shared memory with a barrier, or out of it."""
    into = maker.op[3].startswith("shared")
    to, given = (address(maker, operand) for operand in maker.operands[:2])
    size = maker.source(maker.operands[2], "u32")
    barrier = address(maker, maker.operands[3]) if into else None
    if into and not maker.op[4].startswith("global"):
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")

    def step(block: Block) -> None:
        for lane in block.indices.tolist():
            one = np.array([lane])
            places = to(block)[one], given(block)[one]
            count = int(size(block)[lane])
            for place in places:
                check_aligned(place, 16, "a copy")
            if count % 16:
                raise EmulationError(f"a copy of {count} bytes, which is not a multiple of 16")

            def finish(one: Array = one, places: tuple[Array, Array] = places, count: int = count) -> None:
                data = read(block, "global" if into else "shared", one, places[1], count)
                write(block, "shared" if into else "global", one, places[0], data)

            if barrier is None:
                finish()
                continue
            found = barrier_at(block, int(barrier(block)[lane]))

            def come(found: MemoryBarrier = found, finish: Callable[[], None] = finish, count: int = count) -> None:
                finish()
                found.bring(count)

            block.begin_copy(found, come)

    return step


def reduced(maker: Maker) -> Step:
    raise EmulationError(f"no instruction {'.'.join(maker.op)}")
