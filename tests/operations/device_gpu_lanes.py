"""gpu.shuffle, gpu.rotate: values of other lanes. gpu.subgroup_broadcast follows in device_gpu_lanes_chosen.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from device_values import BLOCKS, FLOATS, INTEGERS, THREAD, launched, load, mapped, module, store, stored, values

from offload.runtime import Library
from operations import Case

WARP = 32
MODES = ("xor", "up", "down", "idx")
OFFSETS = (0, 1, 3, 7, 15, 31)


def _shuffle(kind: str, width: int | None, *, there: str = "") -> str:
    """One kernel per mode; the width is an argument where it is None. ``there`` goes around the shuffle."""
    text = ""
    for mode in MODES:
        constant = f"%width = arith.constant {width} : i32" if width else ""
        text += f"""
          gpu.func @{mode}(%x: memref<?x{stored(kind)}>, %out: memref<?x{stored(kind)}>, %ok: memref<?xi32>,
                           %offset: i32{"" if width else ", %width: i32"}) kernel {{
            {THREAD}{load(kind)}{constant}
            %r, %valid = gpu.shuffle {mode} %v, %offset, %width : {kind} // here
            {store(kind)}
            %flag = arith.extui %valid : i1 to i32
            memref.store %flag, %ok[%at] : memref<?xi32>
            gpu.return
          }}"""
    return module(text)


def _source(mode: str, lane: Any, offset: int) -> Any:
    return {"xor": lane ^ offset, "up": lane - offset, "down": lane + offset, "idx": 0 * lane + offset}[mode]


def _shuffled(kind: str, *widths: int, dynamic: bool = False) -> Callable[[Library], None]:
    def run(library: Library) -> None:
        for block in BLOCKS:
            threads = int(np.prod(block))
            x = values(kind, "minnumf", (3, threads))
            thread = np.arange(threads)
            lane, first = thread % WARP, thread // WARP * WARP
            for width in widths:
                for mode in MODES:
                    for offset in OFFSETS:
                        ok = np.full_like(x, 7, np.int32)
                        more = (offset, width) if dynamic else (offset,)
                        out = launched(library.kernels[mode], block, x, ok.reshape(-1), *more)
                        source = _source(mode, lane, offset)
                        valid = (lane < width) & (source >= 0) & (source < width)
                        what = f"{mode} {block} width {width} offset {offset}"
                        np.testing.assert_array_equal(ok, np.broadcast_to(valid, ok.shape), what)
                        there = valid & (first + source < threads)
                        np.testing.assert_array_equal(out[:, there], x[:, (first + source)[there]], what)

    return run


VECTOR = """
  %k = arith.constant dense<[{constants}]> : vector<{count}x{kind}>
  %s = vector.broadcast %v : {kind} to vector<{count}x{kind}>
  %t = {add} %s, %k : vector<{count}x{kind}>
  {change} : vector<{count}x{kind}>
  %r = vector.extract %u[{last}] : {kind} from vector<{count}x{kind}>
"""


def vector_of(kind: str, count: int, change: str) -> str:
    constants = ", ".join(f"{i}.0" if kind in FLOATS else str(i) for i in range(count))
    add = "arith.addf" if kind in FLOATS else "arith.addi"
    body = VECTOR.format(constants=constants, kind=kind, count=count, change=change, last=count - 1, add=add)
    return module(mapped("k", kind, body))


def exchanged(kind: str, source: Callable[[Any], Any], plus: int = 0) -> Callable[[Library], None]:
    """The value of lane ``source(lane)``, where there is one."""

    def run(library: Library) -> None:
        for block in BLOCKS:
            threads = int(np.prod(block))
            x = values(kind, "minnumf", (3, threads))
            thread = np.arange(threads)
            other = thread // WARP * WARP + source(thread % WARP)
            there = other < threads
            with np.errstate(over="ignore"):
                want = x[:, other[there]] + x.dtype.type(plus)
            np.testing.assert_array_equal(launched(library.kernels.k, block, x)[:, there], want, str(block))

    return run


XOR_5 = "%o = arith.constant 5 : i32\n%w = arith.constant 32 : i32\n%u, %ok = gpu.shuffle xor %t, %o, %w"


def _rotate(kind: str, offset: int, width: int) -> str:
    return module(f"""
      gpu.func @k(%x: memref<?x{stored(kind)}>, %out: memref<?x{stored(kind)}>, %ok: memref<?xi32>) kernel {{
        {THREAD}{load(kind)}
        %r, %valid = gpu.rotate %v, {offset}, {width} : {kind} // here
        {store(kind)}
        %flag = arith.extui %valid : i1 to i32
        memref.store %flag, %ok[%at] : memref<?xi32>
        gpu.return
      }}""")


def _rotated(kind: str, offset: int, width: int) -> Callable[[Library], None]:
    def run(library: Library) -> None:
        for block in BLOCKS:
            threads = int(np.prod(block))
            x = values(kind, "minnumf", (3, threads))
            ok = np.full_like(x, 7, np.int32)
            out = launched(library.kernels.k, block, x, ok.reshape(-1))
            thread = np.arange(threads)
            valid = thread % WARP < width
            np.testing.assert_array_equal(ok, np.broadcast_to(valid, ok.shape))
            source = thread // WARP * WARP + (thread % WARP + offset) % width
            there = valid & (source < threads)
            np.testing.assert_array_equal(out[:, there], x[:, source[there]], str(block))

    return run


# Lanes of one branch exchange values, then all do.
BRANCHES = module(f"""
  gpu.func @k(%x: memref<?xi32>, %out: memref<?xi32>) kernel {{
    {THREAD}{load("i32")}
    %l = gpu.lane_id
    %eight = arith.constant 8 : index
    %w8 = arith.constant 8 : i32
    %size = gpu.subgroup_size : index
    %all = arith.index_cast %size : index to i32
    %one = arith.constant 1 : i32
    %c = arith.cmpi ult, %l, %eight : index
    cf.cond_br %c, ^front, ^join(%v : i32)
  ^front:
    %a, %ok = gpu.shuffle xor %v, %one, %w8 : i32
    cf.br ^join(%a : i32)
  ^join(%b: i32):
    %r, %ok2 = gpu.shuffle idx %b, %one, %all : i32
    {store("i32")}
    gpu.return
  }}""")

WAVE32 = {"nvvm": "sm_75", "rocdl": "gfx1100"}
_HALVES = {"nvvm": "sm_80", "rocdl": "gfx1100,wave64"}
_SPLIT = {"nvvm": "sm_80", "rocdl": "gfx1030,wave64"}
_WIDE = "of 64, but the subgroups of this target have 32 threads"
CASES = [
    *(
        Case("gpu.shuffle", f"xor up down idx, {kind}", _shuffle(kind, 32), _shuffled(kind, 32))
        for kind in INTEGERS + FLOATS
    ),
    *(
        Case("gpu.shuffle", f"width {width}", _shuffle("f32", width), _shuffled("f32", width))
        for width in (1, 8, 12, 16, 31)
    ),
    Case("gpu.shuffle", "width of the caller", _shuffle("i16", None), _shuffled("i16", 1, 5, 16, 32, dynamic=True)),
    Case("gpu.shuffle", "wave32", _shuffle("f16", 16), _shuffled("f16", 16), chips=WAVE32),
    Case("gpu.shuffle", "wave64 of two halves", _shuffle("f64", 32), _shuffled("f64", 32), chips=_HALVES),
    Case(
        "gpu.shuffle", "wave64 of two halves without exchange", _shuffle("i32", 32), _shuffled("i32", 32), chips=_SPLIT
    ),
    Case("gpu.shuffle", "width 64", _shuffle("f32", 64), refused={"nvvm": _WIDE, "host": _WIDE}),
    *(
        Case(
            "gpu.shuffle",
            f"vector of {count}, {kind}",
            vector_of(kind, count, XOR_5),
            exchanged(kind, lambda lane: lane ^ 5, count - 1),
        )
        for kind, count in (("f16", 4), ("i8", 3), ("f64", 2), ("i32", 2))
    ),
    Case("gpu.shuffle", "in a branch, then for all", BRANCHES, exchanged("i32", lambda lane: 0 * lane)),
    *(
        Case(
            "gpu.rotate", f"{kind}, by {offset} of {width}", _rotate(kind, offset, width), _rotated(kind, offset, width)
        )
        for kind, offset, width in (
            ("i8", 1, 32),
            ("i16", 3, 16),
            ("i32", 31, 32),
            ("i64", 7, 8),
            ("f16", 0, 1),
            ("bf16", 5, 32),
            ("f32", 1, 2),
            ("f64", 30, 32),
        )
    ),
    Case("gpu.rotate", "wave32", _rotate("f32", 3, 16), _rotated("f32", 3, 16), chips=WAVE32),
    Case(
        "gpu.rotate",
        "vector",
        vector_of("f16", 4, "%u, %ok = gpu.rotate %t, 3, 32"),
        exchanged("f16", lambda lane: lane // 32 * 32 + (lane + 3) % 32, 3),
    ),
    Case("gpu.rotate", "width 64", _rotate("f32", 3, 64), refused={"nvvm": _WIDE, "host": _WIDE}),
]
