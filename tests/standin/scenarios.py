"""What the tests call on a stand-in driver: every example, and a program that uses streams, events, fills, copies
and memory of every kind. Each scenario uses its library from one end to the other and checks what comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class Wrong(Exception):
    """A result is not what it should be."""


def same(found: Any, expected: Any) -> None:
    if not np.allclose(found, expected, rtol=1e-5, atol=1e-5):
        raise Wrong(f"{np.ravel(found)[:8]} and not {np.ravel(expected)[:8]}")


def numbers(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def saxpy(library: Any) -> None:
    x, y = numbers(700), numbers(700)[::-1].copy()
    there, out = library.device.array(x), library.device.array(y)
    library.saxpy(2.5, there, out)
    stream = library.stream()
    library.kernels.saxpy_kernel[3, 256, stream](there, out, 0.5)
    stream.synchronize()
    same(out.numpy(), 3 * x + y)


def scale(library: Any) -> None:
    x = numbers(9, 14)
    there = library.device.array(x)
    library.scale(-3, there)
    same(there.numpy(), -3 * x)


def linear(library: Any) -> None:
    x, w, bias = numbers(7, 5), numbers(5, 9), numbers(9)
    out = library.device.zeros((7, 9), np.float32)
    library.linear_relu(library.device.array(x), library.device.array(w), library.device.array(bias), out)
    same(out.numpy(), np.maximum(x @ w + bias, 0))


def reduce(library: Any) -> None:
    x = numbers(600)
    out = library.device.zeros(3, np.float32)
    library.block_sums(library.device.array(x), out)
    same(out.numpy(), [x[:256].sum(), x[256:512].sum(), x[512:].sum()])


def transpose(library: Any) -> None:
    x = numbers(33, 40)
    out = library.device.zeros((40, 33), np.float32)
    with library.stream() as stream:
        library.transpose(library.device.array(x), out)
        stream.synchronize()
    same(out.numpy(), x.T)


def asynchronous(library: Any) -> None:
    x = np.arange(40, dtype=np.int32)
    there, out = library.device.array(x), library.device.zeros(40, np.int32)
    library.chain(there, out)
    same(out.numpy(), x + 1)
    library.diamond(there, 5, out)
    same(out.numpy(), x + 1 + 5 + 2)
    library.sync(there, out, 4)
    same(out.numpy(), x + 5)
    same(library.host_shared(20), sum(range(20)) + 20 * 5)
    here = x.copy()
    library.registered(here)
    same(here, x + 1)


def waits(library: Any) -> None:
    x = np.arange(70, dtype=np.int32)
    there = library.device.array(x)
    library.memory(there)
    library.loop(there, 2)
    library.temporary(there, True)
    same(there.numpy(), ((((x + 6) * 9 + 3) * 3 + 3) * 3) * 3)
    same(library.load(there), (5 + 3) * 3)


SCENARIOS: dict[str, Callable[[Any], None]] = {
    "saxpy": saxpy,
    "scale": scale,
    "linear": linear,
    "reduce": reduce,
    "transpose": transpose,
    "async": asynchronous,
    "wait_once": waits,
}
