"""Threads that work together on the CPU: reductions over blocks and warps, shuffles."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from blocks import BLOCKS, DTYPES, FLOAT_OPS, INTEGER_OPS, PLACE, REDUCE, WARP, module, reduced, size_of, values
from hypothesis import given, settings
from hypothesis import strategies as st

import offload
from offload.runtime import Library

# Reductions over a block. Each thread stores its own result.

REDUCTIONS = [(op, "i32") for op in INTEGER_OPS] + [(op, "f32") for op in FLOAT_OPS]
REDUCTIONS += [("add", "i64"), ("maxsi", "i64"), ("add", "f64"), ("mul", "f64")]


@functools.cache
def reductions() -> Library:
    return module("reductions", PLACE + "".join(REDUCE.format(op=op, type=kind) for op, kind in REDUCTIONS))


@pytest.mark.parametrize(("op", "kind"), REDUCTIONS)
def test_all_reduce(op: str, kind: str) -> None:
    for block in BLOCKS:
        x = values(kind, op, (3, size_of(block)), size_of(block))
        out = np.zeros_like(x)
        reductions().kernels[f"{op}_{kind}"][3, block](x.reshape(-1), out.reshape(-1))
        np.testing.assert_array_equal(out, np.broadcast_to(reduced(op, x)[:, None], x.shape), str(block))


@given(block=st.integers(1, 1024), blocks=st.integers(1, 5), seed=st.integers(0, 100))
@settings(max_examples=25)
def test_all_reduce_of_any_block(block: int, blocks: int, seed: int) -> None:
    x = values("i32", "add", (blocks, block), seed)
    out = np.zeros_like(x)
    reductions().kernels.add_i32[blocks, block](x.reshape(-1), out.reshape(-1))
    np.testing.assert_array_equal(out, np.broadcast_to(reduced("add", x)[:, None], x.shape))


def test_all_reduce_keeps_or_drops_nan_as_the_operation_says() -> None:
    x = np.arange(64, dtype=np.float32)
    x[40] = np.nan
    out = np.zeros_like(x)
    reductions().kernels.maximumf_f32[1, 64](x, out)
    assert np.isnan(out).all()
    reductions().kernels.maxnumf_f32[1, 64](x, out)
    np.testing.assert_array_equal(out, np.full(64, 63, np.float32))


def test_all_reduce_that_some_threads_may_not_reach_is_refused_where_it_stands() -> None:
    text = f"gpu.module @m {{{PLACE}{REDUCE.format(op='add', type='i32')}}}\n".replace(" uniform", "")
    offload.compile(text, targets=["host"])
    branch = (
        "%three = arith.constant 3 : index\n%c = arith.cmpi ult, %at, %three : index\nscf.if %c { %u = gpu.all_reduce"
    )
    text = text.replace("%r = gpu.all_reduce", branch).replace("memref.store %r", "}\nmemref.store %v")
    with pytest.raises(offload.CompileError, match=r"^<string>:\d+:18: error: 'gpu.all_reduce' op may not be reached"):
        offload.compile(text, targets=["host"])


def test_all_reduce_with_an_operation_of_the_author() -> None:
    library = module(
        "own",
        PLACE
        + """
      gpu.func @largest_magnitude(%x: memref<?xf32>, %out: memref<?xf32>) kernel {
        %at = func.call @place() : () -> index
        %v = memref.load %x[%at] : memref<?xf32>
        %r = gpu.all_reduce %v uniform {
        ^bb0(%a: f32, %b: f32):
          %m = math.absf %a : f32
          %n = math.absf %b : f32
          %c = arith.cmpf oge, %m, %n : f32
          %s = arith.select %c, %m, %n : f32
          "gpu.yield"(%s) : (f32) -> ()
        } : (f32) -> (f32)
        memref.store %r, %out[%at] : memref<?xf32>
        gpu.return
      }""",
    )
    for block in (1, 33, 256):
        x = np.random.default_rng(3).normal(size=block).astype(np.float32)
        x[0] = abs(x[0])
        out = np.zeros_like(x)
        library.kernels.largest_magnitude[1, block](x, out)
        np.testing.assert_array_equal(out, np.full(block, np.abs(x).max()))


# Warps.

SHUFFLE = """
  gpu.func @{mode}_{type}(%x: memref<?x{type}>, %out: memref<?x{type}>, %ok: memref<?xi32>, %offset: i32, %width: i32)
      kernel {{
    %at = func.call @place() : () -> index
    %v = memref.load %x[%at] : memref<?x{type}>
    %r, %valid = gpu.shuffle {mode} %v, %offset, %width : {type}
    memref.store %r, %out[%at] : memref<?x{type}>
    %flag = arith.extui %valid : i1 to i32
    memref.store %flag, %ok[%at] : memref<?xi32>
    gpu.return
  }}
"""
MODES = ("xor", "up", "down", "idx")
SHUFFLED = ("i32", "f32", "i64", "f64", "f16", "i8")


@functools.cache
def shuffles() -> Library:
    return module("shuffles", PLACE + "".join(SHUFFLE.format(mode=m, type=t) for m in MODES for t in SHUFFLED))


def shuffled(mode: str, threads: int, offset: int, width: int) -> tuple[Any, Any]:
    """For each thread of a block: the thread whose value it gets, and whether there is one."""
    thread = np.arange(threads)
    lane = thread % WARP
    source = {"xor": lane ^ offset, "up": lane - offset, "down": lane + offset, "idx": 0 * lane + offset}[mode]
    inside = (lane < width) & (source >= 0) & (source < width)
    return thread - lane + source, inside & (thread - lane + source < threads)


@pytest.mark.parametrize("kind", SHUFFLED)
@pytest.mark.parametrize("mode", MODES)
def test_shuffles(mode: str, kind: str) -> None:
    for block in (1, 8, 32, 40, 96):
        for width in (32, 16, 8):
            for offset in (0, 1, 3, 7, width // 2, width - 1):
                x = np.arange(block).astype(DTYPES[kind]) + DTYPES[kind](2)
                out, ok = np.zeros_like(x), np.zeros(block, np.int32)
                shuffles().kernels[f"{mode}_{kind}"][1, block](x, out, ok, offset, width)
                source, valid = shuffled(mode, block, offset, width)
                what = f"block {block} width {width} offset {offset}"
                np.testing.assert_array_equal(out[valid], x[source[valid]], what)
                assert ok[valid].all(), what
                if block % WARP == 0:
                    np.testing.assert_array_equal(ok, valid, what)


def test_a_warp_adds_up_by_shuffles_in_a_loop() -> None:
    library = module(
        "loops",
        PLACE
        + """
      gpu.func @butterfly(%x: memref<?xf32>) kernel {
        %at = func.call @place() : () -> index
        %v = memref.load %x[%at] : memref<?xf32>
        %c1 = arith.constant 1 : i32
        %c32 = arith.constant 32 : i32
        %sum, %o = scf.while (%s = %v, %offset = %c1) : (f32, i32) -> (f32, i32) {
          %more = arith.cmpi ult, %offset, %c32 : i32
          scf.condition(%more) %s, %offset : f32, i32
        } do {
        ^bb0(%s: f32, %offset: i32):
          %other, %valid = gpu.shuffle xor %s, %offset, %c32 : f32
          %t = arith.addf %s, %other : f32
          %next = arith.shli %offset, %c1 : i32
          scf.yield %t, %next : f32, i32
        }
        memref.store %sum, %x[%at] : memref<?xf32>
        gpu.return
      }""",
    )
    x = np.random.default_rng(5).integers(-99, 99, (2, 3, WARP)).astype(np.float32)
    expected = np.broadcast_to(x.sum(axis=2, keepdims=True), x.shape).copy()
    library.kernels.butterfly[2, 3 * WARP](x.reshape(-1))
    np.testing.assert_array_equal(x, expected)


SUBGROUP = """
  gpu.func @{name}(%x: memref<?x{type}>, %out: memref<?x{type}>) kernel {{
    %at = func.call @place() : () -> index
    %v = memref.load %x[%at] : memref<?x{type}>
    %r = gpu.subgroup_reduce {op} %v {cluster} : ({type}) -> {type}
    memref.store %r, %out[%at] : memref<?x{type}>
    gpu.return
  }}
"""


@pytest.mark.parametrize(
    ("op", "kind", "cluster"),
    [
        ("add", "i32", WARP),
        ("add", "f32", WARP),
        ("maxsi", "i32", WARP),
        ("minimumf", "f32", WARP),
        ("xor", "i32", WARP),
        ("add", "i64", WARP),
        ("add", "i8", WARP),
        ("add", "f16", WARP),
        ("add", "i32", 8),
        ("maxnumf", "f32", 16),
        ("add", "i8", 4),
    ],
)
def test_subgroup_reduce(op: str, kind: str, cluster: int) -> None:
    text = f"cluster(size = {cluster})" if cluster != WARP else ""
    library = module("subgroup", PLACE + SUBGROUP.format(name="reduce", op=op, type=kind, cluster=text))
    x = values(kind, op, (2, 96), 7) if kind != "f16" else np.arange(-96, 96).reshape(2, 96).astype(np.float16)
    out = np.zeros_like(x)
    library.kernels.reduce[2, 96](x.reshape(-1), out.reshape(-1))
    parts = x.reshape(-1, cluster)
    expected = np.broadcast_to(reduced(op, parts)[:, None], parts.shape).reshape(x.shape)
    np.testing.assert_array_equal(out, expected)


def test_subgroup_reduce_of_strided_clusters() -> None:
    cluster = "cluster(size = 4, stride = 8)"
    library = module("strided", PLACE + SUBGROUP.format(name="reduce", op="add", type="i32", cluster=cluster))
    x = np.arange(64, dtype=np.int32)
    out = np.zeros_like(x)
    library.kernels.reduce[1, 64](x, out)
    expected = x.reshape(2, 4, 8).sum(axis=1, keepdims=True).repeat(4, axis=1).reshape(-1)
    np.testing.assert_array_equal(out, expected)
