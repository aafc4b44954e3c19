"""The kernels of with_triton.py, which imports this where there is a Triton. Arrays: inputs, outputs, scratch."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


@triton.jit
def _triad(b, c, a, n, block: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = at < n
    tl.store(a + at, tl.load(b + at, inside) + 3.0 * tl.load(c + at, inside), inside)


def triad(b: Any, c: Any, a: Any) -> None:
    _triad[(triton.cdiv(a.numel(), 2048),)](b, c, a, a.numel(), block=2048, num_warps=8)


@triton.jit
def _transpose(x, out, side, tile: tl.constexpr):  # type: ignore[no-untyped-def]
    rows = tl.program_id(1) * tile + tl.arange(0, tile)
    cols = tl.program_id(0) * tile + tl.arange(0, tile)
    v = tl.load(x + rows[:, None].to(tl.int64) * side + cols[None, :])
    tl.store(out + cols[:, None].to(tl.int64) * side + rows[None, :], tl.trans(v))


def transpose(x: Any, out: Any) -> None:
    side = x.shape[0]
    _transpose[(side // 64, side // 64)](x, out, side, tile=64, num_warps=8)


@triton.jit
def _sums(x, sums, n, block: tl.constexpr):  # type: ignore[no-untyped-def]
    total = tl.zeros((block,), tl.float32)
    start = tl.program_id(0).to(tl.int64) * block
    for at in range(start, n, tl.num_programs(0) * block):
        i = at + tl.arange(0, block)
        total += tl.load(x + i, i < n, 0.0)
    tl.store(sums + tl.program_id(0), tl.sum(total))


def reduction(x: Any, sums: Any, parts: Any) -> None:
    _sums[(parts.numel(),)](x, parts, x.numel(), block=4096, num_warps=8)
    _sums[(1,)](parts, sums, parts.numel(), block=2048, num_warps=8)


@triton.jit
def _softmax(x, out, cols: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0).to(tl.int64) * cols + tl.arange(0, cols)
    v = tl.load(x + at)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + at, e / tl.sum(e, axis=0))


def softmax(x: Any, out: Any) -> None:
    _softmax[(x.shape[0],)](x, out, cols=x.shape[1], num_warps=8)


@triton.jit
def _layer_norm(x, gamma, beta, out, cols: tl.constexpr):  # type: ignore[no-untyped-def]
    place = tl.arange(0, cols)
    at = tl.program_id(0).to(tl.int64) * cols + place
    v = tl.load(x + at)
    centred = v - tl.sum(v, axis=0) / cols
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / cols + 1e-5)
    tl.store(out + at, centred * scale * tl.load(gamma + place) + tl.load(beta + place))


def layer_norm(x: Any, gamma: Any, beta: Any, out: Any) -> None:
    _layer_norm[(x.shape[0],)](x, gamma, beta, out, cols=x.shape[1], num_warps=8)
