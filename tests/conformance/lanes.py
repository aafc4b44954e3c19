"""Lanes of a warp: shuffles, rotations, broadcasts, votes. What the dialect leaves open is not compared."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from conformance import Answer, Launch, Theme

THEME = Theme("lanes")
DTYPES: dict[str, Any] = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip


def shuffled(launch: Launch, values: Any, source: Any, valid: Any) -> tuple[Any, Any]:
    """Each lane's value of lane ``source``, and where that is defined: where it is valid and that lane is there."""
    there = valid & (source >= 0) & (source < launch.present)
    return values[np.where(there, launch.first + source, 0)], there


def exchange(launch: Launch, values: Any, source: Any, valid: Any) -> Answer:
    out, flags = np.zeros_like(values), np.zeros(launch.total, np.int8)
    return Answer([values, out, flags], [values, shuffled(launch, values, source, valid), valid.astype(np.int8)])


@THEME.kernel("xor", "up", "down", "idx")
def shuffle(launch: Launch, mode: str) -> Answer:
    x = launch.any_of(np.int32)
    width, offset = (int(launch.random.integers(low, launch.warp + low)) for low in (1, 0))
    lane = launch.lane
    source = {"xor": lane ^ offset, "up": lane - offset, "down": lane + offset, "idx": lane * 0 + offset}[mode]
    valid = (source >= 0) & (source < width) & (lane < width)
    x, out, flags = (answer := exchange(launch, x, source, valid)).arguments
    return Answer([x, np.int32(offset), np.int32(width), out, flags], answer.expected)


@THEME.kernel(*DTYPES)
def neighbours(launch: Launch, kind: str) -> Answer:
    x = launch.integers(-100, 100, DTYPES[kind])
    source = launch.lane ^ 1
    return Answer([x, np.zeros_like(x)], [x, shuffled(launch, x, source, (source < 16) & (launch.lane < 16))])


@THEME.kernel("2xf32", "4xi16", "3xf64", "5xi8")
def vectors(launch: Launch, shape: str) -> Answer:
    size, kind = shape.split("x")
    x = launch.integers(-100, 100, DTYPES[kind], (launch.total, int(size)))
    source = launch.lane + 1
    return Answer([x, np.zeros_like(x)], [x, shuffled(launch, x, source, source < 32)])


@THEME.kernel()
def rotated(launch: Launch) -> Answer:
    x = launch.random.random(launch.total, np.float32)
    return exchange(launch, x, (launch.lane + 3) % 8, launch.lane < 8)


@THEME.kernel()
def from_lane(launch: Launch) -> Answer:
    x = launch.any_of(np.int64)
    last = launch.threads % launch.warp or launch.warp
    lane = int(launch.random.integers(0, last if launch.threads % launch.warp else launch.warp))
    return Answer([x, np.int32(lane), np.zeros_like(x)], [x, x[launch.first + lane]])


@THEME.kernel()
def first_of_each_way(launch: Launch) -> Answer:
    x = launch.integers(-1000, 1000)

    def of_warp(part: Any) -> Any:
        result = np.zeros_like(part)
        for bit, sign in ((1, 1), (0, -1)):
            chosen = (part & 1) == bit
            if chosen.any():
                result[chosen] = sign * part[chosen][0]
        return result

    return Answer([x, np.zeros_like(x)], [x, launch.by_warp(of_warp, x)])


@THEME.kernel()
def ballot(launch: Launch) -> Answer:
    x = launch.any_of(np.int32)
    bits = np.where(x & 1, np.uint64(1) << launch.lane.astype(np.uint64), np.uint64(0)).view(np.int64)
    return Answer([x, np.zeros_like(bits)], [x, launch.by_warp(np.bitwise_or.reduce, bits)])


@THEME.kernel()
def all_and_any(launch: Launch) -> Answer:
    x = launch.any_of(np.int32)
    both = [launch.by_warp(function, x) for function in (np.bitwise_and.reduce, np.bitwise_or.reduce)]
    return Answer([x, np.zeros((launch.total, 2), np.int32)], [x, np.stack(both, axis=1)])


@THEME.kernel()
def meet_behind_a_loop(launch: Launch) -> Answer:
    x = launch.integers(-1000, 1000)

    def of_warp(part: Any) -> Any:
        now, times = part.copy(), np.arange(len(part)) % 3
        for i in range(3):
            there = times > i
            if there.any():
                now[there] += now[there][0]
        return now.sum(dtype=np.int32)

    return Answer([x, np.zeros_like(x)], [x, launch.by_warp(of_warp, x)])


@THEME.kernel()
def rounds_begin_together(launch: Launch) -> Answer:
    x = launch.integers(-1000, 1000)

    def of_warp(part: Any) -> Any:
        now, times = part.copy(), np.arange(len(part)) % 3
        for i in list(range(3)) * 3:
            there = times > i
            if there.any():
                now[there] += now[there][0]
        return now

    return Answer([x, np.zeros_like(x)], [x, launch.by_warp(of_warp, x)])
