"""Control flow that parts the threads: loops, branches, switches, returns, calls."""

from __future__ import annotations

import numpy as np

from conformance import Answer, Launch, Theme

THEME = Theme("flow")


def mapped(launch: Launch, x: object, expected: object) -> Answer:
    return Answer([x, np.zeros(launch.total, np.int32)], [x, np.asarray(expected, np.int32)])


@THEME.kernel()
def divergent_while(launch: Launch) -> Answer:
    x = launch.integers(-3, 2000)

    def steps(n: int) -> int:
        count = 0
        while n > 1:
            n = 3 * n + 1 if n % 2 else n // 2
            count += 1
        return count

    return mapped(launch, x, [steps(n) for n in x.tolist()])


@THEME.kernel()
def divergent_for(launch: Launch) -> Answer:
    x = launch.integers(-5, 100)
    return mapped(launch, x, [sum(range(0, n, 3)) for n in x.tolist()])


@THEME.kernel()
def nested_branches(launch: Launch) -> Answer:
    x = launch.integers(0, 1000)
    even, third = x % 2 == 0, x % 3 == 0
    return mapped(launch, x, np.where(even, np.where(third, x * 3, 2), np.where(third, -x, x)))


@THEME.kernel()
def structured_switch(launch: Launch) -> Answer:
    x = launch.integers(0, 1000)
    return mapped(launch, x, np.choose(x % 4, [100, 1, 2 * x, 3]))


@THEME.kernel()
def plain_switch(launch: Launch) -> Answer:
    x = launch.integers(0, 1000)
    return mapped(launch, x, np.choose(x % 5, [7, x, x, 1, x]))


@THEME.kernel()
def wide_switch(launch: Launch) -> Answer:
    x = launch.integers(0, 1000)
    ways = [x + 9, x * x, x ^ 9, x - 9, x >> 9, x | 9, x // 9, x & 9, x]
    return mapped(launch, x, np.choose(x % 9, ways))


@THEME.kernel()
def early_return(launch: Launch) -> Answer:
    x, limit = launch.integers(-100, 100), int(launch.random.integers(0, launch.total + 1))
    goes_on = (np.arange(launch.total) < limit) & (x >= 0)
    return Answer([x, limit], [(x + goes_on).astype(np.int32)])


@THEME.kernel()
def nested_calls(launch: Launch) -> Answer:
    x = launch.integers(-1000, 1000)

    def first(v: int) -> tuple[int, int]:
        a = v + 6 if v & 1 else v
        return a, a + 3

    return mapped(launch, x, [first(v)[0] * first(first(v)[1])[1] for v in x.tolist()])


@THEME.kernel()
def region_in_place(launch: Launch) -> Answer:
    x = launch.integers(-1000, 1000)
    return mapped(launch, x, np.abs(x))


@THEME.kernel()
def grid_stride(launch: Launch) -> Answer:
    n = int(launch.random.integers(1, 5 * launch.total))
    x = launch.integers(-1000, 1000, shape=(n,))
    return Answer([x, n], [x + np.int32(1)])
