"""Barriers: where all threads reach them, where some have ended, and where threads come on different ways."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance import Answer, Launch, Theme

THEME = Theme("barriers")
FEW = [(1, 1, 1), (7, 1, 1), (33, 1, 1), (64, 1, 1), (100, 1, 1), (5, 4, 3), (16, 8, 8)]


def blocks_of(launch: Launch, values: Any) -> Any:
    return values.reshape(launch.blocks, launch.threads)


def rolled(launch: Launch, values: Any, times: int) -> Any:
    """Each thread has what the one ``times`` further had."""
    return np.roll(blocks_of(launch, values), -times, axis=1).ravel()


def turned(launch: Launch, values: Any) -> Any:
    return blocks_of(launch, values)[:, ::-1].ravel()


@THEME.kernel()
def straight(launch: Launch) -> Answer:
    x = launch.any_of(np.int32)
    return Answer([x], [turned(launch, x)])


@THEME.kernel()
def uniform_for(launch: Launch) -> Answer:
    x, times = launch.any_of(np.int32), int(launch.random.integers(0, 9))
    return Answer([x, times], [rolled(launch, x, times)])


@THEME.kernel()
def rounds_of_the_block(launch: Launch) -> Answer:
    x = launch.any_of(np.int32)
    parts = [np.roll(part, -(i % 3)) for i, part in enumerate(blocks_of(launch, x))]
    return Answer([x], [np.concatenate(parts)])


@THEME.kernel()
def uniform_while(launch: Launch) -> Answer:
    x = launch.integers(-1000, 1000)
    sums = blocks_of(launch, x).sum(axis=1).astype(np.int32)
    return Answer([x, np.zeros(launch.blocks, np.int32)], [x, sums])


@THEME.kernel()
def nested_loops(launch: Launch) -> Answer:
    x, outer, inner = launch.integers(-99, 99), *map(int, launch.random.integers(0, 4, 2))
    return Answer([x, outer, inner], [rolled(launch, x, outer * inner) * np.int32(3**outer)])


@THEME.kernel()
def in_a_function(launch: Launch) -> Answer:
    x = launch.integers(-1000, 1000)
    return Answer([x], [x])


@THEME.kernel()
def some_end_early(launch: Launch) -> Answer:
    x, stay = launch.any_of(np.int32), int(launch.random.integers(0, launch.threads + 3))
    expected = blocks_of(launch, x).copy()
    expected[:, :stay] = expected[:, :stay][:, ::-1]
    return Answer([x, stay], [expected.ravel()])


@THEME.kernel(blocks=FEW, cpu_only=True)
def divergent_loop(launch: Launch) -> Answer:
    times = launch.thread % 5 + 1
    others = rolled(launch, times, 1)
    sums = [sum(min(i, other) for i in range(1, own + 1)) for own, other in zip(times, others, strict=True)]
    return Answer([np.zeros(launch.total, np.int32)], [np.array(sums, np.int32)])


@THEME.kernel(blocks=FEW, cpu_only=True)
def both_ways(launch: Launch) -> Answer:
    x = launch.integers(-1000, 1000)
    odd = launch.thread % 2 * 10
    return Answer([x], [(rolled(launch, x + odd, 1) - odd).astype(np.int32)])


@THEME.kernel(blocks=FEW, cpu_only=True)
def uneven_ways(launch: Launch) -> Answer:
    return Answer([np.zeros(launch.total, np.int32)], [rolled(launch, 2 - launch.thread % 2, 1).astype(np.int32)])


@THEME.kernel(blocks=FEW, cpu_only=True)
def in_a_switch(launch: Launch) -> Answer:
    x = launch.any_of(np.int32)
    return Answer([x], [turned(launch, x)])


@THEME.kernel()
def after_divergence(launch: Launch) -> Answer:
    x = launch.any_of(np.int32)
    mixed = [np.bitwise_xor.reduce(np.arange(t), initial=0) for t in range(launch.threads)]
    return Answer([x], [turned(launch, x ^ np.tile(np.array(mixed, np.int32), launch.blocks))])


@THEME.kernel(blocks=FEW)
def rounds_from_memory(launch: Launch) -> Answer:
    x, times = launch.any_of(np.int32), int(launch.random.integers(0, 9))
    rounds = np.array([times], np.int64)
    return Answer([x, rounds], [rolled(launch, x, times), rounds])


@THEME.kernel()
def kept_values(launch: Launch) -> Answer:
    x = launch.integers(-60000, 60000)
    narrow = x.astype(np.int8).astype(np.float64)
    expected = 2 * narrow + np.abs(x) + x.astype(np.float32)
    return Answer([x, np.zeros(launch.total)], [x, expected])
