"""gpu.all_reduce and gpu.subgroup_reduce: every operation, type and form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from device_values import (
    BLOCKS,
    FLOATS,
    FLOATS_OF_8_BITS,
    INTEGERS,
    THREAD,
    launched,
    load,
    mapped,
    module,
    ops_of,
    reduced,
    store,
    values,
)

from offload.runtime import Library
from operations import Case

WARP = 32


def _all_reduce(kind: str, uniform: str = "uniform ") -> str:
    return module("".join(
        mapped(op, kind, f"%r = gpu.all_reduce {op} %v {uniform}{{}} : ({kind}) -> {kind}") for op in ops_of(kind)
    ))  # fmt: skip


def _all_reduced(kind: str, blocks: Sequence[tuple[int, int, int]] = BLOCKS) -> Callable[[Library], None]:
    def run(library: Library) -> None:
        for op in ops_of(kind):
            for block in blocks:
                x = values(kind, op, (3, int(np.prod(block))))
                want = np.broadcast_to(reduced(op, x)[:, None], x.shape)
                np.testing.assert_array_equal(launched(library.kernels[op], block, x), want, f"{op} {block}")

    return run


OWN = module(mapped("k", "i32", """
  %r = gpu.all_reduce %v uniform {
  ^bb(%a: i32, %b: i32):
    %zero = arith.constant 0 : i32
    %c = arith.cmpi eq, %b, %zero : i32
    %s = scf.if %c -> i32 {
      scf.yield %a : i32
    } else {
      %d = arith.remsi %a, %b : i32
      %e = arith.subi %a, %d : i32
      %f = arith.addi %e, %b : i32
      scf.yield %b : i32
    }
    %m = arith.maxsi %a, %b : i32
    %n = arith.muli %m, %zero : i32
    %o = arith.addi %s, %n : i32
    gpu.yield %o : i32
  } : (i32) -> i32"""))  # fmt: skip


def _last(library: Library) -> None:
    """The region gives the later of two values if it is not 0: it is associative, and its order shows."""
    for block in BLOCKS:
        x = np.arange(1, 3 * np.prod(block) + 1, dtype=np.int32).reshape(3, -1)
        x[:, -1] = 0
        want = x[:, -2:-1] if x.shape[1] > 1 else x
        np.testing.assert_array_equal(launched(library.kernels.k, block, x), np.broadcast_to(want, x.shape), str(block))


BLOCKS_OF_ITS_OWN = module(mapped("k", "i32", """
  %r = gpu.all_reduce %v uniform {
  ^bb(%a: i32, %b: i32):
    %zero = arith.constant 0 : i32
    %c = arith.cmpi eq, %b, %zero : i32
    cf.cond_br %c, ^done(%a : i32), ^other
  ^other:
    %d = arith.remsi %a, %b : i32
    %e = arith.andi %d, %zero : i32
    %f = arith.addi %b, %e : i32
    gpu.yield %f : i32
  ^done(%s: i32):
    gpu.yield %s : i32
  } : (i32) -> i32"""))  # fmt: skip


TOGETHER = module(mapped("k", "i32", """
  %n = memref.dim %x, %zero : memref<?xi32>
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %many = arith.cmpi ugt, %n, %three : index
  %r = scf.if %many -> i32 {
    %sum = scf.for %i = %zero to %three step %one iter_args(%a = %v) -> i32 {
      %u = gpu.all_reduce add %a {} : (i32) -> i32
      %w = gpu.all_reduce maxsi %v {} : (i32) -> i32
      %y = arith.addi %u, %w : i32
      scf.yield %y : i32
    }
    scf.yield %sum : i32
  } else {
    scf.yield %v : i32
  }""").replace(THREAD, THREAD + "%zero = arith.constant 0 : index\n"))  # fmt: skip


def _together(library: Library) -> None:
    for block in BLOCKS:
        x = values("i32", "add", (3, int(np.prod(block))))
        a = x.copy()
        if x.size > 3:
            for _ in range(3):
                a = np.broadcast_to((a.sum(axis=1, dtype=np.int32) + x.max(axis=1))[:, None], x.shape)
        np.testing.assert_array_equal(launched(library.kernels.k, block, x), a, str(block))


DIVERGENT = module(mapped("k", "i32", """
  %three = arith.constant 3 : index
  %c = arith.cmpi ult, %thread, %three : index
  %r = scf.if %c -> i32 {
    %u = gpu.all_reduce add %v {} : (i32) -> i32 // here
    scf.yield %u : i32
  } else {
    scf.yield %v : i32
  }"""))  # fmt: skip


def _subgroup(kind: str, *, uniform: str = "uniform ", cluster: str = "", count: int = 0) -> str:
    def kernel(op: str) -> str:
        if not count:
            return mapped(op, kind, f"%r = gpu.subgroup_reduce {op} %v {uniform}{cluster} : ({kind}) -> {kind}")
        # The last element of the vector differs from the value where that stays exact.
        vector = f"vector<{count}x{kind}>"
        other = "arith.xori" if kind in INTEGERS else "arith.addf"
        constants = ", ".join(str(i) if kind in INTEGERS else str(float(count - 1 - i)) for i in range(count))
        body = f"""
          %k = arith.constant dense<[{constants}]> : {vector}
          %s = vector.broadcast %v : {kind} to {vector}
          %t = {other} %s, %k : {vector}
          %u = gpu.subgroup_reduce {op} %t {uniform}{cluster} : ({vector}) -> {vector}
          %r = vector.extract %u[{count - 1}] : {kind} from {vector}"""
        return mapped(op, kind, body)

    return module("".join(map(kernel, ops_of(kind))))


def _groups(threads: int, size: int, stride: int) -> list[Any]:
    """The threads of each cluster of a block."""
    thread = np.arange(threads)
    lane = thread % WARP
    key = thread // WARP * WARP + lane // (size * stride) * stride + lane % stride
    return [thread[key == k] for k in np.unique(key)]


def _subgroup_reduced(kind: str, size: int = 0, stride: int = 1, count: int = 0) -> Callable[[Library], None]:
    """The reduction of each cluster, or of whole subgroups."""

    def run(library: Library) -> None:
        for op in ops_of(kind):
            for block in BLOCKS:
                threads = int(np.prod(block))
                x = values(kind, op, (3, threads))
                want = np.zeros_like(x)
                y = x if not count or kind not in INTEGERS else x ^ x.dtype.type(count - 1)
                for group in _groups(threads, size or WARP, stride):
                    want[:, group] = reduced(op, np.ascontiguousarray(y[:, group]))[:, None]
                np.testing.assert_array_equal(launched(library.kernels[op], block, x), want, f"{op} {block}")

    return run


ACTIVE = module("".join(mapped(name, kind, f"""
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %m = arith.remui %thread, %three : index
  %c = arith.cmpi ule, %m, %one : index
  %r = scf.if %c -> {kind} {{
    %u = gpu.subgroup_reduce add %v {cluster} : ({kind}) -> {kind}
    scf.yield %u : {kind}
  }} else {{
    %u = gpu.subgroup_reduce {high} %v {cluster} : ({kind}) -> {kind}
    scf.yield %u : {kind}
  }}""") for name, kind, high, cluster in [
    ("i32", "i32", "maxsi", ""), ("f16", "f16", "maxnumf", ""),
    ("clusters", "i64", "maxsi", "cluster(size = 4, stride = 2)"),
]))  # fmt: skip


def _active(library: Library) -> None:
    for name, kind, size, stride in (("i32", "i32", WARP, 1), ("f16", "f16", WARP, 1), ("clusters", "i64", 4, 2)):
        for block in BLOCKS:
            threads = int(np.prod(block))
            x = values(kind, "add", (3, threads))
            want = np.zeros_like(x)
            first = np.arange(threads) % 3 <= 1
            for group in _groups(threads, size, stride):
                for chosen, op in ((group[first[group]], "add"), (group[~first[group]], "maximumf")):
                    if len(chosen):
                        want[:, chosen] = reduced(op, np.ascontiguousarray(x[:, chosen]))[:, None]
            np.testing.assert_array_equal(launched(library.kernels[name], block, x), want, f"{name} {block}")


# Threads leave a loop at different times; all meet again behind it.
AFTER_LOOP = module(f"""
  gpu.func @k(%x: memref<?xi32>, %out: memref<?xi32>) kernel {{
    {THREAD}{load("i32")}
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %five = arith.constant 5 : index
    %times = arith.remui %thread, %five : index
    %s = scf.for %i = %zero to %times step %one iter_args(%a = %v) -> i32 {{
      %u = gpu.subgroup_reduce add %v : (i32) -> i32
      %w = arith.addi %a, %u : i32
      scf.yield %w : i32
    }}
    %r = gpu.subgroup_reduce add %s uniform : (i32) -> i32
    {store("i32")}
    gpu.return
  }}""")


def _after_loop(library: Library) -> None:
    for block in BLOCKS:
        threads = int(np.prod(block))
        x = values("i32", "add", (3, threads))
        want = np.zeros_like(x)
        times = np.arange(threads) % 5
        for warp in _groups(threads, WARP, 1):
            s = x[:, warp].copy()
            for i in range(5):
                there = times[warp] > i
                s[:, there] += x[:, warp[there]].sum(axis=1, dtype=np.int32)[:, None]
            want[:, warp] = s.sum(axis=1, dtype=np.int32)[:, None]
        np.testing.assert_array_equal(launched(library.kernels.k, block, x), want, str(block))


def _known(size: str) -> str:
    return module(mapped(
        "k", "f32", "%r = gpu.all_reduce add %v uniform {} : (f32) -> f32",
        attributes=f"attributes {{known_block_size = array<i32: {size}>}}",
    ))  # fmt: skip


def _of_known(block: tuple[int, int, int]) -> Callable[[Library], None]:
    def run(library: Library) -> None:
        x = values("f32", "add", (3, int(np.prod(block))))
        want = np.broadcast_to(reduced("add", x)[:, None], x.shape)
        np.testing.assert_array_equal(launched(library.kernels.k, block, x), want)

    return run


_OTHER = {"nvvm": "sm_75", "rocdl": "gfx1100"}
_WAVE64 = {"nvvm": "sm_80", "rocdl": "gfx1100,wave64"}
_TOO_WIDE = "has clusters of 32 lanes 2 apart, but the subgroups of this target have 32 threads"
CASES = [
    *(
        Case("gpu.all_reduce", f"uniform, {kind}", _all_reduce(kind), _all_reduced(kind))
        for kind in INTEGERS + FLOATS + FLOATS_OF_8_BITS
    ),
    Case("gpu.all_reduce", "uniform, wave32", _all_reduce("f16"), _all_reduced("f16"), chips=_OTHER),
    Case("gpu.all_reduce", "uniform, wave64 of two halves", _all_reduce("i8"), _all_reduced("i8"), chips=_WAVE64),
    Case("gpu.all_reduce", "not uniform, all threads reach it", _all_reduce("i32", ""), _all_reduced("i32")),
    Case("gpu.all_reduce", "not uniform, in loops and branches alike for all", TOGETHER, _together),
    Case(
        "gpu.all_reduce",
        "not uniform, some threads stay away",
        DIVERGENT,
        refused=dict.fromkeys(("nvvm", "rocdl", "host"), "may not be reached by all threads of the block"),
    ),
    Case("gpu.all_reduce", "the author's operation", OWN, _last),
    Case("gpu.all_reduce", "the author's operation, of several blocks", BLOCKS_OF_ITS_OWN, _last),
    Case("gpu.all_reduce", "block size known, of whole subgroups", _known("128, 2, 1"), _of_known((128, 2, 1))),
    Case("gpu.all_reduce", "block size known, partial", _known("9, 5, 1"), _of_known((9, 5, 1))),
    Case("gpu.all_reduce", "block size known, one subgroup", _known("32, 1, 1"), _of_known((32, 1, 1))),
    *(
        Case("gpu.subgroup_reduce", f"uniform, {kind}", _subgroup(kind), _subgroup_reduced(kind))
        for kind in INTEGERS + FLOATS + FLOATS_OF_8_BITS
    ),
    *(
        Case(
            "gpu.subgroup_reduce",
            f"vector of {count}, {kind}",
            _subgroup(kind, count=count),
            _subgroup_reduced(kind, count=count),
        )
        for kind, count in (("i8", 4), ("f16", 3), ("bf16", 2), ("i64", 2), ("f8E5M2", 3))
    ),
    *(
        Case(
            "gpu.subgroup_reduce",
            f"clusters of {size}, stride {stride}, {kind}",
            _subgroup(kind, uniform=uniform, cluster=f"cluster(size = {size}, stride = {stride})"),
            _subgroup_reduced(kind, size, stride),
        )
        for kind, size, stride, uniform in (
            ("i32", 4, 1, ""),
            ("f16", 8, 4, "uniform "),
            ("i8", 1, 1, ""),
            ("f64", 16, 2, ""),
        )
    ),
    Case(
        "gpu.subgroup_reduce",
        "clusters, wave64 of two halves",
        _subgroup("f32", cluster="cluster(size = 16, stride = 2)"),
        _subgroup_reduced("f32", 16, 2),
        chips=_WAVE64,
    ),
    Case(
        "gpu.subgroup_reduce",
        "clusters of the whole wave64 only",
        _subgroup("f32", cluster="cluster(size = 32, stride = 2)").replace(" -> f32\n", " -> f32 // here\n"),
        refused={"nvvm": _TOO_WIDE, "host": _TOO_WIDE},
    ),
    Case("gpu.subgroup_reduce", "not uniform", _subgroup("i32", uniform=""), _subgroup_reduced("i32")),
    Case("gpu.subgroup_reduce", "not uniform, in branches", ACTIVE, _active),
    Case("gpu.subgroup_reduce", "not uniform, in branches, wave64 of two halves", ACTIVE, _active, chips=_WAVE64),
    Case("gpu.subgroup_reduce", "in and behind a loop of different lengths", AFTER_LOOP, _after_loop),
]
