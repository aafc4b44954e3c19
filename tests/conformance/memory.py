"""Memory of the block, of a thread, and of the module."""

from __future__ import annotations

import numpy as np

from conformance import Answer, Launch, Theme

THEME = Theme("memory")
TABLE = np.array([0.5, -1.0, 2.5, 1000.0])
GRID = np.array([[1, 2, 3], [-4, -5, -6]], np.int16)
FEW = [(1, 1, 1), (33, 1, 1), (8, 4, 3), (1024, 1, 1)]


@THEME.kernel()
def dynamic(launch: Launch) -> Answer:
    x = launch.any_of(np.int64)
    return Answer([x], [launch.by_block(lambda part: part[::-1], x)], shared=8 * launch.threads)


@THEME.kernel()
def all_kinds(launch: Launch) -> Answer:
    x = launch.integers(-100000, 100000)
    mine = x.astype(np.int8) + x + x + x * 7
    return Answer([x], [launch.by_block(lambda part: np.roll(part, -1), mine)], shared=4 * launch.threads)


@THEME.kernel(blocks=[(32, 32, 1)], grids=[(1, 1, 1), (5, 1, 1)])
def transposed(launch: Launch) -> Answer:
    x = launch.random.random((launch.blocks, 32, 32), np.float32)
    return Answer([x], [x.transpose(0, 2, 1)])


@THEME.kernel()
def private_array(launch: Launch) -> Answer:
    x = launch.any_of(np.int32)
    digits = [(x.view(np.uint32) >> np.uint32(4 * i)) & np.uint32(15) for i in range(8)]
    expected = sum(digit << np.uint32(28 - 4 * i) for i, digit in enumerate(digits))
    return Answer([x], [expected.view(np.int32)])


@THEME.kernel(blocks=[(1, 1, 1), (3, 1, 1)], grids=[(1, 1, 1)])
def memory_in_a_loop(launch: Launch) -> Answer:
    x, rounds = launch.any_of(np.int32), 1_000_000
    with np.errstate(over="ignore"):
        return Answer([x, rounds], [x + np.array(rounds * (rounds - 1) // 2).astype(np.int32)])


@THEME.kernel()
def memory_passed_on(launch: Launch) -> Answer:
    x, rounds = launch.integers(-100, 100), int(launch.random.integers(0, 20))
    now, before = x, np.ones_like(x)
    for _ in range(rounds):
        now, before = now + before, now
    return Answer([x, rounds], [now])


@THEME.kernel(blocks=FEW, grids=[(1, 1, 1), (2, 1, 1)])
def deep(launch: Launch) -> Answer:
    x = launch.integers(-1000, 1000)
    places = np.arange(0, 16384, 97)
    return Answer([x], [(x * len(places) + places.sum()).astype(np.int32)])


@THEME.kernel(blocks=FEW, grids=[(1, 1, 1), (2, 1, 1)], cpu_only=True)
def size_of_the_launch(launch: Launch) -> Answer:
    size = int(launch.random.integers(0, 3000))
    sums = np.array([(np.arange(size) ^ thread).sum() for thread in range(launch.threads)], np.int32)
    return Answer([np.zeros(launch.total, np.int32), size], [np.tile(sums, launch.blocks)])


@THEME.kernel(blocks=FEW, grids=[(1, 1, 1), (2, 1, 1)])
def two_of_a_size(launch: Launch) -> Answer:
    x, size = launch.integers(-100, 100), int(launch.random.integers(1, 40))
    a = [x]
    for _ in range(size - 1):
        a.append(a[-1] * np.int32(3))
    result = x
    for value in reversed(a):
        result = result * np.int32(3) + value
    return Answer([x, size], [result])


@THEME.kernel()
def constants(launch: Launch) -> Answer:
    which = launch.integers(0, 4)
    return Answer([which, np.zeros(launch.total)], [which, TABLE[which] + GRID[which % 2, which % 3]])


@THEME.kernel()
def part_of_an_array(launch: Launch) -> Answer:
    x = launch.integers(-1000, 1000, shape=(launch.total, 8))
    expected = x.copy()
    expected[:, 1], expected[:, 5] = x[:, 3], x[:, 1]
    return Answer([x], [expected])
