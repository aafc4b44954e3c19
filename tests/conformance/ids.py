"""Ids and sizes, in grids and blocks of three dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance import Answer, Launch, Theme

THEME = Theme("ids")


def columns(launch: Launch, *values: Any) -> Answer:
    """An array with eight columns per thread, of which the kernel writes the first."""
    out = np.full((launch.total, 8), -1, np.int64)
    expected = out.copy()
    for i, value in enumerate(values):
        expected[:, i] = value
    return Answer([out], [expected])


def places(launch: Launch) -> tuple[list[Any], list[Any]]:
    """Thread ids and block ids along x, y and z."""

    def along(number: Any, sizes: tuple[int, int, int]) -> list[Any]:
        return [number % sizes[0], number // sizes[0] % sizes[1], number // sizes[0] // sizes[1]]

    return along(launch.thread, launch.block), along(np.arange(launch.total) // launch.threads, launch.grid)


@THEME.kernel()
def threads_and_blocks(launch: Launch) -> Answer:
    threads, blocks = places(launch)
    return columns(launch, *threads, *blocks)


@THEME.kernel()
def sizes(launch: Launch) -> Answer:
    return columns(launch, *launch.block, *launch.grid)


@THEME.kernel()
def lanes(launch: Launch) -> Answer:
    warps = -(-launch.threads // launch.warp)
    return columns(launch, launch.lane, launch.thread // launch.warp, warps, launch.warp)


@THEME.kernel()
def globals(launch: Launch) -> Answer:
    threads, blocks = places(launch)
    return columns(launch, *(b * n + t for t, b, n in zip(threads, blocks, launch.block, strict=True)))


@THEME.kernel()
def around_a_barrier(launch: Launch) -> Answer:
    return columns(launch, 0, launch.lane)


@THEME.kernel(blocks=[(48, 2, 1)])
def known_block(launch: Launch) -> Answer:
    return columns(launch, 48, launch.lane, launch.thread // launch.warp)


@THEME.kernel()
def narrow(launch: Launch) -> Answer:
    return columns(launch, places(launch)[0][0].astype(np.int8))
